package archive_test

import (
	"bytes"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"fieldmesh.dev/fieldmesh/controller/archive"
	"fieldmesh.dev/fieldmesh/protocols/wire"
	"fieldmesh.dev/fieldmesh/test/synthetic"
)

var campaign = synthetic.Options{Seed: 4, Speeds: []float64{2.8, 5.6}, Repetitions: 1}

func shard(t *testing.T, text string) *archive.Shard {
	t.Helper()
	s, err := archive.ParseShard(text)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestMergedShardsAreTheWholeCampaign(t *testing.T) {
	dir, info := t.TempDir(), synthetic.Info(campaign)
	var shards []string
	for _, text := range []string{"2/3", "3/3", "1/3"} { // in any order
		shards = append(shards, synthetic.Shard(t, filepath.Join(dir, strings.ReplaceAll(text, "/", "of")), info,
			shard(t, text)))
	}
	moved := filepath.Join(dir, "moved")
	if err := errors.Join(os.Rename(shards[0], moved), os.Symlink(moved, shards[0])); err != nil { // to another disk
		t.Fatal(err)
	}
	whole := read(t, synthetic.Shard(t, filepath.Join(dir, "whole"), info, nil))
	if err := archive.Merge(filepath.Join(dir, "merged"), shards, nil); err != nil {
		t.Fatal(err)
	}
	if findings, err := archive.Verify(filepath.Join(dir, "merged")); err != nil || len(findings) > 0 {
		t.Errorf("verify: %v %v", findings, err)
	}
	merged := read(t, filepath.Join(dir, "merged"))
	if m, w := merged.Info(), whole.Info(); !reflect.DeepEqual(m.Plan, w.Plan) || m.Seed != w.Seed || m.Run != w.Run ||
		m.Shard != nil || string(m.CampaignRaw) != string(w.CampaignRaw) {
		t.Errorf("merged %+v, whole %+v", m, w)
	}
	if m, w := decided(merged), decided(whole); !slices.Equal(m, w) || len(m) != len(info.Plan.Trials) {
		t.Errorf("decided %v, whole %v", m, w)
	}
	for _, tr := range info.Plan.Trials {
		m, w := records(t, merged, tr.Number), records(t, whole, tr.Number)
		if len(w) == 0 || !reflect.DeepEqual(m, w) {
			t.Errorf("trial %d: %d records, whole %d, or others", tr.Number, len(m), len(w))
		}
	}
	if m, w := contents(t, merged.Dir()), contents(t, whole.Dir()); !maps.Equal(m, w) ||
		len(w) < 8*len(info.Plan.Trials) {
		for _, name := range slices.Sorted(maps.Keys(w)) {
			if m[name] != w[name] {
				t.Errorf("%s is not as one machine has it:\n%.300s\nwhole:\n%.300s", name, m[name], w[name])
			}
		}
		t.Errorf("%d files, whole %d", len(m), len(w))
	}
	notes := 0
	entries, err := merged.Journal()
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if e.Type == "note" && strings.HasPrefix(e.Text, "shard ") {
			notes++
		}
	}
	if notes != 3 {
		t.Errorf("%d notes of shards in the journal, want 3", notes)
	}
}

// contents are the files of a run but for those that tell by whom and when it
// was made: the journal, the sheets of the run and its shards, and the checksums that
// hang on them.
// The field counts its records on each machine by itself; records compares them.
func contents(t *testing.T, dir string) map[string]string {
	t.Helper()
	out := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || strings.HasPrefix(d.Name(), ".") {
			return err
		}
		rel, err := filepath.Rel(dir, path)
		told := []string{"journal.ndjson", "cursors.ndjson", "run.json", "MANIFEST.sha256", "field.ndjson"}
		if err != nil || slices.Contains(told, d.Name()) {
			return err
		}
		text, err := os.ReadFile(path)
		out[rel] = string(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// Each trial is in one shard of three, and each shard has its share of each block.
func TestShardsPartTheSchedule(t *testing.T) {
	plan := synthetic.Plan(synthetic.Options{Seed: 9, Repetitions: 4})
	perBlock := map[[2]int]int{}
	for _, tr := range plan.Trials {
		in := 0
		for i, text := range []string{"1/3", "2/3", "3/3"} {
			if shard(t, text).Has(tr.Number) {
				in++
				perBlock[[2]int{i, tr.Block}]++
			}
		}
		if in != 1 {
			t.Errorf("trial %d is in %d shards", tr.Number, in)
		}
	}
	for at, n := range perBlock {
		if n != 4 { // of 6 speeds × 2 sections
			t.Errorf("shard %d has %d trials of block %d, want 4", at[0]+1, n, at[1])
		}
	}
}

func read(t *testing.T, dir string) *archive.Archive {
	t.Helper()
	a, err := archive.Read(dir)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func decided(a *archive.Archive) []wire.TrialKey {
	var out []wire.TrialKey
	for _, v := range a.Decisions() {
		out = append(out, v.TrialKey)
	}
	slices.SortFunc(out, func(x, y wire.TrialKey) int { return x.Trial - y.Trial })
	return out
}

// records are a trial's, without what numbers the field's: each machine counts
// its own.
func records(t *testing.T, a *archive.Archive, trial int) []wire.Record {
	t.Helper()
	all, err := a.All(trial, 1)
	if err != nil {
		t.Fatal(err)
	}
	for i := range all {
		if all[i].Node == archive.FieldNode {
			all[i].Epoch, all[i].Seq = "", 0
		}
	}
	return all
}

//attack:archive a shard of another run or campaign, or one twice, in a shard's place | all are compared before
//attack:and anything is made
func TestMergeRefuses(t *testing.T) {
	dir, info := t.TempDir(), synthetic.Info(campaign)
	other := synthetic.Info(campaign)
	other.Seed++
	renamed := synthetic.Info(campaign)
	renamed.Run = "another"
	virtual, real := synthetic.Info(campaign), synthetic.Info(campaign)
	virtual.Clock = &archive.Clock{Kind: archive.ClockVirtual, Kernel: "7.3"}
	real.Clock = &archive.Clock{Kind: archive.ClockReal}
	make := func(name string, info archive.RunInfo, s *archive.Shard) string {
		return synthetic.Shard(t, filepath.Join(dir, name), info, s)
	}
	one, two := make("one", info, shard(t, "1/2")), make("two", info, shard(t, "2/2"))
	broken := make("broken", info, shard(t, "2/2"))
	if err := os.WriteFile(filepath.Join(broken, "trials", "0002-a1", "plan.json"), []byte("{}"), 0o600); err != nil {
		t.Fatal(err)
	}
	strays := make("strays", info, shard(t, "1/2")) // its nodes drove another's trial
	again(t, strays, func(a *archive.Archive) error {
		return a.Decide(wire.Verdict{TrialKey: wire.TrialKey{Trial: 2, Attempt: 1}, Outcome: "accepted", Final: true})
	})
	moved := synthetic.Info(campaign)
	moved.Movement = map[string][]byte{"walk.csv": []byte("0,0,0\n")}
	for want, shards := range map[string][]string{
		"the files in movement differ": {one, make("moved", moved, shard(t, "2/2"))},
		"shard 2/2 is missing":         {one},
		"shard 1/2 is there twice":     {one, make("one-again", info, shard(t, "1/2"))},
		"were cut differently":         {one, make("third", info, shard(t, "2/3"))},
		"is not a shard":               {one, make("unsharded", info, nil)},
		"different campaigns":          {one, make("other", other, shard(t, "2/2"))},
		"by different clocks":          {one, make("virtual", virtual, shard(t, "2/2"))},
		"bear one --name":              {one, make("renamed", renamed, shard(t, "2/2"))},
		"is not whole":                 {one, broken},
		"0002-a1 of another shard":     {strays, two},
		"no run in this folder":        {one, filepath.Join(dir, "nowhere")},
	} {
		err := archive.Merge(filepath.Join(dir, "merged"), shards, nil)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: %v, want %q", shards, err, want)
		}
		if _, err := os.Stat(filepath.Join(dir, "merged")); err == nil {
			t.Fatalf("%s: something was made", want)
		}
	}
	if err := archive.Merge(filepath.Join(dir, "merged"), []string{one, two}, nil); err != nil {
		t.Errorf("whole shards are refused: %v", err)
	}
	said := []string{one, make("real", real, shard(t, "2/2"))}
	if err := archive.Merge(filepath.Join(dir, "said"), said, nil); err != nil {
		t.Errorf("a shard that says that its clock was the real one is refused: %v", err)
	}
	for _, bad := range []string{"", "0/2", "3/2", "1", "1/2/3", "a/b", "-1/2"} {
		if _, err := archive.ParseShard(bad); err == nil {
			t.Errorf("shard %q is taken", bad)
		}
	}
}

// again changes a finished run, and finishes it again.
func again(t *testing.T, dir string, change func(*archive.Archive) error) {
	t.Helper()
	a, err := archive.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(change(a), a.Finish(), a.Close()); err != nil {
		t.Fatal(err)
	}
}

// Nodes that have driven another shard since tell its attempts to whoever goes back to this one.
func TestAShardTakesNoAttemptOfAnother(t *testing.T) {
	dir, info := t.TempDir(), synthetic.Info(campaign)
	one := synthetic.Shard(t, filepath.Join(dir, "one"), info, shard(t, "1/2"))
	two := synthetic.Shard(t, filepath.Join(dir, "two"), info, shard(t, "2/2"))
	again(t, one, func(a *archive.Archive) error {
		line, err := wire.Record{Header: wire.Header{Node: "car", Epoch: "later", Seq: 9, Run: info.Run, Trial: 2,
			Attempt: 1}, Body: &wire.Event{Level: "info", Text: "x"}}.MarshalJSON()
		err = errors.Join(err, a.Append("car", [][]byte{line}))
		if !a.Finished() || !a.PassedOver("car") || a.PassedOver("road") {
			t.Errorf("finished: %v; passed over of car: %v, of road: %v", a.Finished(), a.PassedOver("car"),
				a.PassedOver("road"))
		}
		return err
	})
	if err := archive.Merge(filepath.Join(dir, "merged"), []string{one, two}, nil); err != nil {
		t.Error(err)
	}
}

// A person's word stands in the merge too, where the clock of the machine was set back before it.
func TestAMergeKeepsEachShardsOrder(t *testing.T) {
	dir, info := t.TempDir(), synthetic.Info(campaign)
	var shards []string
	for _, text := range []string{"1/2", "2/2"} {
		shards = append(shards, synthetic.Shard(t, filepath.Join(dir, text[:1]), info, shard(t, text)))
	}
	k := wire.TrialKey{Trial: 1, Attempt: 1}
	word := wire.Verdict{TrialKey: k, Outcome: wire.Rejected, Final: true,
		Word: &wire.Word{Decision: "repeat", By: "phone", Judged: wire.Accepted}}
	again(t, shards[0], func(a *archive.Archive) error {
		journal := filepath.Join(shards[0], archive.JournalFile)
		before, err := os.ReadFile(journal)
		err = errors.Join(err, a.Decide(word))
		after, rerr := os.ReadFile(journal)
		year := []byte(time.Now().UTC().Format(`"2006-`))
		late := bytes.ReplaceAll(after[len(before):], year, []byte(`"1999-`))
		return errors.Join(err, rerr, os.WriteFile(journal, append(before, late...), 0o600))
	})
	if err := archive.Merge(filepath.Join(dir, "merged"), shards, nil); err != nil {
		t.Fatal(err)
	}
	for _, a := range []*archive.Archive{read(t, shards[0]), read(t, filepath.Join(dir, "merged"))} {
		for _, v := range a.Decisions() {
			if v.TrialKey == k && v.Word == nil {
				t.Errorf("in %s attempt 1 of trial 1 is %s", a.Dir(), v.Outcome)
			}
		}
	}
}

// Shards that are made quickly, as for a thousand of them, merge as any.
func TestQuicklyMadeShardsMerge(t *testing.T) {
	dir := t.TempDir()
	o := campaign
	o.WindowS = func(wire.Trial) float64 { return 1 }
	shards, err := synthetic.Shards(dir, o, 3)
	if err != nil {
		t.Fatal(err)
	}
	merged := filepath.Join(dir, "merged")
	if err := archive.Merge(merged, shards, nil); err != nil {
		t.Fatal(err)
	}
	if findings, err := archive.Verify(merged); err != nil || len(findings) > 0 {
		t.Errorf("verify: %v %v", findings, err)
	}
	if got, want := decided(read(t, merged)), len(synthetic.Plan(o).Trials); len(got) != want {
		t.Errorf("decided %v, want %d", got, want)
	}
}

// A run that several builds drove is of all of them, with all in what its network was not the
// campaign's.
func TestAMergeIsOfEveryBuild(t *testing.T) {
	dir, info := t.TempDir(), synthetic.Info(campaign)
	var shards []string
	for i, text := range []string{"1/3", "2/3", "3/3"} {
		one := info
		one.Version = []string{"1.2.0", "1.1.0", "1.2.0"}[i]
		one.Deviations = [][]string{nil, {"Its hotspot is Linux's."}, {"Its hotspot is Linux's."}}[i]
		shards = append(shards, synthetic.Shard(t, filepath.Join(dir, one.Version+text[:1]), one, shard(t, text)))
	}
	if err := archive.Merge(filepath.Join(dir, "merged"), shards, nil); err != nil {
		t.Fatal(err)
	}
	m := read(t, filepath.Join(dir, "merged")).Info()
	if m.Version != "1.1.0 and 1.2.0" || !slices.Equal(m.Deviations, []string{"Its hotspot is Linux's."}) {
		t.Errorf("merged: version %q, deviations %q", m.Version, m.Deviations)
	}
}

// That another shard's records were passed over is known after a restart, when they are not read again.
func TestWhatWasPassedOverIsRemembered(t *testing.T) {
	info := synthetic.Info(campaign)
	info.Shard = shard(t, "1/2")
	dir := filepath.Join(t.TempDir(), "run")
	a, err := archive.Create(dir, info)
	if err != nil {
		t.Fatal(err)
	}
	for trial := range 2 {
		line, err := wire.Record{Header: wire.Header{Node: "car", Epoch: "e", Seq: uint64(trial + 1), Run: info.Run,
			Trial: trial + 1, Attempt: 1}, Body: &wire.Event{Level: "info", Text: "x"}}.MarshalJSON()
		if err = errors.Join(err, a.Append("car", [][]byte{line})); err != nil {
			t.Fatal(err)
		}
		if a.PassedOver("car") != (trial == 1) {
			t.Errorf("after trial %d passed over: %v", trial+1, a.PassedOver("car"))
		}
	}
	if err := a.Close(); err != nil {
		t.Fatal(err)
	}
	again(t, dir, func(a *archive.Archive) error {
		if !a.PassedOver("car") {
			t.Error("it is forgotten")
		}
		return nil
	})
}
