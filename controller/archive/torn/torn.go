// Package torn mends files of lines that were being appended to as the machine lost its power.
package torn

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"fieldmesh.dev/fieldmesh/internal/durable"
)

// Tail shortens a file to its last newline.
func Tail(path string) (err error) {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	return errors.Join(tail(f), f.Close())
}

func tail(f *os.File) error {
	size, whole, err := wholeLines(f)
	if err != nil || whole == size {
		return err
	}
	return errors.Join(f.Truncate(whole), f.Sync())
}

// Mend shortens a file to its last newline. It also takes out the lines that have zeros in them, which no text has: of
// what was written and not synced yet, a page may have come to the disk without the one before it. What is left is
// written to a file aside first. It returns how many bytes these lines had.
func Mend(path, aside string) (holes int64, err error) {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if err := tail(f); err != nil {
		return 0, err
	}
	if zeros, err := hasZeros(f); err != nil || !zeros {
		return 0, err
	}
	return withoutHoles(f, aside)
}

// wholeLines is a file's size and the offset just after its last newline,
// reading backwards: files of records are long, tails are short.
func wholeLines(f *os.File) (size, whole int64, err error) {
	size, err = f.Seek(0, io.SeekEnd)
	if err != nil {
		return 0, 0, err
	}
	buf := make([]byte, 64<<10)
	for end := size; end > 0; {
		start := max(0, end-int64(len(buf)))
		part := buf[:end-start]
		if _, err := f.ReadAt(part, start); err != nil {
			return 0, 0, err
		}
		if i := bytes.LastIndexByte(part, '\n'); i >= 0 {
			return size, start + int64(i) + 1, nil
		}
		end = start
	}
	return size, 0, nil
}

func hasZeros(f *os.File) (bool, error) {
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return false, err
	}
	buf := make([]byte, 256<<10)
	for {
		n, err := f.Read(buf)
		if bytes.IndexByte(buf[:n], 0) >= 0 {
			return true, nil
		}
		if errors.Is(err, io.EOF) {
			return false, nil
		}
		if err != nil {
			return false, err
		}
	}
}

// withoutHoles puts a file in the place of f that lacks the lines with zeros.
func withoutHoles(f *os.File, aside string) (holes int64, err error) {
	info, err := f.Stat()
	if err != nil {
		return 0, err
	}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return 0, err
	}
	to, err := os.OpenFile(aside, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, info.Mode().Perm())
	if err != nil {
		return 0, err
	}
	w := bufio.NewWriter(to)
	for r := bufio.NewReader(f); ; {
		line, err := r.ReadBytes('\n')
		if bytes.IndexByte(line, 0) >= 0 {
			holes += int64(len(line))
		} else if _, err := w.Write(line); err != nil {
			return 0, errors.Join(err, to.Close())
		}
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return 0, errors.Join(err, to.Close())
		}
	}
	if err := errors.Join(w.Flush(), to.Sync(), to.Close()); err != nil {
		return 0, err
	}
	if err := os.Rename(aside, f.Name()); err != nil {
		return 0, fmt.Errorf("put the mended file in place: %w", err)
	}
	return holes, durable.Folder(filepath.Dir(f.Name()))
}
