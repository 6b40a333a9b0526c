package serve

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"io/fs"
	"os"
	"path/filepath"
	"sync"

	"fieldmesh.dev/fieldmesh/controller/archive"
	"fieldmesh.dev/fieldmesh/controller/export"
	"fieldmesh.dev/fieldmesh/controller/report"
	"fieldmesh.dev/fieldmesh/internal/keys"
	"fieldmesh.dev/fieldmesh/protocols/campaigns"
	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// shared are the files that a run is shared as, and no others.
var shared = []struct{ name, kind string }{
	{"report.html", "text/html; charset=utf-8"},
	{"results.csv", "text/csv; charset=utf-8"},
	{"tracks.gpx", "application/gpx+xml"},
}

// sharedFile is one of them as an answer.
type sharedFile struct {
	name, kind string
	data       []byte
}

// shelf makes them, one run at a time.
type shelf struct {
	mu   sync.Mutex
	made map[string]string // of what a run's files were made, by its name
}

func (s *Server) listFiles(c *call) (any, error) {
	dir, err := s.share(c)
	if err != nil {
		return nil, err
	}
	out := campaigns.Files{Files: []campaigns.File{}}
	for _, f := range shared {
		info, err := os.Stat(filepath.Join(dir, f.name))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("list the files of run %s: %w", c.run, err)
		}
		out.Files = append(out.Files, campaigns.File{Name: f.name, Bytes: info.Size()})
	}
	return out, nil
}

func (s *Server) file(c *call) (any, error) {
	for _, f := range shared {
		if f.name != c.name {
			continue
		}
		dir, err := s.share(c)
		if err != nil {
			return nil, err
		}
		data, err := os.ReadFile(filepath.Join(dir, f.name))
		if errors.Is(err, fs.ErrNotExist) {
			return nil, wire.Errorf(wire.CodeNotFound, "run %s has no %s yet: no trial is decided", c.run, f.name)
		}
		if err != nil {
			return nil, fmt.Errorf("read a file of run %s: %w", c.run, err)
		}
		return sharedFile{f.name, f.kind, data}, nil
	}
	return nil, wire.Errorf(wire.CodeNotFound, "there is no file %.80q; GET /v1/runs/%s/files lists them", c.name,
		c.run)
}

// share makes the files of a run again when it has gone on since, and returns their folder. It
// is the server's own: an export that somebody made in the run's folder stays as it is.
func (s *Server) share(c *call) (dir string, err error) {
	a, err := archive.Read(s.board.folder(c.run))
	if errors.Is(err, archive.ErrNoRun) {
		if rec, rerr := readRecord(s.board.dir, c.run); rec != nil || rerr != nil {
			return own(s.board.dir, c.run), rerr // it was refused before it had anything
		}
		return "", wire.Errorf(wire.CodeNotFound, "there is no run %s", c.run)
	}
	if err != nil {
		return "", err
	}
	dir = filepath.Join(own(s.board.dir, c.run), shareFolder)
	if len(a.Decisions()) == 0 {
		return dir, nil
	}
	of, err := reached(a)
	if err != nil {
		return "", err
	}
	s.shelf.mu.Lock()
	defer s.shelf.mu.Unlock()
	if _, err := os.Stat(filepath.Join(dir, shared[0].name)); err == nil && s.shelf.made[c.run] == of {
		return dir, nil
	}
	if err := export.Shared(a, dir); err != nil {
		return "", err
	}
	if err := writeReport(a, filepath.Join(dir, "report.html")); err != nil {
		return "", err
	}
	s.shelf.made[c.run] = of
	return dir, nil
}

// reached tells how far a run has come: its decisions, how much was recorded of what they
// decide, of which more may be pulled later, and whether it is over.
func reached(a *archive.Archive) (string, error) {
	decisions := a.Decisions()
	recorded := make([]int64, len(decisions))
	for i, d := range decisions {
		var err error
		if recorded[i], err = a.Recorded(d.TrialKey); err != nil {
			return "", err
		}
	}
	h := fnv.New128a()
	err := json.NewEncoder(h).Encode([]any{a.Info().CreatedWall, decisions, recorded, a.Stopped(), a.Finished()})
	return fmt.Sprintf("%x", h.Sum(nil)), err
}

func writeReport(a *archive.Archive, path string) error {
	var text bytes.Buffer
	if _, err := report.Write(a, &text); err != nil {
		return err
	}
	return keys.WriteFile(path, text.Bytes(), 0o644)
}

// sweep takes away what a server left that was killed while it made files.
func (s *Server) sweep() error {
	left, err := filepath.Glob(filepath.Join(own(s.board.dir, "*"), shareFolder, export.Aside+"*"))
	for _, dir := range left {
		err = errors.Join(err, os.RemoveAll(dir))
	}
	return err
}
