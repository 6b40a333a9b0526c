package change

import (
	"errors"
	"fmt"
	"net/netip"
	"regexp"
	"time"

	"github.com/vishvananda/netlink"

	"fieldmesh.dev/fieldmesh/node-agent/host/netstack"
	"fieldmesh.dev/fieldmesh/node-agent/manager"
	"fieldmesh.dev/fieldmesh/node-agent/nl80211"
	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// Hotspot has the Android of a rooted phone keep its own hotspot, or join another
// phone's. Android stays the master of its radio, as of the addresses that it
// gives in that network: those of the plan come beside them.
type Hotspot struct {
	Interface   string `json:"interface"`
	AccessPoint bool   `json:"access_point,omitempty"` // keep it; else: join it
	SSID        string `json:"ssid"`
	Channel     int    `json:"channel"`
	// Passphrase of WPA2. It is a secret, and in no text.
	Passphrase string `json:"passphrase"`
	// Network is the plan's: an address outside is one of Android's.
	Network netip.Prefix `json:"network"`
}

// Target is one: a phone's Wi-Fi does one thing or the other.
func (h Hotspot) Target() string { return "Android's Wi-Fi" }

func (h Hotspot) String() string {
	does := "joined by"
	if h.AccessPoint {
		does = "kept on"
	}
	return fmt.Sprintf("hotspot %q on channel %d, %s %s", h.SSID, h.Channel, does, h.Interface)
}

var hotspotPassphrase = regexp.MustCompile(`^[A-Za-z0-9]{16,63}$`)

func (h Hotspot) check(p Policy) (reason, cure string) {
	if reason, cure = p.CheckInterface(h.Interface); reason != "" {
		return reason, cure
	}
	switch {
	case !wire.HotspotSSID(h.SSID):
		return fmt.Sprintf("the name %q is not one of 2 to 32 letters, digits, dots, hyphens, underscores and blanks "+
			"between them", h.SSID), "correct `radio.ssid` in the campaign"
	case !hotspotPassphrase.MatchString(h.Passphrase):
		return "the passphrase is not one of 16 to 63 letters and digits", ""
	case nl80211.Frequency(h.Channel) == 0:
		return fmt.Sprintf("channel %d is none of 2.4 and 5 GHz", h.Channel), "correct `radio.channel` in the campaign"
	}
	return p.checkPeers(h.Network)
}

func (h Hotspot) prepare(k *Kernel, _ uint64) (*hotspotUndo, error) {
	api, err := k.managers.AndroidAPI()
	if err != nil {
		return nil, err
	}
	if reason, cure := hotspotNeeds(api, h.AccessPoint); reason != "" {
		return nil, &Refused{Reason: reason, Cure: cure}
	}
	is, err := k.managers.WiFi(true)
	if err != nil {
		return nil, err
	}
	u := &hotspotUndo{Interface: h.Interface, SSID: h.SSID, AccessPoint: h.AccessPoint, WasOn: is.On}
	if h.AccessPoint {
		if is.Hotspot != nil {
			return nil, &Refused{Reason: fmt.Sprintf("the phone keeps a hotspot, %q, already", is.Hotspot.SSID),
				Cure: "switch it off in the phone's settings"}
		}
		return u, nil
	}
	ids, err := k.managers.Saved(h.SSID)
	if err != nil {
		return nil, err
	}
	if len(ids) > 0 {
		return nil, &Refused{Reason: fmt.Sprintf("the phone has saved a network %q, which would be replaced", h.SSID),
			Cure: "forget it in the phone's settings, or take another `radio.ssid` in the campaign"}
	}
	if n := is.InStation(h.Interface); n != nil {
		u.Joined = n.SSID
	}
	return u, nil
}

// hotspotNeeds says why an Android cannot take part; no reason: it can.
func hotspotNeeds(api int, accessPoint bool) (reason, cure string) {
	switch {
	case api == 0:
		return "there is no Android here to keep or join a hotspot",
			"for laptops plan `radio: {mode: infrastructure}`, which the agent sets up itself"
	case api < wire.AndroidJoinsFromAPI:
		return fmt.Sprintf("this Android, of API level %d, lets no program join a network", api),
			"use Android 11 or newer, or join by hand and plan `radio: {mode: none}`"
	case accessPoint && api < wire.AndroidHotspotFromAPI:
		return fmt.Sprintf("this Android, of API level %d, lets no program start a hotspot", api),
			"use Android 12 or newer for the access point, or start it by hand and plan `radio: {mode: none}`"
	}
	return "", ""
}

func (h Hotspot) apply(k *Kernel, u *hotspotUndo) error {
	is, err := k.managers.WiFi(true)
	if err != nil {
		return err
	}
	n := is.InStation(h.Interface)
	if h.AccessPoint {
		n = is.Hotspot
		if n != nil && n.SSID != h.SSID {
			return &Refused{Change: h.String(), Reason: fmt.Sprintf("the phone keeps another hotspot, %q, now", n.SSID),
				Cure: "switch it off in the phone's settings"}
		}
	}
	if n == nil || n.SSID != h.SSID || n.MHz == 0 {
		got, err := h.begin(k)
		if err != nil {
			return err
		}
		n = &got
	}
	if err := h.compare(*n); err != nil {
		return err
	}
	return h.awaitAddress()
}

func (h Hotspot) begin(k *Kernel) (manager.WiFiNetwork, error) {
	if h.AccessPoint {
		return k.managers.StartHotspot(h.SSID, h.Passphrase, nl80211.Frequency(h.Channel))
	}
	return k.managers.Join(h.Interface, h.SSID, h.Passphrase)
}

// compare refuses a network that is not as it was asked for.
func (h Hotspot) compare(n manager.WiFiNetwork) error {
	refuse := func(reason, cure string) error { return &Refused{Change: h.String(), Reason: reason, Cure: cure} }
	switch {
	case h.AccessPoint && n.Interface != h.Interface:
		return refuse(fmt.Sprintf("Android keeps the hotspot on %s", n.Interface),
			fmt.Sprintf("write `interface: %s` in agent.yaml and start the agent again", n.Interface))
	case nl80211.Channel(n.MHz) != h.Channel:
		return refuse(fmt.Sprintf("Android has the hotspot on channel %d (%d MHz)", nl80211.Channel(n.MHz), n.MHz),
			"before Android 14 it chooses the channel itself: plan that one, or start the run again; later ones "+
				"refuse channels that the country or the radio does not have")
	}
	return nil
}

// addressPatience is how long Android may take to give itself an address in the
// network: on the hotspot of its own choice, on the station by DHCP.
const addressPatience = 8 * time.Second

// awaitAddress waits for Android's own address: without one it would leave the
// network again.
func (h Hotspot) awaitAddress() error {
	for deadline := time.Now().Add(addressPatience); ; time.Sleep(100 * time.Millisecond) {
		own, err := h.ownAddress()
		if own || err != nil {
			return err
		}
		if time.Now().After(deadline) {
			return &Refused{Change: h.String(),
				Reason: fmt.Sprintf("Android has given %s no address of its own in %s", h.Interface, addressPatience),
				Cure: "look at the phone (`ip address`): does the hotspot give addresses, and is this interface the " +
					"one that Android uses?"}
		}
	}
}

func (h Hotspot) ownAddress() (bool, error) {
	link, err := netstack.LookForLink(h.Interface)
	if err != nil || link == nil || !netstack.IsUp(link) {
		return false, err
	}
	addrs, err := netstack.Redump(func() ([]netlink.Addr, error) { return netlink.AddrList(link, netlink.FAMILY_V4) })
	for _, a := range addrs {
		if ip, ok := netip.AddrFromSlice(a.IP.To4()); ok && !h.Network.Contains(ip) {
			return err == nil, err
		}
	}
	return false, err
}

// hotspotUndo ends the hotspot or leaves it, and has Android's Wi-Fi as it was.
type hotspotUndo struct {
	placed
	Interface   string `json:"interface"`
	SSID        string `json:"ssid"`
	AccessPoint bool   `json:"access_point,omitempty"`
	WasOn       bool   `json:"was_on"`           // Wi-Fi
	Joined      string `json:"joined,omitempty"` // the network that the station was in; empty: none
}

// bound: Android's Wi-Fi is the phone's, and what is saved of it outlives a reboot.
func (*hotspotUndo) bound() bool       { return false }
func (*hotspotUndo) void(*Kernel) bool { return false }

func (u *hotspotUndo) revert(k *Kernel) (string, error) {
	if api, err := k.managers.AndroidAPI(); err != nil || api == 0 {
		return "there is no Android here", err
	}
	if err := k.managers.AwaitAndroid(); err != nil {
		return "", err
	}
	if u.AccessPoint {
		return "", u.end(k)
	}
	return u.leave(k)
}

// end ends the hotspot, also one that a command which was cut short may still begin;
// another's, which somebody has started since, stays. A hotspot switches no Wi-Fi on: what was off
// and is on, its owner has switched on.
func (u *hotspotUndo) end(k *Kernel) error {
	is, err := k.managers.WiFi(true)
	if err != nil {
		return err
	}
	if is.Hotspot == nil || is.Hotspot.SSID == u.SSID || is.Hotspot.SSID == "" {
		err = k.managers.StopHotspot()
	}
	if u.WasOn {
		err = errors.Join(err, k.managers.GiveBackWiFi(true))
	}
	return err
}

// leave forgets the network, which leaves it, and waits until Android is in the one
// that it was in: it joins what it has saved by itself, if that is in reach.
func (u *hotspotUndo) leave(k *Kernel) (string, error) {
	if err := errors.Join(k.managers.Forget(u.SSID), k.managers.GiveBackWiFi(u.WasOn)); err != nil || u.Joined == "" {
		return "", err
	}
	rejoined, err := k.managers.AwaitRejoined(u.Interface, u.Joined)
	if err != nil || rejoined {
		return "", err
	}
	return fmt.Sprintf("Android joins %q again when that is in reach", u.Joined), nil
}
