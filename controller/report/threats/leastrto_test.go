package threats

import (
	"strings"
	"testing"

	"fieldmesh.dev/fieldmesh/controller/report/evidence"
	"fieldmesh.dev/fieldmesh/protocols/tcpcc"
	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// sentWith is an accepted attempt by a sender with a least RTO.
func sentWith(tcp wire.TCP, us string) evidence.Attempt {
	return evidence.Attempt{Verdict: &wire.Verdict{Outcome: wire.Accepted}, Mbps: new(1.0),
		Trial: wire.Trial{Sender: "a", TCP: tcp},
		Node:  map[string]wire.Provenance{"a": {Sysctls: map[string]string{tcpcc.RTOMinKey: us}}}}
}

// routed gives an attempt's sender a route with a least RTO of its own.
func routed(a evidence.Attempt) evidence.Attempt {
	sender := a.Node["a"]
	sender.Routes = []string{"10.0.0.0/24 dev wlan0" + tcpcc.RouteRTOMin + "3000"}
	sender.TCP = &wire.TCPInForce{Notes: []string{tcpcc.RouteRTOMinNote}}
	a.Node["a"] = sender
	return a
}

func TestLeastRTOsThatDifferAreAThreat(t *testing.T) {
	newreno, reference := wire.TCP{Variant: "newreno"}, wire.TCP{Variant: "reference"}
	for name, c := range map[string]struct {
		attempts      []evidence.Attempt
		threat, clear string
	}{
		"they differ": {[]evidence.Attempt{sentWith(newreno, "200000"), sentWith(reference, "1000000")},
			"1000000 µs for reference; 200000 µs for newreno", ""},
		"they agree": {[]evidence.Attempt{sentWith(newreno, "1000000"), sentWith(reference, "1000000")}, "",
			"same least RTO"},
		"the factor": {[]evidence.Attempt{sentWith(wire.TCP{RTOMinMs: new(200)}, "200000"),
			sentWith(wire.TCP{RTOMinMs: new(900)}, "900000")}, "", ""},
		"not told": {[]evidence.Attempt{sentWith(newreno, "")}, "", ""},
		"some do not": {[]evidence.Attempt{sentWith(newreno, "200000"), sentWith(newreno, "")}, "",
			"In 1 of 2 accepted trials the sender does not tell"},
		"a route's": {[]evidence.Attempt{sentWith(newreno, "200000"), routed(sentWith(newreno, "200000"))},
			"200000 µs for newreno; a route's own, which goes before the kernel's, for newreno", ""},
		"all routes'": {[]evidence.Attempt{routed(sentWith(newreno, "200000"))}, "a route's own", ""},
	} {
		threat, clear := leastRTOs(&evidence.Run{Attempts: c.attempts})
		if (threat != nil) != (c.threat != "") || threat != nil && !strings.Contains(threat.Text, c.threat) ||
			!strings.Contains(clear, c.clear) || (clear == "") != (c.clear == "") {
			t.Errorf("%s: %+v, %q", name, threat, clear)
		}
	}
}
