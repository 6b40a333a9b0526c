package manager

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"fieldmesh.dev/fieldmesh/node-agent/host/reach"
)

// What Androids say is written by hand after WifiShellCommand, WifiInfo and
// SoftApManager of packages/modules/Wifi; of Android 11, frameworks/opt/net/wifi.
func TestWhatIsJoinedIsReadFromStatus(t *testing.T) {
	const tricky = `x, BSSID: 02:00:00:00:00:99, Frequency: 5180MHz,`
	rest := ", BSSID: 0a:11:22:33:44:55, MAC: 02:00:00:00:00:02, IP: /192.168.43.57, Security type: 2, Frequency: " +
		"2437MHz, Net ID: 1, Provider friendly name: <none>\n"
	for name, c := range map[string]struct {
		text string
		want []WiFiNetwork
	}{
		"none": {"Wifi is enabled\nWifi scanning is always available\n==== ClientModeManager instance: x{id=1 " +
			"iface=wlan0 role=R} ====\nWifi is not connected\n", nil},
		"Android 11": {"Wifi is enabled\nWifi is connected to \"a b\"\nWifiInfo: SSID: a b" + rest,
			[]WiFiNetwork{{"", "a b", "0a:11:22:33:44:55", 2437}}},
		"two stations": {"==== ClientModeManager instance: x{id=1 iface=wlan0 role=R} ====\nWifi is not connected\n" +
			"==== ClientModeManager instance: x{id=2 iface=wlan1 role=R} ====\nWifi is connected to \"m\"\n" +
			"WifiInfo: SSID: \"m\"" + rest, []WiFiNetwork{{"wlan1", "m", "0a:11:22:33:44:55", 2437}}},
		"a name that looks like more": {"Wifi is connected to \"" + tricky + "\"\nWifiInfo: SSID: \"" + tricky + "\"" +
			rest, []WiFiNetwork{{"", tricky, "0a:11:22:33:44:55", 2437}}},
		"no BSSID told": {"Wifi is connected to \"m\"\nWifiInfo: SSID: \"m\", BSSID: <none>, MAC: 02:00:00:00:00:02, " +
			"Frequency: 2437MHz, Net ID: 1\n", []WiFiNetwork{{"", "m", "", 2437}}},
		"a name that is not UTF-8": {"Wifi is connected to 00ff\nWifiInfo: SSID: 00ff" + rest,
			[]WiFiNetwork{{"", "00ff", "0a:11:22:33:44:55", 2437}}},
	} {
		if got := joined(c.text); !slices.Equal(got, c.want) {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
	}
}

func TestTheHotspotIsReadFromTheDump(t *testing.T) {
	info := "mCurrentSoftApInfoMap {ap0=SoftApInfo{bandwidth= 2, frequency= 2437,bssid=0a:11:22:33:44:55, " +
		"wifiStandard= 6, mApInstanceIdentifier= ap0, mIdleShutdownTimeoutMillis= 600000}}\n"
	section := func(state, ssid string) string {
		return "Dump of SoftApManager id=7\ncurrent StateMachine mode: " + state + "\nmRole: ROLE_SOFTAP_TETHERED\n" +
			"mApInterfaceName: ap0\n" + ssid
	}
	ended := "Dump of ActiveModeWarden.Graveyard\nStopped SoftApManagers: 1 total\n" +
		section("IdleState", "mCurrentSoftApConfiguration.SSID: former\n") + info
	is := &WiFiNetwork{"ap0", "m", "0a:11:22:33:44:55", 2437}
	for name, c := range map[string]struct {
		text string
		want *WiFiNetwork
	}{
		"none, and never was": {"Dump of ActiveModeWarden\n", nil},
		"one that has ended":  {"Dump of ActiveModeWarden\n" + ended, nil},
		"Android 12": {section("StartedState", "mCurrentSoftApConfiguration.SSID: m\n") + info + ended,
			is},
		"Android 13 and later": {section("StartedState", "mCurrentSoftApConfiguration: ssid = \"m\" \n Passphrase = "+
			"<non-empty> \n") + info + ended, is},
		"about to begin": {section("IdleState", "mCurrentSoftApConfiguration: ssid = \"m\" \n") +
			"mCurrentSoftApInfoMap {}\n" + ended, &WiFiNetwork{"ap0", "m", "", 0}},
	} {
		got := hotspot(c.text)
		if (got == nil) != (c.want == nil) || got != nil && *got != *c.want {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
	}
}

// phoneProgram puts a shell script in the place of one of Android's programs.
func phoneProgram(t *testing.T, m Managers, name, script string) {
	t.Helper()
	err := os.MkdirAll(m.android, 0o755)
	if err == nil {
		err = os.WriteFile(filepath.Join(m.android, name), []byte("#!/bin/sh\n"+script), 0o755)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func TestSavedNetworksAreFoundByTheirWholeName(t *testing.T) {
	m := nobody(t)
	phoneProgram(t, m, "cmd", fmt.Sprintf("echo '%s\n%-12d %-32s %-4s\n%-12d %-32s %-4s\n%-12d %-32s %-4s'\n",
		"Network Id      SSID                         Security type", 0, "field mesh", "wpa2-psk/wpa3-sae^", 11, "mesh",
		"open", 12, "mesh", "wpa2-psk"))
	for ssid, want := range map[string][]string{"mesh": {"11", "12"}, "field mesh": {"0"}, "field": nil, "SSID": nil} {
		if got, err := m.Saved(ssid); err != nil || !slices.Equal(got, want) {
			t.Errorf("%q: %v %v, want %v", ssid, got, err, want)
		}
	}
}

// Wi-Fi that is off is on by the time at which the station is told to join.
func TestAStationIsSwitchedOnToJoin(t *testing.T) {
	m := nobody(t)
	path := fakeAndroid(t, m, "disabled")
	_, joinErr := m.Join("wlan0", "m", "0123456789abcdef")
	if is, err := os.ReadFile(path); err != nil || string(is) != "enabled\n" ||
		!strings.Contains(fmt.Sprint(joinErr), "wifi connect-network") {
		t.Errorf("Wi-Fi is %q, %v; joined: %v", is, err, joinErr)
	}
}

// A passphrase is in no error, though the command has it among its words and may say it.
func TestNoErrorTellsThePassphrase(t *testing.T) {
	const secret = "0123456789abcdef"
	m := nobody(t)
	phoneProgram(t, m, "cmd", `[ "$2" != status ] || { echo "Wifi is enabled"; exit; }; echo "it is $5"; exit 255`)
	_, hotspotErr := m.StartHotspot("m", secret, 2437)
	_, joinErr := m.Join("wlan0", "m", secret)
	for _, err := range []error{hotspotErr, joinErr} {
		if err == nil || strings.Contains(err.Error(), secret) || !strings.Contains(err.Error(), "cmd wifi") ||
			reach.Is(err) {
			t.Errorf("the error is %v", err)
		}
	}
}

func TestTheLevelOfAndroidsAPI(t *testing.T) {
	m := nobody(t)
	if api, err := m.AndroidAPI(); api != 0 || err != nil {
		t.Errorf("without Android: %d, %v", api, err)
	}
	phoneProgram(t, m, "cmd", "exit 9")
	phoneProgram(t, m, "getprop", `[ "$1" = ro.build.version.sdk ] && echo 34`)
	if api, err := m.AndroidAPI(); api != 34 || err != nil {
		t.Errorf("Android 14: %d, %v", api, err)
	}
	phoneProgram(t, m, "getprop", "echo")
	if api, err := m.AndroidAPI(); api != 0 || err == nil {
		t.Errorf("an Android that does not tell: %d, %v", api, err)
	}
	if _, err := m.WiFi(true); !errors.Is(err, ErrByHand) {
		t.Errorf("its Wi-Fi: %v, want ErrByHand", err)
	}
}
