//go:build e2e

package aodv_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"fieldmesh.dev/fieldmesh/protocols/aodv"
	"fieldmesh.dev/fieldmesh/protocols/manet"
	"fieldmesh.dev/fieldmesh/protocols/meshsim"
)

// objection is a mark of the dissector that a packet is malformed, or a warning
// or an error (severities 0x600000 and 0x800000).
const objection = "_ws.malformed || _ws.expert.severity >= 0x600000"

// moreSeeds is how many seeds `make test` runs.
const moreSeeds = 200

func TestPropertiesMore(t *testing.T) { runSeeds(t, seeds(t, moreSeeds)) }

// TestDissected has Wireshark's dissector read every kind of message that we
// send.
func TestDissected(t *testing.T) {
	tshark, err := exec.LookPath("tshark")
	if err != nil {
		t.Skip("tshark is not installed: scripts/setup test brings it")
	}
	file := capture(t)
	if out := run(t, tshark, "-r", file, "-Y", objection, "-T", "fields", "-e", "frame.number", "-e", "_ws.expert.message"); out != "" {
		t.Errorf("the dissector objects to frames:\n%s", out)
	}
	seen := map[string]int{}
	for _, line := range strings.Split(run(t, tshark, "-r", file, "-T", "fields", "-e", "aodv.type"), "\n") {
		seen[line]++
	}
	for _, kind := range []string{"1", "2", "3", "4"} {
		if seen[kind] == 0 {
			t.Errorf("no message of type %s among %v", kind, seen)
		}
	}
	t.Logf("messages by type: %v", seen)
	// What the dissector reads is what was meant, in an RREQ and in a HELLO.
	first := run(t, tshark, "-r", file, "-Y", "aodv.type == 1", "-c", "40", "-T", "fields", "-e", "ip.src", "-e", "aodv.orig_ip", "-e", "aodv.dest_ip", "-e", "aodv.hopcount")
	if line, _, _ := strings.Cut(first, "\n"); line != "10.0.0.1\t10.0.0.1\t10.0.0.6\t0" {
		t.Errorf("the first RREQ is read as %q", line)
	}
	hello := run(t, tshark, "-r", file, "-Y", "aodv.type == 2 && ip.dst == 255.255.255.255", "-T", "fields", "-e", "aodv.lifetime")
	if line, _, _ := strings.Cut(hello, "\n"); line != "2000" {
		t.Errorf("a HELLO's lifetime is read as %q, want 2000", line)
	}
}

// capture simulates a chain one of whose links breaks under traffic.
func capture(t *testing.T) string {
	t.Helper()
	sim, err := meshsim.New(meshsim.Config{Seed: 1, Nodes: 6, Radio: meshsim.DefaultRadio(), Feedback: true,
		Make: func(_ int, i []manet.Interface, seed uint64) (manet.Node, error) {
			c := aodv.RFC3561(i, seed)
			c.AckRREPs, c.QuietStart = true, 0
			return aodv.New(c)
		}})
	if err != nil {
		t.Fatal(err)
	}
	sim.Chain()
	sim.Flow(0, 5, 512, 100*time.Millisecond, 2*time.Second, 30*time.Second)
	sim.At(10*time.Second, func() { sim.Cut(4, 5) })
	path := filepath.Join(t.TempDir(), "aodv.pcap")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	c, err := sim.CaptureTo(f, aodv.Port)
	if err != nil {
		t.Fatal(err)
	}
	if err := sim.Run(40 * time.Second); err != nil {
		t.Fatal(err)
	}
	if err := c.Err(); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	return path
}

func run(t *testing.T, name string, args ...string) string {
	t.Helper()
	out, err := exec.Command(name, args...).Output()
	if err != nil {
		t.Fatalf("%s %v: %v", name, args, err)
	}
	return strings.TrimSpace(string(out))
}
