package hwsim

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"fieldmesh.dev/fieldmesh/test/testnet"
)

// Managers puts Debian's NetworkManager and wpa_supplicant, which
// scripts/setup fetches and does not install, over the guest's root.
func Managers(t testing.TB) {
	t.Helper()
	NeedGuest(t)
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for dir != "/" {
		packages := filepath.Join(dir, ".tools/guest/packages")
		if _, err := os.Stat(packages); err == nil {
			// root's, who fetched it does not matter
			run(t, "cp", "-R", "-d", "--preserve=mode,timestamps", packages+"/.", "/")
			return
		}
		dir = filepath.Dir(dir)
	}
	t.Fatal("NetworkManager is not in .tools/guest/packages: `scripts/setup test` fetches it from Debian")
}

// Daemon starts a program in a namespace ("" is the guest's own), and ends it
// with the test. What it says is told when the test fails.
func Daemon(t testing.TB, ns *testnet.NS, name string, args ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.Command(name, args...)
	if ns != nil {
		cmd = ns.Command(t.Context(), name, args...)
	}
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill() // it may have ended by itself
		_ = cmd.Wait()
		if t.Failed() {
			t.Logf("%s said:\n%s", filepath.Base(name), said.String())
		}
	})
	return cmd
}

// Bus starts the system's D-Bus, open to all: only root is there.
func Bus(t testing.TB) {
	t.Helper()
	const socket = "/run/dbus/system_bus_socket"
	config := filepath.Join(t.TempDir(), "bus.conf")
	text := `<busconfig><type>system</type><listen>unix:path=` + socket + `</listen><auth>EXTERNAL</auth>
<policy context="default"><allow user="*"/><allow own="*"/><allow send_destination="*"/><allow receive_sender="*"/></policy></busconfig>`
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Dir(socket), 0o755); err != nil {
		t.Fatal(err)
	}
	Daemon(t, nil, "/usr/bin/dbus-daemon", "--nofork", "--nopidfile", "--config-file="+config)
	Await(t, time.Minute, "D-Bus", func() bool { _, err := os.Stat(socket); return err == nil })
}

// Home makes an open network of a radio, an access point as at home, with an
// address for who joins to reach.
func Home(t testing.TB, ns *testnet.NS, iface, ssid, cidr string) {
	t.Helper()
	config := filepath.Join(t.TempDir(), "home.conf")
	text := fmt.Sprintf("network={\n ssid=%q\n mode=2\n frequency=2462\n key_mgmt=NONE\n}\n", ssid)
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	ns.Up(t, iface, cidr)
	Daemon(t, ns, "/usr/sbin/wpa_supplicant", "-i", iface, "-c", config)
	Await(t, time.Minute, "the access point", func() bool {
		return strings.Contains(ns.Run(t, "iw", "dev", iface, "info"), "ssid "+ssid)
	})
}

// Await waits until it holds.
func Await(t testing.TB, within time.Duration, what string, holds func() bool) {
	t.Helper()
	for until := time.Now().Add(within); !holds(); time.Sleep(100 * time.Millisecond) {
		if time.Now().After(until) {
			t.Fatalf("waited for %s in vain: %s", within, what)
		}
	}
}
