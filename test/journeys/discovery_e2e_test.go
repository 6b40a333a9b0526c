//go:build e2e

package journeys

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"fieldmesh.dev/fieldmesh/controller/fleet"
	"fieldmesh.dev/fieldmesh/internal/dnssd"
	"fieldmesh.dev/fieldmesh/test/testnet"
)

// A phone finds the server of its controller at the address that it has today, and not one
// that was told to stay silent.
func TestE2EAServerIsFoundAtItsNewAddress(t *testing.T) {
	testnet.Need(t, "ip")
	laptop, phone := testnet.NewNS(t, "fdl"), testnet.NewNS(t, "fdp")
	testnet.Veth(t, laptop, "wlan0", "192.168.43.7/24", phone, "wlan0", "192.168.43.1/24")
	dir := testnet.Folder(t)
	keys := filepath.Join(dir, "fleet")
	fieldmesh(t, "keys", "init", "--dir", keys)
	if err := os.Mkdir(filepath.Join(dir, "campaigns"), 0o755); err != nil {
		t.Fatal(err)
	}
	fl, err := fleet.Load(filepath.Join(keys, fleet.FileName))
	if err != nil {
		t.Fatal(err)
	}
	identity, err := fl.Identity()
	if err != nil {
		t.Fatal(err)
	}
	serve := func(args ...string) {
		testnet.Start(t, laptop.Command(t.Context(), filepath.Join(programs, "fieldmesh"), append([]string{"serve",
			"--fleet", filepath.Join(keys, fleet.FileName), "--campaigns", filepath.Join(dir, "campaigns")},
			args...)...)).Says(t, "for the phones of experimenters")
	}
	serve("--runs", filepath.Join(dir, "silent"), "--listen", ":7449", "--discovery=false")
	serve("--runs", filepath.Join(dir, "runs"))
	found := func(address string) {
		t.Helper()
		testnet.Await(t, 30*time.Second, "the server is found at "+address, func() bool {
			return slices.Equal(phone.Services(t, "192.168.43.1", dnssd.Type, 300*time.Millisecond),
				[]string{address + ":7448 pin=" + identity.Pin})
		})
	}
	found("192.168.43.7")
	laptop.Run(t, "ip", "address", "flush", "dev", "wlan0")
	laptop.Run(t, "ip", "address", "add", "192.168.43.99/24", "dev", "wlan0")
	found("192.168.43.99")
}
