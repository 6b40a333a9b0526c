package testnet

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// Nobody is the user that the agents' unprivileged halves run as in tests.
const Nobody = 65534

// Pair is two nodes whose interfaces under test, wlan0, are the ends of one cable
// with a limit. Apart from it is a control network, which the controller looks into
// from the namespace Control: a bridge to which each node's ctl0 leads.
type Pair struct {
	Control *NS
	Nodes   map[string]*NS
	hosts   map[string]string
}

// NewPair makes two nodes. Prefix is the control network's first three numbers;
// the bridge is 1 in it, the nodes are 11 and 12.
func NewPair(t testing.TB, prefix string, names [2]string) *Pair {
	t.Helper()
	p := &Pair{Control: NewNS(t, "ctl"), Nodes: map[string]*NS{}, hosts: map[string]string{}}
	p.Control.Run(t, "ip", "link", "add", "br0", "type", "bridge")
	p.Control.Up(t, "br0", prefix+".1/24")
	for i, name := range names {
		p.Nodes[name], p.hosts[name] = NewNS(t, name), fmt.Sprintf("%s.%d", prefix, 11+i)
		Veth(t, p.Nodes[name], "ctl0", p.hosts[name]+"/24", p.Control, name, "")
		p.Control.Run(t, "ip", "link", "set", name, "master", "br0")
	}
	Veth(t, p.Nodes[names[0]], "wlan0", "", p.Nodes[names[1]], "wlan0", "")
	for _, name := range names {
		p.Nodes[name].Limit(t, "wlan0")
	}
	return p
}

// Limit lets a link send no more than 50 Mbit/s: what sends as fast as it can would
// else keep the processors busy, and the agents late.
func (n *NS) Limit(t testing.TB, link string) {
	t.Helper()
	n.Run(t, "tc", "qdisc", "add", "dev", link, "root", "tbf", "rate", "50mbit", "burst", "128kb", "latency", "400ms")
}

// API is where a node's agent is to listen on the control network.
func (p *Pair) API(name string) string { return p.hosts[name] + ":7443" }

// Controller is a command of the controller's, whose program lies in a folder.
func (p *Pair) Controller(programs string, args ...string) *exec.Cmd {
	return exec.Command("ip", append([]string{"netns", "exec", p.Control.Name, filepath.Join(programs, "fieldmesh")},
		args...)...)
}

// Fieldmesh runs one that has to succeed.
func (p *Pair) Fieldmesh(t testing.TB, programs string, args ...string) string {
	t.Helper()
	out, err := p.Controller(programs, args...).CombinedOutput()
	if err != nil {
		t.Fatalf("fieldmesh %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

// GiveKeys copies a bundle of keys to where a node's agent will look for it, and
// gives the copy to the user that reads it, closed to all others.
func GiveKeys(t testing.TB, bundle, to string) {
	t.Helper()
	if err := os.CopyFS(to, os.DirFS(bundle)); err != nil {
		t.Fatal(err)
	}
	err := filepath.WalkDir(to, func(path string, e fs.DirEntry, err error) error {
		mode := fs.FileMode(0o600)
		if err == nil && e.IsDir() {
			mode = 0o700
		}
		return errors.Join(err, os.Chmod(path, mode), os.Chown(path, Nobody, Nobody))
	})
	if err != nil {
		t.Fatal(err)
	}
}

// ReachFrom has the controller reach all nodes of a fleet from a namespace.
func ReachFrom(t testing.TB, fleet string, ns *NS) {
	t.Helper()
	text, err := os.ReadFile(fleet)
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	for line := range strings.Lines(string(text)) {
		out.WriteString(line)
		if indent, _, found := strings.Cut(line, "address:"); found {
			fmt.Fprintf(&out, "%snetns: %s\n", indent, ns.Name)
		}
	}
	if err := os.WriteFile(fleet, []byte(out.String()), 0o644); err != nil {
		t.Fatal(err)
	}
}
