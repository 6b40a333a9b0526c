// Package runkey keeps the keys of runs, by which their nodes are steered.
package runkey

import (
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"fieldmesh.dev/fieldmesh/internal/durable"
	"fieldmesh.dev/fieldmesh/internal/keys"
)

// File is where the key that authenticates a run's GO is kept: beside the
// runs, never inside one, because a run's folder is given to others.
func File(dir string) string {
	return filepath.Join(filepath.Dir(dir), ".keys", filepath.Base(dir)+".key")
}

// Keep writes the key of the run in a folder, to disk: without it nodes that went on alone
// while the controller had no power could not be asked for what they did. Another key of that
// name is of a run whose folder was moved or removed: it is kept aside.
func Keep(dir string, key []byte) error {
	path, text := File(dir), []byte(hex.EncodeToString(key)+"\n")
	err := os.MkdirAll(filepath.Dir(path), 0o700)
	if held, rerr := os.ReadFile(path); rerr == nil && !bytes.Equal(held, text) {
		err = os.Rename(path, former(path, formers(path)+1))
	}
	if err == nil {
		err = keys.WriteFile(path, text, 0o600)
	}
	if err == nil {
		err = durable.Folder(filepath.Dir(filepath.Dir(path)))
	}
	if err != nil {
		return fmt.Errorf("keep the run's key: %w", err)
	}
	return nil
}

// Forget removes the key of a run that is discarded. One that was kept aside for it has its
// place again.
func Forget(dir string) error {
	path := File(dir)
	if n := formers(path); n > 0 {
		return os.Rename(former(path, n), path)
	}
	return os.Remove(path)
}

// former is where the nth key is that was kept aside at a path.
func former(path string, n int) string { return fmt.Sprintf("%s.former-%d", path, n) }

// formers counts them.
func formers(path string) (n int) {
	for {
		if _, err := os.Lstat(former(path, n+1)); err != nil {
			return n
		}
		n++
	}
}

// Read reads the key of the run in a folder.
func Read(dir string) ([]byte, error) {
	name, path := filepath.Base(dir), File(dir)
	b, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		aside := ""
		if n := formers(path); n > 0 {
			aside = fmt.Sprintf("; %s is that of a run that had this name before", former(path, n))
		}
		return nil, fmt.Errorf("resume run %s: its key is not at %s; copy it there from .keys beside the folder "+
			"in which the run was begun (%w)%s", name, path, fs.ErrNotExist, aside)
	}
	if err != nil {
		return nil, fmt.Errorf("resume run %s: %w", name, err)
	}
	key, err := hex.DecodeString(string(b[:max(len(b)-1, 0)]))
	if err != nil || len(key) != 32 {
		return nil, fmt.Errorf("resume run %s: %s does not hold a key", name, path)
	}
	return key, nil
}
