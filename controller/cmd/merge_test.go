package cmd

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"fieldmesh.dev/fieldmesh/controller/archive"
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
	if out, err = typed(t, VerifyCommand(), "--runs", runs, "synthetic-6"); err != nil {
		t.Errorf("verify: %v\n%s", err, out)
	}
	if out, err = typed(t, MetricsCommand(), "--runs", runs, "synthetic-6"); err != nil ||
		!strings.Contains(out, "of 4 attempts)") {
		t.Errorf("metrics: %v\n%s", err, out)
	}
}

func TestAShardThatIsNoneIsRefused(t *testing.T) {
	for _, bad := range []string{"0/3", "4/3", "1", "a/b"} {
		out, err := typed(t, RunCommand(), "--shard", bad, "--runs", t.TempDir(), filepath.Join("..", "..", "campaigns",
			"velocity.yaml"))
		if err == nil || !strings.Contains(err.Error(), "it is i/n") {
			t.Errorf("--shard %s: %v\n%s", bad, err, out)
		}
	}
}
