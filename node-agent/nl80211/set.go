package nl80211

import (
	"errors"
	"fmt"
	"math"
	"net"
	"slices"

	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"
)

// Network is what an interface joins.
type Network struct {
	Mode      string // adhoc | mesh | managed; ap is not begun by Join
	SSID      string // a mesh's id
	BSSID     string // adhoc: the cell's address; empty: by what is heard
	MHz       int
	Width     string    // WidthNoHT or "20 MHz"
	BasicMbps []float64 // rates that every station must have; empty: the driver's
	McastMbps float64   // rate of frames to all; 0: the driver's
}

// Joins reports whether Join can join an ad hoc cell, or a mesh, of a width.
func Joins(width string) bool {
	return width == WidthNoHT || width == widths[unix.NL80211_CHAN_WIDTH_20]
}

// Join joins a network. An ad hoc cell is joined some time after it returns.
func (c *Conn) Join(ifindex int, n Network) error {
	if !Joins(n.Width) {
		return fmt.Errorf("join %q: a width of %q is not one that this package sets", n.SSID, n.Width)
	}
	width := uint32(unix.NL80211_CHAN_WIDTH_20_NOHT)
	if n.Width != WidthNoHT {
		width = unix.NL80211_CHAN_WIDTH_20
	}
	bssid, err := hardware(n.BSSID)
	if err != nil {
		return err
	}
	if n.Mode == "managed" {
		return c.connect(ifindex, n, bssid)
	}
	command, name := uint8(unix.NL80211_CMD_JOIN_IBSS), uint16(unix.NL80211_ATTR_SSID)
	if n.Mode == "mesh" {
		command, name = unix.NL80211_CMD_JOIN_MESH, unix.NL80211_ATTR_MESH_ID
	}
	err = c.do(command, ifindex, func(e *netlink.AttributeEncoder) {
		e.Bytes(name, []byte(n.SSID))
		e.Uint32(unix.NL80211_ATTR_WIPHY_FREQ, uint32(n.MHz))
		e.Uint32(unix.NL80211_ATTR_CHANNEL_WIDTH, width)
		e.Uint32(unix.NL80211_ATTR_CENTER_FREQ1, uint32(n.MHz))
		if n.McastMbps > 0 {
			e.Uint32(unix.NL80211_ATTR_MCAST_RATE, uint32(math.Round(n.McastMbps*10)))
		}
		if len(n.BasicMbps) > 0 {
			e.Bytes(unix.NL80211_ATTR_BSS_BASIC_RATES, halfMbps(n.BasicMbps))
		}
		if n.Mode == "mesh" {
			return
		}
		e.Flag(unix.NL80211_ATTR_FREQ_FIXED, true)
		if bssid != nil {
			e.Bytes(unix.NL80211_ATTR_MAC, bssid)
		}
	})
	if err != nil {
		return fmt.Errorf("join %s network %q on %d MHz: %w", n.Mode, n.SSID, n.MHz, err)
	}
	return nil
}

// connect has the kernel associate with an open access point, without HT where
// the width says so. It is under way when this returns, or over without success.
func (c *Conn) connect(ifindex int, n Network, bssid net.HardwareAddr) error {
	err := c.do(unix.NL80211_CMD_CONNECT, ifindex, func(e *netlink.AttributeEncoder) {
		e.Bytes(unix.NL80211_ATTR_SSID, []byte(n.SSID))
		e.Uint32(unix.NL80211_ATTR_WIPHY_FREQ, uint32(n.MHz))
		e.Uint32(unix.NL80211_ATTR_AUTH_TYPE, unix.NL80211_AUTHTYPE_OPEN_SYSTEM)
		if bssid != nil {
			e.Bytes(unix.NL80211_ATTR_MAC, bssid)
		}
		if n.Width == WidthNoHT {
			e.Flag(unix.NL80211_ATTR_DISABLE_HT, true)
		}
	})
	if err != nil && !errors.Is(err, unix.EALREADY) && !errors.Is(err, unix.EINPROGRESS) &&
		!errors.Is(err, unix.EISCONN) {
		return fmt.Errorf("connect to %q on %d MHz: %w", n.SSID, n.MHz, err)
	}
	return nil
}

func hardware(bssid string) (net.HardwareAddr, error) {
	if bssid == "" {
		return nil, nil
	}
	return net.ParseMAC(bssid)
}

// halfMbps encodes rates as beacons do, in units of 500 kbit/s.
func halfMbps(rates []float64) []byte {
	var out []byte
	for _, r := range rates {
		out = append(out, byte(math.Round(r*2)))
	}
	return out
}

// Leave leaves the network of that mode; being in none is not an error.
func (c *Conn) Leave(ifindex int, mode string) error {
	command := uint8(unix.NL80211_CMD_LEAVE_IBSS)
	switch mode {
	case "mesh":
		command = unix.NL80211_CMD_LEAVE_MESH
	case "managed":
		command = unix.NL80211_CMD_DISCONNECT
	}
	err := c.do(command, ifindex, func(*netlink.AttributeEncoder) {})
	// One in ad hoc mode that never joined a cell says that its link is severed.
	if err != nil && !errors.Is(err, unix.ENOTCONN) && !errors.Is(err, unix.ENETDOWN) && !errors.Is(err, unix.ENOLINK) {
		return fmt.Errorf("leave the %s network: %w", mode, err)
	}
	return nil
}

// SetMode gives an interface, which must be down, another mode.
func (c *Conn) SetMode(ifindex int, mode string) error {
	t, err := iftype(mode)
	if err == nil {
		err = c.do(unix.NL80211_CMD_SET_INTERFACE, ifindex, func(e *netlink.AttributeEncoder) {
			e.Uint32(unix.NL80211_ATTR_IFTYPE, t)
		})
	}
	if err != nil {
		return fmt.Errorf("set mode %s: %w", mode, err)
	}
	return nil
}

// SetTxPower fixes the transmit power, or leaves it to the driver when dbm is nil.
func (c *Conn) SetTxPower(ifindex int, dbm *float64) error {
	err := c.do(unix.NL80211_CMD_SET_WIPHY, ifindex, func(e *netlink.AttributeEncoder) {
		if dbm == nil {
			e.Uint32(unix.NL80211_ATTR_WIPHY_TX_POWER_SETTING, unix.NL80211_TX_POWER_AUTOMATIC)
			return
		}
		e.Uint32(unix.NL80211_ATTR_WIPHY_TX_POWER_SETTING, unix.NL80211_TX_POWER_FIXED)
		e.Uint32(unix.NL80211_ATTR_WIPHY_TX_POWER_LEVEL, uint32(int32(math.Round(*dbm*100))))
	})
	if err != nil {
		return fmt.Errorf("set transmit power: %w", err)
	}
	return nil
}

// SetRetries sets the radio's limits of retries (dot11ShortRetryLimit and
// dot11LongRetryLimit), 0 to leave one.
func (c *Conn) SetRetries(ifindex int, short, long uint8) error {
	err := c.do(unix.NL80211_CMD_SET_WIPHY, ifindex, func(e *netlink.AttributeEncoder) {
		if short > 0 {
			e.Uint8(unix.NL80211_ATTR_WIPHY_RETRY_SHORT, short)
		}
		if long > 0 {
			e.Uint8(unix.NL80211_ATTR_WIPHY_RETRY_LONG, long)
		}
	})
	if err != nil {
		return fmt.Errorf("set retry limits: %w", err)
	}
	return nil
}

// SetRTS sets from which length in bytes frames are announced by RTS; 1<<32-1 is never.
func (c *Conn) SetRTS(ifindex int, threshold uint32) error {
	err := c.do(unix.NL80211_CMD_SET_WIPHY, ifindex, func(e *netlink.AttributeEncoder) {
		e.Uint32(unix.NL80211_ATTR_WIPHY_RTS_THRESHOLD, threshold)
	})
	if err != nil {
		return fmt.Errorf("set RTS threshold: %w", err)
	}
	return nil
}

// PowerSave reports whether the interface may sleep; SetPowerSave sets it.
func (c *Conn) PowerSave(ifindex int) (bool, error) {
	on := false
	err := c.ask(unix.NL80211_CMD_GET_POWER_SAVE, about(ifindex), func(d *netlink.AttributeDecoder) {
		if d.Type() == unix.NL80211_ATTR_PS_STATE {
			on = d.Uint32() == unix.NL80211_PS_ENABLED
		}
	})
	if err != nil {
		return false, fmt.Errorf("read power save: %w", err)
	}
	return on, nil
}

// SetPowerSave reports whether the interface may sleep.
func (c *Conn) SetPowerSave(ifindex int, on bool) error {
	state := uint32(unix.NL80211_PS_DISABLED)
	if on {
		state = unix.NL80211_PS_ENABLED
	}
	err := c.do(unix.NL80211_CMD_SET_POWER_SAVE, ifindex, func(e *netlink.AttributeEncoder) {
		e.Uint32(unix.NL80211_ATTR_PS_STATE, state)
	})
	if err != nil {
		return fmt.Errorf("set power save: %w", err)
	}
	return nil
}

// SetRates allows only these of the rates of 802.11a, b and g on a channel's
// band; none leaves all rates to the driver.
func (c *Conn) SetRates(ifindex int, at Frequencies, mbps []float64) error {
	err := c.do(unix.NL80211_CMD_SET_TX_BITRATE_MASK, ifindex, func(e *netlink.AttributeEncoder) {
		if len(mbps) == 0 {
			return
		}
		e.Nested(unix.NL80211_ATTR_TX_RATES, func(bands *netlink.AttributeEncoder) error {
			bands.Nested(at.band, func(band *netlink.AttributeEncoder) error {
				band.Bytes(unix.NL80211_TXRATE_LEGACY, halfMbps(mbps))
				band.Bytes(unix.NL80211_TXRATE_HT, []byte{})
				return nil
			})
			return nil
		})
	})
	if err != nil {
		return fmt.Errorf("set rates %v Mbit/s: %w", mbps, err)
	}
	return nil
}

// NewInterface makes an interface on a radio, in a mode and down. It lives as
// long as the connection: the kernel takes it away when c is closed, however the
// process ends (NL80211_ATTR_SOCKET_OWNER). A driver may give it another address.
func (c *Conn) NewInterface(phy int, name, mode string, mac net.HardwareAddr) (Interface, error) {
	var made Interface
	t, err := iftype(mode)
	if err == nil {
		err = c.ask(unix.NL80211_CMD_NEW_INTERFACE, func(e *netlink.AttributeEncoder) {
			e.Uint32(unix.NL80211_ATTR_WIPHY, uint32(phy))
			e.String(unix.NL80211_ATTR_IFNAME, name)
			e.Uint32(unix.NL80211_ATTR_IFTYPE, t)
			e.Bytes(unix.NL80211_ATTR_MAC, mac)
			e.Flag(unix.NL80211_ATTR_SOCKET_OWNER, true)
		}, made.take)
	}
	if err != nil {
		return made, fmt.Errorf("make interface %q in mode %s: %w", name, mode, err)
	}
	return made, nil
}

// DeleteInterface takes an interface off its radio; one that is gone is not an
// error.
func (c *Conn) DeleteInterface(ifindex int) error {
	err := c.do(unix.NL80211_CMD_DEL_INTERFACE, ifindex, func(*netlink.AttributeEncoder) {})
	if err != nil && !errors.Is(err, unix.ENODEV) {
		return fmt.Errorf("delete interface: %w", err)
	}
	return nil
}

// Common are those of the rates that the channel has.
func (f Frequencies) Common(mbps []float64) []float64 {
	var out []float64
	for _, r := range mbps {
		if slices.Contains(f.RatesMbps, r) {
			out = append(out, r)
		}
	}
	return out
}
