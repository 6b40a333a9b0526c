//go:build e2e

package field

import (
	"strings"
	"testing"

	"fieldmesh.dev/fieldmesh/test/testnet"
)

// What a relay could not forward is told to the sender as a route change's once
// the sender's kernel has another route, whoever made it.
func TestAKernelsNewRouteIsTold(t *testing.T) {
	f := relayed(t, func(c *Config) { c.Field.FrameLost = true })
	next := testnet.Feedback(t, f.nodes[f.find("alpha")].feedback)
	await := func(cause string) {
		t.Helper()
		for {
			line, ok := next()
			if !ok {
				t.Fatalf("nothing is reported of %s", cause)
			}
			if l := line.FrameLost; l != nil && strings.HasSuffix(l.Flow, ">10.78.0.9:4242/udp") {
				if l.Cause != cause {
					t.Errorf("told %+v, want %s", l, cause)
				}
				return
			}
		}
	}
	mustInNode(t, f, "alpha", "bash", "-c", "echo -n lost >/dev/udp/10.78.0.9/4242")
	await("no_route")
	mustInNode(t, f, "alpha", "ip", "route", "replace", "10.78.0.0/16", "via", "10.77.0.2")
	await("route_change")
}
