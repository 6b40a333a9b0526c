package influx

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"

	"fieldmesh.dev/fieldmesh/internal/influx"
)

// cursorFile stands in the run's folder; the archive takes no notice of it.
const cursorFile = ".influx-cursor.json"

// cursor is how far each file has been acknowledged by one target.
type cursor struct {
	dir     string
	Target  string            `json:"target"`
	Files   map[string]int64  `json:"files"`             // relative path → bytes
	Results map[string]string `json:"results,omitempty"` // attempt → what its result was made of
}

// openCursor reads the cursor; there is none yet for a new target.
func openCursor(dir string, t influx.Target) (*cursor, error) {
	fresh := &cursor{dir: dir, Target: t.String(), Files: map[string]int64{}, Results: map[string]string{}}
	text, err := os.ReadFile(filepath.Join(dir, cursorFile))
	if errors.Is(err, fs.ErrNotExist) {
		return fresh, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read cursor: %w", err)
	}
	c := &cursor{dir: dir}
	if err := json.Unmarshal(text, c); err != nil || c.Target != fresh.Target || c.Files == nil {
		return fresh, nil // sending again is harmless, missing something is not
	}
	if c.Results == nil { // a cursor of before results
		c.Results = map[string]string{}
	}
	return c, nil
}

// advance makes durable what was acknowledged.
func (c *cursor) advance(ends map[string]int64, resulted map[string]string) error {
	maps.Copy(c.Files, ends)
	maps.Copy(c.Results, resulted)
	text, err := json.Marshal(c)
	if err != nil {
		return fmt.Errorf("encode cursor: %w", err)
	}
	path := filepath.Join(c.dir, cursorFile)
	if err := writeSynced(path+".tmp", append(text, '\n')); err != nil {
		return fmt.Errorf("write cursor: %w", err)
	}
	if err := os.Rename(path+".tmp", path); err != nil {
		return fmt.Errorf("write cursor: %w", err)
	}
	// A rename lost with the power brings back the cursor before it, whose
	// records are then sent again as the same points: no need to sync the folder.
	return nil
}

func writeSynced(path string, data []byte) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o644)
	if err != nil {
		return err
	}
	if _, err := f.Write(data); err != nil {
		return errors.Join(err, f.Close())
	}
	if err := f.Sync(); err != nil {
		return errors.Join(err, f.Close())
	}
	return f.Close()
}
