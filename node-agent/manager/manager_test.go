package manager

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/godbus/dbus/v5"
)

var wlan = &net.Interface{Name: "wlan0", HardwareAddr: net.HardwareAddr{2, 0, 0, 0, 0, 7}}

// nobody are the managers of a machine that has none.
func nobody(t *testing.T) Managers {
	dir := t.TempDir()
	return Managers{bus: filepath.Join(dir, "bus"), controls: []string{dir}, android: filepath.Join(dir, "android"),
		sleep: func(time.Duration) {}}
}

func TestNobodyHoldsTheInterface(t *testing.T) {
	m := nobody(t)
	if held, err := m.Find(wlan); err != nil || len(held) != 0 {
		t.Errorf("found %v, %v", held, err)
	}
	// Whoever had it has gone since.
	for _, name := range []string{Supplicant, NetworkManager} {
		if err := m.LetGo(Held{Manager: name, Interface: "wlan0"}); err != nil {
			t.Errorf("%s lets go: %v", name, err)
		}
	}
	if err := m.TakeBack(Held{Manager: Supplicant, Interface: "wlan0"}); err != nil {
		t.Error(err)
	}
	if held, err := m.FindNew("lo"); err != nil || len(held) != 0 {
		t.Errorf("of one that has just come: found %v, %v", held, err)
	}
	// It remembers on disk that it shall leave the interface alone, so it must be told.
	if err := m.TakeBack(Held{Manager: NetworkManager, Interface: "wlan0"}); !errors.Is(err, errAbsent) {
		t.Errorf("given back to nobody: %v", err)
	}
	if m.LetGo(Held{Manager: "somebody"}) == nil || m.TakeBack(Held{Manager: "somebody"}) == nil {
		t.Error("a manager that is not known obeys")
	}
}

// supplicant is a wpa_supplicant as its control socket shows it.
type supplicant struct {
	mu    sync.Mutex
	state string
	heard []string
	busy  int // how often it refuses to connect again
}

func (s *supplicant) answer(command string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if command != "STATUS" {
		s.heard = append(s.heard, command)
	}
	switch command {
	case "STATUS":
		return "bssid=02:00:00:00:00:01\nwpa_state=" + s.state + "\naddress=02:00:00:00:00:07\n"
	case "DISCONNECT":
		s.state = "DISCONNECTED"
	case "RECONNECT":
		if s.busy--; s.busy >= 0 {
			return "FAIL\n"
		}
		s.state = "SCANNING"
	}
	return "OK\n"
}

func (s *supplicant) serve(t *testing.T, path string) {
	t.Helper()
	conn, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	t.Cleanup(func() { _ = conn.Close(); <-done })
	go func() {
		defer close(done)
		buffer := make([]byte, 256)
		for {
			n, from, err := conn.ReadFromUnix(buffer)
			if err != nil {
				return
			}
			_, _ = conn.WriteToUnix([]byte("<3>CTRL-EVENT-SCAN-RESULTS "), from) // an event first
			_, _ = conn.WriteToUnix([]byte(s.answer(string(buffer[:n]))), from)
		}
	}()
}

func TestSupplicantIsToldToDisconnectAndToReconnect(t *testing.T) {
	m := nobody(t)
	s := &supplicant{state: "COMPLETED", busy: 2}
	s.serve(t, filepath.Join(m.controls[0], "wlan0"))
	held, err := m.Find(wlan)
	if err != nil || len(held) != 1 || held[0] != (Held{Manager: Supplicant, Interface: "wlan0"}) ||
		Names(held) != Supplicant {
		t.Fatalf("found %v, %v", held, err)
	}
	if other, err := m.Find(&net.Interface{Name: "wlan0", HardwareAddr: net.HardwareAddr{2, 0, 0, 0, 0, 8}}); err !=
		nil || len(other) != 0 {
		t.Errorf("an interface of that name in another namespace is held by %v, %v", other, err)
	}
	for range 2 { // again changes nothing more
		if err := m.LetGo(held[0]); err != nil || s.state != "DISCONNECTED" {
			t.Errorf("let go: %v, it is %s", err, s.state)
		}
	}
	if err := m.TakeBack(held[0]); err != nil || s.state != "SCANNING" {
		t.Errorf("taken back: %v, it is %s", err, s.state)
	}
	if want := []string{"DISCONNECT", "DISCONNECT", "RECONNECT", "RECONNECT", "RECONNECT"}; !slices.Equal(s.heard,
		want) {
		t.Errorf("it heard %q, want %q", s.heard, want)
	}
}

// What a manager gives the interface itself is not put back beside it: it may be in another network then.
func TestWhoGivesAnInterfaceItsAddresses(t *testing.T) {
	for held, want := range map[Held]bool{
		{Manager: Android, Lasting: true}: true, {Manager: Android, Lasting: true, Scans: true, Off: true}: true,
		{Manager: NetworkManager, Connection: "9a1c"}: true, {Manager: NetworkManager}: false,
		{Manager: Supplicant}: false,
	} {
		if got := held.Addresses(); got != want {
			t.Errorf("%+v: %v", held, got)
		}
	}
}

// fakeAndroid is a program in the place of Android's, which keeps its state in
// files, as a device keeps it over a reboot. It scans with Wi-Fi off where the second has
// "enabled".
func fakeAndroid(t *testing.T, m Managers, state string) (path string) {
	t.Helper()
	if err := os.Mkdir(m.android, 0o755); err != nil {
		t.Fatal(err)
	}
	path = filepath.Join(m.android, "state")
	script := "#!/bin/sh\n[ \"$1\" = wifi ] || exit 9\ncase $2 in\nstatus) read s <" + path + "; echo \"Wifi is " +
		"$s\"; read s <" + path + ".scans; [ $s = enabled ] && echo \"Wifi scanning is always available\" || " +
		"echo \"Wifi scanning is only available when wifi is enabled\" ;;\n" +
		"set-wifi-enabled) echo $3 >" + path + " ;;\nset-scan-always-available) echo $3 >" + path + ".scans ;;\n" +
		"*) exit 9 ;;\nesac\n"
	if err := errors.Join(os.WriteFile(path, []byte(state+"\n"), 0o600),
		os.WriteFile(path+".scans", []byte("disabled\n"), 0o600),
		os.WriteFile(filepath.Join(m.android, "cmd"), []byte(script), 0o755)); err != nil {
		t.Fatal(err)
	}
	setProperty(t, m, "", "")
	return path
}

// setProperty lets Android tell the value of one property, and no other.
func setProperty(t *testing.T, m Managers, name, value string) {
	t.Helper()
	script := fmt.Sprintf("#!/bin/sh\n[ \"$1\" != '%s' ] || echo '%s'\n", name, value)
	if err := os.WriteFile(filepath.Join(m.android, "getprop"), []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
}

// Android's Wi-Fi holds the phone's own radio, whatever that is called, and no
// dongle.
func TestAndroidHoldsThePhonesOwnRadioOnly(t *testing.T) {
	m := nobody(t)
	fakeAndroid(t, m, "enabled")
	for _, c := range []struct {
		property, value, iface string
		holds                  bool
	}{
		{"", "", "wlan0", true}, {"", "", "wlan1", false},
		{"wifi.interface", "wlan2", "wlan2", true}, {"wifi.interface", "wlan2", "wlan0", false},
		{"wifi.active.interface", "wlan1", "wlan1", true}, {"wifi.active.interface", "wlan1", "wlan0", false},
	} {
		setProperty(t, m, c.property, c.value)
		held, err := m.Find(&net.Interface{Name: c.iface})
		if err != nil || (len(held) == 1) != c.holds {
			t.Errorf("%+v: held by %v, %v", c, held, err)
		}
	}
	if err := os.Remove(filepath.Join(m.android, "getprop")); err != nil {
		t.Fatal(err)
	}
	if held, err := m.Find(wlan); err == nil {
		t.Errorf("of an Android that does not tell, %v is known", held)
	}
}

func TestAndroidsWifiIsSwitchedOffAndOn(t *testing.T) {
	m := nobody(t)
	path := fakeAndroid(t, m, "enabled")
	held, err := m.Find(wlan)
	if err != nil || len(held) != 1 || held[0] != (Held{Manager: Android, Interface: "wlan0", Lasting: true}) {
		t.Fatalf("found %v, %v", held, err)
	}
	is := func() string {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		return strings.TrimSpace(string(text))
	}
	if err := m.LetGo(held[0]); err != nil || is() != "disabled" {
		t.Errorf("let go: %v, Wi-Fi is %s", err, is())
	}
	if off, err := m.Find(wlan); err != nil || len(off) != 0 {
		t.Errorf("Wi-Fi that is off holds %v, %v", off, err)
	}
	saved := "disabled" // what Android has on its disk, up to 2 s later
	m.sleep = func(d time.Duration) {
		if d > 2*time.Second {
			saved = is()
		}
	}
	if err := m.TakeBack(held[0]); err != nil || is() != "enabled" || saved != "enabled" {
		t.Errorf("taken back: %v, Wi-Fi is %s, and after a loss of power %s", err, is(), saved)
	}
}

// An Android that scans with Wi-Fi off keeps the radio: it stops for as long as the radio is the agent's.
func TestAndroidStopsScanningWithWifiOff(t *testing.T) {
	for _, wifi := range []string{"enabled", "disabled"} {
		m := nobody(t)
		path := fakeAndroid(t, m, wifi)
		is := func() string {
			words, err := os.ReadFile(path)
			scans, scanErr := os.ReadFile(path + ".scans")
			if err != nil || scanErr != nil {
				t.Fatal(err, scanErr)
			}
			return strings.Join(strings.Fields(string(words)+string(scans)), " ")
		}
		if err := m.setScans(true); err != nil || is() != wifi+" enabled" {
			t.Fatalf("begin: %v, %s", err, is())
		}
		held, err := m.Find(wlan)
		if err != nil || len(held) != 1 || !held[0].Scans || held[0].Off != (wifi == "disabled") || !held[0].Lasting {
			t.Fatalf("Wi-Fi %s: found %+v, %v", wifi, held, err)
		}
		if err := m.LetGo(held[0]); err != nil || is() != "disabled disabled" {
			t.Errorf("Wi-Fi %s: let go: %v, Wi-Fi and scanning are %s", wifi, err, is())
		}
		if now, err := m.Find(wlan); err != nil || len(now) != 0 {
			t.Errorf("Wi-Fi %s: held by %+v after all, %v", wifi, now, err)
		}
		saved := ""
		m.sleep = func(time.Duration) { saved = is() }
		if err := m.TakeBack(held[0]); err != nil || is() != wifi+" enabled" || saved != is() {
			t.Errorf("Wi-Fi %s: taken back: %v, Wi-Fi and scanning are %s, and after a loss of power %s", wifi, err,
				is(), saved)
		}
	}
}

// An Android that does not scan again gets its Wi-Fi back all the same, and one whose Wi-Fi stays off scans again.
func TestScanningAndWifiAreGivenBackApart(t *testing.T) {
	for refused, want := range map[string]string{"set-scan-always-available": "enabled disabled",
		"set-wifi-enabled": "disabled enabled"} {
		m := nobody(t)
		path := fakeAndroid(t, m, "disabled")
		if err := os.Rename(filepath.Join(m.android, "cmd"), path+".real"); err != nil {
			t.Fatal(err)
		}
		phoneProgram(t, m, "cmd", "[ $2 != "+refused+" ] || { echo not now; exit 255; }; exec "+path+".real \"$@\"")
		saved := ""
		m.sleep = func(time.Duration) {
			wifi, err := os.ReadFile(path)
			scans, scanErr := os.ReadFile(path + ".scans")
			if err != nil || scanErr != nil {
				t.Fatal(err, scanErr)
			}
			saved = strings.Join(strings.Fields(string(wifi)+string(scans)), " ")
		}
		err := m.TakeBack(Held{Manager: Android, Interface: "wlan0", Lasting: true, Scans: true})
		if err == nil || !strings.Contains(err.Error(), refused) {
			t.Errorf("%s is refused: taken back: %v", refused, err)
		}
		if saved != want {
			t.Errorf("%s is refused: Wi-Fi and scanning are %q on disk, want %q", refused, saved, want)
		}
	}
}

// An Android that does not stop scanning says what a person can do.
func TestAnAndroidThatGoesOnScanningIsNotTaken(t *testing.T) {
	m := nobody(t)
	phoneProgram(t, m, "cmd", "[ $2 = status ] || { echo 'Unknown command' >&2; exit 255; }; echo 'Wifi is enabled'; "+
		"echo 'Wifi scanning is always available'")
	err := m.LetGo(Held{Manager: Android, Interface: "wlan0", Lasting: true, Scans: true})
	if err == nil || !strings.Contains(err.Error(), "by hand: Settings, Location") {
		t.Errorf("let go: %v", err)
	}
}

// After a boot the agent is there before Android's Wi-Fi service.
func TestAnAndroidThatStartsIsAwaited(t *testing.T) {
	m := nobody(t)
	held := Held{Manager: Android, Interface: "wlan0", Lasting: true}
	if err := m.TakeBack(held); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("taken back by no Android: %v", err)
	}
	path := fakeAndroid(t, m, "disabled")
	program := filepath.Join(m.android, "cmd")
	if err := os.Rename(program, program+".later"); err != nil {
		t.Fatal(err)
	}
	phoneProgram(t, m, "cmd", "for call in 1 2 3; do [ -e "+path+".$call ] || { : >"+path+".$call; "+
		"echo \"cmd: Can't find service: $1\" >&2; exit 20; }; done; exec "+program+".later \"$@\"")
	if err := m.TakeBack(held); err != nil {
		t.Error(err)
	}
	if text, err := os.ReadFile(path); err != nil || string(text) != "enabled\n" {
		t.Errorf("Wi-Fi is %q, %v", text, err)
	}
}

func TestAnAndroidThatDoesNotTellIsSaidToBe(t *testing.T) {
	m := nobody(t)
	fakeAndroid(t, m, "unknown to everybody")
	if _, err := m.Find(wlan); !errors.Is(err, ErrByHand) {
		t.Errorf("got %v, want ErrByHand", err)
	}
}

// NetworkManager takes a slow D-Bus for a caller without rights.
func TestACallThatIsDeniedIsMadeAgain(t *testing.T) {
	denied := dbus.Error{Name: nmName + ".Device.PermissionDenied",
		Body: []any{"Unable to determine UID of the request"}}
	absent := dbus.Error{Name: nmNoDevice}
	for _, c := range []struct {
		answers []error // the last one is that of every further call
		want    error
		calls   int
	}{
		{[]error{nil}, nil, 1},
		{[]error{denied, denied, nil}, nil, 3},
		{[]error{denied, absent}, absent, 2},
		{[]error{absent}, absent, 1},
	} {
		calls := 0
		err := allowed(time.Minute, func() error {
			calls++
			return c.answers[min(calls, len(c.answers))-1]
		})
		if fmt.Sprint(err) != fmt.Sprint(c.want) || calls != c.calls {
			t.Errorf("%v: %v after %d calls", c.answers, err, calls)
		}
	}
	err := allowed(0, func() error { return denied })
	if err == nil || !strings.Contains(err.Error(), "determine UID") {
		t.Errorf("denied for ever: %v", err)
	}
}
