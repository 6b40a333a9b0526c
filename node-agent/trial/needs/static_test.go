package needs

import (
	"slices"
	"strings"
	"testing"

	"fieldmesh.dev/fieldmesh/node-agent/tcp"
	"fieldmesh.dev/fieldmesh/protocols/wire"
)

func TestStaticRoutesAreAChain(t *testing.T) {
	plan := wire.RunPlan{Nodes: []wire.PlanNode{
		{Name: "a", MeshPrefix: "10.77.0.1/24"}, {Name: "b", MeshPrefix: "10.77.0.2/24"},
		{Name: "c", MeshPrefix: "10.77.0.3/24"}, {Name: "d", MeshPrefix: "10.77.0.4/24"},
		{Name: "e", MeshPrefix: "10.77.0.5/24"}}}
	trial := wire.Trial{Sender: "a", Receiver: "d", Relays: []string{"c", "b"},
		Routing: wire.Routing{Protocol: "static"}}
	for node, want := range map[string][]string{
		"a": {"route 10.77.0.2/32 via 10.77.0.3 dev wlan0 src 10.77.0.1 quickack 1",
			"route 10.77.0.4/32 via 10.77.0.3 dev wlan0 src 10.77.0.1 quickack 1"},
		"c": {"route 10.77.0.4/32 via 10.77.0.2 dev wlan0 src 10.77.0.3 quickack 1"},
		"b": {"route 10.77.0.1/32 via 10.77.0.3 dev wlan0 src 10.77.0.2 quickack 1"},
		"d": {"route 10.77.0.1/32 via 10.77.0.2 dev wlan0 src 10.77.0.4 quickack 1",
			"route 10.77.0.3/32 via 10.77.0.2 dev wlan0 src 10.77.0.4 quickack 1"},
		"e": nil,
	} {
		made, err := staticRoutes(plan, trial, tcp.Profile{Immediate: true}, node, "wlan0")
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		forwards := false
		for _, c := range made {
			if strings.HasPrefix(c.String(), "route ") {
				got = append(got, c.String())
			}
			forwards = forwards || c.String() == "sysctl net.ipv4.ip_forward=1"
		}
		if !slices.Equal(got, want) || forwards != (node != "e") {
			t.Errorf("%s: forwards %t, routes %q, want %q", node, forwards, got, want)
		}
	}
	trial.Relays = nil
	if made, err := staticRoutes(plan, trial, tcp.Profile{}, "a", "wlan0"); err != nil || made != nil {
		t.Errorf("without relays: %v, %v", made, err)
	}
}
