//go:build guest

package hwsim

import (
	"strings"
	"testing"
	"time"

	"fieldmesh.dev/fieldmesh/test/testnet"
)

// What tests in a guest build on: radios in namespaces, a regulatory
// database, an IBSS over two hops that are set by groups.
func TestGuestHasRadios(t *testing.T) {
	radios := Load(t, 3)
	for i, mask := range []uint{1, 3, 2} {
		ns := testnet.NewNS(t, "r")
		r := &radios[i]
		r.Hear(t, mask)
		r.Move(t, ns, "wlan0")
		r.IW(t, "dev", "wlan0", "set", "type", "ibss")
		ns.Run(t, "ip", "link", "set", "wlan0", "up")
		r.IW(t, "dev", "wlan0", "ibss", "join", "probe", "2437", "HT20", "fixed-freq", "02:00:00:aa:bb:cc")
	}
	for i, want := range []int{1, 2, 1} {
		var dump string
		for range 200 {
			if dump = radios[i].IW(t, "dev", "wlan0", "station", "dump"); strings.Count(dump, "Station ") == want {
				break
			}
			time.Sleep(100 * time.Millisecond)
		}
		if got := strings.Count(dump, "Station "); got != want {
			t.Errorf("radio %d hears %d others, want %d:\n%s", i, got, want, dump)
		}
	}
	Country(t, "DE")
}
