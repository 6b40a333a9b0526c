package host

import (
	"testing"

	"fieldmesh.dev/fieldmesh/node-agent/host/change"
)

//attack:face captures of what is not the trial's | the host process composes the filter
func TestCapturesOfOtherThingsAreRefused(t *testing.T) {
	p := change.Policy{Interfaces: []string{"wlan0"}}
	for _, c := range []struct {
		want Packets
		ok   bool
	}{
		{Packets{Interface: "wlan0", SnapBytes: 96, Ports: []int{5000}}, true},
		{Packets{Interface: "eth0", SnapBytes: 96}, false},
		{Packets{Interface: "wlan0", SnapBytes: 93}, false},
		{Packets{Interface: "wlan0", SnapBytes: 96, Ports: []int{22}}, false},
		{Packets{Interface: "wlan0", SnapBytes: 96, Ports: make([]int, 65)}, false},
	} {
		if refused := checkPackets(p, c.want); (refused == nil) != c.ok {
			t.Errorf("%+v: %v", c.want, refused)
		}
	}
}
