package host

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"

	"fieldmesh.dev/fieldmesh/node-agent/nl80211"
)

func (d *radioDevice) checkMode(r Radio) (reason, cure string) {
	if d.phy.Offers(r.Mode) {
		return "", ""
	}
	return fmt.Sprintf("%s (%s) offers %s, not %s", r.Interface, d.phy.Name, strings.Join(d.phy.Modes, ", "), r.Mode),
		"use a radio whose driver has this mode (many ath9k, ath9k_htc and mt76 dongles have both), or plan another " +
			"of adhoc, mesh and infrastructure"
}

func (d *radioDevice) checkChannel(r Radio) (reason, cure string) {
	country, err := d.conn.Country()
	if err != nil {
		country = "unknown"
	}
	f := d.phy.At(nl80211.Frequency(r.Channel))
	usable := fmt.Sprintf("plan one of the channels that it may use: %v", d.phy.Usable())
	switch {
	case f == nil:
		return fmt.Sprintf("%s has no channel %d", r.Interface, r.Channel), usable
	case f.Disabled:
		return fmt.Sprintf("channel %d (%d MHz) is forbidden in the regulatory domain %s", r.Channel, f.MHz, country),
			"tell the radio in which country it is (iw reg set XX), or " + usable
	case r.Mode == modeStation: // it begins nothing, and hears from its access point when it may speak
	case f.NoIR:
		return fmt.Sprintf("on channel %d (%d MHz) a network may not be begun in the regulatory domain %s (no "+
				"initiating radiation)", r.Channel, f.MHz, country),
			"tell the radio in which country it is (iw reg set XX), or " + usable
	case f.Radar:
		return fmt.Sprintf("channel %d (%d MHz) is shared with radars and needs their detection, which an %s network "+
			"cannot do here", r.Channel, f.MHz, r.Mode), usable
	}
	if missing := len(r.allowed()) - len(f.Common(r.allowed())); missing > 0 {
		return fmt.Sprintf("%s has the rates %v Mbit/s on channel %d, and %v are wanted", r.Interface, f.RatesMbps,
			r.Channel, r.allowed()), "plan another standard or rate"
	}
	return "", ""
}

// checkKill looks at the switches that silence a radio (Documentation/driver-api/rfkill.rst).
func (d *radioDevice) checkKill(r Radio) (reason, cure string) {
	// only a bad pattern is an error
	switches, _ := filepath.Glob(filepath.Join("/sys/class/ieee80211", d.phy.Name, "rfkill*"))
	for _, s := range switches {
		for kind, cure := range map[string]string{
			"hard": "switch it on at the machine", "soft": "run `rfkill unblock wlan`, or switch aeroplane mode off",
		} {
			state, err := os.ReadFile(filepath.Join(s, kind))
			if err == nil && strings.TrimSpace(string(state)) == "1" {
				return fmt.Sprintf("%s is switched off (rfkill, %s)", r.Interface, kind), cure
			}
		}
	}
	return "", ""
}

// checkOthers looks at what else the radio is at the same time.
func (d *radioDevice) checkOthers(r Radio) (reason, cure string) {
	return d.checkShared(r.Interface, r.Mode, r.Channel, "")
}

// checkUse refuses an interface that somebody else uses in a way that could
// not be put back: what is known of an association is not enough to make it again.
func (d *radioDevice) checkUse(r Radio) (reason, cure string) {
	cure = "disconnect it first (`nmcli device set " + r.Interface + " managed no`, or stop wpa_supplicant on it), " +
		"or name another interface in agent.yaml"
	switch d.iface.Mode {
	case "adhoc", "mesh", "monitor":
		return "", ""
	case "managed":
		if cell, err := d.conn.Cell(d.iface.Index); err == nil && cell != nil {
			return fmt.Sprintf("%s is in use: it is connected to %q", r.Interface, cell.SSID), cure
		}
		return "", ""
	}
	return fmt.Sprintf("%s is in use as %s", r.Interface, d.iface.Mode), cure
}

// checkShared refuses a network that the interface cannot be in while the
// radio's other interfaces, those that are up and the named one, are what they are.
func (d *radioDevice) checkShared(name, mode string, channel int, beside string) (reason, cure string) {
	all, err := d.conn.Interfaces()
	if err != nil {
		return "", "" // the join says what is wrong
	}
	for _, other := range all {
		up := func() bool {
			i, err := net.InterfaceByName(other.Name)
			return err == nil && i.Flags&net.FlagUp != 0
		}
		// Monitors, and the parts of an access point, are software: they need no place.
		if other.Phy != d.phy.Index || other.Name == name || other.Mode == "monitor" || other.Mode == "ap-vlan" ||
			other.Name != beside && !up() {
			continue
		}
		if reason, cure = sharedBy(d.phy, mode, channel, other); reason != "" {
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
