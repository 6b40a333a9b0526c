package host

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"

	"fieldmesh.dev/fieldmesh/node-agent/nl80211"
)

// prepareRadio refuses what this radio, this place or its present use forbids,
// each with its cure, and reads what the change alters.
func (k *kernel) prepareRadio(id uint64, r Radio) (u undo, err error) {
	link, err := findLink(r.Interface)
	if err != nil {
		return undo{}, err
	}
	d, err := openRadio(r.Interface)
	switch {
	case errors.Is(err, nl80211.ErrNone) || errors.Is(err, errNoRadio):
		return undo{}, &Refused{Reason: r.Interface + " is no radio: " + err.Error(),
			Cure: "correct `interface` in agent.yaml, load the radio's driver, or say `radio: {mode: none}` in the campaign"}
	case err != nil:
		return undo{}, err
	}
	defer func() { err = errors.Join(err, d.conn.Close()) }()
	for _, check := range []func(Radio) (reason, cure string){d.checkMode, d.checkChannel, d.checkKill, d.checkUse, d.checkOthers} {
		if reason, cure := check(r); reason != "" {
			return undo{}, &Refused{Reason: reason, Cure: cure}
		}
	}
	state, err := readInterface(link)
	if err != nil {
		return undo{}, err
	}
	up := link.Attrs().Flags&net.FlagUp != 0
	state.Up = &up
	former, err := d.former()
	if err != nil {
		return undo{}, err
	}
	former.Rates, former.Joins = r.network().MHz, r.SSID
	program, err := k.prepareAccessPoint(id, r, link.Attrs().Index)
	if err != nil {
		return undo{}, err
	}
	return undo{Radio: &former, Interface: &state, AccessPoint: program}, nil
}

func (d *radioDevice) checkMode(r Radio) (reason, cure string) {
	if d.phy.Offers(r.Mode) {
		return "", ""
	}
	return fmt.Sprintf("%s (%s) offers %s, not %s", r.Interface, d.phy.Name, strings.Join(d.phy.Modes, ", "), r.Mode),
		"use a radio whose driver has this mode (many ath9k, ath9k_htc and mt76 dongles have both), or plan another of adhoc, mesh and infrastructure"
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
		return fmt.Sprintf("on channel %d (%d MHz) a network may not be begun in the regulatory domain %s (no initiating radiation)", r.Channel, f.MHz, country),
			"tell the radio in which country it is (iw reg set XX), or " + usable
	case f.Radar:
		return fmt.Sprintf("channel %d (%d MHz) is shared with radars and needs their detection, which an %s network cannot do here", r.Channel, f.MHz, r.Mode), usable
	}
	if missing := len(r.allowed()) - len(f.Common(r.allowed())); missing > 0 {
		return fmt.Sprintf("%s has the rates %v Mbit/s on channel %d, and %v are wanted", r.Interface, f.RatesMbps, r.Channel, r.allowed()), "plan another standard or rate"
	}
	return "", ""
}

// checkKill looks at the switches that silence a radio (Documentation/driver-api/rfkill.rst).
func (d *radioDevice) checkKill(r Radio) (reason, cure string) {
	switches, _ := filepath.Glob(filepath.Join("/sys/class/ieee80211", d.phy.Name, "rfkill*")) // only a bad pattern is an error
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
	cure = "disconnect it first (`nmcli device set " + r.Interface + " managed no`, or stop wpa_supplicant on it), or name another interface in agent.yaml"
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
