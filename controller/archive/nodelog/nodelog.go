// Package nodelog reads what nodes logged by themselves: files of the phone app, and
// folders of `fieldmesh-agent log`.
package nodelog

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"fieldmesh.dev/fieldmesh/internal/sumline"
)

// Lines calls do with every line of a log that is not empty: a file, or a folder
// whose files have names in the order of their records. A line of more than most bytes
// is an error.
func Lines(path string, most int, do func(line []byte) error) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	if !info.IsDir() {
		return linesOf(path, most, do)
	}
	segments, err := filepath.Glob(filepath.Join(path, "*.seg"))
	if err != nil {
		return err
	}
	for _, segment := range segments {
		if err := linesOf(segment, most, do); err != nil {
			return err
		}
	}
	return nil
}

// linesOf calls do with every line of a file that is not empty, without its
// checksum where it has one.
func linesOf(path string, most int, do func(line []byte) error) (err error) {
	if info, err := os.Stat(path); err != nil || !info.Mode().IsRegular() {
		return errors.Join(err, fmt.Errorf("%s is not a file", path))
	}
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	in := bufio.NewReaderSize(f, most)
	for {
		line, rerr := in.ReadSlice('\n')
		if errors.Is(rerr, bufio.ErrBufferFull) {
			return fmt.Errorf("a line has more than %d MiB, as no record has", most>>20)
		}
		line = bytes.TrimRight(bytes.Clone(line), "\r\n")
		if text, ok := sumline.Text(line); ok {
			line = text
		}
		if len(line) > 0 {
			if err := do(line); err != nil {
				return err
			}
		}
		if errors.Is(rerr, io.EOF) {
			return nil
		}
		if rerr != nil {
			return rerr
		}
	}
}
