//go:build e2e

package android

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Where the phone keeps its Wi-Fi over a reboot, and where two phones hear each other.
const (
	wifiState   = "/data/wifi.json"
	wifiStall   = "/data/wifi.stall"   // a command that stalls, and whether before or after its effect
	wifiStalled = "/data/wifi.stalled" // it has been called
	airHotspot  = "/air/hotspot.json"
)

// androidWiFi is a phone's Wi-Fi service.
type androidWiFi struct {
	API     int
	Enabled bool
	Joined  string // network that wlan0 is in
	Saved   []savedNetwork
	Hotspot *softAP
	// HotspotOn is the interface of the hotspot; while there is none, it is called parked.
	HotspotOn string
	Ignored   []string // options that Android has ignored
}

type savedNetwork struct {
	ID               int
	SSID, Passphrase string
}

type softAP struct {
	SSID, Passphrase string
	MHz              int
}

const (
	parked     = "parked0"
	homeSSID   = `cafe "a, BSSID: 02:00:00:00:00:99, Frequency: 5180MHz,` // a name may hold anything
	bssidOfAP  = "0a:11:22:33:44:55"
	chosenMHz  = 2462 // by Androids whose command takes no channel
	neverAnAP  = 2484
	firstAPI   = 34 // Android 14
	exceptionf = "Exception occurred while executing '%s':\njava.lang.IllegalArgumentException: %s\n"
)

// androidCommand is /system/bin/cmd, dumpsys or getprop, of which there is what the
// agent may ask for (WifiShellCommand.java, SoftApManager.java and WifiInfo.java of
// packages/modules/Wifi).
func androidCommand(program string, args []string) (status int, err error) {
	if program == "getprop" && slices.Equal(args, []string{"persist.sys.timezone"}) { // as any user
		fmt.Println(timeZone)
		return 0, nil
	}
	lock, err := os.OpenFile(wifiState, os.O_RDWR, 0)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, lock.Close()) }()
	if err := unix.Flock(int(lock.Fd()), unix.LOCK_EX); err != nil {
		return 0, err
	}
	var w androidWiFi
	if err := json.NewDecoder(lock).Decode(&w); err != nil {
		return 0, err
	}
	if err := w.notice(); err != nil {
		return 0, err
	}
	switch {
	case program == "getprop" && len(args) == 1:
		fmt.Println(map[string]string{"wifi.active.interface": "wlan0",
			"ro.build.version.sdk": strconv.Itoa(w.API)}[args[0]])
	case program == "dumpsys" && slices.Equal(args, []string{"wifi"}):
		w.dump()
	case program == "cmd" && len(args) >= 2 && args[0] == "wifi":
		stall := func(when string) {
			if text, err := os.ReadFile(wifiStall); err == nil && string(text) == args[1]+" "+when {
				_ = os.WriteFile(wifiStalled, nil, 0o644)
				time.Sleep(time.Minute)
			}
		}
		stall("before")
		status, err = w.command(args[1], args[2:])
		err = errors.Join(err, w.save())
		stall("after")
	default:
		return 20, fmt.Errorf("cmd: Can't find service: %v", args)
	}
	return status, err
}

func (w *androidWiFi) save() error {
	text, err := json.Marshal(w)
	if err == nil {
		err = os.WriteFile(wifiState, text, 0o600)
	}
	return err
}

func ip(line string) error {
	cmd := exec.Command("/system/bin/ip", strings.Fields(line)...)
	cmd.Env = []string{"PATH=/system/bin"}
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("ip %s: %w: %s", line, err, out)
	}
	return nil
}

func ips(lines ...string) error {
	for _, line := range lines {
		if err := ip(line); err != nil {
			return err
		}
	}
	return nil
}

// onAir is the hotspot of the other phone; nil: there is none.
func onAir() (*softAP, error) {
	text, err := os.ReadFile(airHotspot)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var out softAP
	return &out, errors.Join(err, json.Unmarshal(text, &out))
}

// reach returns a saved network that is in reach.
func (w *androidWiFi) reach(n savedNetwork) (bool, error) {
	if n.SSID == homeSSID {
		return true, nil
	}
	ap, err := onAir()
	return ap != nil && ap.SSID == n.SSID && ap.Passphrase == n.Passphrase, err
}

// notice does what Android does by itself: leave what is out of reach, and join what
// it has saved.
func (w *androidWiFi) notice() error {
	find := func(ssid string) int {
		return slices.IndexFunc(w.Saved, func(n savedNetwork) bool { return n.SSID == ssid })
	}
	if w.Joined != "" {
		i := find(w.Joined)
		there := false
		if i >= 0 && w.Enabled {
			var err error
			if there, err = w.reach(w.Saved[i]); err != nil {
				return err
			}
		}
		if !there {
			if err := w.join(""); err != nil {
				return err
			}
		}
	}
	if w.Joined == "" && w.Enabled {
		for _, n := range w.Saved {
			there, err := w.reach(n)
			if err != nil {
				return err
			}
			if there {
				return errors.Join(w.join(n.SSID), w.save())
			}
		}
	}
	return w.save()
}

// join has the station in a network, with an address of its DHCP server; "" in none.
// Addresses are taken off whoever has added them (interfaceClearAddrs of netd).
func (w *androidWiFi) join(ssid string) error {
	if err := ips("-4 address flush dev wlan0", "route flush table 1001"); err != nil &&
		!strings.Contains(err.Error(), "does not exist") {
		return err
	}
	w.Joined = ssid
	if ssid == "" {
		return nil
	}
	address := "192.168.43.57/24"
	if ssid == homeSSID {
		address = "192.168.1.20/24"
	}
	return ips("link set wlan0 up", "address add "+address+" dev wlan0",
		"route add "+address[:strings.LastIndex(address, ".")]+".0/24 dev wlan0 table 1001")
}

// command does one command of `cmd wifi`, and returns its exit status.
func (w *androidWiFi) command(name string, args []string) (int, error) {
	known := map[string]int{"status": 30, "set-wifi-enabled": 30, "connect-network": 30, "list-networks": 30,
		"forget-network": 30, "start-softap": 31, "stop-softap": 31}
	if since, is := known[name]; !is || w.API < since {
		fmt.Printf("Unknown command: %s\n", name)
		return 255, nil
	}
	switch name {
	case "status":
		w.status()
	case "set-wifi-enabled":
		if len(args) < 1 || args[0] != "enabled" && args[0] != "disabled" {
			fmt.Printf(exceptionf, name, "'enabled' must be 'enabled' or 'disabled'")
			return 255, nil
		}
		w.Enabled = args[0] == "enabled"
		return 0, w.notice()
	case "list-networks":
		if len(w.Saved) == 0 {
			fmt.Println("No networks")
			return 0, nil
		}
		fmt.Println("Network Id      SSID                         Security type")
		for _, n := range w.Saved {
			fmt.Printf("%-12d %-32s %-4s\n", n.ID, n.SSID, "wpa2-psk")
		}
	case "forget-network":
		if len(args) < 1 {
			fmt.Printf(exceptionf, name, "Argument expected after \"forget-network\"")
			return 255, nil
		}
		w.Saved = slices.DeleteFunc(w.Saved, func(n savedNetwork) bool { return strconv.Itoa(n.ID) == args[0] })
		fmt.Println("Forget successful")
		return 0, w.notice()
	case "connect-network":
		return w.connect(args)
	case "start-softap":
		return w.start(args)
	case "stop-softap":
		fmt.Println("Soft AP stopped successfully")
		return 0, w.stop()
	}
	return 0, nil
}

// network reads what begins start-softap and connect-network, and their options, of
// which unknown ones are ignored, as are the words that follow them.
func (w *androidWiFi) network(name string, args []string, options map[string]*regexp.Regexp) (n savedNetwork,
	chosen map[string]string, ok bool) {
	bad := func(text string) (savedNetwork, map[string]string, bool) {
		fmt.Printf(exceptionf, name, text)
		return savedNetwork{}, nil, false
	}
	if len(args) < 3 || args[1] != "wpa2" {
		return bad("Unknown network type, or a word is missing")
	}
	n = savedNetwork{SSID: args[0], Passphrase: args[2]}
	if l := len(n.Passphrase); name == "start-softap" && (l < 8 || l > 63) {
		return bad("passphrase")
	}
	chosen = map[string]string{}
	for rest := args[3:]; len(rest) > 0 && strings.HasPrefix(rest[0], "-"); {
		value, known := options[rest[0]]
		switch {
		case !known:
			fmt.Println("Ignoring unknown option " + rest[0])
			w.Ignored = append(w.Ignored, rest[0])
			rest = rest[1:]
		case len(rest) < 2 || !value.MatchString(rest[1]):
			return bad("Invalid option " + rest[0])
		default:
			chosen[rest[0]], rest = rest[1], rest[2:]
		}
	}
	return n, chosen, true
}

func (w *androidWiFi) connect(args []string) (int, error) {
	n, _, ok := w.network("connect-network", args, nil)
	if !ok {
		return 255, nil
	}
	if !w.Enabled {
		fmt.Println("Connection failed")
		return 0, nil
	}
	n.ID = len(w.Saved)
	for _, s := range w.Saved {
		n.ID = max(n.ID, s.ID+1)
	}
	w.Saved = append(w.Saved, n)
	fmt.Println("Connection initiated ")
	if there, err := w.reach(n); err != nil || !there {
		return 0, errors.Join(err, w.join(""), w.notice())
	}
	return 0, w.join(n.SSID)
}

func (w *androidWiFi) start(args []string) (int, error) {
	options := map[string]*regexp.Regexp{"-b": regexp.MustCompile(`^(2|5|6|any)$`)}
	if w.API >= 34 {
		options["-f"] = regexp.MustCompile(`^\d+$`)
	}
	n, chosen, ok := w.network("start-softap", args, options)
	if !ok {
		return 255, nil
	}
	mhz := chosenMHz
	if text, is := chosen["-f"]; is {
		mhz, _ = strconv.Atoi(text)
	}
	if w.Hotspot != nil || mhz == neverAnAP {
		fmt.Println("Soft AP failed to start. Please check config parameters")
		return 0, nil
	}
	ap := softAP{SSID: n.SSID, Passphrase: n.Passphrase, MHz: mhz}
	w.Hotspot = &ap
	text, err := json.Marshal(ap)
	if err == nil {
		err = os.WriteFile(airHotspot, text, 0o600)
	}
	fmt.Println("onStateChanged with state: 13 failure reason: 0\n SAP is enabled successfully")
	return 0, errors.Join(err, ips("link set "+parked+" name "+w.HotspotOn, "link set "+w.HotspotOn+" up",
		"address add 192.168.43.1/24 dev "+w.HotspotOn, "route add 192.168.43.0/24 dev "+w.HotspotOn+" table 97"))
}

func (w *androidWiFi) stop() error {
	if w.Hotspot == nil {
		return nil
	}
	w.Hotspot = nil
	return errors.Join(os.Remove(airHotspot), ips("route del 192.168.43.0/24 dev "+w.HotspotOn+" table 97",
		"-4 address flush dev "+w.HotspotOn, "link set "+w.HotspotOn+" down",
		"link set "+w.HotspotOn+" name "+parked))
}

func (w *androidWiFi) status() {
	fmt.Println("Wifi is " + map[bool]string{true: "enabled", false: "disabled"}[w.Enabled])
	fmt.Println("Wifi scanning is only available when wifi is enabled")
	if !w.Enabled {
		return
	}
	if w.API > 30 {
		fmt.Println("==== ClientModeManager instance: ConcreteClientModeManager{id=1 iface=wlan0 " +
			"role=ROLE_CLIENT_PRIMARY} ====")
	}
	if w.Joined == "" {
		fmt.Println("Wifi is not connected")
		return
	}
	bssid, mhz := "02:00:00:00:00:01", 5240
	if ap, err := onAir(); err == nil && ap != nil && ap.SSID == w.Joined {
		bssid, mhz = bssidOfAP, ap.MHz
	}
	fmt.Printf("Wifi is connected to \"%s\"\n", w.Joined)
	quote := `"`
	if w.API == 30 {
		quote = ""
	}
	fmt.Printf("WifiInfo: SSID: %[1]s%[2]s%[1]s, BSSID: %[3]s, MAC: 02:00:00:00:00:02, IP: /192.168.43.57, Security "+
		"type: 2, Supplicant state: COMPLETED, Wi-Fi standard: 6, RSSI: -40, Link speed: 286Mbps, Frequency: "+
		"%[4]dMHz, Net ID: 1, Metered hint: true, score: 60\n", quote, w.Joined, bssid, mhz)
	fmt.Println("NetworkCapabilities: [ Transports: WIFI ]")
}

// dump is of `dumpsys wifi` what there is about hotspots, the ended one too.
func (w *androidWiFi) dump() {
	fmt.Println("Wi-Fi api call history:\nDump of ActiveModeWarden")
	section := func(ap softAP, state, infos string) {
		fmt.Printf("Dump of SoftApManager id=7\ncurrent StateMachine mode: %s\nmRole: ROLE_SOFTAP_TETHERED\n"+
			"mApInterfaceName: %s\nmIfaceIsUp: true\n", state, w.HotspotOn)
		if w.API >= 33 {
			fmt.Printf("mCurrentSoftApConfiguration: ssid = \"%s\" \n Passphrase = <non-empty> \n HiddenSsid = false\n",
				ap.SSID)
		} else {
			fmt.Println("mCurrentSoftApConfiguration.SSID: " + ap.SSID)
		}
		fmt.Println("mCurrentSoftApInfoMap {" + infos + "}\nmStartTimestamp: 1")
	}
	if ap := w.Hotspot; ap != nil {
		section(*ap, "StartedState", fmt.Sprintf("%s=SoftApInfo{bandwidth= 2, frequency= %d,bssid=%s, "+
			"wifiStandard= 6, mApInstanceIdentifier= %[1]s, mIdleShutdownTimeoutMillis= 600000}", w.HotspotOn, ap.MHz,
			bssidOfAP))
	}
	fmt.Println("Dump of ActiveModeWarden.Graveyard\nStopped SoftApManagers: 1 total")
	section(softAP{SSID: "former"}, "IdleState", "")
}
