//go:build e2e

package host

import (
	"testing"

	"fieldmesh.dev/fieldmesh/node-agent/host/change"
	"fieldmesh.dev/fieldmesh/test/testnet"
)

// The kernel's list of congestion controls is one for all namespaces; a
// snapshot of one shows what was loaded there and not what another's agent has
// loaded meanwhile.
func TestE2EAProgramShowsInItsNamespaceOnly(t *testing.T) {
	f, other := newField(t)
	c, cmd := f.start(t, true)
	own, others := testnet.Snapshot(t, f.ns.Name), testnet.Snapshot(t, other.ns.Name)
	apply(t, c, ScopeTrial, []change.Change{change.BPFCongestion{Program: "tahoe"}})
	if testnet.Snapshot(t, f.ns.Name) == own {
		t.Error("the program does not show in its own namespace: this test shows nothing")
	}
	mustEqual(t, "the other namespace", others, testnet.Snapshot(t, other.ns.Name))
	restoreAll(t, c)
	mustEqual(t, "after the restore", own, testnet.Snapshot(t, f.ns.Name))
	terminate(t, cmd)
}
