//go:build e2e

package routingd

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"fieldmesh.dev/fieldmesh/test/testnet"
)

// olsrd starts the real olsrd in a node: with its defaults, which are ETX and
// fisheye, or plain, with RFC 3626's messages. All neighbours are in its TCs in
// either mode; it takes no other TcRedundancy.
func olsrd(t *testing.T, node *testnet.NS, plain bool) *testnet.Running {
	t.Helper()
	dir := testnet.Folder(t)
	config := filepath.Join(dir, "olsrd.conf")
	text := fmt.Sprintf("DebugLevel 1\nIpVersion 4\nLockFile %q\nInterface \"wlan0\"\n{\n}\n",
		filepath.Join(dir, "lock"))
	if plain {
		text += "LinkQualityLevel 0\nUseHysteresis no\n"
	}
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return start(t, node, "olsrd", "-f", config, "-nofork", "-d", "1")
}

// In a chain in which half of the nodes run ours and half the real olsrd, TCP
// gets through both ways, with whichever of them at the ends and between.
func TestOLSRAndOlsrdMakeOneMesh(t *testing.T) {
	testnet.Need(t, "olsrd", "iperf3")
	orders := []struct {
		name string
		ours []bool // by node
	}{
		{"in turns", []bool{true, false, true, false}},
		{"ours between", []bool{false, true, true, false}},
		{"theirs between", []bool{true, false, false, true}},
	}
	for _, mode := range []struct {
		protocol string
		plain    bool
	}{{"olsr-etx", false}, {"olsr-full", true}} {
		for _, c := range orders {
			t.Run(mode.protocol+", "+c.name, func(t *testing.T) { mixedChain(t, mode.protocol, mode.plain, c.ours) })
		}
	}
}

// quiet is how long an olsrd without ETX may have no route while it still may
// get one: five TC intervals, after which it has heard all. It computes routes
// at most once a second and forgets a change that came within that second until
// another one comes (protocols/manet/olsr/README.md), so that it may stay without a
// route for good. Then a visitor comes into its reach, which is a change.
const quiet = 25 * time.Second

// lacks names those of the first nodes that a node has no route to.
func (a *air) lacks(t *testing.T, node, first int) string {
	t.Helper()
	var out []string
	for k := range first {
		if k != node && !hasRoute(t, a.nodes[node], addr(k)+"/32") {
			out = append(out, fmt.Sprint(k))
		}
	}
	return strings.Join(out, " and ")
}

// within waits until nothing is lacking; false after the time.
func within(wait time.Duration, lacks func() string) bool {
	for until := time.Now().Add(wait); time.Now().Before(until); time.Sleep(200 * time.Millisecond) {
		if lacks() == "" {
			return true
		}
	}
	return false
}

func mixedChain(t *testing.T, protocol string, plain bool, ours []bool) {
	visitor := len(ours)
	a := newAir(t, visitor+1, chain(visitor)...)
	for i := range ours {
		if ours[i] {
			route(t, a.nodes[i], protocol)
		} else {
			olsrd(t, a.nodes[i], plain)
		}
	}
	route(t, a.nodes[visitor], protocol)
	for i := range ours {
		lacks := func() string { return a.lacks(t, i, len(ours)) }
		if plain && !ours[i] && !within(quiet, lacks) {
			t.Logf("the olsrd of node %d has no route to %s after %s: a visitor comes", i, lacks(), quiet)
			a.set(t, "add", i, visitor)
		}
		if !within(patience, lacks) {
			t.Fatalf("node %d has no route to %s", i, lacks())
		}
	}
	t.Logf("%d hops: %s", len(ours)-1, a.iperf(t, 0, len(ours)-1))
	t.Logf("%d hops back: %s", len(ours)-1, a.iperf(t, len(ours)-1, 0))
}
