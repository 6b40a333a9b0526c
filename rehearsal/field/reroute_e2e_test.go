//go:build e2e

package field

import (
	"bufio"
	"encoding/json"
	"net"
	"strings"
	"testing"
	"time"

	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// What a relay could not forward is told to the sender as a route change's once
// the sender's kernel has another route, whoever made it.
func TestAKernelsNewRouteIsTold(t *testing.T) {
	f := relayed(t, func(c *Config) { c.Field.FrameLost = true })
	conn, err := net.Dial("unix", f.nodes[f.find("alpha")].feedback)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if err := conn.SetReadDeadline(time.Now().Add(30 * time.Second)); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(conn)
	if !lines.Scan() { // the radio's abilities: from here on it is watched
		t.Fatal(lines.Err())
	}
	await := func(cause string) {
		t.Helper()
		for lines.Scan() {
			var line wire.Feedback
			if err := json.Unmarshal(lines.Bytes(), &line); err != nil {
				t.Fatal(err)
			}
			if l := line.FrameLost; l != nil && strings.HasSuffix(l.Flow, ">10.78.0.9:4242/udp") {
				if l.Cause != cause {
					t.Errorf("told %+v, want %s", l, cause)
				}
				return
			}
		}
		t.Fatalf("nothing is reported of %s: %v", cause, lines.Err())
	}
	mustInNode(t, f, "alpha", "bash", "-c", "echo -n lost >/dev/udp/10.78.0.9/4242")
	await("no_route")
	mustInNode(t, f, "alpha", "ip", "route", "replace", "10.78.0.0/16", "via", "10.77.0.2")
	await("route_change")
}
