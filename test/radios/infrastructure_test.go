//go:build guest

//guest:timed

package radios

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"fieldmesh.dev/fieldmesh/protocols/wire"
	"fieldmesh.dev/fieldmesh/test/testnet/hwsim"
)

// Radios that can be neither in an ad hoc cell nor in a mesh carry a trial as an
// access point and its station, data both ways: what was in force is recorded,
// no rate is one of 802.11n, and both nodes are as before.
func TestGuestInfrastructure(t *testing.T) {
	r := newRig(t, "fox", "owl")
	hwsim.Managers(t)
	text := fmt.Sprintf(campaign, 5.0, "{protocol: none}", "", "")
	text = strings.NewReplacer("mode: adhoc", "mode: infrastructure", "    bssid: \"02:11:22:33:44:66\"\n", "",
		"after_s: 12", "after_s: 2").Replace(text)
	text = strings.Replace(text, "    standard: 802.11g\n", "    access_point: owl\n    standard: 802.11g\n", 1)
	file := r.write(t, "infrastructure.yaml", text+"factors:\n  section:\n    levels:\n      A: {sender: fox, "+
		"receiver: owl}\n      B: {sender: owl, receiver: fox}\n")
	received := map[string]bool{}
	for _, dir := range r.run(t, file, 2) {
		var plan struct{ Trial wire.Trial }
		read(t, filepath.Join(dir, "plan.json"), &plan)
		received[plan.Trial.Receiver] = true
		var v wire.Verdict
		if read(t, filepath.Join(dir, "verdict.json"), &v); v.Outcome != "accepted" {
			t.Errorf("%s: %s: %s", dir, v.Outcome, v.Reason)
		}
		for node, mode := range map[string]string{"fox": "managed", "owl": "ap"} {
			judgeInfrastructure(t, dir, node, mode, node == plan.Trial.Receiver)
		}
	}
	if !received["fox"] || !received["owl"] {
		t.Errorf("%v received, want each once", received)
	}
}

// judgeInfrastructure looks at what a node recorded.
func judgeInfrastructure(t *testing.T, dir, node, mode string, receives bool) {
	t.Helper()
	stations, carried := 0, false
	var signal *float64
	for _, record := range records(t, filepath.Join(dir, "records", node+".ndjson")) {
		switch b := record.Body.(type) {
		case *wire.Provenance:
			if c := b.Radio; c == nil || c.Mode != mode || c.Channel != 11 || c.Width != "20 MHz (no HT)" ||
				c.SSID != "road" || c.TxPowerDbm == nil || *c.TxPowerDbm != 14 {
				t.Errorf("%s of %s: the radio in force is %+v, want mode %s", node, dir, c, mode)
			}
		case *wire.Station:
			stations++
			if signal = b.SignalDbm; b.TxBitrateMbps != nil && *b.TxBitrateMbps > 54 {
				t.Errorf("%s of %s: a rate of %g Mbit/s", node, dir, *b.TxBitrateMbps)
			}
		case *wire.TCPSample:
			carried = carried || b.BytesReceived > 0
		}
	}
	// The first samples may be of frames from before the power was set.
	if signal == nil || *signal != 14-50 {
		t.Errorf("%s of %s: the other's signal is %v dBm at the end, want %d", node, dir, shown(signal), 14-50)
	}
	if stations == 0 || receives && !carried {
		t.Errorf("%s of %s: %d samples of the other, data carried: %t", node, dir, stations, carried)
	}
}

// shown is a value that may be absent.
func shown[T any](v *T) any {
	if v == nil {
		return "absent"
	}
	return *v
}
