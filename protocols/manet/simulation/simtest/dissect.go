package simtest

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"fieldmesh.dev/fieldmesh/protocols/manet/simulation"
)

// Capture runs a simulation until a time and returns the file that its control
// packets were written to.
func Capture(t *testing.T, sim *simulation.Sim, port uint16, until time.Duration) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "control.pcap")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	c, err := sim.CaptureTo(f, port)
	if err != nil {
		t.Fatal(err)
	}
	if err := sim.Run(until); err != nil {
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

// Dissector is Wireshark's, reading one file.
type Dissector struct {
	t             *testing.T
	program, file string
}

// objection is a mark of the dissector that a packet is malformed, or a warning
// or an error (severities 0x600000 and 0x800000).
const objection = "_ws.malformed || _ws.expert.severity >= 0x600000"

// NeedTshark is the path of Wireshark's dissector; the test is skipped where
// there is none.
func NeedTshark(t *testing.T) string {
	t.Helper()
	tshark, err := exec.LookPath("tshark")
	if err != nil {
		t.Skip("tshark is not installed: scripts/setup test brings it")
	}
	return tshark
}

// Dissect has the dissector look at every packet of a file; one that it objects
// to fails the test.
func Dissect(t *testing.T, tshark, file string) *Dissector {
	t.Helper()
	d := &Dissector{t, tshark, file}
	if out := d.Read("-Y", objection, "-T", "fields", "-e", "frame.number", "-e", "_ws.expert.message"); out != "" {
		t.Errorf("the dissector objects to frames:\n%s", out)
	}
	return d
}

// Read is what the dissector prints with some options.
func (d *Dissector) Read(options ...string) string {
	d.t.Helper()
	out, err := exec.Command(d.program, append([]string{"-r", d.file}, options...)...).Output()
	if err != nil {
		d.t.Fatalf("%s %v: %v", d.program, options, err)
	}
	return strings.TrimSpace(string(out))
}

// Kinds counts the values of a field, of which each wanted one must be there.
func (d *Dissector) Kinds(field string, wanted ...string) map[string]int {
	d.t.Helper()
	seen := map[string]int{}
	for _, kind := range strings.Fields(d.Read("-T", "fields", "-E", "occurrence=a", "-E", "aggregator= ", "-e",
		field)) {
		seen[kind]++
	}
	for _, kind := range wanted {
		if seen[kind] == 0 {
			d.t.Errorf("no message of type %s among %v", kind, seen)
		}
	}
	d.t.Logf("messages by type: %v", seen)
	return seen
}
