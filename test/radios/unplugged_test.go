//go:build guest

//guest:timed

package radios

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"fieldmesh.dev/fieldmesh/protocols/wire"
	"fieldmesh.dev/fieldmesh/test/testnet"
	"fieldmesh.dev/fieldmesh/test/testnet/hwsim"
)

// quick is the campaign with a gate that opens soon, for one attempt.
func quick(seconds float64) string {
	text := fmt.Sprintf(campaign, seconds, "{protocol: none}", "", "")
	return strings.NewReplacer("after_s: 12", "after_s: 5", "attempts_max: 12", "attempts_max: 1").Replace(text)
}

// A radio is taken away while a trial runs: the trial ends then, with the
// reason on record, and both nodes are well. The next trial is refused with
// what to do about it, and one with the radio plugged in again works.
func TestGuestUnplugged(t *testing.T) {
	r := newRig(t, "fox", "owl")
	fox, owl := r.nodes[0], r.nodes[1]
	before := fox.snapshot(t)
	for _, n := range r.nodes {
		n.start(t)
	}
	end := r.begin(t, "unplugged", quick(60))
	testnet.Await(t, 3*time.Minute, "the window", func() bool { return strings.Contains(owl.states(t), `"running"`) })
	unplugged := time.Now()
	owl.radio.Unplug(t, owl.ns)
	v, _ := end()
	if took := time.Since(unplugged); v.Outcome == "accepted" ||
		!strings.Contains(v.Reason.String(), "radio_gone: on owl: wlan0 was taken away") || took > 50*time.Second {
		t.Errorf("%s after the radio was taken away the trial is %+v", took, v)
	}
	fox.becomes(t, "after the trial without a radio", before)
	if v, said := r.begin(t, "without", quick(6))(); v.Outcome != "" ||
		!strings.Contains(said, "node owl: radio: there is no interface wlan0") ||
		!strings.Contains(said, "plug the radio in") {
		t.Errorf("without the radio the next run is not refused: %+v", v)
	}
	owl.radio = hwsim.Plug(t, "again")
	owl.radio.Move(t, owl.ns, "wlan0")
	owl.ns.Up(t, "wlan0", "192.168.7.2/24")
	time.Sleep(2 * time.Second) // the kernel's own addresses of IPv6 come later
	with := owl.snapshot(t)
	if v, _ = r.begin(t, "again", fmt.Sprintf(campaign, 6.0, "{protocol: none}", "", ""))(); v.Outcome != "accepted" {
		t.Errorf("with the radio again the trial is %+v", v)
	}
	fox.becomes(t, "in the end", before)
	owl.becomes(t, "in the end", with)
	for _, n := range r.nodes {
		if n.changes(t) != 0 {
			t.Errorf("%s has %d changes in its journal in the end", n.name, n.changes(t))
		}
	}
}

// begin starts a run of one trial; the function waits for its end and gives the
// controller's verdict, empty for a run that was refused, and what it said.
func (r *rig) begin(t *testing.T, name, campaign string) (end func() (wire.Verdict, string)) {
	t.Helper()
	file := r.write(t, name+".yaml", campaign)
	runs := filepath.Join(r.dir, "runs")
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	var said strings.Builder
	cmd := exec.CommandContext(ctx, filepath.Join(programs, "fieldmesh"), "run", file, "--fleet", r.fleet(), "--place",
		"bench", "--runs", runs, "--name", name)
	cmd.Stdout, cmd.Stderr = &said, &said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return func() (v wire.Verdict, text string) {
		t.Helper()
		defer cancel()
		err := cmd.Wait() // a run without an accepted trial may say so by its status
		t.Logf("run %s: %v\n%s", name, err, said.String())
		// only a bad pattern is an error
		attempts, _ := filepath.Glob(filepath.Join(runs, name, "trials", "0001-a*", "verdict.json"))
		if len(attempts) > 0 {
			read(t, attempts[len(attempts)-1], &v)
		}
		return v, said.String()
	}
}

// states is what the node has recorded of its trials' states so far.
func (n *node) states(t *testing.T) string {
	t.Helper()
	var all strings.Builder
	err := filepath.WalkDir(filepath.Join(n.dir, "state", "face", "spool"),
		func(path string, e os.DirEntry, err error) error {
			if err != nil || e.IsDir() {
				return err
			}
			text, err := os.ReadFile(path)
			for line := range strings.Lines(string(text)) {
				if strings.Contains(line, `"kind":"trial"`) {
					all.WriteString(line)
				}
			}
			return err
		})
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	return all.String()
}
