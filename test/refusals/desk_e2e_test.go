//go:build e2e

package refusals

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"fieldmesh.dev/fieldmesh/test/testnet"
)

// standing is a campaign whose acceptance is to be added.
var standing = testnet.Brief("standing", 1, "")

// patient has judgeable acceptance and nothing that could not be met.
var patient = standing + "acceptance: {attempts_max: 20}\n"

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
	testnet.Need(t, "ip", "tc", "iperf3")
	d := &desk{dir: testnet.Folder(t), spaces: map[string]*testnet.NS{"alpha": testnet.NewNS(t, "bia"),
		"bravo": testnet.NewNS(t, "bib")}, before: map[string]string{}}
	testnet.Veth(t, d.spaces["alpha"], "wlan0", "", d.spaces["bravo"], "wlan0", "")
	for _, ns := range d.spaces {
		ns.Limit(t, "wlan0")
	}
	testnet.Veth(t, d.spaces["alpha"], "ctl0", "10.98.0.1/24", d.spaces["bravo"], "ctl0", "10.98.0.2/24")
	mustRun(t, program("fieldmesh", "keys", "init", "--dir", d.path("fleet")))
	for i, name := range []string{"alpha", "bravo"} {
		mustRun(t, program("fieldmesh", "keys", "issue", name, "--dir", d.path("fleet"), "--address",
			fmt.Sprintf("10.98.0.%d:7443", i+1)))
		testnet.GiveKeys(t, d.path("fleet", "nodes", name), d.path("keys", name))
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
// until it is ready. When the test ends, the node has to be as it was.
func (d *desk) up(t *testing.T, node, lines string) *testnet.Running {
	t.Helper()
	text := fmt.Sprintf("node: %s\ninterface: wlan0\ncontrol_interface: ctl0\nkeys_dir: %s\nface_user: \"%d:%d\"\n",
		node, d.path("keys", node), testnet.Nobody, testnet.Nobody)
	if !strings.Contains(lines, "state_dir:") {
		text += "state_dir: " + d.path("state", node) + "\n"
	}
	config := write(t, d.dir, node+".yaml", text+lines)
	t.Cleanup(func() { // once the agent has ended
		if after := testnet.Snapshot(t, d.spaces[node].Name); after != d.before[node] {
			t.Errorf("%s is\n%s\nwas\n%s", node, after, d.before[node])
		}
	})
	c := testnet.Start(t, d.inside(node, "fieldmesh-agent", "up", "--config", config))
	c.Says(t, "node is ready")
	return c
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
