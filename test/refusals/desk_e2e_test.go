//go:build e2e

package refusals

import (
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"fieldmesh.dev/fieldmesh/test/testnet"
)

// face is the user that the agents' unprivileged halves run as: nobody.
const face = 65534

// standing is a campaign of two nodes that nobody drives, so that it needs no
// GPS. Its acceptance is to be added.
const standing = `fieldmesh: 1
name: standing
title: Two standing nodes
nodes:
  alpha: {mesh_address: 10.77.0.1/24}
  bravo: {mesh_address: 10.77.0.2/24}
trial:
  sender: alpha
  receiver: bravo
  duration_s: 1
  course: {kind: none}
  gate: {after_s: 0.1, timeout_s: 20, lead_s: 0.3}
  radio: {mode: none}
  tcp: {variant: reno}
  traffic: {bulk: {kind: iperf3_tcp, from: sender, to: receiver, streams: 1, window_bytes: 65536, port: 5000}}
design: {repetitions: 1, order: as_listed, seed: 1}
`

// patient has judgeable acceptance and nothing that could not be met.
const patient = standing + "acceptance: {attempts_max: 8}\n"

// desk is two nodes, alpha and bravo, joined by a cable under test and by one
// for control. The controller runs beside alpha.
type desk struct {
	dir    string
	spaces map[string]*testnet.NS
	before map[string]string
	wrap   []string // words before a program inside a node
}

// newDesk makes the nodes and their keys. The agents are started by up.
func newDesk(t *testing.T) *desk {
	t.Helper()
	testnet.Need(t, "ip", "iperf3")
	d := &desk{dir: testnet.Folder(t), spaces: map[string]*testnet.NS{"alpha": testnet.NewNS(t, "bia"),
		"bravo": testnet.NewNS(t, "bib")}, before: map[string]string{}}
	testnet.Veth(t, d.spaces["alpha"], "wlan0", "", d.spaces["bravo"], "wlan0", "")
	testnet.Veth(t, d.spaces["alpha"], "ctl0", "10.98.0.1/24", d.spaces["bravo"], "ctl0", "10.98.0.2/24")
	mustRun(t, program("fieldmesh", "keys", "init", "--dir", d.path("fleet")))
	for i, name := range []string{"alpha", "bravo"} {
		mustRun(t, program("fieldmesh", "keys", "issue", name, "--dir", d.path("fleet"), "--address",
			fmt.Sprintf("10.98.0.%d:7443", i+1)))
		d.before[name] = testnet.Snapshot(t, d.spaces[name].Name)
	}
	return d
}

func mustRun(t *testing.T, c *exec.Cmd) {
	t.Helper()
	if o := finish(t, c); o.status != 0 {
		t.Fatalf("%v: status %d\n%s%s", c.Args, o.status, o.stdout, o.stderr)
	}
}

func (d *desk) path(elements ...string) string {
	return filepath.Join(append([]string{d.dir}, elements...)...)
}

// up starts a node's agent, with further lines in its agent.yaml, and waits
// until it answers. It is stopped in order when the test ends.
func (d *desk) up(t *testing.T, node, lines string) *exec.Cmd {
	t.Helper()
	keys := d.path("fleet", "nodes", node)
	err := filepath.WalkDir(keys, func(path string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		return os.Chown(path, face, face)
	})
	if err == nil {
		err = os.Chmod(d.path("fleet"), 0o711)
	}
	if err == nil {
		err = os.Chmod(d.path("fleet", "nodes"), 0o711)
	}
	if err != nil {
		t.Fatal(err)
	}
	text := fmt.Sprintf("node: %s\ninterface: wlan0\ncontrol_interface: ctl0\nkeys_dir: %s\nface_user: \"%d:%d\"\n",
		node, keys, face, face)
	if !strings.Contains(lines, "state_dir:") {
		text += "state_dir: " + d.path("state", node) + "\n"
	}
	config := write(t, d.dir, node+".yaml", text+lines)
	log, err := os.Create(d.path(node + ".log"))
	if err != nil {
		t.Fatal(err)
	}
	c := d.inside(node, "fieldmesh-agent", "up", "--config", config)
	c.Stdout, c.Stderr = log, log
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.down(t, node, c) })
	testnet.Await(t, 30*time.Second, node+"'s agent is ready", func() bool {
		text, err := os.ReadFile(log.Name())
		return err == nil && strings.Contains(string(text), "node is ready")
	})
	return c
}

// down stops an agent, as a service manager does, and sees that the node is as
// it was.
func (d *desk) down(t *testing.T, node string, c *exec.Cmd) {
	t.Helper()
	_ = c.Process.Signal(syscall.SIGTERM)
	_ = c.Wait()
	if after := testnet.Snapshot(t, d.spaces[node].Name); after != d.before[node] {
		t.Errorf("%s is\n%s\nwas\n%s", node, after, d.before[node])
	}
	if text, err := os.ReadFile(d.path(node + ".log")); err == nil && t.Failed() {
		t.Logf("%s's agent:\n%s", node, text)
	}
}

func (d *desk) inside(node, name string, args ...string) *exec.Cmd {
	words := slices.Concat([]string{"netns", "exec", d.spaces[node].Name}, d.wrap,
		[]string{filepath.Join(programs, name)}, args)
	c := exec.Command("ip", words...)
	c.Dir = d.dir
	return c
}

// run is `fieldmesh run` of a campaign, with the desk's fleet unless told otherwise.
func (d *desk) run(t *testing.T, campaign string, args ...string) outcome {
	t.Helper()
	return finish(t, d.inside("alpha", "fieldmesh", d.runArgs(t, campaign, args...)...))
}

func (d *desk) runArgs(t *testing.T, campaign string, args ...string) []string {
	t.Helper()
	return append([]string{"run", write(t, d.dir, "campaign.yaml", campaign), "--place", "bench", "--patience", "1s",
		"--runs", d.path("runs")}, args...)
}

// noRun fails the test when a refused run has left something behind.
func (d *desk) noRun(t *testing.T) {
	t.Helper()
	entries, err := os.ReadDir(d.path("runs"))
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	for _, e := range entries {
		if e.Name() != ".keys" {
			t.Errorf("the refused run left %s behind", e.Name())
		}
	}
	if left, err := os.ReadDir(d.path("runs", ".keys")); err == nil && len(left) > 0 {
		t.Errorf("the refused run left its key behind")
	}
}
