package archive

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"fieldmesh.dev/fieldmesh/controller/archive/sums"
	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// sealedPlan is plan.json: one trial with what it was drawn from.
type sealedPlan struct {
	Run            string     `json:"run"`
	Attempt        int        `json:"attempt"`
	CampaignSHA256 string     `json:"campaign_sha256"`
	Seed           uint64     `json:"seed"`
	Trial          wire.Trial `json:"trial"`
}

// Seal closes a decided attempt: plan, verdict, iperf3's outputs and the nodes'
// provenance become files, and the manifest is written last. Sealing again
// changes nothing.
func (a *Archive) Seal(trial, attempt int) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.seal(wire.TrialKey{Trial: trial, Attempt: attempt})
}

func (a *Archive) seal(k wire.TrialKey) error {
	if a.sealed[k] {
		return nil
	}
	if err := a.writable(); err != nil {
		return fmt.Errorf("seal trial %s: %w", attemptName(k), err)
	}
	if err := a.writeSealed(k); err != nil {
		return fmt.Errorf("seal trial %s: %w", attemptName(k), err)
	}
	a.sealed[k] = true
	if err := a.write(JournalEntry{Type: "sealed", Trial: &k}); err != nil {
		return fmt.Errorf("seal trial %s: %w", attemptName(k), err)
	}
	return nil
}

func (a *Archive) writeSealed(k wire.TrialKey) error {
	v := a.verdictOf(k)
	t, planned := a.Trial(k.Trial)
	if v == nil || !planned {
		return errors.New("it is not decided")
	}
	dir := trialDir(k)
	plan := sealedPlan{
		Run: a.info.Run, Attempt: k.Attempt, Seed: a.info.Seed,
		CampaignSHA256: a.info.Plan.CampaignSHA256, Trial: t,
	}
	if err := a.disk.replaceJSON(filepath.Join(dir, "plan.json"), plan); err != nil {
		return err
	}
	if err := a.extract(k); err != nil {
		return err
	}
	if err := a.disk.replaceJSON(filepath.Join(dir, "verdict.json"), v); err != nil {
		return err
	}
	files, err := a.disk.walk(dir)
	if err != nil {
		return err
	}
	return a.disk.writeManifest(dir, files)
}

// extract copies what people look for as files out of the records.
func (a *Archive) extract(k wire.TrialKey) error {
	files, err := a.recordFiles(k)
	if err != nil {
		return err
	}
	outputs := map[string][]byte{}
	for _, rel := range files {
		if err := a.disk.lines(rel, func(line []byte) error { return collect(outputs, rel, line) }); err != nil {
			return err
		}
	}
	for _, name := range slices.Sorted(maps.Keys(outputs)) {
		if err := a.disk.replace(filepath.Join(trialDir(k), name), outputs[name]); err != nil {
			return err
		}
	}
	return nil
}

// collect takes a line's output, if its kind has one. Nearly all lines are
// samples, and are told by their text before they are decoded.
func collect(outputs map[string][]byte, rel string, line []byte) error {
	if !bytes.Contains(line, []byte(`"iperf3"`)) && !bytes.Contains(line, []byte(`"provenance"`)) {
		return nil
	}
	var r wire.Record
	if err := r.UnmarshalJSON(line); err != nil {
		return fmt.Errorf("read %s: %w", rel, err)
	}
	switch b := r.Body.(type) {
	case *wire.Iperf3:
		name, data := iperf3File(r.Node, b)
		outputs[filepath.Join("iperf3", name)] = data
	case *wire.Provenance:
		data, err := json.MarshalIndent(b, "", "  ")
		if err != nil {
			return fmt.Errorf("encode provenance of %q: %w", r.Node, err)
		}
		outputs[filepath.Join("provenance", r.Node+".json")] = append(data, '\n')
	}
	return nil
}

// iperf3File names what an iperf3 process printed and gives it untouched. The
// flow's name comes from the campaign, so what is unfit for a path is replaced.
func iperf3File(node string, b *wire.Iperf3) (string, []byte) {
	safe := strings.Map(func(r rune) rune {
		if r == '-' || r == '_' || r >= '0' && r <= '9' || r >= 'A' && r <= 'Z' || r >= 'a' && r <= 'z' {
			return r
		}
		return '_'
	}, b.Flow+"-"+b.Side)
	if len(b.Output) > 0 {
		return node + "-" + safe + ".json", append(bytes.Clone(b.Output), '\n')
	}
	return node + "-" + safe + ".txt", []byte(b.RawText)
}

// Finish seals what is decided and writes the run's manifest. It names the
// sealed attempts' manifests, and every other file itself.
func (a *Archive) Finish() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.finished {
		return nil
	}
	for _, v := range a.decisions {
		if err := a.seal(v.TrialKey); err != nil {
			return fmt.Errorf("finish run %q: %w", a.info.Run, err)
		}
	}
	if err := a.writable(); err != nil {
		return fmt.Errorf("finish run %q: %w", a.info.Run, err)
	}
	if err := a.write(JournalEntry{Type: "finished"}); err != nil {
		return fmt.Errorf("finish run %q: %w", a.info.Run, err)
	}
	all, err := a.disk.walk(".")
	if err != nil {
		return fmt.Errorf("finish run %q: %w", a.info.Run, err)
	}
	var files []string
	for _, rel := range all {
		if k, in := attemptOf(rel); !Derived(rel) && (!in || !a.sealed[k] || filepath.Base(rel) == manifestFile) {
			files = append(files, rel)
		}
	}
	if err := a.signed(files); err != nil {
		return fmt.Errorf("finish run %q: %w", a.info.Run, err)
	}
	a.finished = true
	return nil
}

// signed writes the run's manifest, and before it its signature, if the run is
// to have one.
func (a *Archive) signed(files []string) error {
	text, err := a.disk.sums(".", files)
	if err != nil {
		return err
	}
	if a.identity == nil {
		err = a.disk.remove(manifestSignature)
	} else {
		err = a.disk.sign(*a.identity, manifestSignature, signsRun, text)
	}
	if err != nil {
		return err
	}
	return a.disk.replace(manifestFile, text)
}

// Finished reports whether the run has its manifest: nothing is left to drive.
func (a *Archive) Finished() bool { return a.disk.exists(manifestFile) }

// attemptOf reports which attempt's folder a path lies in.
func attemptOf(rel string) (wire.TrialKey, bool) {
	parts := strings.Split(filepath.ToSlash(rel), "/")
	if len(parts) < 3 || parts[0] != "trials" {
		return wire.TrialKey{}, false
	}
	return parseAttempt(parts[1])
}

func foreignErr(names []string) error {
	if len(names) == 0 {
		return nil
	}
	return fmt.Errorf("%q is a link or a device, which no run has; put a copy of the file in its place", names[0])
}

// walk lists every file under a folder, relative to the run, sorted, but for names that begin with a dot. The slash has
// a run's folder entered that is a link.
func (d disk) walk(dir string) ([]string, error) {
	var out []string
	err := filepath.WalkDir(d.path(dir)+"/", func(path string, e fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(d.root, path)
		switch {
		case rel == dir:
		case strings.HasPrefix(e.Name(), ".") && e.IsDir():
			return filepath.SkipDir
		case !strings.HasPrefix(e.Name(), ".") && !e.IsDir():
			out = append(out, rel)
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("list %s: %w", dir, err)
	}
	return out, nil
}

// writeManifest writes a folder's manifest of files.
func (d disk) writeManifest(dir string, files []string) error {
	text, err := d.sums(dir, files)
	if err != nil {
		return err
	}
	return d.replace(filepath.Join(dir, manifestFile), text)
}

// sums is the text of a folder's manifest of files.
func (d disk) sums(dir string, files []string) ([]byte, error) {
	var all []sums.File
	for _, rel := range files {
		in, err := filepath.Rel(dir, rel)
		if err != nil {
			return nil, fmt.Errorf("write manifest: %w", err)
		}
		if in == manifestFile || in == manifestSignature {
			continue
		}
		sum, size, err := d.sum(rel)
		if err != nil {
			return nil, fmt.Errorf("write manifest: %w", err)
		}
		all = append(all, sums.File{Name: filepath.ToSlash(in), SHA256: sum, Size: size})
	}
	return sums.Text(all), nil
}

// sum gives a file's SHA-256 in hex and its size in bytes.
func (d disk) sum(rel string) (sum string, size int64, err error) {
	f, err := os.Open(d.path(rel))
	if err != nil {
		return "", 0, fmt.Errorf("read %s: %w", rel, err)
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	h := sha256.New()
	size, err = io.Copy(h, f)
	if err != nil {
		return "", 0, fmt.Errorf("read %s: %w", rel, err)
	}
	return hex.EncodeToString(h.Sum(nil)), size, nil
}
