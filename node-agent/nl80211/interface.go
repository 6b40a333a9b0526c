package nl80211

import (
	"net"
	"slices"

	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"
)

// Interface is an interface of a radio as it is set.
type Interface struct {
	Index      int
	Name       string
	Phy        int
	Mode       string
	MAC        string
	SSID       string // of the network that it is in; the kernel does not tell a mesh's
	MHz        int    // 0: in no network
	Width      string // see widths; empty: in no network
	TxPowerDbm *float64
}

// widths are channel widths as iw(8) words them (enum nl80211_chan_width).
var widths = map[uint32]string{
	unix.NL80211_CHAN_WIDTH_20_NOHT: "20 MHz (no HT)", unix.NL80211_CHAN_WIDTH_20: "20 MHz",
	unix.NL80211_CHAN_WIDTH_40: "40 MHz",
	unix.NL80211_CHAN_WIDTH_80: "80 MHz", unix.NL80211_CHAN_WIDTH_80P80: "80+80 MHz",
	unix.NL80211_CHAN_WIDTH_160: "160 MHz",
	unix.NL80211_CHAN_WIDTH_5:   "5 MHz", unix.NL80211_CHAN_WIDTH_10: "10 MHz",
}

// WidthNoHT is the width of a channel on which only the rates of 802.11a, b
// and g are used.
const WidthNoHT = "20 MHz (no HT)"

// Interfaces lists the radios' interfaces in this namespace.
func (c *Conn) Interfaces() ([]Interface, error) {
	all, err := list(c, unix.NL80211_CMD_GET_INTERFACE, func(*netlink.AttributeEncoder) {}, (*Interface).take,
		"list interfaces of radios", "read interface of a radio")
	// A P2P device has no name.
	return slices.DeleteFunc(all, func(i Interface) bool { return i.Name == "" }), err
}

// Interface is the named one; nil when it is not a radio's.
func (c *Conn) Interface(name string) (*Interface, error) {
	all, err := c.Interfaces()
	if err != nil {
		return nil, err
	}
	for i := range all {
		if all[i].Name == name {
			return &all[i], nil
		}
	}
	return nil, nil
}

func (i *Interface) take(d *netlink.AttributeDecoder) {
	switch d.Type() {
	case unix.NL80211_ATTR_IFINDEX:
		i.Index = int(d.Uint32())
	case unix.NL80211_ATTR_IFNAME:
		i.Name = d.String()
	case unix.NL80211_ATTR_WIPHY:
		i.Phy = int(d.Uint32())
	case unix.NL80211_ATTR_IFTYPE:
		i.Mode = word(d.Uint32())
	case unix.NL80211_ATTR_MAC:
		i.MAC = net.HardwareAddr(d.Bytes()).String()
	case unix.NL80211_ATTR_SSID:
		i.SSID = string(d.Bytes())
	case unix.NL80211_ATTR_WIPHY_FREQ:
		i.MHz = int(d.Uint32())
	case unix.NL80211_ATTR_CHANNEL_WIDTH:
		i.Width = widths[d.Uint32()]
	case unix.NL80211_ATTR_WIPHY_TX_POWER_LEVEL:
		i.TxPowerDbm = new(float64(int32(d.Uint32())) / 100)
	}
}

// BSS is a cell that the radio has heard, or its own.
type BSS struct {
	BSSID      string
	MHz        int
	Joined     bool // the interface is in this one
	SSID       string
	BasicMbps  []float64 // rates that every station of the cell must have
	RatesMbps  []float64
	HT         bool     // the cell announces 802.11n
	SignalDbm  *float64 // when it was heard last
	SeenMsAgo  uint32
	Capability uint16
}

// IBSS reports whether the cell is an ad hoc one (IEEE 802.11-2020, 9.4.1.4).
func (b BSS) IBSS() bool { return b.Capability&2 != 0 }

// Private reports whether the cell's frames are encrypted (the same clause).
func (b BSS) Private() bool { return b.Capability&0x10 != 0 }

// BSSes lists the cells that an interface knows; it does not scan.
func (c *Conn) BSSes(ifindex int) ([]BSS, error) {
	all, err := list(c, unix.NL80211_CMD_GET_SCAN, about(ifindex), within(unix.NL80211_ATTR_BSS, (*BSS).info),
		"list cells", "read cell")
	return slices.DeleteFunc(all, func(b BSS) bool { return b.BSSID == "" }), err
}

func (b *BSS) info(d *netlink.AttributeDecoder) {
	switch d.Type() {
	case unix.NL80211_BSS_BSSID:
		b.BSSID = net.HardwareAddr(d.Bytes()).String()
	case unix.NL80211_BSS_FREQUENCY:
		b.MHz = int(d.Uint32())
	case unix.NL80211_BSS_STATUS:
		s := d.Uint32()
		b.Joined = s == unix.NL80211_BSS_STATUS_IBSS_JOINED || s == unix.NL80211_BSS_STATUS_ASSOCIATED
	case unix.NL80211_BSS_INFORMATION_ELEMENTS:
		b.elements(d.Bytes())
	case unix.NL80211_BSS_SIGNAL_MBM:
		b.SignalDbm = new(float64(int32(d.Uint32())) / 100)
	case unix.NL80211_BSS_SEEN_MS_AGO:
		b.SeenMsAgo = d.Uint32()
	case unix.NL80211_BSS_CAPABILITY:
		b.Capability = d.Uint16()
	}
}

// The elements of a beacon that are read here (IEEE 802.11-2020, 9.4.2.1).
const (
	elementSSID          = 0
	elementRates         = 1
	elementHT            = 45
	elementExtendedRates = 50
)

// leastSelector is the least of the values in the place of a rate that say what a station
// must be able to do (IEEE 802.11-2020, 9.4.2.3: BSS membership selectors).
const leastSelector = 121

// elements reads a beacon's elements as far as they are whole.
func (b *BSS) elements(data []byte) {
	for len(data) >= 2 && len(data) >= 2+int(data[1]) {
		id, body := data[0], data[2:2+int(data[1])]
		data = data[2+len(body):]
		switch id {
		case elementSSID:
			b.SSID = string(body)
		case elementHT:
			b.HT = true
		case elementRates, elementExtendedRates:
			for _, r := range body {
				if r&0x7f >= leastSelector {
					continue
				}
				mbps := float64(r&0x7f) / 2 // in units of 500 kbit/s, the top bit says basic (9.4.2.3)
				b.RatesMbps = append(b.RatesMbps, mbps)
				if r&0x80 != 0 {
					b.BasicMbps = append(b.BasicMbps, mbps)
				}
			}
		}
	}
}

// Cell is the ad hoc cell or network that an interface is in, nil for none.
func (c *Conn) Cell(ifindex int) (*BSS, error) {
	all, err := c.BSSes(ifindex)
	if err != nil {
		return nil, err
	}
	for i := range all {
		if all[i].Joined {
			return &all[i], nil
		}
	}
	return nil, nil
}
