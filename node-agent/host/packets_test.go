package host

import (
	"slices"
	"testing"

	"fieldmesh.dev/fieldmesh/node-agent/host/change"
	"fieldmesh.dev/fieldmesh/protocols/wire"
)

//attack:face captures of other interfaces, and of services' ports | the host process composes the filter
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
		{Packets{Interface: "wlan0", SnapBytes: 96, Ports: slices.Repeat([]int{5000}, wire.MaxFlows)}, true},
		{Packets{Interface: "wlan0", SnapBytes: 96, Ports: slices.Repeat([]int{5000}, wire.MaxFlows+1)}, false},
	} {
		if refused := checkPackets(p, c.want); (refused == nil) != c.ok {
			t.Errorf("%+v: %v", c.want, refused)
		}
	}
}
