//go:build e2e

package journeys

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"fieldmesh.dev/fieldmesh/protocols/wire"
	"fieldmesh.dev/fieldmesh/test/testnet"
)

// One trial of each section over the emulated radio, captured at its receiver
// as on the cable.
func TestARehearsalReportsWhatACaptureShows(t *testing.T) {
	testnet.Need(t, "ip", "gpsd", "iperf3", "tcpdump")
	file := velocity(t, "two-trials", "[8.3]", "  duration_s: 10\n",
		"  duration_s: 10\n  capture: {snap_bytes: 128}\n")
	before := testnet.Snapshot(t, "", "lo", "eth")
	run := rehearse(t, file)
	fl := run.fleet(t)
	field := strings.TrimSuffix(fl.Nodes["alpha"].Netns, "-ctl")
	own := namespaces(t, field)
	captures := map[wire.TrialKey][]*capture{} // alpha's and bravo's interface
	run.follow(t, fl, 10*time.Minute, func(step string, k wire.TrialKey) {
		switch step {
		case "armed":
			for _, name := range deskNodes {
				captures[k] = append(captures[k], startCapture(t, field+"-"+name, "wlan0", true))
			}
		case "restoring", "kept":
			for _, c := range captures[k] {
				c.stop(t)
			}
		}
	})
	k := run.finish(t)
	t.Logf("fieldmesh rehearse:\n%s", run.Said())
	for name, inode := range namespaces(t, field) { // another rehearsal may have taken the name since
		if own[name] == inode {
			t.Errorf("the field has left %s", name)
		}
	}
	if after := testnet.Snapshot(t, "", "lo", "eth"); after != before {
		t.Errorf("the machine is not as it was:\n%s", testnet.Diff(before, after))
	}
	k.everyTrialOnce(t)
	k.nothingLost(t, deskNodes...)
	for _, at := range k.attempts {
		trial, _ := k.Trial(at.Trial)
		both := captures[at.TrialKey]
		if len(both) != len(deskNodes) {
			t.Errorf("trial %d attempt %d: %d captures", at.Trial, at.Attempt, len(both))
			continue
		}
		c := both[0]
		if trial.Receiver == "bravo" {
			c = both[1]
		}
		compareWithCapture(t, k, at, c)
	}
	t.Run("the notebook reads the export", func(t *testing.T) { theNotebookReadsTheExport(t, k.Dir()) })
	t.Run("the recording has the receivers' times", func(t *testing.T) { theRecordingHasTheReceiversTimes(t, k.Dir()) })
	dashboardsOf(t, k.Dir())
}

// namespaces are the inodes of a field's network namespaces.
func namespaces(t *testing.T, field string) map[string]uint64 {
	t.Helper()
	out := map[string]uint64{}
	for _, name := range testnet.Namespaces(t, field+"-") {
		var st unix.Stat_t
		if unix.Stat(filepath.Join(testnet.Dir, name), &st) == nil { // gone meanwhile, when it fails
			out[name] = st.Ino
		}
	}
	return out
}
