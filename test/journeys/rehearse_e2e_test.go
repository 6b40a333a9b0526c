//go:build e2e

package journeys

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"fieldmesh.dev/fieldmesh/controller/fleet"
	"fieldmesh.dev/fieldmesh/protocols/wire"
	"fieldmesh.dev/fieldmesh/test/testnet"
	"golang.org/x/sys/unix"
)

// One trial of each section over the emulated radio, captured at its receiver
// as on the cable.
func TestARehearsalReportsWhatACaptureShows(t *testing.T) {
	testnet.Need(t, "ip", "gpsd", "iperf3", "tcpdump")
	dir := testnet.Folder(t)
	file := variant(t, "velocity.yaml", "two-trials", "levels: [2.8, 5.6, 8.3, 11.1, 13.9, 16.7]", "levels: [8.3]",
		"repetitions: 2", "repetitions: 1",
		// Beside other work the emulated radio may be late; that is judged elsewhere.
		"lateness_share_max: 0.01", "lateness_share_max: 1", "  duration_s: 10\n", "  duration_s: 10\n  capture: "+
			"{snap_bytes: 128}\n")
	before := testnet.Snapshot(t, "", "lo", "eth")
	fields := filepath.Join(dir, "fields")
	run := begin(t, "fieldmesh", "rehearse", file, "--runs", filepath.Join(dir, "runs"), "--name", "two-trials",
		"--field-dir", fields)
	fl := awaitField(t, run, filepath.Join(fields, "two-trials", "field0", "fleet.yaml"))
	field := strings.TrimSuffix(fl.Nodes["alpha"].Netns, "-ctl")
	own := namespaces(t, field)

	identity, err := fl.Identity()
	if err != nil {
		t.Fatal(err)
	}
	alpha, err := fl.Client(identity, "alpha")
	if err != nil {
		t.Fatal(err)
	}
	defer alpha.Close()
	captures := map[wire.TrialKey][]*capture{} // alpha's and bravo's interface
	f := &follower{client: alpha, run: "two-trials"}
	for until := time.Now().Add(3 * time.Minute); !run.over(); {
		if time.Now().After(until) {
			t.Fatal("the rehearsal does not end")
		}
		step, k, changed := f.next(t.Context())
		switch {
		case !changed:
		case step == "armed":
			for _, name := range deskNodes {
				captures[k] = append(captures[k], startCapture(t, field+"-"+name, "wlan0", true))
			}
		case step == "restoring" || step == "kept":
			for _, c := range captures[k] {
				c.stop(t)
			}
		}
	}
	if err := run.wait(t.Context()); err != nil {
		t.Errorf("fieldmesh rehearse: %v", err)
	}
	t.Logf("fieldmesh rehearse:\n%s", run.said())
	for name, inode := range namespaces(t, field) { // another rehearsal may have taken the name since
		if own[name] == inode {
			t.Errorf("the field has left %s", name)
		}
	}
	if after := testnet.Snapshot(t, "", "lo", "eth"); after != before {
		t.Errorf("the machine is not as it was:\n%s", testnet.Diff(before, after))
	}

	k := openRun(t, filepath.Join(dir, "runs", "two-trials"))
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

// awaitField waits until the rehearsal's field is there.
func awaitField(t *testing.T, run *session, path string) *fleet.Fleet {
	t.Helper()
	testnet.Await(t, time.Minute, "the field is there", func() bool {
		if run.over() {
			t.Fatalf("the rehearsal ended: %s", run.said())
		}
		_, err := os.Stat(path)
		return err == nil
	})
	fl, err := fleet.Load(path)
	if err != nil {
		t.Fatal(err)
	}
	return fl
}
