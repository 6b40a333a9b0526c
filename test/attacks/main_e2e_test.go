//go:build e2e

package attacks

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"fieldmesh.dev/fieldmesh/test/testnet"
)

// programs is the folder of the built programs.
var programs string

func TestMain(m *testing.M) {
	if socket := os.Getenv(envSocket); socket != "" {
		os.Exit(asSomebody(socket))
	}
	os.Exit(testnet.WithPrograms(m.Run, &programs))
}

// place is a laptop and a node, each in its own namespace, joined by a cable.
type place struct {
	laptop, node *testnet.NS
	dir          string // that other users can enter
	config       string // the node's agent.yaml
	line         string // that a program is given on its standard input
}

const (
	laptopHost = "10.96.0.1"
	nodeHost   = "10.96.0.2"
)

func newPlace(t *testing.T) place {
	t.Helper()
	testnet.Need(t, "ip")
	p := place{laptop: testnet.NewNS(t, "lap"), node: testnet.NewNS(t, "node"), dir: testnet.Folder(t)}
	testnet.Veth(t, p.laptop, "ctl0", laptopHost+"/24", p.node, "ctl0", nodeHost+"/24")
	testnet.Veth(t, p.laptop, "other0", "", p.node, "wlan0", "")
	p.config = p.agentYAML(t, "car")
	p.must(t, p.laptop, "fieldmesh", "keys", "init", "--dir", p.fleet())
	return p
}

func (p place) fleet() string { return filepath.Join(p.dir, "fleet") }

// agentYAML writes the configuration of an agent of that name.
func (p place) agentYAML(t *testing.T, name string) string {
	t.Helper()
	path := filepath.Join(p.dir, name+".yaml")
	text := fmt.Sprintf("node: %s\ninterface: wlan0\ncontrol_interface: ctl0\ngpsd: none\nstate_dir: %s\nkeys_dir: "+
		"%s\nface_user: \"%d:%d\"\n",
		name, p.state(name), p.keys(name), testnet.Nobody, testnet.Nobody)
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

func (p place) state(name string) string { return filepath.Join(p.dir, "state-"+name) }
func (p place) keys(name string) string  { return filepath.Join(p.dir, "keys-"+name) }

func command(ns *testnet.NS, name string, args ...string) *exec.Cmd {
	return ns.Command(context.Background(), filepath.Join(programs, name), args...)
}

// run runs a program to its end, at most a minute.
func (p place) run(t *testing.T, ns *testnet.NS, name string, args ...string) (output string, err error) {
	t.Helper()
	cmd := command(ns, name, args...)
	var out bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(p.line), &out, &out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	hung := time.AfterFunc(time.Minute, func() { _ = cmd.Process.Kill() })
	defer hung.Stop()
	err = cmd.Wait()
	return out.String(), err
}

func (p place) must(t *testing.T, ns *testnet.NS, name string, args ...string) string {
	t.Helper()
	out, err := p.run(t, ns, name, args...)
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
	}
	return out
}

// refused runs a program that must fail and say all of the words.
func (p place) refused(t *testing.T, words []string, ns *testnet.NS, name string, args ...string) {
	t.Helper()
	out, err := p.run(t, ns, name, args...)
	if err == nil {
		t.Errorf("%s %s succeeds:\n%s", name, strings.Join(args, " "), out)
	}
	for _, w := range words {
		if !strings.Contains(out, w) {
			t.Errorf("%s %s does not say %q:\n%s", name, strings.Join(args, " "), w, out)
		}
	}
}

func (p place) begin(t *testing.T, ns *testnet.NS, name string, args ...string) *testnet.Running {
	t.Helper()
	return testnet.Start(t, command(ns, name, args...))
}
