package tree

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"fieldmesh.dev/fieldmesh/internal/nearest"
)

// ReadFile reads a YAML file, of one that is too large no more than tells so. Where there is
// none, the error names those that there are.
func ReadFile(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, withNames(path, err)
	}
	defer f.Close()
	raw, err := io.ReadAll(io.LimitReader(f, MaxFileBytes+1))
	if err != nil {
		return nil, withNames(path, err)
	}
	return raw, nil
}

// withNames says which YAML files are where path cannot be read.
func withNames(path string, err error) error {
	if errors.Is(err, fs.ErrPermission) {
		return err
	}
	folder := filepath.Dir(path)
	if info, failed := os.Stat(path); failed == nil && info.IsDir() {
		folder = path
		err = fmt.Errorf("%q is a folder; name a file", path)
	}
	files, failed := filepath.Glob(filepath.Join(folder, "*.yaml"))
	if failed != nil || len(files) == 0 {
		return err
	}
	var names []string
	for _, f := range files {
		names = append(names, strings.TrimSuffix(filepath.Base(f), ".yaml"))
	}
	if near := nearest.Word(strings.TrimSuffix(filepath.Base(path), ".yaml"), names); near != "" && folder != path {
		return fmt.Errorf("%w; did you mean %q?", err, filepath.Join(folder, near+".yaml"))
	}
	const most = 12
	return fmt.Errorf("%w; the folder has %s", err, strings.Join(files[:min(len(files), most)], ", "))
}
