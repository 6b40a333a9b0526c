//go:build e2e

package android

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"fieldmesh.dev/fieldmesh/test/testnet"
)

// campaign is one trial of two seconds from the phone to the laptop. On a busy
// machine attempts fail for being late, and are repeated.
var campaign = lasting(2)

// lasting is a campaign of one trial with a window of so many seconds.
func lasting(seconds int) string {
	return testnet.Brief("phone", seconds, "acceptance: {attempts_max: 20}\n")
}

// field is a phone, alpha, and a laptop, bravo, joined by a cable under test.
// The controller reaches both by a network apart.
type field struct {
	*testnet.Pair
	phone   phone
	name    string // the phone's
	iface   string // under test, of the phone
	gpsd    string // which the phone's agent asks; empty: none
	dir     string
	before  string           // the phone's network
	service *testnet.Running // runit on the phone
}

func newField(t *testing.T, su manner) *field {
	t.Helper()
	f := newFieldWithoutAgent(t, su)
	f.startPhone(t)
	return f
}

// newFieldWithoutAgent is one whose phone has no agent yet.
func newFieldWithoutAgent(t *testing.T, su manner) *field {
	t.Helper()
	testnet.Need(t, "ip", "tc", "iperf3")
	f := &field{Pair: testnet.NewPair(t, "10.98.0", [2]string{"alpha", "bravo"}), dir: testnet.Folder(t),
		name: "alpha", iface: "wlan0"}
	f.phone = newPhone(t, f.Nodes["alpha"], su)
	f.fieldmesh(t, "keys", "init", "--dir", f.path("fleet"))
	for _, name := range []string{"alpha", "bravo"} {
		f.fieldmesh(t, "keys", "issue", name, "--dir", f.path("fleet"), "--address", f.API(name))
	}
	testnet.GiveKeys(t, f.path("fleet/nodes/bravo"), f.path("keys"))
	if err := os.WriteFile(f.path("campaign.yaml"), []byte(campaign), 0o644); err != nil {
		t.Fatal(err)
	}
	f.startLaptop(t)
	return f
}

func (f *field) path(name string) string { return filepath.Join(f.dir, name) }

// controller is a command of the controller's.
func (f *field) controller(args ...string) *exec.Cmd {
	return f.Controller(programs, args...)
}

// fieldmesh runs one that has to succeed.
func (f *field) fieldmesh(t *testing.T, args ...string) string {
	t.Helper()
	return f.Fieldmesh(t, programs, args...)
}

func (f *field) startLaptop(t *testing.T) {
	t.Helper()
	config := fmt.Sprintf("node: bravo\ninterface: wlan0\ncontrol_interface: ctl0\nstate_dir: %s\nkeys_dir: %s\n"+
		"face_user: \"%d:%d\"\n", f.path("state"), f.path("keys"), testnet.Nobody, testnet.Nobody)
	if err := os.WriteFile(f.path("bravo.yaml"), []byte(config), 0o644); err != nil {
		t.Fatal(err)
	}
	testnet.Start(t, f.Nodes["bravo"].Command(t.Context(), filepath.Join(programs, "fieldmesh-agent"), "up", "--config",
		f.path("bravo.yaml"))).Says(t, "node is ready")
}

// startPhone installs the agent as the guide says for Termux, and starts the service.
func (f *field) startPhone(t *testing.T) {
	t.Helper()
	f.phone.must(t, termuxs, termux+"/bin/fieldmesh-root", "install")
	f.namePhone(t)
	if err := os.Remove(f.phone.path(termux + "/var/service/fieldmesh/down")); err != nil { // sv-enable does that
		t.Fatal(err)
	}
	f.service = testnet.Start(t, f.phone.command(termuxs, termux+"/bin/runsv", termux+"/var/service/fieldmesh"))
	f.service.Says(t, "node is ready")
}

// namePhone gives the agent that is installed its name and its keys.
func (f *field) namePhone(t *testing.T) {
	t.Helper()
	p := f.phone
	text, err := os.ReadFile(p.path(home + "/agent.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	config := strings.NewReplacer("node: alpha", "node: "+f.name+"\ncontrol_interface: ctl0", "interface: wlan0",
		"interface: "+f.iface, "gpsd: none", "gpsd: "+cmp.Or(f.gpsd, "none")).Replace(string(text))
	p.write(t, home+"/agent.yaml", config, 0o644)
	testnet.GiveKeys(t, f.path("fleet/nodes/"+f.name), p.path(home+"/keys"))
	p.mustRoot(t, "chown", "-R", fmt.Sprintf("%d:%d", user, inet), home+"/keys")
	f.before = testnet.Snapshot(t, p.ns.Name)
}

// stopPhone stops runit, after which nothing of the agent is left and the phone has
// to be as it was.
func (f *field) stopPhone(t *testing.T) {
	t.Helper()
	said := len(f.service.Said())
	_ = f.service.Stop(t, syscall.SIGTERM)
	if last := f.service.Said()[said:]; !strings.Contains(last, "nothing to put back") {
		t.Errorf("when the agent had ended, the service said\n%s", last)
	}
	f.isAsBefore(t)
}

// isAsBefore fails the test unless the phone is as it was, and has no agent.
func (f *field) isAsBefore(t *testing.T) {
	t.Helper()
	if left := f.agents(); len(left) > 0 {
		t.Errorf("of the agent there are left %v", left)
	}
	after := testnet.Settled(20*time.Second, f.before, func() string { return testnet.Snapshot(t, f.phone.ns.Name) })
	if after != f.before {
		t.Errorf("the phone is not as it was:\n%s", testnet.Diff(f.before, after))
	}
}

// ofAgent are how the words of the agent's three processes begin.
var ofAgent = []string{"fieldmesh-agent up", "fieldmesh-agent host", "fieldmesh-agent face"}

// agents are the phone's processes of the agent.
func (f *field) agents() (out []int) {
	for _, words := range ofAgent {
		out = append(out, f.processes(words)...)
	}
	return out
}

// processes are the phone's whose words begin with some.
func (f *field) processes(words string) (out []int) {
	for _, pid := range testnet.Pids(f.Nodes[f.name].Name) {
		line, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
		said := strings.ReplaceAll(string(line), "\x00", " ")
		if at := strings.Index(said, words); err == nil && at >= 0 && (at == 0 || said[at-1] == '/') &&
			!strings.Contains(said[:at], " ") {
			out = append(out, pid)
		}
	}
	return out
}

// begin begins to drive the campaign.
func (f *field) begin(t *testing.T, name string) *testnet.Running {
	t.Helper()
	return testnet.Start(t, f.controller("run", f.path("campaign.yaml"), "--fleet", f.path("fleet/fleet.yaml"),
		"--place", "bench", "--patience", "30s", "--runs", f.path("runs"), "--name", name))
}

// end waits for a run's end, and returns what the controller said.
func (f *field) end(t *testing.T, run *testnet.Running) string {
	t.Helper()
	err := run.Wait(t, 5*time.Minute)
	t.Logf("run: %v\n%s", err, run.Said())
	return run.Said()
}

// What the controller prints of a run's one trial and one cell.
var (
	good = regexp.MustCompile(`\[1/1\] trial 1( attempt \d+)?: accepted`)
	mean = regexp.MustCompile(`(?m)^ *1 +(\d+\.\d+)`)
)

// result is an attempt's in a node's journal.
var result = regexp.MustCompile(`"throughput_bps":[1-9]`)

// accepted fails the test unless the run's trial was accepted and carried data.
func accepted(t *testing.T, said string) {
	t.Helper()
	mb := mean.FindStringSubmatch(said)
	if !good.MatchString(said) || mb == nil || strings.Trim(mb[1], "0.") == "" {
		t.Error("the trial was not accepted, or carried nothing")
	}
}

// netd's rules lead nowhere but to its own tables: without a rule of its own the
// mesh's packets go out by mobile data.
func TestE2EMeshIsReachedBesideNetdsRules(t *testing.T) {
	f := newField(t, magisk)
	accepted(t, f.end(t, f.begin(t, "rules")))
	f.told(t)
	f.stopPhone(t)
}

// A rule that comes within the window, as a VPN's, leads the mesh's packets out by
// mobile data: what was measured is no result, and the trial is repeated.
func TestE2EARuleWithinTheWindowSpoilsTheAttempt(t *testing.T) {
	f := newField(t, magisk)
	run := f.begin(t, "rule")
	run.Says(t, "measuring")
	vpn := []string{"pref", "9000", "to", "10.77.0.0/16", "lookup", "1003"}
	f.phone.ns.Run(t, "ip", append([]string{"rule", "add"}, vpn...)...)
	run.Says(t, "misrouted: on alpha: packets to bravo at 10.77.0.2 leave by rmnet0, not by wlan0")
	f.phone.ns.Run(t, "ip", append([]string{"rule", "del"}, vpn...)...)
	accepted(t, f.end(t, run))
	f.stopPhone(t)
}

// told fails the test unless the controller has told the laptop's agent, which the
// app may ask, what the trial measured.
func (f *field) told(t *testing.T) {
	t.Helper()
	journals, err := filepath.Glob(f.path("state/*/run/*"))
	for _, name := range journals {
		text, errRead := os.ReadFile(name)
		if err = errors.Join(err, errRead); result.Match(text) {
			return
		}
	}
	t.Errorf("in %v there is no throughput: %v", journals, err)
}

// What waits for the agent below runit may be killed at any time, as Android does
// to an app's processes: the agent, wherever su has started it, ends with it and
// puts the phone back, and runit's next one finishes the run.
func TestE2EAgentEndsWithWhoeverWaitsForIt(t *testing.T) {
	for su, victims := range map[manner][]string{magisk: {"su -c", "sh ./run"}, kernelSU: {"sh ./run"}} {
		t.Run(string(su), func(t *testing.T) {
			f := newField(t, su)
			for i, victim := range victims {
				f.kill(t, victim, fmt.Sprintf("run-%d", i))
			}
			f.stopPhone(t)
		})
	}
}

// runit's supervisor of the service may be killed, too: then nothing would stop the
// agent any more, and the next supervisor's would not start beside it.
func TestE2EAgentEndsWithItsSupervisor(t *testing.T) {
	f := newField(t, magisk)
	if err := f.service.Cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	testnet.Await(t, 60*time.Second, "the end of the agent", func() bool { return len(f.agents()) == 0 })
	f.isAsBefore(t)
	f.service = testnet.Start(t, f.phone.command(termuxs, termux+"/bin/runsv", termux+"/var/service/fieldmesh"))
	f.service.Says(t, "node is ready")
	f.stopPhone(t)
}

// kill kills the phone's processes of some words in the window of a run, which has
// to come to its end.
func (f *field) kill(t *testing.T, victim, name string) {
	t.Helper()
	before := f.agents()
	run := f.begin(t, name)
	run.Says(t, "measuring")
	victims := f.processes(victim)
	if len(victims) == 0 {
		t.Errorf("there is no process %q", victim)
	}
	for _, pid := range victims {
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
			t.Error(err)
		}
	}
	accepted(t, f.end(t, run))
	testnet.Await(t, 30*time.Second, "the end of the agent for which "+victim+" waited", func() bool {
		return !slices.ContainsFunc(f.agents(), func(pid int) bool { return slices.Contains(before, pid) })
	})
}
