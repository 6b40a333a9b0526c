//go:build e2e

package daemon

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"fieldmesh.dev/fieldmesh/internal/testnet"
)

// olsrd starts the real olsrd in a node, with its defaults, which are ETX and
// fisheye. Without them (LinkQualityLevel 0) it has no costs for links that
// others' TCs do not tell of, and they tell of selectors alone by RFC 3626.
func olsrd(t *testing.T, node *testnet.NS) *daemon {
	t.Helper()
	dir := testnet.Folder(t)
	config := filepath.Join(dir, "olsrd.conf")
	text := fmt.Sprintf("DebugLevel 1\nIpVersion 4\nLockFile %q\nInterface \"wlan0\"\n{\n}\n", filepath.Join(dir, "lock"))
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return start(t, node, "olsrd", "-f", config, "-nofork", "-d", "1")
}

// In a chain in which half of the nodes run ours and half the real olsrd, TCP
// gets through both ways, with whichever of them at the ends and between.
func TestOLSRAndOlsrdMakeOneMesh(t *testing.T) {
	testnet.Need(t, "olsrd", "iperf3")
	for _, c := range []struct {
		name string
		ours []bool // by node
	}{
		{"etx, in turns", []bool{true, false, true, false}},
		{"etx, ours between", []bool{false, true, true, false}},
		{"etx, theirs between", []bool{true, false, false, true}},
	} {
		t.Run(c.name, func(t *testing.T) {
			a := newAir(t, 4, chain(4)...)
			for i, ours := range c.ours {
				if ours {
					route(t, a.nodes[i], "olsr-etx")
				} else {
					olsrd(t, a.nodes[i])
				}
			}
			for i := range a.nodes {
				for k := range a.nodes {
					if i != k {
						eventually(t, fmt.Sprintf("node %d has a route to node %d", i, k), func() bool {
							return hasRoute(t, a.nodes[i], addr(k)+"/32")
						})
					}
				}
			}
			a.iperf(t, 0, 3)
			a.iperf(t, 3, 0)
		})
	}
}
