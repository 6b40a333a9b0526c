package plan

import (
	"strings"
	"testing"

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
