package wireless

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"

	"fieldmesh.dev/fieldmesh/node-agent/nl80211"
)

// Refuses says what this radio, this place or its present use forbids of
// settings, with the cure; no reason: nothing.
func (d *Device) Refuses(s Settings) (reason, cure string) {
	if reason, cure = d.CheckMode(s.Interface, s.Mode); reason != "" {
		return reason, cure
	}
	for _, check := range []func(Settings) (reason, cure string){d.checkChannel, d.checkKill, d.checkUse} {
		if reason, cure = check(s); reason != "" {
			return reason, cure
		}
	}
	// what else the radio is at the same time
	return d.CheckShared(s.Interface, s.Mode, s.Channel, "")
}

// CheckMode refuses a mode that the radio of an interface has not.
func (d *Device) CheckMode(name, mode string) (reason, cure string) {
	if d.Phy.Offers(mode) {
		return "", ""
	}
	return fmt.Sprintf("%s (%s) offers %s, not %s", name, d.Phy.Name, strings.Join(d.Phy.Modes, ", "), mode),
		"use a radio whose driver has this mode (many ath9k, ath9k_htc and mt76 dongles have both), or plan another " +
			"of adhoc, mesh and infrastructure"
}

func (d *Device) checkChannel(s Settings) (reason, cure string) {
	country, err := d.Conn.Country()
	if err != nil {
		country = "unknown"
	}
	f := d.Phy.At(nl80211.Frequency(s.Channel))
	usable := fmt.Sprintf("plan one of the channels that it may use: %v", d.Phy.Usable())
	switch {
	case f == nil:
		return fmt.Sprintf("%s has no channel %d", s.Interface, s.Channel), usable
	case f.Disabled:
		return fmt.Sprintf("channel %d (%d MHz) is forbidden in the regulatory domain %s", s.Channel, f.MHz, country),
			"tell the radio in which country it is (iw reg set XX), or " + usable
	case s.Mode == ModeStation: // it begins nothing, and hears from its access point when it may speak
	case f.NoIR:
		return fmt.Sprintf("on channel %d (%d MHz) a network may not be begun in the regulatory domain %s (no "+
				"initiating radiation)", s.Channel, f.MHz, country),
			"tell the radio in which country it is (iw reg set XX), or " + usable
	case f.Radar:
		return fmt.Sprintf("channel %d (%d MHz) is shared with radars and needs their detection, which an %s network "+
			"cannot do here", s.Channel, f.MHz, s.Mode), usable
	}
	if missing := len(s.allowed()) - len(f.Common(s.allowed())); missing > 0 {
		return fmt.Sprintf("%s has the rates %v Mbit/s on channel %d, and %v are wanted", s.Interface, f.RatesMbps,
			s.Channel, s.allowed()), "plan another standard or rate"
	}
	return checkPower(s, f.TxPowerMaxDbm, country)
}

// checkPower refuses more than a channel allows: the kernel would say yes, and take the
// most. A limit of 0 is not known.
func checkPower(s Settings, mostDbm float64, country string) (reason, cure string) {
	if s.TxPowerDbm == nil || mostDbm == 0 || *s.TxPowerDbm <= mostDbm {
		return "", ""
	}
	return fmt.Sprintf("%s may send with %g dBm at most on channel %d in the regulatory domain %s, and %g dBm are "+
			"wanted", s.Interface, mostDbm, s.Channel, country, *s.TxPowerDbm),
		fmt.Sprintf("plan %g dBm at most, or leave tx_power_dbm out; where the radio does not know in which country "+
			"it is, tell it (iw reg set XX)", mostDbm)
}

// checkKill looks at the switches that silence a radio (Documentation/driver-api/rfkill.rst).
func (d *Device) checkKill(s Settings) (reason, cure string) {
	// only a bad pattern is an error
	switches, _ := filepath.Glob(filepath.Join("/sys/class/ieee80211", d.Phy.Name, "rfkill*"))
	for _, at := range switches {
		for kind, cure := range map[string]string{
			"hard": "switch it on at the machine", "soft": "run `rfkill unblock wlan`, or switch aeroplane mode off",
		} {
			state, err := os.ReadFile(filepath.Join(at, kind))
			if err == nil && strings.TrimSpace(string(state)) == "1" {
				return fmt.Sprintf("%s is switched off (rfkill, %s)", s.Interface, kind), cure
			}
		}
	}
	return "", ""
}

// checkUse refuses an interface that somebody else uses in a way that could
// not be put back: what is known of an association is not enough to make it again.
func (d *Device) checkUse(s Settings) (reason, cure string) {
	cure = "disconnect it first (`nmcli device set " + s.Interface + " managed no`, or stop wpa_supplicant on it), " +
		"or name another interface in agent.yaml"
	switch d.Interface.Mode {
	case "monitor":
		return "", ""
	case "adhoc", "mesh":
		if d.Interface.MHz == 0 {
			return "", ""
		}
		var cell *nl80211.BSS
		if d.Interface.Mode == "adhoc" {
			cell, _ = d.Conn.Cell(d.Interface.Index) // Former tells what is wrong
		}
		return notRejoined(d.Interface, cell)
	case "managed":
		if cell, err := d.Conn.Cell(d.Interface.Index); err == nil && cell != nil {
			return fmt.Sprintf("%s is in use: it is connected to %q", s.Interface, cell.SSID), cure
		}
		return "", ""
	}
	return fmt.Sprintf("%s is in use as %s", s.Interface, d.Interface.Mode), cure
}

// notRejoined says why the network that an interface is in could not be joined again: the
// kernel tells neither a mesh's settings nor a cell's key. cell is the one of ad hoc mode.
func notRejoined(i nl80211.Interface, cell *nl80211.BSS) (reason, cure string) {
	command, why := "ibss", ""
	switch {
	case i.Mode == "mesh":
		command, why = "mesh", "a mesh, whose settings the kernel does not tell"
	case cell != nil && cell.Private():
		why = fmt.Sprintf("the cell %q, whose key the kernel does not tell", cell.SSID)
	case !nl80211.Joins(i.Width):
		why = fmt.Sprintf("an ad hoc cell of width %q", i.Width)
	default:
		return "", ""
	}
	return fmt.Sprintf("%s is in use: it is in %s, so it could not be put back there", i.Name, why),
		fmt.Sprintf("have it leave first (`iw dev %s %s leave`), or name another interface in agent.yaml", i.Name,
			command)
}

// CheckShared refuses a network that the interface cannot be in while the
// radio's other interfaces, those that are up and the named one, are what they are.
func (d *Device) CheckShared(name, mode string, channel int, beside string) (reason, cure string) {
	all, err := d.Conn.Interfaces()
	if err != nil {
		return "", "" // the join says what is wrong
	}
	for _, other := range all {
		up := func() bool {
			i, err := net.InterfaceByName(other.Name)
			return err == nil && i.Flags&net.FlagUp != 0
		}
		// Monitors, and the parts of an access point, are software: they need no place.
		if other.Phy != d.Phy.Index || other.Name == name || other.Mode == "monitor" || other.Mode == "ap-vlan" ||
			other.Name != beside && !up() {
			continue
		}
		if reason, cure = sharedBy(d.Phy, mode, channel, other); reason != "" {
			return reason, cure
		}
	}
	return "", ""
}

// sharedBy says why a radio cannot have an interface of a mode on a channel
// beside another one.
func sharedBy(phy nl80211.Phy, mode string, channel int, other nl80211.Interface) (reason, cure string) {
	alone := fmt.Sprintf("name %s itself as `interface` in agent.yaml, without `phy_of`: it leaves its own network "+
		"for the run", other.Name)
	channels := phy.Beside(mode, other.Mode)
	if channels == 0 {
		cure = alone + "; or give the node a second radio"
		for _, instead := range []string{"adhoc", "mesh"} {
			if phy.Offers(instead) && phy.Beside(instead, other.Mode) > 0 {
				cure += "; or plan mode " + instead
			}
		}
		return fmt.Sprintf("the radio (%s) cannot be in %s mode beside %s, which is %s: at once it can have %s",
			phy.Name, mode, other.Name, other.Mode, combinations(phy)), cure
	}
	if channels == 1 && other.MHz != 0 && other.MHz != nl80211.Frequency(channel) {
		is := fmt.Sprintf("channel %d", nl80211.Channel(other.MHz))
		if nl80211.Channel(other.MHz) == 0 {
			is = fmt.Sprintf("%d MHz", other.MHz)
		}
		return fmt.Sprintf("%s is in its own network on %s, the plan wants channel %d, and the radio (%s) can be on "+
				"one channel only", other.Name, is, channel, phy.Name),
			fmt.Sprintf("set that network's access point to channel %d, plan %s, or leave the network: nmcli device "+
				"disconnect %s; or %s", channel, is, other.Name, alone)
	}
	return "", ""
}

// combinations words what a radio can have at once.
func combinations(phy nl80211.Phy) string {
	var out []string
	for _, c := range phy.Combinations {
		out = append(out, c.String())
	}
	if len(out) == 0 {
		return "one interface only"
	}
	return strings.Join(out, "; ")
}
