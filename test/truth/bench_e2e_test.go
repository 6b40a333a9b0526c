//go:build e2e

package truth

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"fieldmesh.dev/fieldmesh/test/testnet"
)

// bench is two nodes on a cable.
type bench struct {
	dir    string
	spaces map[string]*testnet.NS
	cable  *cable
	clocks clocks
	// ordinary has the agents run without root, the receiver's as an app.
	ordinary bool
}

func newBench(t *testing.T, iperf3 map[string]generator, ordinary bool) *bench {
	t.Helper()
	d := &bench{ordinary: ordinary, dir: testnet.Folder(t), spaces: map[string]*testnet.NS{}}
	for _, n := range nodes {
		d.spaces[n] = testnet.NewNS(t, n)
	}
	testnet.Veth(t, d.spaces["fox"], "ctl0", "10.98.0.1/24", d.spaces["owl"], "ctl0", "10.98.0.2/24")
	d.cable = newCable(t, [2]*testnet.NS{d.spaces["fox"], d.spaces["owl"]})
	fleet := filepath.Join(d.dir, "fleet")
	d.fieldmesh(t, "keys", "init", "--dir", fleet)
	for i, n := range nodes {
		d.fieldmesh(t, "keys", "issue", n, "--dir", fleet, "--address", fmt.Sprintf("10.98.0.%d:7443", i+1))
	}
	testnet.ReachFrom(t, filepath.Join(fleet, "fleet.yaml"), d.spaces["fox"])
	for i, n := range nodes {
		d.agent(t, n, fmt.Sprintf("10.98.0.%d:7443", i+1), iperf3[n])
	}
	return d
}

func (d *bench) fieldmesh(t *testing.T, args ...string) {
	t.Helper()
	if out, err := exec.Command(filepath.Join(programs, "fieldmesh"), args...).CombinedOutput(); err != nil {
		t.Fatalf("fieldmesh %v: %v\n%s", args, err, out)
	}
}

// agent starts a node's agent.
func (d *bench) agent(t *testing.T, node, listen string, g generator) {
	t.Helper()
	dir := filepath.Join(d.dir, node)
	testnet.GiveKeys(t, filepath.Join(d.dir, "fleet", "nodes", node), filepath.Join(dir, "keys"))
	text := fmt.Sprintf("node: %s\nlisten: %s\nstate_dir: %s/state\nkeys_dir: %[3]s/keys\nbinaries: {iperf3: %s}\n"+
		"interface: wlan0\ncontrol_interface: ctl0\ngpsd: none\nface_user: nobody\n", node, listen, dir, g.path)
	ns, words := d.spaces[node], []string{filepath.Join(programs, "fieldmesh-agent"), "up", "--config",
		filepath.Join(dir, "agent.yaml")}
	start := ns.Command(context.Background(), words[0], words[1:]...)
	if d.ordinary {
		text += "privileges: none\n"
		if err := os.Chown(dir, testnet.Nobody, testnet.Nobody); err != nil {
			t.Fatal(err)
		}
		ns.Run(t, "sysctl", "-qw", "net.ipv4.tcp_congestion_control=reno") // another's pacing would stay
		if node == "fox" {
			ns.Run(t, "ip", "address", "add", "10.77.0.1/24", "dev", "wlan0")
			start = ns.Ordinary(context.Background(), words[0], words[1:]...)
		} else {
			ns.Run(t, "ip", "address", "add", "10.77.0.2/24", "dev", "wlan0")
			start = ns.App(t, words[0], words[1:]...)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "agent.yaml"), []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	testnet.Start(t, start).Says(t, "node is ready")
}
