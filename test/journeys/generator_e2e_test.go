//go:build e2e

package journeys

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"fieldmesh.dev/fieldmesh/controller/preflight"
	"fieldmesh.dev/fieldmesh/protocols/wire"
	"fieldmesh.dev/fieldmesh/test/testnet"
)

// iperf3s are the processes of the traffic generator on a node.
func iperf3s(d *desk, node string) (pids []int) {
	for _, pid := range testnet.Pids(d.nodes[node].Name) {
		name, err := os.ReadFile(fmt.Sprintf("/proc/%d/comm", pid))
		if err == nil && string(name) == "iperf3\n" {
			pids = append(pids, pid)
		}
	}
	return pids
}

// strike sends a signal to a node's only iperf3.
func strike(t *testing.T, d *desk, node string, s syscall.Signal) {
	t.Helper()
	pids := iperf3s(d, node)
	if len(pids) != 1 {
		t.Errorf("%d iperf3 on %s, want one", len(pids), node)
		return
	}
	if err := syscall.Kill(pids[0], s); err != nil {
		t.Error(err)
	}
}

func strikeSender(s syscall.Signal) func(*testing.T, *desk, wire.Trial) {
	return func(t *testing.T, d *desk, trial wire.Trial) { inWindow(2); strike(t, d, trial.Sender, s) }
}

func strikeReceiver(s syscall.Signal) func(*testing.T, *desk, wire.Trial) {
	return func(t *testing.T, d *desk, trial wire.Trial) { inWindow(2); strike(t, d, trial.Receiver, s) }
}

// trafficFolder is where a node's iperf3 keeps its files.
func (d *desk) trafficFolder(node string) string {
	return filepath.Join(d.nodeDir(node), "state", "face", "traffic")
}

// asItsAgent runs a command among the mounts of a node's agent.
func (d *desk) asItsAgent(t *testing.T, node string, command ...string) {
	t.Helper()
	for _, pid := range testnet.Pids(d.nodes[node].Name) {
		name, err := os.ReadFile(fmt.Sprintf("/proc/%d/comm", pid))
		if err != nil || !strings.HasPrefix(string(name), "fieldmesh-agent") {
			continue
		}
		if out, err := exec.Command("nsenter", append([]string{"-t", fmt.Sprint(pid), "-m", "--"}, command...)...).
			CombinedOutput(); err != nil {
			t.Errorf("%v on %s: %v: %s", command, node, err, out)
		}
		return
	}
	t.Errorf("no agent runs on %s", node)
}

// spoil mounts something upon the sender's folder, once the attempt is armed.
func spoil(options string) func(*testing.T, *desk, wire.Trial) {
	return func(t *testing.T, d *desk, trial wire.Trial) {
		d.asItsAgent(t, trial.Sender, "mount", "-t", "tmpfs", "-o", options, "none", d.trafficFolder(trial.Sender))
	}
}

func unspoil(t *testing.T, d *desk, trial wire.Trial) {
	d.asItsAgent(t, trial.Sender, "umount", d.trafficFolder(trial.Sender))
}

// generatorFaults by "speed section". The reason names node, side and what.
var generatorFaults = map[string]struct {
	fault
	node   func(wire.Trial) string
	reason string // empty: accepted
}{
	"5.6 A": {fault{measuring: strikeSender(syscall.SIGKILL)}, sender, "iperf3's client of flow bulk was ended by " +
		"SIGKILL"},
	"5.6 B": {fault{measuring: strikeReceiver(syscall.SIGKILL)}, receiverOf, "iperf3's server of flow bulk was " +
		"ended by SIGKILL"},
	"8.3 A": {fault{armed: func(t *testing.T, d *desk, trial wire.Trial) {
		strike(t, d, trial.Receiver, syscall.SIGKILL)
	}}, receiverOf, "iperf3's server of flow bulk was ended by SIGKILL before the window opened"},
	"8.3 B": {fault{measuring: strikeSender(syscall.SIGTERM)}, sender, "iperf3's client of flow bulk was ended by " +
		"a signal"},
	"11.1 A": {fault{measuring: strikeSender(syscall.SIGSTOP)}, sender, "iperf3's client of flow bulk was stopped by " +
		"a signal"},
	"11.1 B": {fault{measuring: strikeReceiver(syscall.SIGSTOP)}, receiverOf, "iperf3's server of flow bulk was " +
		"stopped by a signal"},
	"13.9 A": {fault{armed: spoil("ro,mode=0700"), kept: unspoil}, sender, "iperf3's client of flow bulk could not " +
		"start: make a temporary folder for iperf3: "},
	"13.9 B": {fault{armed: spoil("size=4k,mode=0777"), kept: unspoil}, sender, "iperf3's client of flow bulk ended " +
		"0."},
	"16.7 A": {},
	"16.7 B": {fault{armed: func(t *testing.T, d *desk, trial wire.Trial) {
		strike(t, d, trial.Receiver, syscall.SIGTERM)
	}}, receiverOf, "iperf3's server of flow bulk was ended by a signal before the window opened"},
}

func sender(t wire.Trial) string     { return t.Sender }
func receiverOf(t wire.Trial) string { return t.Receiver }

// Whatever ends iperf3 in an attempt that is not the network, the attempt says
// nothing of the network: it fails, for that reason, and is made again.
func TestAnAttemptWhoseGeneratorDiesFails(t *testing.T) {
	testnet.Need(t, "nsenter", "mount")
	d := newDesk(t, "")
	file := stationary(t, "generator", "[5.6, 8.3, 11.1, 13.9, 16.7]",
		"duration_s: 3", fmt.Sprintf("duration_s: %g", faultWindow.Seconds()))
	cell := func(trial wire.Trial) string { return trial.Factors["speed"] + " " + trial.Factors["section"] }
	preflightSeesTheFolder(t, d, file)
	c := d.start(t, file)
	c.steps = func(step string, k wire.TrialKey) {
		f := generatorFaults[cell(c.trials[k.Trial])]
		do := map[string]func(*testing.T, *desk, wire.Trial){"armed": f.armed, "measuring": f.measuring,
			"kept": f.kept}[step]
		if do != nil && k.Attempt == 1 {
			do(t, d, c.trials[k.Trial])
		}
	}
	k := c.finish(t, 10*time.Minute)
	d.restored(t)
	want := 2*len(c.trials) - 1
	for _, at := range k.attempts {
		trial := c.trials[at.Trial]
		f := generatorFaults[cell(trial)]
		// An iperf3 that the test stopped is no late machine.
		stopped := at.Attempt == 1 && f.reason != "" && at.Verdict.Reason.Code == wire.ReasonGenerator
		if late(at) && !stopped {
			t.Logf("trial %d attempt %d, %s: %s", at.Trial, at.Attempt, cell(trial), at.Verdict.Reason)
			if at.Attempt > 1 || f.reason == "" {
				want++
			}
			continue
		}
		if at.Attempt == 1 && f.reason != "" {
			want := "generator: on " + f.node(trial) + ": " + f.reason
			if at.Verdict.Outcome != "failed" || !strings.HasPrefix(at.Verdict.Reason.String(), want) {
				t.Errorf("trial %d, %s: %s %q, want failed for %q", at.Trial, cell(trial), at.Verdict.Outcome,
					at.Verdict.Reason, want)
			}
			continue
		}
		if mb, ok := k.metric(t, at.TrialKey, "transferred_mb"); at.Verdict.Outcome != "accepted" || !ok || mb < 1 {
			t.Errorf("trial %d attempt %d, in which nothing was wrong: %s %q, %g MB (measured: %v)", at.Trial,
				at.Attempt, at.Verdict.Outcome, at.Verdict.Reason, mb, ok)
		}
	}
	if want > 3*len(c.trials) {
		t.Errorf("%d attempts were late: too few were looked at", want-2*len(c.trials)+1)
	}
	if len(k.attempts) != want {
		t.Errorf("%d attempts at %d trials, want %d", len(k.attempts), len(c.trials), want)
	}
	d.stopAgents(t)
	d.restored(t)
}

// preflightSeesTheFolder: an iperf3 that cannot write is found before anybody drives.
func preflightSeesTheFolder(t *testing.T, d *desk, file string) {
	t.Helper()
	folder := d.trafficFolder("bravo")
	owner, err := os.Stat(filepath.Dir(folder))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	if is := owner.Sys().(*syscall.Stat_t); os.Chown(folder, int(is.Uid), int(is.Gid)) != nil {
		t.Fatalf("give %s to its agent", folder)
	}
	needs := func() map[string]preflight.Item {
		out, _ := exec.Command(filepath.Join(programs, "fieldmesh"), "preflight", file, "--fleet", d.fleetFile(),
			"--json").Output()
		var r preflight.Report
		if err := json.Unmarshal(out, &r); err != nil {
			t.Fatalf("preflight: %v: %s", err, out)
		}
		found := map[string]preflight.Item{}
		for _, i := range r.Items {
			if i.Need == "generator" {
				found[i.Node] = i
			}
		}
		return found
	}
	d.asItsAgent(t, "bravo", "mount", "-t", "tmpfs", "-o", "ro,mode=0700", "none", folder)
	spoilt := needs()
	d.asItsAgent(t, "bravo", "umount", folder)
	well := needs()
	t.Logf("spoilt: %+v\nwell: %+v", spoilt, well)
	if b := spoilt["bravo"]; b.State != preflight.Unmet || !strings.Contains(b.Found, folder) || b.Cure == "" ||
		spoilt["alpha"].State != preflight.Met {
		t.Errorf("with a folder that cannot be written: %+v", spoilt)
	}
	if well["alpha"].State != preflight.Met || well["bravo"].State != preflight.Met {
		t.Errorf("with nothing wrong: %+v", well)
	}
}
