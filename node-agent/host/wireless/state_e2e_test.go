//go:build e2e

package wireless

import (
	"slices"
	"testing"

	"github.com/mdlayher/genetlink"
	"github.com/mdlayher/genetlink/genltest"
	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"

	"fieldmesh.dev/fieldmesh/node-agent/host/netstack"
	"fieldmesh.dev/fieldmesh/node-agent/nl80211"
	"fieldmesh.dev/fieldmesh/test/testnet"
)

// fakeKernel answers as nl80211 does, with an error to those commands that are refused, and
// notes what it was told.
func fakeKernel(t *testing.T, refused map[uint8]unix.Errno, told *[]uint8) *nl80211.Conn {
	t.Helper()
	c := genltest.Dial(genltest.ServeFamily(genetlink.Family{ID: 28, Version: 1, Name: unix.NL80211_GENL_NAME},
		func(m genetlink.Message, _ netlink.Message) ([]genetlink.Message, error) {
			*told = append(*told, m.Header.Command)
			if no := refused[m.Header.Command]; no != 0 {
				return nil, genltest.Error(int(no))
			}
			return []genetlink.Message{{}}, nil
		}))
	conn, err := nl80211.On(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

// Drivers that set rates for the channel or the peer of an interface refuse it in no network: ath10k and ath11k
// with EPERM, mwifiex with EINVAL. A station that has lost its access point is put back all the same: by way of its
// interface being down, or with a note where that may not help. Any other error stays one.
func TestE2ERatesOfAStationWithoutItsAccessPoint(t *testing.T) {
	testnet.Need(t, "ip")
	ns := testnet.NewNS(t, "rates")
	testnet.Veth(t, ns, "wlan0", "", testnet.NewNS(t, "other"), "wlan0", "")
	for name, c := range map[string]struct {
		refusal unix.Errno
		mhz     int
		fails   bool
		down    bool
		noted   bool
	}{
		"refused in no network, as by ath10k":  {unix.EPERM, 0, false, true, false},
		"refused in no network, as by mwifiex": {unix.EINVAL, 0, false, false, true},
		"not known to the driver":              {unix.EOPNOTSUPP, 0, false, false, false},
		"refused for another reason":           {unix.EBUSY, 0, true, false, false},
		"refused in a network":                 {unix.EPERM, 2437, true, false, false},
		"taken in no network":                  {0, 0, false, false, false},
	} {
		ns.Run(t, "ip", "link", "set", "wlan0", "up")
		ns.Do(t, func() error {
			link, err := netstack.FindLink("wlan0")
			if err != nil {
				return err
			}
			var told []uint8
			index := link.Attrs().Index
			d := &Device{
				Conn:      fakeKernel(t, map[uint8]unix.Errno{unix.NL80211_CMD_SET_TX_BITRATE_MASK: c.refusal}, &told),
				Interface: nl80211.Interface{Index: index, Name: "wlan0", Mode: ModeStation, MHz: c.mhz},
				Phy:       nl80211.Phy{Frequencies: []nl80211.Frequencies{{MHz: 2437}}},
			}
			was := State{Interface: "wlan0", Index: index, Mode: ModeStation, PowerStays: true, Rates: 2437,
				Joins: "fieldmesh"}
			if note, err := was.revert(d); (err != nil) != c.fails || (note != "") != c.noted {
				t.Errorf("%s: %q, %v", name, note, err)
			}
			if !slices.Contains(told, unix.NL80211_CMD_SET_TX_BITRATE_MASK) {
				t.Errorf("%s: the rates were not given back: %v", name, told)
			}
			if link, err = netstack.FindLink("wlan0"); err == nil && netstack.IsUp(link) == c.down {
				t.Errorf("%s: the interface is up: %t", name, !c.down)
			}
			return err
		})
	}
}
