package plan

import (
	"fmt"
	"strings"
	"testing"

	"fieldmesh.dev/fieldmesh/protocols/manet/dsr"
	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// withCapture is a minimal campaign whose trials are captured.
func withCapture(capture string) []byte {
	file := string(designFile("{}", "{repetitions: 1, order: as_listed}"))
	return []byte(strings.Replace(file, "  tcp: {variant: reno}\n", "  tcp: {variant: reno}\n  capture: "+capture+"\n",
		1))
}

// Offloads go off for a capture unless the campaign says otherwise.
func TestOffloadsOfACapture(t *testing.T) {
	for capture, want := range map[string]string{
		"{snap_bytes: 96}":                     wire.OffloadsOff,
		"{snap_bytes: 96, offloads: off}":      wire.OffloadsOff,
		"{snap_bytes: 96, offloads: recorded}": wire.OffloadsRecorded,
	} {
		got := parsed(t, withCapture(capture)).trials[0].Capture
		if got == nil || got.SnapBytes != 96 || got.Offloads != want {
			t.Errorf("%s is read as %+v", capture, got)
		}
	}
	if _, err := Parse("c.yaml", withCapture("{snap_bytes: 96, offloads: on}")); err == nil ||
		!strings.Contains(err.Error(), "recorded") {
		t.Errorf("offloads: on: %v", err)
	}
}

// DSR's source route stands before TCP's header, and a capture must reach behind the longest.
func TestACaptureReachesBehindDSRsHeader(t *testing.T) {
	with := func(protocol string, snapBytes int) []byte {
		return []byte(strings.Replace(string(withCapture(fmt.Sprintf("{snap_bytes: %d}", snapBytes))), "  capture:",
			"  routing: {protocol: "+protocol+"}\n  capture:", 1))
	}
	const ethernet, ip, tcp = 14, 20, 20
	least := ethernet + ip + dsr.Room(dsr.MaxHops) + tcp
	for _, protocol := range []string{"dsr", "dsr-ns2"} {
		parsed(t, with(protocol, least))
		want := fmt.Sprintf("allowed: from %d on", least)
		if _, err := Parse("c.yaml", with(protocol, least-1)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q in it", protocol, err, want)
		}
	}
	parsed(t, with("aodv", wire.SnapBytesMin))
}
