//go:build e2e

package journeys

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"fieldmesh.dev/fieldmesh/test/testnet"
)

// A campaign of at most five blocks that asks for little has enough after three:
// the run stops there, says why in its journal and its report, and is over for
// whoever would continue it.
func TestARunStopsWhenItHasEnough(t *testing.T) {
	testnet.Need(t, "ip", "gpsd", "iperf3")
	file := variant(t, "velocity.yaml", "enough", append(patient[:2:2], allSpeeds, "levels: [8.3]",
		"lateness_share_max: 0.01", "lateness_share_max: 1", "  duration_s: 10\n", "  duration_s: 2\n",
		// Any width is narrow enough: how precise blocks are is judged elsewhere.
		"repetitions: 2", "stop_when: {of: section, half_width_mbps: 1000, min_blocks: 3}\n  repetitions: 5")...)
	run := rehearse(t, file)
	k := run.finish(t)
	said := run.Said()
	for _, want := range []string{"precise enough: after 3 blocks (3 whole): B − A is known to ± ",
		"stopped after block 3: ", "6 of 6 trials accepted"} {
		if !strings.Contains(said, want) {
			t.Errorf("the rehearsal does not say %q:\n%s", want, said)
		}
	}
	if s := k.Stopped(); s == nil || s.Blocks != 3 {
		t.Errorf("the journal says %+v", s)
	}
	for _, v := range k.Decisions() {
		if x, _ := k.Trial(v.Trial); x.Block > 3 {
			t.Errorf("trial %d of block %d was driven", v.Trial, x.Block)
		}
	}
	report, err := os.ReadFile(filepath.Join(k.Dir(), "report.html"))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"Stopped after block 3: precise enough", "98.3 % interval",
		"6 of 6 planned trials accepted"} {
		if !strings.Contains(string(report), want) {
			t.Errorf("the report does not say %q", want)
		}
	}
	// Resumed, it has nothing left to do.
	again := fieldmesh(t, "rehearse", "--resume", k.Dir(), "--runs", run.runs, "--field-dir", run.fields)
	if !strings.Contains(again, "6 of 6 trials accepted") {
		t.Errorf("resumed:\n%s", again)
	}
	shard := refused(t, "rehearse", file, "--runs", run.runs, "--name", "cut", "--shard", "1/2")
	if !strings.Contains(shard, "which no shard can tell alone") {
		t.Errorf("a shard:\n%s", shard)
	}
}
