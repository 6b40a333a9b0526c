package cmd

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"fieldmesh.dev/fieldmesh/controller/archive"
	"fieldmesh.dev/fieldmesh/controller/fleet"
	"fieldmesh.dev/fieldmesh/protocols/wire"
	"fieldmesh.dev/fieldmesh/test/synthetic"
)

// shardsOf makes the finished shards of a run, as several machines would.
func shardsOf(t *testing.T, runs string, of int) (folders []string) {
	t.Helper()
	info := synthetic.Info(synthetic.Options{Seed: 6, Speeds: []float64{2.8, 16.7}, Repetitions: 1})
	for i := range of {
		name := fmt.Sprintf("%s-shard-%d-of-%d", info.Run, i+1, of)
		synthetic.Shard(t, filepath.Join(runs, name), info, &archive.Shard{Number: i + 1, Of: of})
		folders = append(folders, name)
	}
	return folders
}

func TestMergeMakesOneRunAndNamesWhatIsMissingOrDoubled(t *testing.T) {
	runs := t.TempDir()
	shards := shardsOf(t, runs, 3)
	out, err := typed(t, MergeCommand(), "--runs", runs, shards[0], shards[2])
	if err == nil || !strings.Contains(err.Error(), "shard 2/3 is missing") {
		t.Errorf("without the second: %v\n%s", err, out)
	}
	out, err = typed(t, MergeCommand(), "--runs", runs, shards[0], shards[1], shards[2], shards[1])
	if err == nil || !strings.Contains(err.Error(), "shard 2/3 is there twice") {
		t.Errorf("with the second twice: %v\n%s", err, out)
	}
	out, err = typed(t, MergeCommand(), "--runs", runs, shards[2], shards[0], shards[1])
	if err != nil || !strings.Contains(out, "report.html") {
		t.Fatalf("merge: %v\n%s", err, out)
	}
	for want, c := range map[string]struct {
		of   *cobra.Command
		args []string
	}{
		"synthetic-6\" is there already; remove it, or name the parts by their paths": {MergeCommand(), shards},
		"--stdout prints the table, and --json a document; leave one of the two out": {MetricsCommand(),
			[]string{"synthetic-6", "--json", "--stdout"}},
		"--attempt 9: trial 1 has 1 to ": {TopologyCommand(),
			[]string{"synthetic-6", "--trial", "1", "--attempt", "9"}},
	} {
		if out, err = typed(t, c.of, append([]string{"--runs", runs}, c.args...)...); err == nil ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("%v: %v\n%s, want %q", c.args, err, out, want)
		}
	}
	if out, err = typed(t, VerifyCommand(), "--runs", runs, "synthetic-6"); err != nil {
		t.Errorf("verify: %v\n%s", err, out)
	}
	if out, err = typed(t, MetricsCommand(), "--runs", runs, "synthetic-6"); err != nil ||
		!strings.Contains(out, "of 4 attempts)") {
		t.Errorf("metrics: %v\n%s", err, out)
	}
	records, err := filepath.Glob(filepath.Join(runs, "synthetic-6", "trials", "0001-a1", "records", "*.ndjson"))
	if err != nil || len(records) == 0 {
		t.Fatalf("records %v, error %v", records, err)
	}
	if err := os.WriteFile(records[0], []byte("broken\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	out, err = typed(t, MetricsCommand(), "--runs", runs, "synthetic-6")
	if err == nil || !strings.Contains(err.Error(), "line 1: read trials/0001-a1/records/") ||
		!strings.HasSuffix(err.Error(), "; `fieldmesh verify` says which files were changed") {
		t.Errorf("metrics of a record that is broken: %v\n%s", err, out)
	}
}

// A merge that the fleet's key signed verifies by the fleet; one that nobody signed does not.
func TestAMergedRunVerifiesByTheFleet(t *testing.T) {
	dir := t.TempDir()
	controller, err := fleet.Init(filepath.Join(dir, "fleet"))
	if err != nil {
		t.Fatal(err)
	}
	list := filepath.Join(dir, "fleet", "fleet.yaml")
	if _, err := fleet.Init(filepath.Join(dir, "other")); err != nil {
		t.Fatal(err)
	}
	other := filepath.Join(dir, "other", "fleet.yaml")
	info := synthetic.Info(synthetic.Options{Seed: 6, Speeds: []float64{2.8}, Repetitions: 1})
	var shards []string
	for n := 1; n <= 2; n++ {
		info.Shard = &archive.Shard{Number: n, Of: 2}
		a, err := archive.Create(filepath.Join(dir, fmt.Sprint("shard-", n)), info)
		if err == nil {
			err = errors.Join(a.SignWith(controller), a.Finish(), a.Close())
		}
		if err != nil {
			t.Fatal(err)
		}
		shards = append(shards, a.Dir())
	}
	for _, c := range []struct {
		name, by, fleet string
		says            []string
		findings        int
	}{
		{"signed", list, list, []string{"the merge of 2 shards is signed by key " + controller.Pin,
			"shard 2/2 is signed by key " + controller.Pin, "the plan of shard 1/2, SHA-256 ", "OK"}, 0},
		{"unsigned", "", list, []string{"missing the merge of 2 shards: it is not signed"}, 1},
		{"by-another", other, list, []string{"changed the merge of 2 shards: it is signed by key "}, 1},
	} {
		runs := filepath.Join(dir, c.name)
		args := append([]string{"--runs", runs}, shards...)
		if c.by != "" {
			args = append(args, "--fleet", c.by)
		}
		if out, err := typed(t, MergeCommand(), args...); err != nil {
			t.Fatalf("%s: %v\n%s", c.name, err, out)
		}
		out, err := typed(t, VerifyCommand(), "--runs", runs, info.Run, "--fleet", c.fleet)
		if (err == nil) != (c.findings == 0) || c.findings > 0 && !strings.Contains(fmt.Sprint(err), "1 finding") {
			t.Errorf("%s: %v, want %d findings\n%s", c.name, err, c.findings, out)
		}
		for _, word := range c.says {
			if !strings.Contains(out, word) {
				t.Errorf("%s: it says\n%s, want %q", c.name, out, word)
			}
		}
		if c.by == other { // who trusts both fleets says so
			out, err := typed(t, VerifyCommand(), "--runs", runs, info.Run, "--fleet", list, "--fleet", other)
			if err != nil {
				t.Errorf("by both fleets: %v\n%s", err, out)
			}
		}
	}
}

// A run that holds what the shards do not is not to be removed for them.
func TestMergeHasNoMeasurementsRemoved(t *testing.T) {
	runs := t.TempDir()
	shards := shardsOf(t, runs, 2)
	info := synthetic.Info(synthetic.Options{Seed: 6, Speeds: []float64{2.8, 16.7}, Repetitions: 1})
	whole := filepath.Join(runs, info.Run)
	synthetic.Shard(t, whole, info, nil)
	refused := func(what string) {
		t.Helper()
		out, err := typed(t, MergeCommand(), append([]string{"--runs", runs}, shards...)...)
		if err == nil || !strings.Contains(err.Error(), "is there already, and a run of its own; name the parts") {
			t.Errorf("%s: %v\n%s", what, err, out)
		}
	}
	refused("driven whole")
	if err := os.RemoveAll(whole); err != nil {
		t.Fatal(err)
	}
	if out, err := typed(t, MergeCommand(), append([]string{"--runs", runs}, shards...)...); err != nil {
		t.Fatalf("merge: %v\n%s", err, out)
	}
	a, err := archive.Open(whole)
	if err != nil {
		t.Fatal(err)
	}
	more := wire.Verdict{TrialKey: wire.TrialKey{Trial: 1, Attempt: 2}, Outcome: wire.Rejected, Final: true}
	if err := errors.Join(a.Decide(more), a.Close()); err != nil {
		t.Fatal(err)
	}
	refused("driven on since")
}

func TestAShardThatIsNoneIsRefused(t *testing.T) {
	for _, bad := range []string{"0/3", "4/3", "1", "a/b"} {
		out, err := typed(t, RunCommand(), "--shard", bad, "--runs", t.TempDir(), filepath.Join("..", "..", "campaigns",
			"velocity.yaml"))
		if err == nil || !strings.Contains(err.Error(), "expected i/n") {
			t.Errorf("--shard %s: %v\n%s", bad, err, out)
		}
	}
}
