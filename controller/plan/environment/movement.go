package environment

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// ReadFiles reads the files that the field names, which lie in dir or below it, by their base
// names.
func (f *Field) ReadFiles(dir string) (map[string][]byte, error) {
	out := map[string][]byte{}
	for _, path := range f.Files() {
		raw, err := readBeside(dir, path)
		if err != nil {
			return nil, fmt.Errorf("read movement: %w", err)
		}
		out[filepath.Base(path)] = raw
	}
	return out, nil
}

// movementMost bounds a file of movement: an hour of 200 nodes, a point a second, is some
// 70 MB as GPX, at 90 bytes a point.
const movementMost = 512 << 20

// readBeside reads a file of a folder, which stays in it: a campaign from elsewhere may have a
// link, by which another file of the reader's would get into the run's folder.
func readBeside(dir, path string) (raw []byte, err error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, root.Close()) }()
	switch info, err := root.Stat(path); {
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("%s is not a file", path)
	case info.Size() > movementMost:
		return nil, fmt.Errorf("%s has %d bytes, and may have %d", path, info.Size(), movementMost)
	}
	return root.ReadFile(path)
}
