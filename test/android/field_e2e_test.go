//go:build e2e

package android

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"fieldmesh.dev/fieldmesh/test/testnet"
)

// campaign is one trial of a second from the phone to the laptop.
var campaign = testnet.Standing("phone", "alpha", "bravo", `  duration_s: 1
  gate: {after_s: 0.1, timeout_s: 20, lead_s: 0.3}
  radio: {mode: none}
  tcp: {variant: reno}
  traffic: {bulk: {kind: iperf3_tcp, from: sender, to: receiver, streams: 1, window_bytes: 65536, port: 5000}}
design: {repetitions: 1, order: as_listed, seed: 1}
acceptance: {attempts_max: 2}
`)

// field is a phone, alpha, and a laptop, bravo, joined by a cable under test.
// The controller reaches both by a network apart.
type field struct {
	*testnet.Pair
	phone   phone
	dir     string
	before  string           // the phone's network
	service *testnet.Running // runit on the phone
}

func newField(t *testing.T) *field {
	t.Helper()
	testnet.Need(t, "ip", "tc", "iperf3")
	f := &field{Pair: testnet.NewPair(t, "10.98.0", [2]string{"alpha", "bravo"}), dir: testnet.Folder(t)}
	f.phone = newPhone(t, f.Nodes["alpha"])
	f.fieldmesh(t, "keys", "init", "--dir", f.path("fleet"))
	for _, name := range []string{"alpha", "bravo"} {
		f.fieldmesh(t, "keys", "issue", name, "--dir", f.path("fleet"), "--address", f.API(name))
	}
	testnet.GiveKeys(t, f.path("fleet/nodes/bravo"), f.path("keys"))
	if err := os.WriteFile(f.path("campaign.yaml"), []byte(campaign), 0o644); err != nil {
		t.Fatal(err)
	}
	f.startLaptop(t)
	f.startPhone(t)
	return f
}

func (f *field) path(name string) string { return filepath.Join(f.dir, name) }

// controller is a command of the controller's.
func (f *field) controller(args ...string) *exec.Cmd {
	return exec.Command("ip", append([]string{"netns", "exec", f.Control.Name, filepath.Join(programs, "fieldmesh")},
		args...)...)
}

// fieldmesh runs one that has to succeed.
func (f *field) fieldmesh(t *testing.T, args ...string) string {
	t.Helper()
	out, err := f.controller(args...).CombinedOutput()
	if err != nil {
		t.Fatalf("fieldmesh %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return string(out)
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

// startPhone installs the agent as the guide says, gives it its name and its
// keys, and starts the service.
func (f *field) startPhone(t *testing.T) {
	t.Helper()
	p := f.phone
	p.must(t, termuxs, termux+"/bin/fieldmesh-root", "install")
	text, err := os.ReadFile(p.path(home + "/agent.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	config := strings.Replace(string(text), "node: phone-1", "node: alpha\ncontrol_interface: ctl0", 1)
	p.write(t, home+"/agent.yaml", config, 0o644)
	testnet.GiveKeys(t, f.path("fleet/nodes/alpha"), p.path(home+"/keys"))
	p.mustRoot(t, "chown", "-R", fmt.Sprintf("%d:%d", user, inet), home+"/keys")
	f.before = testnet.Snapshot(t, p.ns.Name)
	if err := os.Remove(p.path(termux + "/var/service/fieldmesh/down")); err != nil { // sv-enable does that
		t.Fatal(err)
	}
	f.service = testnet.Start(t, p.command(termuxs, termux+"/bin/runsv", termux+"/var/service/fieldmesh"))
	f.service.Says(t, "node is ready")
}

// stopPhone stops runit and the agent, after which the phone has to be as it was.
func (f *field) stopPhone(t *testing.T) {
	t.Helper()
	_ = f.service.Stop(t, syscall.SIGTERM)
	for _, pid := range f.halves() {
		_ = syscall.Kill(pid, syscall.SIGTERM) // it may end by itself
	}
	after := testnet.Settled(20*time.Second, f.before, func() string { return testnet.Snapshot(t, f.phone.ns.Name) })
	if after != f.before {
		t.Errorf("the phone is not as it was:\n%s", testnet.Diff(f.before, after))
	}
}

// halves are the phone's processes of the agent.
func (f *field) halves() (out []int) {
	for _, pid := range testnet.Pids(f.phone.ns.Name) {
		line, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
		if name, _, _ := bytes.Cut(line, []byte{0}); err == nil && filepath.Base(string(name)) == "fieldmesh-agent" {
			out = append(out, pid)
		}
	}
	return out
}

// run drives the campaign, and returns what the controller said.
func (f *field) run(t *testing.T, name string) string {
	t.Helper()
	out, err := f.controller("run", f.path("campaign.yaml"), "--fleet", f.path("fleet/fleet.yaml"), "--place", "bench",
		"--patience", "5s", "--runs", f.path("runs"), "--name", name).CombinedOutput()
	t.Logf("run %s: %v\n%s", name, err, out)
	return string(out)
}

// mean is the run's one cell, as the controller prints it.
var mean = regexp.MustCompile(`(?m)^ +1 +(\d+\.\d+)`)

// accepted fails the test unless the run's trial was accepted and carried data.
func accepted(t *testing.T, said string) {
	t.Helper()
	mb := mean.FindStringSubmatch(said)
	if !strings.Contains(said, "trial 1: accepted") || mb == nil || strings.Trim(mb[1], "0.") == "" {
		t.Error("the trial was not accepted, or carried nothing")
	}
}

// netd's rules lead nowhere but to its own tables: without a rule of its own the
// mesh's packets go out by mobile data.
func TestE2EMeshIsReachedBesideNetdsRules(t *testing.T) {
	f := newField(t)
	accepted(t, f.run(t, "rules"))
	f.stopPhone(t)
}
