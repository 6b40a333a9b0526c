package serve

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"fieldmesh.dev/fieldmesh/controller/archive"
	"fieldmesh.dev/fieldmesh/controller/export"
	"fieldmesh.dev/fieldmesh/controller/metrics/places"
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
	{"places.csv", "text/csv; charset=utf-8"},
	{"places.gpx", "application/gpx+xml"},
}

// placesFile has the body that tells a run's places. It is made last of all.
const placesFile = "places.json"

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
			return nil, wire.Errorf(wire.CodeNotFound, "run %s has no %s yet: too little is measured", c.run, f.name)
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
	of, err := s.reached(a, c.run)
	if err != nil || of == "" {
		return dir, err
	}
	s.shelf.mu.Lock()
	defer s.shelf.mu.Unlock()
	if _, err := os.Stat(filepath.Join(dir, placesFile)); err == nil && s.shelf.made[c.run] == of {
		return dir, nil
	}
	if err := makeFiles(a, dir); err != nil {
		return "", err
	}
	s.shelf.made[c.run] = of
	return dir, nil
}

// reached tells how far a run has come: its decisions, how much was recorded of what they
// decide, of which more may be pulled later, as photos may, and whether it is over; where nobody drives it,
// also how much of what is not decided. Empty: there is nothing yet.
func (s *Server) reached(a *archive.Archive, name string) (string, error) {
	rec, err := readRecord(s.board.dir, name)
	if err != nil {
		return "", err
	}
	driven, err := s.board.driven(name, rec)
	if err != nil {
		return "", err
	}
	attempts, err := a.Trials()
	if err != nil {
		return "", err
	}
	attempts = slices.DeleteFunc(attempts, func(at archive.Attempt) bool { return driven && at.Verdict == nil })
	if len(attempts) == 0 {
		return "", nil
	}
	recorded := make([]int64, len(attempts))
	for i, at := range attempts {
		if recorded[i], err = a.Recorded(at.TrialKey); err != nil {
			return "", err
		}
	}
	var photos time.Time // when the last one came
	if info, err := os.Stat(filepath.Join(a.Dir(), "attachments")); err == nil {
		photos = info.ModTime()
	}
	h := fnv.New128a()
	err = json.NewEncoder(h).Encode([]any{a.Info().CreatedWall, a.Decisions(), recorded, a.Stopped(), a.Finished(),
		photos})
	return fmt.Sprintf("%x", h.Sum(nil)), err
}

// makeFiles makes what a run is shared as: report, results and tracks when something is decided.
func makeFiles(a *archive.Archive, dir string) error {
	if len(a.Decisions()) > 0 {
		if err := export.Shared(a, dir); err != nil {
			return err
		}
		if err := writeReport(a, filepath.Join(dir, "report.html")); err != nil {
			return err
		}
	}
	log, err := places.Of(a)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("make folder for what is shared: %w", err)
	}
	all := map[string]func(io.Writer) error{"places.csv": log.WriteCSV, "places.gpx": log.WriteGPX}
	for name, write := range all {
		var text bytes.Buffer
		if len(log.Seconds) == 0 {
			continue
		}
		if err := write(&text); err != nil {
			return err
		}
		if err := keys.WriteFile(filepath.Join(dir, name), text.Bytes(), 0o644); err != nil {
			return err
		}
	}
	text, err := wire.Encode(placesOf(log))
	if err != nil {
		return err
	}
	return keys.WriteFile(filepath.Join(dir, placesFile), text, 0o644)
}

// placesOf is a log as a phone shows it.
func placesOf(log places.Log) campaigns.Places {
	out := campaigns.Places{FarthestM: log.FarthestM(), Stretches: []campaigns.Stretch{}, Way: []campaigns.Spot{},
		RoadsideLatDeg: log.RoadsideLatDeg, RoadsideLonDeg: log.RoadsideLonDeg}
	for _, s := range log.ByDistance() {
		out.Stretches = append(out.Stretches, campaigns.Stretch{FromM: s.FromM, ToM: s.ToM, Seconds: s.Seconds,
			SpeedMps: s.SpeedMps, SignalDbm: s.SignalDbm, WiFiSignalDbm: s.WiFiDbm, ThroughputBps: s.ThroughputBps,
			LostPercent: s.LostPercent()})
	}
	every := len(log.Seconds)/campaigns.MostSpots + 1
	var last *places.Second
	for i := 0; i < len(log.Seconds); i += every {
		s := &log.Seconds[i]
		if s.LatDeg == nil || s.LonDeg == nil {
			continue
		}
		gap := last != nil && (s.TrialKey != last.TrialKey || s.S-last.S > every)
		out.Way = append(out.Way, campaigns.Spot{LatDeg: *s.LatDeg, LonDeg: *s.LonDeg, AfterGap: gap,
			ThroughputBps: s.ThroughputBps})
		last = s
	}
	return out
}

func (s *Server) places(c *call) (any, error) {
	dir, err := s.share(c)
	if err != nil {
		return nil, err
	}
	out := placesOf(places.Log{})
	text, err := os.ReadFile(filepath.Join(dir, placesFile))
	if errors.Is(err, fs.ErrNotExist) {
		return out, nil
	}
	if err == nil {
		err = json.Unmarshal(text, &out)
	}
	if err != nil {
		return nil, fmt.Errorf("read the places of run %s: %w", c.run, err)
	}
	return out, nil
}

func writeReport(a *archive.Archive, path string) error {
	var text bytes.Buffer
	if _, err := report.WriteAlone(a, &text); err != nil {
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
