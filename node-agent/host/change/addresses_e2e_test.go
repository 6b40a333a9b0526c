//go:build e2e

package change

import (
	"net/netip"
	"strings"
	"testing"

	"fieldmesh.dev/fieldmesh/node-agent/host/netstack"
	"fieldmesh.dev/fieldmesh/test/testnet"
)

// newInterface makes an interface with an address, and reads it as an undo does.
func newInterface(t *testing.T) (ns *testnet.NS, state netstack.InterfaceState) {
	t.Helper()
	testnet.Need(t, "ip")
	ns = testnet.NewNS(t, "addresses")
	testnet.Veth(t, ns, "wlan0", "192.168.7.1/24", testnet.NewNS(t, "other"), "wlan0", "")
	ns.Do(t, func() (err error) {
		_, state, err = netstack.FindInterface("wlan0")
		return err
	})
	return ns, state
}

// The routes of addresses that somebody gives the interface below a mesh meanwhile stay; one that the kernel makes
// again, and that was not there, goes.
func TestE2ERoutesOfAddressesThatCameMeanwhile(t *testing.T) {
	ns, state := newInterface(t)
	ns.Run(t, "ip", "address", "add", "192.168.9.1/24", "dev", "wlan0")
	mesh := &meshState{Device: "bat0", Below: state.Index} // 192.168.7.0/24 had been taken out
	ns.Do(t, func() error {
		_, err := mesh.revertRoutes(&state)
		return err
	})
	routes := ns.Run(t, "ip", "-4", "route", "show", "dev", "wlan0")
	if !strings.Contains(routes, "192.168.9.0/24") || strings.Contains(routes, "192.168.7.0/24") {
		t.Errorf("left are the routes\n%s", routes)
	}
}

// A radio loses the addresses of the network that it leaves, also when it is set again. What somebody gave it between
// no undo has.
func TestE2EARadioKeepsAddressesThatCameMeanwhile(t *testing.T) {
	ns, state := newInterface(t)
	r := Radio{Interface: "wlan0", Keep: netip.MustParsePrefix("10.77.0.0/24")}
	off := func() string {
		t.Helper()
		ns.Do(t, func() error { return takeAddressesOff(r, &state) })
		return ns.Run(t, "ip", "-4", "-brief", "address", "show", "dev", "wlan0")
	}
	if left := off(); strings.Contains(left, "192.168.7.1") {
		t.Errorf("left at first: %s", left)
	}
	for _, a := range []string{"10.77.0.1/24", "192.168.7.1/24", "192.168.9.1/24"} {
		ns.Run(t, "ip", "address", "add", a, "dev", "wlan0")
	}
	if left := off(); strings.Contains(left, "192.168.7.1") || !strings.Contains(left, "10.77.0.1/24") ||
		!strings.Contains(left, "192.168.9.1/24") {
		t.Errorf("left when it is set again: %s", left)
	}
}
