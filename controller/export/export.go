// Package export writes a run for other programs: tables, tracks, the records
// as they came, what every column means, and what the run was. It reads the
// archive only, holds one attempt at a time, and judges nothing.
package export

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"

	"fieldmesh.dev/fieldmesh/controller/archive"
	"fieldmesh.dev/fieldmesh/controller/attached"
	"fieldmesh.dev/fieldmesh/controller/metrics"
	"fieldmesh.dev/fieldmesh/controller/metrics/places"
)

// file is one file of an export.
type file struct {
	name, about, format string
	write               func(io.Writer) error
}

// Options choose what an export holds besides records, tables and tracks.
type Options struct {
	// Redact gives other people's radios and networks made-up names, and leaves out
	// texts that people or programs wrote, and where nodes were and how they moved
	// outside the measuring windows.
	Redact bool
	// Captures adds the packet captures of every node. They are as they were
	// taken, addresses of strangers included, so that they cannot be redacted.
	Captures bool
	// License is the URL of the terms under which the data may be used; empty: none is given.
	License string
	// MCAP adds the run as one file for Foxglove and Lichtblick.
	MCAP bool
	// Perfetto adds a trace of each attempt for Perfetto.
	Perfetto bool
}

// Aside begins the name of the folder, in that of an export, into which one is written at first.
const Aside = ".new-"

// Shared writes two files of an export, and no others: results.csv and tracks.gpx.
func Shared(a *archive.Archive, to string) (err error) {
	if err := os.MkdirAll(to, 0o755); err != nil {
		return fmt.Errorf("make folder for the export: %w", err)
	}
	aside, err := os.MkdirTemp(to, Aside)
	if err != nil {
		return fmt.Errorf("make folder for the export: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(aside)) }()
	numbers := filepath.Join(aside, "metrics.csv")
	if err := create(numbers, func(w io.Writer) error {
		_, err := metrics.StreamCSV(w, io.Discard, a)
		return err
	}); err != nil {
		return err
	}
	results, err := resultsOf(a, numbers)
	if err != nil {
		return err
	}
	for _, f := range []file{{name: "results.csv", write: results.write}, {name: "tracks.gpx",
		write: func(w io.Writer) error { return writeTracks(w, io.Discard, lines{a: a}) }}} {
		if err := create(filepath.Join(aside, f.name), f.write); err != nil {
			return err
		}
		if err := os.Rename(filepath.Join(aside, f.name), filepath.Join(to, f.name)); err != nil {
			return fmt.Errorf("put the export in place: %w", err)
		}
	}
	return nil
}

// Run writes the export of a run into a folder, which is made, and returns the
// files' paths. Everything is written aside first: when it fails, the folder
// holds what it held before. Files that a former export wrote there, and this one
// does not, are removed: they may be of another run, or not redacted. Files that no
// export wrote stay as they are.
func Run(a *archive.Archive, to string, o Options) (paths []string, err error) {
	if o.Redact && o.Captures {
		return nil, errors.New("export: captures hold the addresses of other people's radios and cannot be redacted; " +
			"export them apart")
	}
	if u, err := url.Parse(o.License); o.License != "" && (err != nil || u.Host == "" ||
		u.Scheme != "https" && u.Scheme != "http") {
		return nil, fmt.Errorf("export: the licence %q is not the address of a page; name one, as "+
			"https://creativecommons.org/licenses/by/4.0/", o.License)
	}
	from := lines{a: a}
	if o.Redact {
		if from.redact, err = newRedactor(a); err != nil {
			return nil, err
		}
	}
	if err := os.MkdirAll(to, 0o755); err != nil {
		return nil, fmt.Errorf("make folder for the export: %w; --to names another folder", err)
	}
	former, err := described(to)
	if err != nil {
		return nil, err
	}
	cutOff, more, err := cutOffs(to)
	if err != nil {
		return nil, err
	}
	former = append(former, more...)
	if o.Redact {
		if err := refuseStrangers(to, former, cutOff); err != nil {
			return nil, err
		}
	}
	aside, err := os.MkdirTemp(to, Aside)
	if err != nil {
		return nil, fmt.Errorf("make folder for the export: %w", err)
	}
	placing := false
	defer func() {
		if err == nil || !placing { // else the next export finds there what this one has put in place
			err = errors.Join(err, os.RemoveAll(aside))
		}
	}()
	names, err := write(from, aside, o)
	if err != nil {
		return nil, err
	}
	if err := refuseToReplace(to, aside, names, former); err != nil {
		return nil, err
	}
	placing = true
	for _, name := range names {
		path := filepath.Join(to, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return nil, fmt.Errorf("make folder for the export: %w", err)
		}
		if err := os.Rename(filepath.Join(aside, name), path); err != nil {
			return nil, fmt.Errorf("put the export in place: %w", err)
		}
		paths = append(paths, path)
	}
	placing = false
	for _, name := range former {
		if slices.Contains(names, name) {
			continue
		}
		if err := os.Remove(filepath.Join(to, name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("remove what a former export wrote: %w", err)
		}
	}
	for _, dir := range cutOff {
		if err := os.RemoveAll(dir); err != nil {
			return nil, fmt.Errorf("remove what an export that was cut off has left: %w", err)
		}
	}
	return paths, nil
}

// cutOffs are the folders, in that of an export, of those that were cut off while their files were put in place, and
// which files these were: the description, which names them, is put there last.
func cutOffs(to string) (dirs, names []string, err error) {
	entries, err := os.ReadDir(to)
	if err != nil {
		return nil, nil, fmt.Errorf("look for what a former export has left: %w", err)
	}
	for _, e := range entries {
		dir := filepath.Join(to, e.Name())
		if !e.IsDir() || !strings.HasPrefix(e.Name(), Aside) {
			continue
		}
		if more, err := described(dir); err == nil && len(more) > 0 { // else it was cut off before
			dirs, names = append(dirs, dir), append(names, more...)
		}
	}
	return dirs, names, nil
}

// refuseStrangers returns an error if a folder holds a file that no former export wrote. What lies in the folders of
// those that were cut off will be removed.
func refuseStrangers(dir string, former, cutOff []string) error {
	return filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() && slices.Contains(cutOff, path) {
			return filepath.SkipDir
		}
		if err != nil || d.IsDir() {
			return err
		}
		name, err := filepath.Rel(dir, path)
		if err == nil && name != crateFile && !slices.Contains(former, name) {
			err = fmt.Errorf("export: %q holds %s, which no export wrote and which is not redacted; name an empty "+
				"folder by --to", dir, name)
		}
		return err
	})
}

// refuseToReplace returns an error if an export would replace a file that no former export wrote. The same file is
// of one that was cut off, and whose own folder is gone.
func refuseToReplace(dir, aside string, names, former []string) error {
	for _, name := range names {
		if slices.Contains(former, name) || name == crateFile && len(former) > 0 {
			continue
		}
		_, there, err := measure(filepath.Join(dir, name))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		_, ours, oerr := measure(filepath.Join(aside, name))
		if err := errors.Join(err, oerr); err != nil {
			return err
		}
		if there != ours {
			return fmt.Errorf("export: %q holds %s, which no export wrote that came to its end, and which this one "+
				"would replace; name another folder by --to, or move the file away", dir, name)
		}
	}
	return nil
}

// write makes all files below dir and names them; the description of the run
// comes last, for it tells the others' sizes and checksums.
func write(from lines, dir string, o Options) ([]string, error) {
	var files []file
	var results *resultsTable
	var tables []string
	var unknown map[string]int
	var group errgroup.Group // the tables take as long as all else
	group.Go(func() (err error) { files, results, err = writeFiles(from, dir, o); return err })
	group.Go(func() (err error) { tables, unknown, err = writeTables(from, dir); return err })
	if err := group.Wait(); err != nil {
		return nil, err
	}
	for _, name := range tables {
		files = append(files, file{name, "The records of one kind, one a row; see data-dictionary.md.",
			"application/vnd.apache.parquet", nil})
	}
	dictionary := file{"data-dictionary.md", "What every column means, with its type and unit.", "text/markdown",
		func(w io.Writer) error { return writeDictionary(w, results.columns, files, tables, unknown) }}
	if err := create(filepath.Join(dir, dictionary.name), dictionary.write); err != nil {
		return nil, err
	}
	files = append(files, dictionary)
	about, err := newCrate(from.a, o)
	if err != nil {
		return nil, err
	}
	if err := create(filepath.Join(dir, crateFile), func(w io.Writer) error {
		return about.write(w, dir, files)
	}); err != nil {
		return nil, err
	}
	names := make([]string, 0, len(files)+1)
	for _, f := range files {
		names = append(names, f.name)
	}
	return append(names, crateFile), nil
}

// writeFiles makes the files that are no tables of records.
func writeFiles(from lines, dir string, o Options) (files []file, results *resultsTable, err error) {
	a := from.a
	files = []file{
		{"metrics.csv", "Every number of every attempt, one a line, with its unit and definition.", "text/csv", nil},
		{"trials.csv", "Every attempt, one a line: what it was, who sent to whom, what happened to it. Each factor " +
			"is a column.", "text/csv",
			func(w io.Writer) error { return writeTrials(w, a, from.redact != nil) }},
		{"timelines.csv", "Every attempt's window at 10 Hz.", "text/csv", nil},
		{"records.ndjson", "Every record as it came from its node, one JSON object a line.", "application/x-ndjson",
			from.copy},
		{"tracks.gpx", "Every node's GPS track in every attempt and outside of any, one for each boot.",
			"application/gpx+xml", nil},
		{"tracks.geojson", "The same tracks as GeoJSON.", "application/geo+json", nil},
	}
	if from.redact != nil {
		for i := range files {
			files[i].about += " Redacted; photos and recordings of notes are left out."
		}
	} else {
		more, err := attachmentsOf(a)
		if err != nil {
			return nil, nil, err
		}
		files = append(files, more...)
	}
	if o.Captures {
		more, err := capturesOf(a)
		if err != nil {
			return nil, nil, err
		}
		files = append(files, more...)
	}
	// What two files are made of is read once.
	err = errors.Join(
		createBoth(dir, "metrics.csv", "timelines.csv", func(numbers, timelines io.Writer) error {
			_, err := metrics.StreamCSV(numbers, timelines, a)
			return err
		}),
		createBoth(dir, "tracks.gpx", "tracks.geojson", func(toGPX, toGeoJSON io.Writer) error {
			return writeTracks(toGPX, toGeoJSON, from)
		}))
	if err != nil {
		return nil, nil, err
	}
	byPlace, err := placesOf(a)
	if err != nil {
		return nil, nil, err
	}
	files = append(files, byPlace...)
	for _, f := range files {
		if f.write == nil {
			continue
		}
		if err := create(filepath.Join(dir, f.name), f.write); err != nil {
			return nil, nil, err
		}
	}
	if o.MCAP {
		recorded, err := createMCAP(from, dir)
		if err != nil {
			return nil, nil, err
		}
		files = append(files, recorded)
	}
	if o.Perfetto {
		traces, err := createPerfetto(from, dir)
		if err != nil {
			return nil, nil, err
		}
		files = append(files, traces...)
	}
	if results, err = resultsOf(a, filepath.Join(dir, "metrics.csv")); err != nil {
		return nil, nil, err
	}
	tidy := file{"results.csv", "Every accepted attempt, one a line, with all that was planned and measured; see " +
		"data-dictionary.md.", "text/csv", results.write}
	if err := create(filepath.Join(dir, tidy.name), tidy.write); err != nil {
		return nil, nil, err
	}
	files = append(files, tidy)
	const typed = "results.parquet"
	if written, err := results.parquet(filepath.Join(dir, typed)); err != nil {
		return nil, nil, err
	} else if written {
		files = append(files, file{typed, "The same as results.csv, with the columns' types.",
			"application/vnd.apache.parquet", nil})
	}
	return files, results, nil
}

// placesOf is what the car's windows measured by place; nothing where no car's place or throughput is known.
func placesOf(a *archive.Archive) ([]file, error) {
	log, err := places.Of(a)
	if err != nil || len(log.Seconds) == 0 {
		return nil, err
	}
	return []file{
		{"places.csv", "Every second of every window with a car, however its attempt ended: where it was, " +
			"and what was measured.", "text/csv",
			log.WriteCSV},
		{"places.gpx", "The same along the route driven.", "application/gpx+xml", log.WriteGPX},
	}, nil
}

// createBoth writes two files side by side.
func createBoth(dir, one, other string, write func(one, other io.Writer) error) error {
	return create(filepath.Join(dir, one), func(w io.Writer) error {
		return create(filepath.Join(dir, other), func(beside io.Writer) error { return write(w, beside) })
	})
}

// attachmentsOf are the photos and recordings that the archive has.
func attachmentsOf(a *archive.Archive) (files []file, err error) {
	notes, err := attached.Notes(a)
	if err != nil {
		return nil, err
	}
	for _, n := range notes {
		one := file{n.Path(), fmt.Sprintf("What %s noted: %s", n.By, n.Text), n.Attachment.MediaType,
			func(w io.Writer) error { return copyOf(filepath.Join(a.Dir(), n.Path()), w) }}
		_, whole := a.FileHeld(n.Path())
		if whole && !slices.ContainsFunc(files, func(f file) bool { return f.name == one.name }) {
			files = append(files, one)
		}
	}
	return files, nil
}

func copyOf(path string, w io.Writer) (err error) {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	_, err = io.Copy(w, f)
	return err
}

// capturesOf are the whole captures of all attempts, in pcapng.
func capturesOf(a *archive.Archive) (files []file, err error) {
	attempts, err := a.Trials()
	if err != nil {
		return nil, err
	}
	for _, at := range attempts {
		t, _ := a.Trial(at.Trial) // one that the plan lacks has no nodes
		for _, node := range t.Nodes() {
			if _, whole := a.CaptureHeld(at.TrialKey, node); !whole {
				continue
			}
			files = append(files, file{
				filepath.Join("captures", fmt.Sprintf("%04d-a%d-%s.pcapng", at.Trial, at.Attempt, node)),
				fmt.Sprintf("Packets at %s in trial %d, attempt %d.", node, at.Trial, at.Attempt),
				"application/x-pcapng",
				func(w io.Writer) error {
					return copyOf(filepath.Join(a.Dir(), archive.CapturePath(at.TrialKey, node)), w)
				},
			})
		}
	}
	return files, nil
}

// create writes a file through a buffer, which spares a write call for each line.
func create(path string, write func(io.Writer) error) (err error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return fmt.Errorf("make folder for the export: %w", err)
	}
	f, err := os.Create(path)
	if err != nil {
		return fmt.Errorf("export: %w", err)
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	b := bufio.NewWriterSize(f, 256<<10)
	if err := write(b); err != nil {
		return fmt.Errorf("export %s: %w", filepath.Base(path), err)
	}
	return b.Flush()
}
