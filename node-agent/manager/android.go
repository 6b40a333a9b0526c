package manager

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"
)

// ErrByHand says that this Android lets no program switch its Wi-Fi without
// the environment of an app, which could name code for root to run.
var ErrByHand = errors.New("this Android, before 11, does not tell a program about its Wi-Fi")

// androidPatience is how long one of Android's programs may take: start-softap waits
// for 10 s itself.
const androidPatience = 15 * time.Second

// runAndroid runs one of Android's own programs, from the system's read-only
// partition, with nothing of this process's environment.
func (m Managers) runAndroid(program string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), androidPatience)
	defer cancel()
	cmd := exec.CommandContext(ctx, filepath.Join(m.android, program), args...)
	cmd.Env, cmd.Dir = []string{"PATH=" + m.android}, "/"
	cmd.WaitDelay = patience // what it started may keep its output open
	// Left behind by this process, it would change what was undone meanwhile.
	runtime.LockOSThread() // the parent-death signal follows the thread
	defer runtime.UnlockOSThread()
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	out, err := cmd.CombinedOutput()
	if err != nil {
		// Of the arguments no more than what is done: a passphrase may be among them.
		return "", fmt.Errorf("run %s %s: %w: %.200s", program, strings.Join(args[:min(2, len(args))], " "), err,
			strings.TrimSpace(string(out)))
	}
	return string(out), nil
}

// androidWifi reports whether Android's Wi-Fi is on.
func (m Managers) androidWifi() (on bool, err error) {
	on, _, err = m.wifiStatus()
	return on, err
}

// wifiStatus is androidWifi, with all that Android says.
func (m Managers) wifiStatus() (on bool, status string, err error) {
	status, err = m.runAndroid("cmd", "wifi", "status")
	switch first, _, _ := strings.Cut(status, "\n"); {
	case err == nil && strings.TrimSpace(first) == "Wifi is enabled":
		return true, status, nil
	case err == nil && strings.TrimSpace(first) == "Wifi is disabled":
		return false, status, nil
	case err == nil:
		err = fmt.Errorf("it said %.80q", strings.TrimSpace(status))
	}
	return false, "", fmt.Errorf("%w: %w", ErrByHand, err)
}

// The properties in which Android tells the interface of its Wi-Fi: the one in use
// (wifi_chip.cpp of hardware/interfaces/wifi), and the vendor's. Where neither is
// set, it is primaryWifi.
const (
	activeWifi  = "wifi.active.interface"
	vendorWifi  = "wifi.interface"
	primaryWifi = "wlan0"
)

// ownWifi returns the interface of the phone's own radio.
func (m Managers) ownWifi() (string, error) {
	for _, property := range []string{activeWifi, vendorWifi} {
		out, err := m.runAndroid("getprop", property)
		if name := strings.TrimSpace(out); err != nil || name != "" {
			return name, err
		}
	}
	return primaryWifi, nil
}

// findAndroid: while it is on, its Wi-Fi service holds the phone's own radio. A
// dongle it does not know: for that, it stays on.
func (m Managers) findAndroid(iface *net.Interface) (*Held, error) {
	if _, err := os.Stat(filepath.Join(m.android, "cmd")); errors.Is(err, fs.ErrNotExist) {
		return nil, nil // no Android
	}
	own, err := m.ownWifi()
	if err != nil || own != iface.Name {
		return nil, err
	}
	on, status, err := m.wifiStatus()
	scans := err == nil && scansAlways(status)
	if err != nil || !on && !scans {
		return nil, err
	}
	return &Held{Manager: Android, Interface: iface.Name, Lasting: true, Scans: scans, Off: !on}, nil
}

// scansAlways reports whether Android scans with Wi-Fi off, too (printStatus of WifiShellCommand). Then it keeps the
// radio, scans for any app that wants to know where it is, and may switch Wi-Fi on by itself near a network that it
// knows: WakeupController runs in this mode only (ScanOnlyModeState of ConcreteClientModeManager).
func scansAlways(status string) bool {
	for line := range strings.Lines(status) {
		if strings.TrimSpace(line) == "Wifi scanning is always available" {
			return true
		}
	}
	return false
}

// androidLetsGo ends scanning first, so that Wi-Fi that goes off does not continue it.
func (m Managers) androidLetsGo(h Held) error {
	if h.Scans {
		if err := m.setScans(false); err != nil {
			return fmt.Errorf("%w; switch it off by hand: Settings, Location, Location services, Wi-Fi scanning", err)
		}
	}
	if h.Off {
		return nil
	}
	return m.setAndroid(false)
}

// androidTakesBack is also what an agent that starts at boot begins with, before Android is there. Wi-Fi is what a
// phone is in need of, so it comes first, and whether scanning follows does not matter to it.
func (m Managers) androidTakesBack(h Held) error {
	if err := m.AwaitAndroid(); err != nil {
		return err
	}
	var wifi, scans error
	if !h.Off {
		wifi = m.setAndroid(true)
	}
	if h.Scans {
		scans = m.setScans(true)
	}
	m.sleep(settingsLate)
	return errors.Join(wifi, scans)
}

// setScans has Android scan with Wi-Fi off, or not, and waits until it says so.
func (m Managers) setScans(always bool) error {
	want := map[bool]string{true: "enabled", false: "disabled"}[always]
	if _, err := m.runAndroid("cmd", "wifi", "set-scan-always-available", want); err != nil {
		return err
	}
	return await(func() (bool, string, error) {
		_, status, err := m.wifiStatus()
		is := scansAlways(status)
		return is == always, map[bool]string{true: "scanning", false: "not scanning"}[is] + " with Wi-Fi off", err
	})
}

// settingsLate is longer than Android may take to have a setting on its disk: it writes 200 ms after a change, and no
// later than 2 s after it (SettingsState.java of frameworks/base/packages/SettingsProvider; not confirmed on a phone).
const settingsLate = 3 * time.Second

// GiveBackWiFi switches Android's Wi-Fi back, and returns when it stays so though the power goes. An undo has no other
// way to switch it, and so waits.
func (m Managers) GiveBackWiFi(on bool) error {
	err := m.setAndroid(on)
	if err == nil {
		m.sleep(settingsLate)
	}
	return err
}

// setAndroid switches Wi-Fi and waits until Android says that it is so.
func (m Managers) setAndroid(on bool) error {
	if is, err := m.androidWifi(); err == nil && is == on {
		return nil
	}
	want := map[bool]string{true: "enabled", false: "disabled"}[on]
	if _, err := m.runAndroid("cmd", "wifi", "set-wifi-enabled", want); err != nil {
		return err
	}
	return await(func() (bool, string, error) {
		is, err := m.androidWifi()
		return is == on, map[bool]string{true: "on", false: "off"}[is], err
	})
}
