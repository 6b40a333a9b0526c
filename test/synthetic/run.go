package synthetic

import (
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"testing"

	"fieldmesh.dev/fieldmesh/controller/archive"
	"fieldmesh.dev/fieldmesh/controller/plan"
	"fieldmesh.dev/fieldmesh/internal/verdict"
	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// software is what controller and agents say they are.
const software = "0.1.0 (commit abc1234)"

// Info is what the archive of the options is created with.
func Info(o Options) archive.RunInfo {
	o = o.withDefaults()
	p := Plan(o)
	info := archive.RunInfo{
		Run: p.Run, Campaign: p.Campaign, CreatedWall: o.Begun, Seed: o.Seed,
		Version: software, Place: o.Place, CampaignRaw: o.Raw, Plan: p, Scale: o.Scale,
		ChannelDraws: o.Draws, Enough: o.StopWhen,
		Site: map[string]string{"weather": "dry, 12 °C", "antenna": "internal <5 dBi>"},
	}
	if o.Paper != "" {
		info.Paper = &plan.Paper{Name: o.Paper}
	}
	return info
}

// Run makes a whole finished archive in the test's own folder. The caller need
// not close it.
func Run(t testing.TB, o Options) *archive.Archive {
	t.Helper()
	t.Logf("synthetic run with seed %d", o.Seed)
	a, err := Build(filepath.Join(t.TempDir(), "run"), o)
	if err != nil {
		t.Fatalf("build synthetic run: %v", err)
	}
	t.Cleanup(func() {
		if err := a.Close(); err != nil {
			t.Errorf("close synthetic run: %v", err)
		}
	})
	return a
}

// Build makes a whole finished archive in a folder.
func Build(dir string, o Options) (*archive.Archive, error) {
	o = o.withDefaults()
	info := Info(o)
	a, err := archive.Create(dir, info)
	if err != nil {
		return nil, err
	}
	seqs := map[string]*uint64{}
	for _, t := range info.Plan.Trials {
		if err := drive(a, o, t, seqs); err != nil {
			return nil, fmt.Errorf("drive trial %d: %w", t.Number, err)
		}
	}
	if o.Enough > 0 {
		if err := a.StopAfter(archive.Stop{Blocks: o.Enough, Reason: "the difference is known to ± 1 %"}); err != nil {
			return nil, err
		}
	}
	return a, a.Finish()
}

// Shard makes the finished archive of a run's shard, or of the whole run, in a
// folder, which it returns. Each trial is accepted at once; its records depend on
// its number alone.
func Shard(t testing.TB, dir string, info archive.RunInfo, shard *archive.Shard) string {
	t.Helper()
	info.Shard = shard
	a, err := archive.Create(dir, info)
	if err != nil {
		t.Fatal(err)
	}
	for _, trial := range info.Plan.Trials {
		if !shard.Has(trial.Number) {
			continue
		}
		from := uint64(trial.Number * 100_000)
		seqs := map[string]*uint64{"car": new(from), "roadside": new(from), "field": new(from)}
		for node, records := range Attempt(info.Plan, trial, 1, Conditions{MB: float64(trial.Number)}, seqs) {
			if err := Store(a, node, records); err != nil {
				t.Fatal(err)
			}
		}
		if err := a.Decide(wire.Verdict{TrialKey: wire.TrialKey{Trial: trial.Number, Attempt: 1},
			Outcome: "accepted", Final: true}); err != nil {
			t.Fatal(err)
		}
		if err := a.Seal(trial.Number, 1); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(a.Finish(), a.Close()); err != nil {
		t.Fatal(err)
	}
	return dir
}

// drive makes attempts at a trial until one is accepted or the attempts are
// used up.
func drive(a *archive.Archive, o Options, t wire.Trial, seqs map[string]*uint64) error {
	var verdicts []wire.Verdict
	for {
		attempt, more := verdict.Next(a.Info().Plan.AttemptsMax, verdicts)
		if !more {
			return nil
		}
		c := Conditions{MB: o.MB(t, Noise(o.Seed, t.Number)), LatenessShare: 0.001}
		if o.Mishap != nil {
			o.Mishap(t, attempt, &c)
		}
		var all []wire.Record
		told := Attempt(a.Info().Plan, t, attempt, c, seqs)
		if o.NoField {
			delete(told, archive.FieldNode)
		}
		for _, node := range slices.Sorted(maps.Keys(told)) {
			all = append(all, told[node]...)
			if err := Store(a, node, told[node]); err != nil {
				return err
			}
		}
		v := verdict.Judge(t, attempt, all, verdict.Scope{Final: true})
		if err := a.Decide(v); err != nil {
			return err
		}
		if err := a.Seal(t.Number, attempt); err != nil {
			return err
		}
		verdicts = append(verdicts, v)
	}
}

// Store appends records to an archive as they would come from a node, or from
// the field.
func Store(a *archive.Archive, node string, records []wire.Record) error {
	if node == archive.FieldNode {
		if len(records) == 0 {
			return nil
		}
		return a.AppendField(records[0].Trial, records[0].Attempt, records)
	}
	lines, err := Lines(records)
	if err != nil {
		return err
	}
	return a.Append(node, lines)
}

// Lines encodes records, one JSON object each.
func Lines(records []wire.Record) ([][]byte, error) {
	var lines [][]byte
	for _, r := range records {
		line, err := r.MarshalJSON() // json.Marshal would look through it once more
		if err != nil {
			return nil, err
		}
		lines = append(lines, line)
	}
	return lines, nil
}
