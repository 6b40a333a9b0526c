package manager

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"fieldmesh.dev/fieldmesh/node-agent/host/reach"
)

// WiFi is what Android says of its Wi-Fi. Words and places are those of
// WifiShellCommand, SoftApManager and WifiInfo in packages/modules/Wifi, from
// Android 12 on the same; Android 11 has no hotspot that a program may start.
type WiFi struct {
	On      bool
	Joined  []WiFiNetwork // as a station
	Hotspot *WiFiNetwork  // that it keeps, or is about to; nil: none
}

// WiFiNetwork is one that Android is in.
type WiFiNetwork struct {
	Interface string // empty where Android does not tell
	SSID      string
	BSSID     string // empty where Android does not tell
	MHz       int    // 0 of a hotspot that is not up yet
}

// AndroidAPI returns the level of the Android that runs here; 0: none does.
func (m Managers) AndroidAPI() (int, error) {
	if _, err := os.Stat(filepath.Join(m.android, "cmd")); errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	out, err := m.runAndroid("getprop", "ro.build.version.sdk")
	if err != nil {
		return 0, err
	}
	api, err := strconv.Atoi(strings.TrimSpace(out))
	if err != nil || api <= 0 {
		return 0, fmt.Errorf("read Android's version: ro.build.version.sdk is %.40q", strings.TrimSpace(out))
	}
	return api, nil
}

// WiFi asks Android about its Wi-Fi, and about its hotspot where that is wanted, for
// it takes a phone longer.
func (m Managers) WiFi(ofHotspot bool) (WiFi, error) {
	on, status, err := m.wifiStatus()
	if err != nil {
		return WiFi{}, err
	}
	out := WiFi{On: on, Joined: joined(status)}
	if !ofHotspot {
		return out, nil
	}
	dump, err := m.runAndroid("dumpsys", "wifi")
	if err != nil {
		return WiFi{}, err
	}
	out.Hotspot = hotspot(dump)
	return out, nil
}

// InStation returns the network that an interface is in; nil: none.
func (w WiFi) InStation(iface string) *WiFiNetwork {
	i := slices.IndexFunc(w.Joined, func(n WiFiNetwork) bool { return n.Interface == iface || n.Interface == "" })
	if i < 0 {
		return nil
	}
	return &w.Joined[i]
}

var (
	station      = regexp.MustCompile(`^==== ClientModeManager instance: .* iface=(\S+) `)
	stationBSSID = regexp.MustCompile(`^, BSSID: ([0-9a-f]{2}(?::[0-9a-f]{2}){5}),`)
	stationMHz   = regexp.MustCompile(`, Frequency: (\d+)MHz,`)
	apInfo       = regexp.MustCompile(`SoftApInfo\{bandwidth= \d+, frequency= (\d+)(?:,bssid=([0-9a-f:]{17}))?,`)
)

// joined reads what `cmd wifi status` says of the networks that are joined.
func joined(status string) (out []WiFiNetwork) {
	iface, ssid := "", ""
	for line := range strings.Lines(status) {
		line = strings.TrimRight(line, "\r\n")
		if m := station.FindStringSubmatch(line); m != nil {
			iface = m[1]
		}
		if name, ok := strings.CutPrefix(line, "Wifi is connected to "); ok {
			ssid = name
		}
		info, ok := strings.CutPrefix(line, "WifiInfo: SSID: ")
		if !ok || ssid == "" {
			continue
		}
		n := WiFiNetwork{Interface: iface, SSID: unquoted(ssid)}
		// The name comes first, and may hold anything: what follows it is read. Android 11 does not quote it here.
		rest, ok := strings.CutPrefix(info, ssid)
		if !ok {
			rest = strings.TrimPrefix(info, n.SSID)
		}
		if m := stationBSSID.FindStringSubmatch(rest); m != nil {
			n.BSSID = m[1]
		}
		if m := stationMHz.FindStringSubmatch(rest); m != nil {
			n.MHz, _ = strconv.Atoi(m[1])
		}
		out, ssid = append(out, n), ""
	}
	return out
}

// unquoted takes the quotes off a network's name. WifiInfo and SoftApConfiguration
// write a name that is not UTF-8 as hexadecimal digits without quotes; it stays so.
func unquoted(ssid string) string {
	if len(ssid) >= 2 && ssid[0] == '"' && ssid[len(ssid)-1] == '"' {
		return ssid[1 : len(ssid)-1]
	}
	return ssid
}

// hotspot reads from `dumpsys wifi` which hotspot there is. Those that have ended
// are listed further down.
func hotspot(dump string) *WiFiNetwork {
	live, _, _ := strings.Cut(dump, "Dump of ActiveModeWarden.Graveyard")
	_, section, found := strings.Cut(live, "Dump of SoftApManager id=")
	if !found {
		return nil
	}
	var n WiFiNetwork
	started := false
	for line := range strings.Lines(section) {
		line = strings.TrimSpace(line)
		if strings.HasPrefix(line, "Dump of ") {
			break
		}
		if name, ok := strings.CutPrefix(line, "mApInterfaceName: "); ok {
			n.Interface = name
		}
		for _, label := range []string{"mCurrentSoftApConfiguration: ssid = ", "mCurrentSoftApConfiguration.SSID: "} {
			if name, ok := strings.CutPrefix(line, label); ok {
				n.SSID = unquoted(name)
			}
		}
		if line == "current StateMachine mode: StartedState" {
			started = true
		}
		if !started || !strings.HasPrefix(line, "mCurrentSoftApInfoMap ") {
			continue
		}
		if m := apInfo.FindStringSubmatch(line); m != nil {
			n.MHz, _ = strconv.Atoi(m[1])
			n.BSSID = m[2]
		}
	}
	return &n
}

// hotspotPatience is how long a hotspot may take to come up, and a station to scan,
// associate. With the time in which a join that failed is taken back (patience), it
// stays below that of a call to the host process.
const hotspotPatience = 12 * time.Second

// StartHotspot has Android begin a hotspot with WPA2 on a channel, and returns it as
// it is once it is up. Before Android 14 the command takes no channel, and says so
// of the option: then Android has chosen one of the band.
func (m Managers) StartHotspot(ssid, passphrase string, mhz int) (WiFiNetwork, error) {
	band := "2"
	if mhz > 2500 {
		band = "5"
	}
	out, err := m.runAndroid("cmd", "wifi", "start-softap", ssid, "wpa2", passphrase, "-b", band, "-f",
		strconv.Itoa(mhz))
	if err != nil {
		return WiFiNetwork{}, hide(err, passphrase)
	}
	var is WiFi
	err = awaitWithin(hotspotPatience, func() (_ bool, _ string, err error) {
		is, err = m.WiFi(true)
		return is.Hotspot != nil && is.Hotspot.MHz != 0, fmt.Sprintf("not up; start-softap said %.200q",
			strings.ReplaceAll(strings.TrimSpace(out), passphrase, "…")), err
	})
	if err != nil {
		return WiFiNetwork{}, fmt.Errorf("start hotspot %q: %w", ssid, err)
	}
	return *is.Hotspot, nil
}

// AwaitAndroid waits until Android answers about its Wi-Fi: after a boot that takes
// longer than the agent's start. It does not wait where there is no Android.
func (m Managers) AwaitAndroid() error {
	if _, err := os.Stat(filepath.Join(m.android, "cmd")); err != nil {
		return fmt.Errorf("find Android: %w", err)
	}
	for deadline := time.Now().Add(bootPatience); ; time.Sleep(time.Second) {
		if _, _, err := m.wifiStatus(); err == nil || time.Now().After(deadline) {
			return err
		}
	}
}

const bootPatience = 90 * time.Second

// StopHotspot has Android end the hotspot, and returns when it has.
func (m Managers) StopHotspot() error {
	if _, err := m.runAndroid("cmd", "wifi", "stop-softap"); err != nil {
		return err
	}
	return await(func() (bool, string, error) {
		is, err := m.WiFi(true)
		return is.Hotspot == nil, "there", err
	})
}

// Join has Android's station join a network with WPA2, which it saves, and returns
// it as it is once it is joined. Wi-Fi that is off is switched on.
func (m Managers) Join(iface, ssid, passphrase string) (WiFiNetwork, error) {
	if err := m.setAndroid(true); err != nil {
		return WiFiNetwork{}, err
	}
	out, err := m.runAndroid("cmd", "wifi", "connect-network", ssid, "wpa2", passphrase)
	if err != nil {
		return WiFiNetwork{}, hide(err, passphrase)
	}
	var n *WiFiNetwork
	var unknown error
	err = awaitWithin(hotspotPatience, func() (bool, string, error) {
		is, err := m.WiFi(false)
		n, unknown = is.InStation(iface), err
		return n != nil && n.SSID == ssid, fmt.Sprintf("not in it; connect-network said %.200q",
			strings.ReplaceAll(strings.TrimSpace(out), passphrase, "…")), err
	})
	if err != nil {
		err = fmt.Errorf("join %q: %w", ssid, err)
		if unknown == nil {
			err = reach.Error{Err: err}
		}
		return WiFiNetwork{}, err
	}
	return *n, nil
}

// hide takes a secret out of an error's text.
func hide(err error, secret string) error {
	return errors.New(strings.ReplaceAll(err.Error(), secret, "…"))
}

// Saved returns the numbers under which Android has saved networks of a name.
func (m Managers) Saved(ssid string) (ids []string, err error) {
	out, err := m.runAndroid("cmd", "wifi", "list-networks")
	if err != nil {
		return nil, err
	}
	for line := range strings.Lines(out) {
		id, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		if _, err := strconv.Atoi(id); err != nil {
			continue // the heading, or that there is none
		}
		// The name, of up to 32 characters, is followed by the kind of its security in one word; it may hold blanks.
		name := strings.TrimSpace(rest)
		if i := strings.LastIndex(name, " "); i >= 0 {
			name = strings.TrimSpace(name[:i])
		}
		if name == ssid {
			ids = append(ids, id)
		}
	}
	return ids, nil
}

// Forget has Android forget the saved networks of a name; it leaves one that it is in.
func (m Managers) Forget(ssid string) error {
	ids, err := m.Saved(ssid)
	if err != nil {
		return err
	}
	for _, id := range ids {
		if _, err := m.runAndroid("cmd", "wifi", "forget-network", id); err != nil {
			return err
		}
	}
	return await(func() (bool, string, error) {
		ids, err := m.Saved(ssid)
		return len(ids) == 0, "saved", err
	})
}

// AwaitRejoined waits until an interface is in a network, and reports whether it
// came to be: that network may be out of reach now.
func (m Managers) AwaitRejoined(iface, ssid string) (bool, error) {
	for deadline := time.Now().Add(patience); ; time.Sleep(200 * time.Millisecond) {
		is, err := m.WiFi(false)
		if n := is.InStation(iface); err != nil || n != nil && n.SSID == ssid {
			return err == nil, err
		}
		if time.Now().After(deadline) {
			return false, nil
		}
	}
}
