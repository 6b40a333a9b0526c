package mobility

import (
	"bufio"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
)

// FileError is a fault of a movement file with its place.
type FileError struct {
	File string
	Line int // from 1
	Text string
}

func (e *FileError) Error() string { return fmt.Sprintf("%s:%d: %s", e.File, e.Line, e.Text) }

// maxLine and maxFileNodes bound what a file can cost.
const (
	maxLine      = 16 << 20 // BonnMotion writes a node's whole life in one line
	maxFileNodes = 10_000
)

// eachLine calls f with every line that is neither empty nor a comment, its
// number given. What f returns gets its place.
func eachLine(file string, r io.Reader, f func(line string) error) error {
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, maxLine)
	n := 0
	for lines.Scan() {
		n++
		text := strings.TrimSpace(lines.Text())
		if text == "" || text[0] == '#' {
			continue
		}
		if err := f(text); err != nil {
			return &FileError{file, n, err.Error()}
		}
	}
	if err := lines.Err(); err != nil {
		return &FileError{file, n + 1, err.Error()}
	}
	return nil
}

// decimal reads a plain number of metres, seconds or metres a second.
func decimal(what, text string) (float64, error) {
	v, err := strconv.ParseFloat(text, 64)
	if err != nil || !finite(v) || math.Abs(v) > 1e9 {
		return 0, fmt.Errorf("%s %.40q is not a number", what, text)
	}
	return v, nil
}

// instant reads a time in seconds.
func instant(text string) (float64, error) {
	s, err := decimal("time", text)
	if err != nil {
		return 0, err
	}
	if s < 0 || s > maxTrip.Seconds() {
		return 0, fmt.Errorf("time %s s is not in 0 to %g s", text, maxTrip.Seconds())
	}
	return s, nil
}
