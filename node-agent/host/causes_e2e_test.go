//go:build e2e

package host

import (
	"encoding/json"
	"io"
	"net"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cilium/ebpf"

	"fieldmesh.dev/fieldmesh/node-agent/host/change"
	"fieldmesh.dev/fieldmesh/node-agent/tcp"
	"fieldmesh.dev/fieldmesh/protocols/tcpcc"
	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// What the emulated radio reports about a lost segment, and of the route change
// that it turns out to be, is in the map of the reference TCP, with the numbers
// that its program reads.
func TestE2ECausesReachTheReferenceTCP(t *testing.T) {
	f, _ := newField(t)
	f.cfg.Feedback = filepath.Join(t.TempDir(), "feedback.sock")
	radio, err := net.Listen("unix", f.cfg.Feedback)
	if err != nil {
		t.Fatal(err)
	}
	defer radio.Close()
	c, cmd := f.start(t, true)
	before := mapsNamed(t, "losses")
	apply(t, c, ScopeTrial, []change.Change{change.BPFCongestion{Program: tcpcc.Reference}})
	conn, err := radio.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	say := json.NewEncoder(conn)
	key := struct {
		Seq      uint32
		From, To uint16
	}{4242, 20000, 5000}
	for _, step := range []struct {
		cause string
		want  tcp.Cause
	}{{"queue_full", tcp.CauseCongestion}, {"channel_error", tcp.CauseChannelError},
		{"out_of_range", tcp.CauseDisconnection}, {"collision", tcp.CauseRouteChange}} {
		if err := say.Encode(wire.Feedback{FrameLost: &wire.FrameLost{Flow: "10.77.0.1:20000>10.77.0.2:5000/tcp",
			Seq: 4242, Cause: step.cause}}); err != nil {
			t.Fatal(err)
		}
		until := time.Now().Add(20 * time.Second)
		for found := false; !found; time.Sleep(10 * time.Millisecond) {
			for id := range mapsNamed(t, "losses") {
				found = found || !before[id] && readCause(id, key) == step.want
			}
			if !found && time.Now().After(until) {
				t.Fatalf("%s is not in the program's map as %d", step.cause, step.want)
			}
		}
	}
	if err := say.Encode(wire.Feedback{Survey: &wire.Survey{Channel: 6}, Dropped: 3}); err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(conn, "no line\n"); err != nil {
		t.Fatal(err)
	}
	if err := conn.Close(); err != nil { // it comes again, and there it is restored
		t.Fatal(err)
	}
	if conn, err = radio.Accept(); err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	want := change.CausesMissing + ": 4 of the radio's lines were lost, and its connection 1 times"
	if undone := restoreAll(t, c).Undone; !slices.ContainsFunc(undone, func(u string) bool {
		return strings.Contains(u, want)
	}) {
		t.Errorf("undone: %q, want %q with it", undone, want)
	}
	terminate(t, cmd)
}

func readCause(id ebpf.MapID, key any) tcp.Cause {
	m, err := ebpf.NewMapFromID(id)
	if err != nil {
		return 0 // gone since
	}
	defer m.Close()
	var value uint32
	if m.Lookup(key, &value) != nil {
		return 0
	}
	return tcp.Cause(value)
}

// mapsNamed lists the kernel's maps of a name.
func mapsNamed(t *testing.T, name string) map[ebpf.MapID]bool {
	t.Helper()
	out := map[ebpf.MapID]bool{}
	for id, m := range mapsInKernel(t) {
		if info, err := m.Info(); err == nil && info.Name == name {
			out[id] = true
		}
	}
	return out
}
