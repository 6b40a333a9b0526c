//go:build e2e

package bench

import (
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"fieldmesh.dev/fieldmesh/controller/archive"
	"fieldmesh.dev/fieldmesh/protocols/wire"
	"fieldmesh.dev/fieldmesh/test/synthetic"
	"fieldmesh.dev/fieldmesh/test/testnet"
)

// TestBenchMergeOfAThousandShards merges 1,000 shards of 12 trials each: of the
// largest plan that there may be.
func TestBenchMergeOfAThousandShards(t *testing.T) {
	begin(t)
	const shards, speeds, repetitions = 1000, 10, wire.MaxTrials / 20 // by two sections
	o := synthetic.Options{Seed: 14, Repetitions: repetitions, WindowS: func(wire.Trial) float64 { return 1 }}
	for i := range speeds {
		o.Speeds = append(o.Speeds, float64(i+1))
	}
	dir := testnet.Folder(t)
	folders, err := synthetic.Shards(dir, o, shards)
	if err != nil {
		t.Fatal(err)
	}
	took, peak := timed(t, filepath.Join(programs, "fieldmesh"),
		append([]string{"merge", "--runs", dir}, folders...)...)
	a, err := archive.Read(filepath.Join(dir, synthetic.Info(o).Run))
	if err != nil {
		t.Fatal(err)
	}
	if n := len(a.Decisions()); n != 2*speeds*repetitions || !a.Finished() {
		t.Fatalf("the merged run has %d decisions, finished %v", n, a.Finished())
	}
	report(row{
		goal:      "merge of 1,000 shards",
		measured:  fmt.Sprintf("%.0f s, %.0f MB of memory", took.Seconds(), float64(peak)/1e6),
		reference: "12 trials a shard, windows of 1 s",
		figure:    fmt.Sprintf("%.0f s, %.0f MB", took.Seconds(), float64(peak)/1e6), limit: "≤ 600 s, ≤ 1,000 MB",
		met: took <= 10*time.Minute && peak <= 1e9,
	}, "`fieldmesh merge` of shards of two nodes and six streams, each with the schedule of all 12,000 trials, whose "+
		"file they share; every file is compared with its checksum, copied and synced. The report is left out, as it "+
		"is of any run of so many trials.")
}
