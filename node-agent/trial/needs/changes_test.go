package needs

import (
	"slices"
	"testing"

	"fieldmesh.dev/fieldmesh/node-agent/host/change"
	"fieldmesh.dev/fieldmesh/node-agent/tcp"
	"fieldmesh.dev/fieldmesh/protocols/tcpcc"
	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// What a plan wants of captures and acknowledgements is among a trial's changes.
func TestChangesOfATrial(t *testing.T) {
	plan := wire.RunPlan{Nodes: []wire.PlanNode{{Name: "car", MeshPrefix: "10.77.0.1/24"}}}
	forward := "forwarding on wlan0 past Android's filter, if any"
	capture := func(offloads string) *wire.CapturePlan {
		return &wire.CapturePlan{SnapBytes: 96, Offloads: offloads}
	}
	for name, c := range map[string]struct {
		trial     wire.Trial
		immediate bool
		want      []string // without what every end of TCP has
	}{
		"nothing special": {wire.Trial{Routing: wire.Routing{Protocol: "none"}}, false, nil},
		"a capture": {wire.Trial{Routing: wire.Routing{Protocol: "none"},
			Capture: capture(wire.OffloadsOff)}, false, []string{"offloads of wlan0 off"}},
		"a capture as the machine is": {wire.Trial{Routing: wire.Routing{Protocol: "none"},
			Capture: capture(wire.OffloadsRecorded)}, false, nil},
		"an older plan's capture": {wire.Trial{Routing: wire.Routing{Protocol: "none"}, Capture: capture("")},
			false, nil},
		"ACKs at once": {wire.Trial{Routing: wire.Routing{Protocol: "static"}}, true,
			[]string{"route 10.77.0.0/24 dev wlan0 src 10.77.0.1 quickack 1"}},
		"ACKs at once over a daemon's routes": {wire.Trial{Routing: wire.Routing{Protocol: "olsr"}}, true,
			[]string{"route 10.77.0.0/24 dev wlan0 src 10.77.0.1 quickack 1",
				forward, "daemon olsr on wlan0 announcing 10.77.0.0/24 without link feedback quickack 1"}},
		"no word of an unreachable host": {wire.Trial{Routing: wire.Routing{Protocol: "aodv",
			HostUnreachable: new(false)}}, false,
			[]string{forward, "daemon aodv on wlan0 announcing 10.77.0.0/24 with host_unreachable false"}},
		"a daemon": {wire.Trial{Routing: wire.Routing{Protocol: "babeld"}}, false,
			[]string{forward, "daemon babeld on wlan0 announcing 10.77.0.0/24"}},
	} {
		c.trial.Traffic = []wire.Flow{{Name: "bulk", Kind: "iperf3_tcp", From: "car", To: "roadside"}}
		_, trial, err := Changes(plan, c.trial, tcp.Profile{Kernel: "reno", Immediate: c.immediate}, "car", "wlan0")
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, c := range trial {
			switch c.(type) {
			case change.Sysctl, change.TCPMetrics:
			default:
				got = append(got, c.String())
			}
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

// A relay's TCP settings stay as they are: no TCP flow ends there.
func TestARelayMakesNoTransportProfile(t *testing.T) {
	plan := wire.RunPlan{Nodes: []wire.PlanNode{{Name: "relay", MeshPrefix: "10.77.0.3/24"}}}
	profile := tcp.Profile{Kernel: "reno", HoldRTO: true, Window: new(8),
		Settings: []tcpcc.Setting{{Key: "net.ipv4.tcp_sack", Value: "0"}}}
	trial := wire.Trial{Routing: wire.Routing{Protocol: "none"}, Traffic: []wire.Flow{
		{Name: "bulk", Kind: "iperf3_tcp", From: "car", To: "roadside"},
		{Name: "beside", Kind: "iperf3_udp", From: "relay", To: "car"}}}
	if _, got, err := Changes(plan, trial, profile, "relay", "wlan0"); err != nil || len(got) > 0 {
		t.Errorf("%v, %v", got, err)
	}
	trial.Traffic[1].Kind = "iperf3_tcp"
	if _, got, err := Changes(plan, trial, profile, "relay", "wlan0"); err != nil || len(got) != 5 {
		t.Errorf("at an end of TCP: %v, %v", got, err)
	}
}
