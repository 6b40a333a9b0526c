//go:build guest

//guest:timed

package radios

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"fieldmesh.dev/fieldmesh/protocols/wire"
	"fieldmesh.dev/fieldmesh/test/testnet/hwsim"
)

// The chain of TestGuestRun with one of our own protocols, which finds the way only
// when data wants it, and with a way that the plan fixes; in the long form with
// batman-adv too, which makes one network of it below IP. One of the nodes keeps
// its own Wi-Fi, and takes part with an interface that it makes on the same radio.
func TestGuestChain(t *testing.T) {
	r := newRig(t, "fox", "elk", "owl")
	hwsim.Modprobe(t, "tun") // what has no route waits in such a device
	for i, mask := range []uint{1, 3, 2} {
		r.nodes[i].radio.Hear(t, mask)
	}
	r.nodes[2].beside(t)
	text := fmt.Sprintf(campaign, 6.0, "{protocol: none}", "  relays: [elk]\n", "  elk: {unit: three, mesh_address: "+
		"10.77.0.3/24}\n")
	ways := []string{"aodv", "static"}
	if os.Getenv("FIELDMESH_SOAK") != "" {
		hwsim.Modprobe(t, "batman_adv")
		ways = append(ways, "batman-adv")
	} else {
		text = strings.Replace(text, "after_s: 12", "after_s: 8", 1)
	}
	text += "factors:\n  way:\n    levels:\n"
	for _, way := range ways {
		text += fmt.Sprintf("      %s: {routing: {protocol: %s}}\n", way, way)
	}
	for _, dir := range r.run(t, r.write(t, "chain.yaml", text), len(ways)) {
		judgeTrial(t, dir)
		for _, record := range records(t, filepath.Join(dir, "records", "owl.ndjson")) {
			if p, ok := record.Body.(*wire.Provenance); ok && (p.Interface != "mesh0" || p.Radio == nil ||
				p.Radio.Beside == nil || p.Radio.Beside.Interface != "wlan0") {
				t.Errorf("%s: owl was in the network by %s, with the radio %+v", dir, p.Interface, p.Radio)
			}
		}
	}
}

// beside has a node make the interface under test on the radio of its wlan0.
func (n *node) beside(t *testing.T) {
	t.Helper()
	path := filepath.Join(n.dir, "agent.yaml")
	text, err := os.ReadFile(path)
	if err == nil {
		err = os.WriteFile(path, []byte(strings.Replace(string(text), "interface: wlan0\n",
			"interface: mesh0\nphy_of: wlan0\n", 1)), 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
}
