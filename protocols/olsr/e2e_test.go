//go:build e2e

package olsr_test

import (
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"fieldmesh.dev/fieldmesh/protocols/manet"
	"fieldmesh.dev/fieldmesh/protocols/meshsim"
	"fieldmesh.dev/fieldmesh/protocols/olsr"
)

// objection is a mark of the dissector that a packet is malformed, or a warning
// or an error (severities 0x600000 and 0x800000).
const objection = "_ws.malformed || _ws.expert.severity >= 0x600000"

// moreSeeds is how many seeds `make test` runs.
const moreSeeds = 200

func TestPropertiesMore(t *testing.T) { runSeeds(t, seeds(t, moreSeeds)) }

// TestDissected has Wireshark's dissector read every kind of message that we
// send, plain and with olsrd's link qualities.
func TestDissected(t *testing.T) {
	tshark, err := exec.LookPath("tshark")
	if err != nil {
		t.Skip("tshark is not installed: scripts/setup test brings it")
	}
	for name, test := range map[string]struct {
		make  func([]manet.Interface, uint64) olsr.Config
		kinds []string
	}{
		"rfc3626": {olsr.RFC3626, []string{"1", "2", "3", "4"}},
		"olsrd":   {olsr.Olsrd, []string{"201", "202", "3", "4"}},
	} {
		t.Run(name, func(t *testing.T) {
			file := capture(t, test.make)
			out := run(t, tshark, "-r", file, "-Y", objection, "-T", "fields", "-e", "frame.number", "-e", "_ws.expert.message")
			if out != "" {
				t.Errorf("the dissector objects to frames:\n%s", out)
			}
			out = run(t, tshark, "-r", file, "-T", "fields", "-E", "occurrence=a", "-E", "aggregator= ", "-e", "olsr.message_type")
			seen := map[string]int{}
			for _, kind := range strings.Fields(out) {
				seen[kind]++
			}
			for _, kind := range test.kinds {
				if seen[kind] == 0 {
					t.Errorf("no message of type %s among %v", kind, seen)
				}
			}
			t.Logf("messages by type: %v", seen)
			sizes(t, tshark, file)
		})
	}
}

// capture simulates a grid whose nodes have two interfaces and networks.
func capture(t *testing.T, config func([]manet.Interface, uint64) olsr.Config) string {
	t.Helper()
	sim, err := meshsim.New(meshsim.Config{Seed: 1, Nodes: 9, Interfaces: 2, Radio: meshsim.DefaultRadio(),
		Make: func(node int, i []manet.Interface, seed uint64) (manet.Node, error) {
			c := config(i, seed)
			c.Networks = []netip.Prefix{netip.PrefixFrom(netip.AddrFrom4([4]byte{192, 168, byte(node), 0}), 24)}
			return olsr.New(c)
		}})
	if err != nil {
		t.Fatal(err)
	}
	sim.Grid(3)
	sim.SetLink(0, 1, 1, 0, 0)
	path := filepath.Join(t.TempDir(), "olsr.pcap")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	c, err := sim.CaptureTo(f, olsr.Port)
	if err != nil {
		t.Fatal(err)
	}
	if err := sim.Run(time.Minute); err != nil {
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

// sizes checks that the dissector read each packet to its end: the sum of its
// messages and the header is the packet's length.
func sizes(t *testing.T, tshark, file string) {
	t.Helper()
	out := run(t, tshark, "-r", file, "-T", "fields", "-E", "occurrence=a", "-E", "aggregator= ", "-e", "olsr.packet_len", "-e", "olsr.message_size")
	for i, line := range strings.Split(out, "\n") {
		length, messages, ok := strings.Cut(line, "\t")
		sum := 4
		for _, m := range strings.Fields(messages) {
			sum += number(t, m)
		}
		if !ok || sum != number(t, length) {
			t.Fatalf("frame %d: %q: messages of %d bytes with the header", i+1, line, sum)
		}
	}
}

func number(t *testing.T, s string) (n int) {
	t.Helper()
	for _, c := range strings.TrimSpace(s) {
		if c < '0' || c > '9' {
			t.Fatalf("%q is no number", s)
		}
		n = 10*n + int(c-'0')
	}
	return n
}

func run(t *testing.T, name string, args ...string) string {
	t.Helper()
	out, err := exec.Command(name, args...).Output()
	if err != nil {
		t.Fatalf("%s %v: %v", name, args, err)
	}
	return strings.TrimSpace(string(out))
}
