package mobility

import (
	"fmt"
	"io"
	"regexp"
	"strconv"
)

// The lines of an ns-2 movement file as setdest writes them (The ns Manual,
// section 16.1.6): the start of a node, coordinate by coordinate, and its
// moves. What concerns god_, which knows the shortest paths, is passed over.
var (
	ns2Set  = regexp.MustCompile(`^\$node_\((\d{1,9})\)\s+set\s+([XYZ])_\s+(\S+?);?$`)
	ns2Move = regexp.MustCompile(`^\$ns_\s+at\s+(\S+)\s+"\$node_\((\d{1,9})\)\s+setdest\s+(\S+)\s+(\S+)\s+(\S+?)"$`)
	ns2God  = regexp.MustCompile(`^(\$ns_\s+at\s+\S+\s+"\$god_\s+set-dist\s[^"]*"|\$god_\s+set-dist\s.*|set\s+god_\s.*)$`)
)

// ns2Node is a node of the file while it is read.
type ns2Node struct {
	x, y  *float64
	start *walker
}

// ReadNS2 reads an ns-2 movement file: the path of node_(i) is at index i.
// Every node from 0 to the highest needs a start. Faults are FileErrors.
func ReadNS2(file string, r io.Reader, area Area) ([]Path, error) {
	nodes := map[int]*ns2Node{}
	most := -1
	err := eachLine(file, r, func(line string) error {
		var i int
		var err error
		switch {
		case ns2God.MatchString(line):
			return nil
		case ns2Set.MatchString(line):
			i, err = ns2Start(nodes, ns2Set.FindStringSubmatch(line)[1:], area)
		case ns2Move.MatchString(line):
			i, err = ns2Go(nodes, ns2Move.FindStringSubmatch(line)[1:], area)
		default:
			return fmt.Errorf("not a line of an ns-2 movement file: %.80q", line)
		}
		most = max(most, i)
		return err
	})
	if err != nil {
		return nil, err
	}
	if most < 0 {
		return nil, &FileError{file, 1, "the file moves no node"}
	}
	out := make([]Path, most+1)
	for i := range out {
		n := nodes[i]
		if n == nil || n.x == nil || n.y == nil {
			return nil, &FileError{file, 1, fmt.Sprintf("node %d has no start: X_ and Y_ are needed for every node "+
				"up to %d", i, most)}
		}
		if n.start == nil {
			out[i] = Stand(*n.x, *n.y)
			continue
		}
		out[i] = n.start.path()
	}
	return out, nil
}

func ns2Index(nodes map[int]*ns2Node, text string) (int, *ns2Node, error) {
	i, err := strconv.Atoi(text)
	if err != nil || i >= maxFileNodes {
		return -1, nil, fmt.Errorf("node %s: 0 to %d are possible", text, maxFileNodes-1)
	}
	if nodes[i] == nil {
		nodes[i] = &ns2Node{}
	}
	return i, nodes[i], nil
}

func ns2Start(nodes map[int]*ns2Node, words []string, area Area) (int, error) {
	i, n, err := ns2Index(nodes, words[0])
	if err != nil {
		return -1, err
	}
	v, err := decimal(words[1]+"_", words[2])
	if err != nil {
		return i, err
	}
	if n.start != nil {
		return i, fmt.Errorf("node %d is put in a place after it was moved", i)
	}
	switch words[1] {
	case "X":
		n.x = &v
	case "Y":
		n.y = &v
	}
	if n.x != nil && n.y != nil {
		if err := area.Check(*n.x, *n.y); err != nil {
			return i, fmt.Errorf("node %d: %w", i, err)
		}
	}
	return i, nil
}

func ns2Go(nodes map[int]*ns2Node, words []string, area Area) (int, error) {
	i, n, err := ns2Index(nodes, words[1])
	if err != nil {
		return -1, err
	}
	if n.x == nil || n.y == nil {
		return i, fmt.Errorf("node %d is moved before it has a place", i)
	}
	at, err := instant(words[0])
	if err != nil {
		return i, err
	}
	var v [3]float64
	for k, what := range []string{"x", "y", "speed"} {
		if v[k], err = decimal(what, words[2+k]); err != nil {
			return i, err
		}
	}
	if err := area.Check(v[0], v[1]); err != nil {
		return i, fmt.Errorf("node %d: %w", i, err)
	}
	if n.start == nil {
		n.start = &walker{knots: []Knot{{XM: *n.x, YM: *n.y}}}
	}
	if err := n.start.add(Move{seconds(at), v[0], v[1], v[2]}); err != nil {
		return i, fmt.Errorf("node %d: %w", i, err)
	}
	return i, nil
}
