package provenance

import (
	"errors"
	"net/netip"
	"testing"

	"golang.org/x/sys/unix"

	"fieldmesh.dev/fieldmesh/node-agent/link"
)

// Packets of sockets that are bound to an interface leave by it or not at all.
func TestTheWayOfBoundSockets(t *testing.T) {
	if err := link.MayBind(); err != nil {
		t.Skipf("this system lets nobody bind sockets: %v", err)
	}
	peer := netip.MustParseAddr("127.0.0.2")
	for bound, want := range map[string]string{"": "lo", "lo": "lo"} {
		if iface, err := Way(bound, peer); err != nil || iface != want {
			t.Errorf("bound to %q: by %q, %v", bound, iface, err)
		}
	}
	if iface, err := Way("none0", peer); !errors.Is(err, unix.ENETUNREACH) {
		t.Errorf("bound to what is not there: by %q, %v", iface, err)
	}
}
