package synthetic

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"

	"fieldmesh.dev/fieldmesh/controller/archive"
	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// Shards makes all finished shards of a run quickly, and returns their folders: as
// Long, the attempt at each section's first trial stands for all of its trials. The
// schedule is one file, to which all shards link.
func Shards(dir string, o Options, of int) (folders []string, err error) {
	info := Info(o)
	info.Shard = &archive.Shard{Number: 1, Of: of}
	pattern := filepath.Join(dir, "pattern")
	a, err := archive.Create(pattern, info)
	if err != nil {
		return nil, err
	}
	made := map[string]wire.Trial{} // by section
	for _, t := range info.Plan.Trials {
		if _, there := made[t.Factors["section"]]; there {
			continue
		}
		made[t.Factors["section"]] = t
		if err := attemptAt(a, info.Plan, t); err != nil {
			return nil, errors.Join(err, a.Close())
		}
	}
	if err := a.Close(); err != nil {
		return nil, err
	}
	p := &shardMaker{pattern: pattern, info: info, made: made, files: map[int]map[string][]byte{}}
	if err := p.read(); err != nil {
		return nil, err
	}
	for i := 1; i <= of; i++ {
		folder := filepath.Join(dir, fmt.Sprintf("%s-shard-%d-of-%d", info.Run, i, of))
		if err := p.write(folder, archive.Shard{Number: i, Of: of}); err != nil {
			return nil, err
		}
		folders = append(folders, folder)
	}
	return folders, os.RemoveAll(pattern)
}

// attemptAt stores, decides and seals an attempt.
func attemptAt(a *archive.Archive, p wire.RunPlan, t wire.Trial) error {
	told := Attempt(p, t, 1, Conditions{MB: 20, LatenessShare: 0.001}, map[string]*uint64{})
	for _, node := range slices.Sorted(maps.Keys(told)) {
		if err := Store(a, node, told[node]); err != nil {
			return err
		}
	}
	if err := a.Decide(accepted(t.Number)); err != nil {
		return err
	}
	return a.Seal(t.Number, 1)
}

func accepted(trial int) wire.Verdict {
	return wire.Verdict{TrialKey: wire.TrialKey{Trial: trial, Attempt: 1}, Outcome: wire.Accepted, Final: true}
}

// shardMaker writes shards after a pattern.
type shardMaker struct {
	pattern string
	info    archive.RunInfo
	made    map[string]wire.Trial     // by section
	files   map[int]map[string][]byte // of the pattern's attempts, by trial and path
	run     []byte                    // run.json
	linked  map[string]sum            // what all shards have
}

// sum is what a manifest says of a file.
type sum struct {
	sha256 string
	bytes  int
}

func sumOf(text []byte) sum {
	s := sha256.Sum256(text)
	return sum{hex.EncodeToString(s[:]), len(text)}
}

func (p *shardMaker) read() (err error) {
	for _, t := range p.made {
		files := map[string][]byte{}
		folder := filepath.Join(p.pattern, "trials", fmt.Sprintf("%04d-a1", t.Number))
		err := filepath.WalkDir(folder, func(path string, e os.DirEntry, err error) error {
			if err != nil || e.IsDir() || e.Name() == "MANIFEST.sha256" {
				return err
			}
			rel, _ := filepath.Rel(folder, path)
			files[rel], err = os.ReadFile(path)
			return err
		})
		if err != nil {
			return err
		}
		p.files[t.Number] = files
	}
	p.linked = map[string]sum{}
	for _, name := range []string{"schedule.json", "campaign.yaml"} {
		text, err := os.ReadFile(filepath.Join(p.pattern, name))
		if err != nil {
			return err
		}
		p.linked[name] = sumOf(text)
	}
	p.run, err = os.ReadFile(filepath.Join(p.pattern, "run.json"))
	return err
}

// write makes one shard.
func (p *shardMaker) write(folder string, shard archive.Shard) error {
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	sums := maps.Clone(p.linked)
	for name := range p.linked {
		if err := os.Link(filepath.Join(p.pattern, name), filepath.Join(folder, name)); err != nil {
			return err
		}
	}
	put := func(rel string, text []byte) error {
		sums[rel] = sumOf(text)
		return os.WriteFile(filepath.Join(folder, rel), text, 0o644)
	}
	var journal bytes.Buffer
	lines := json.NewEncoder(&journal)
	for _, t := range p.info.Plan.Trials {
		if !shard.Has(t.Number) {
			continue
		}
		rel := filepath.Join("trials", fmt.Sprintf("%04d-a1", t.Number))
		if err := os.MkdirAll(filepath.Join(folder, rel), 0o755); err != nil {
			return err
		}
		manifest, err := p.attempt(filepath.Join(folder, rel), t)
		if err != nil {
			return err
		}
		if err := put(filepath.Join(rel, "MANIFEST.sha256"), manifest); err != nil {
			return err
		}
		at := p.info.CreatedWall.Add(time.Duration(t.Number) * time.Second)
		v := accepted(t.Number)
		for _, e := range []archive.JournalEntry{{Wall: at, Type: "verdict", Verdict: &v},
			{Wall: at, Type: "sealed", Trial: &v.TrialKey}} {
			if err := lines.Encode(e); err != nil {
				return err
			}
		}
	}
	if err := lines.Encode(archive.JournalEntry{Wall: p.info.CreatedWall, Type: "finished"}); err != nil {
		return err
	}
	run := bytes.Replace(p.run, []byte(`"number": 1,`), fmt.Appendf(nil, `"number": %d,`, shard.Number), 1)
	if err := errors.Join(put("run.json", run), put("journal.ndjson", journal.Bytes())); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(folder, "MANIFEST.sha256"), manifestOf(sums), 0o644)
}

// attempt writes the attempt at a trial, and returns its manifest.
func (p *shardMaker) attempt(folder string, t wire.Trial) ([]byte, error) {
	from := p.made[t.Factors["section"]].Number
	sums := map[string]sum{}
	number := func(text []byte, format string) []byte {
		return bytes.ReplaceAll(text, fmt.Appendf(nil, format, from), fmt.Appendf(nil, format, t.Number))
	}
	for rel, text := range p.files[from] {
		text = number(number(number(text, `"trial":%d,`), `"trial": %d,`), `"number": %d,`)
		sums[rel] = sumOf(text)
		path := filepath.Join(folder, rel)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return nil, err
		}
		if err := os.WriteFile(path, text, 0o644); err != nil {
			return nil, err
		}
	}
	return manifestOf(sums), nil
}

// manifestOf is a manifest as the archive writes it.
func manifestOf(sums map[string]sum) []byte {
	var sizes, lines bytes.Buffer
	for _, rel := range slices.Sorted(maps.Keys(sums)) {
		fmt.Fprintf(&sizes, "# %d bytes: %s\n", sums[rel].bytes, rel)
		fmt.Fprintf(&lines, "%s  %s\n", sums[rel].sha256, rel)
	}
	return append(sizes.Bytes(), lines.Bytes()...)
}
