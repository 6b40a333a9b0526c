// Package ahead refuses to replace the copy of a run's folder where it has what the run lacks: after the run was
// continued in its copy, or an older state of the run was put back. It changes nothing.
package ahead

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// appended are the files of a run that lines are appended to as something is collected or decided. What a node drops is
// in them before.
var appended = []string{"journal.ndjson", "cursors.ndjson"}

// attachments has photos and recordings, which come after a run's end, too.
const attachments = "attachments"

// Refuse returns an error where the copy has what the run lacks. What was damaged in the copy counts for nothing.
func Refuse(run, second string) error {
	for _, name := range appended {
		line, err := lacking(filepath.Join(run, name), filepath.Join(second, name))
		if err != nil {
			return fmt.Errorf("compare %s with its copy: %w", name, err)
		}
		if line != nil {
			return refusal(second, fmt.Sprintf("in %s, %.80q", name, line))
		}
	}
	held, err := os.ReadDir(filepath.Join(second, attachments))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("look through the copy's %s: %w", attachments, err)
	}
	for _, e := range held {
		name := filepath.Join(attachments, e.Name())
		_, err := os.Stat(filepath.Join(run, name))
		if errors.Is(err, fs.ErrNotExist) && !unfinished(name) {
			return refusal(second, name)
		}
	}
	return nil
}

func refusal(second, what string) error {
	return fmt.Errorf("the copy in %q has more than the run (%s): it is left as it is; continue from there, or name "+
		"another place for the copy", second, what)
}

// unfinished: of what is being written, nothing was told to be here.
func unfinished(name string) bool {
	return strings.HasSuffix(name, ".part") || strings.HasSuffix(name, ".tmp") ||
		strings.HasPrefix(filepath.Base(name), ".")
}

// lacking is the first line of the copy's file that the run's does not have after those before it; nil: there is none.
// It passes over lines that are not JSON, which something has damaged.
func lacking(run, second string) (line []byte, err error) {
	copied, err := os.Open(second)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, copied.Close()) }()
	var of io.Reader = strings.NewReader("")
	own, err := os.Open(run)
	switch {
	case err == nil:
		defer func() { err = errors.Join(err, own.Close()) }()
		of = own
	case !errors.Is(err, fs.ErrNotExist):
		return nil, err
	}
	theirs, ours := bufio.NewReader(copied), bufio.NewReader(of)
	for {
		line, err := theirs.ReadBytes('\n')
		if err == io.EOF {
			return nil, nil // what follows the last newline was being written
		}
		if err != nil {
			return nil, err
		}
		if !json.Valid(line) {
			continue
		}
		if found, err := passes(ours, line); err != nil || !found {
			return bytes.TrimSpace(line), err
		}
	}
}

// passes reads on until it has passed a line.
func passes(r *bufio.Reader, line []byte) (bool, error) {
	for {
		next, err := r.ReadBytes('\n')
		if bytes.Equal(next, line) {
			return true, nil
		}
		if err == io.EOF {
			return false, nil
		}
		if err != nil {
			return false, err
		}
	}
}
