package mobility

import (
	"fmt"
	"io"
	"strings"
)

// ReadBonnMotion reads BonnMotion's native trace (its documentation, "The
// native format"), unpacked: one line a node, on it time, x and y of every
// waypoint in turn. The third dimension is not supported. Faults are
// FileErrors.
func ReadBonnMotion(file string, r io.Reader, area Area) ([]Path, error) {
	var out []Path
	err := eachLine(file, r, func(line string) error {
		if len(out) == maxFileNodes {
			return fmt.Errorf("more than %d nodes", maxFileNodes)
		}
		p, err := bonnNode(strings.Fields(line), area)
		if err != nil {
			return fmt.Errorf("node %d: %w", len(out), err)
		}
		out = append(out, p)
		return nil
	})
	if err == nil && len(out) == 0 {
		err = &FileError{file, 1, "the file moves no node"}
	}
	if err != nil {
		return nil, err
	}
	return out, nil
}

func bonnNode(words []string, area Area) (Path, error) {
	if len(words)%3 != 0 {
		return Path{}, fmt.Errorf("%d numbers: time, x and y of each waypoint make a multiple of three", len(words))
	}
	var knots []Knot
	for i := 0; i < len(words); i += 3 {
		at, err := instant(words[i])
		if err != nil {
			return Path{}, err
		}
		x, err := decimal("x", words[i+1])
		if err != nil {
			return Path{}, err
		}
		y, err := decimal("y", words[i+2])
		if err != nil {
			return Path{}, err
		}
		if err := area.Check(x, y); err != nil {
			return Path{}, fmt.Errorf("waypoint %d: %w", i/3+1, err)
		}
		k := Knot{seconds(at), x, y}
		if n := len(knots); n > 0 {
			last := knots[n-1]
			if k.At < last.At {
				return Path{}, fmt.Errorf("waypoint %d: time goes back from %g s to %g s", i/3+1, last.At.Seconds(), at)
			}
			if k.At == last.At && (k.XM != last.XM || k.YM != last.YM) {
				return Path{}, fmt.Errorf("waypoint %d: the node is in two places at %g s", i/3+1, at)
			}
			if k.At == last.At {
				continue
			}
		}
		knots = append(knots, k)
	}
	return Path{knots: knots}, nil
}
