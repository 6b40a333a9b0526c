//go:build e2e && guest

package host

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"fieldmesh.dev/fieldmesh/node-agent/host/change"
	"fieldmesh.dev/fieldmesh/test/testnet"
	"fieldmesh.dev/fieldmesh/test/testnet/hwsim"
)

// atHome is a laptop whose wlan0 is connected to its owner's network.
func atHome(t *testing.T) (laptop radioField) {
	t.Helper()
	hwsim.Managers(t)
	radios := hwsim.Load(t, 2)
	laptop = newRadioField(t, radios[0], "a")
	home := newRadioField(t, radios[1], "h")
	hwsim.Home(t, home.ns, device, "home", "192.168.9.1/24")
	return laptop
}

func (f radioField) connected(t *testing.T) bool {
	t.Helper()
	return strings.Contains(f.radio.IW(t, "dev", device, "link"), "SSID: home")
}

// trialAside is what a run begins with on a real radio.
func trialAside() []change.Change {
	return []change.Change{change.Aside{Interface: device}, sysctl("net.ipv6.conf.wlan0.disable_ipv6", "1"), adhoc(),
		address("10.77.0.1/24")}
}

// The ways in which what a run has changed is put back: by itself, and by the life after
// one that was killed.
const (
	inOrder    = "in order"
	byNextLife = "by the next life"
)

// runAside has the network's managers set aside and put back, once in each way. Each
// time the laptop is in its owner's network again, and as before.
func runAside(t *testing.T, f radioField, ways []string, idle func() bool, meanwhile func()) {
	t.Helper()
	hwsim.Await(t, 2*time.Minute, "the laptop in its owner's network", func() bool { return f.connected(t) })
	time.Sleep(2 * time.Second) // addresses that the kernel and a manager make come later
	before := f.snapshot(t)
	for _, way := range ways {
		client, host := f.start(t, true)
		apply(t, client, ScopeRun, trialAside())
		for range 10 { // nobody takes the interface away in the time of a trial
			time.Sleep(300 * time.Millisecond)
			if info := f.radio.IW(t, "dev", device, "info"); !strings.Contains(info, "type IBSS") ||
				!strings.Contains(info, "ssid fieldmesh") {
				t.Fatalf("the radio is not in the trial's network:\n%s", info)
			}
		}
		if !idle() {
			t.Error("the manager has not let go")
		}
		if way == inOrder {
			restoreAll(t, client)
			terminate(t, host)
		} else {
			_ = host.Process.Kill()
			_ = host.Wait() // "signal: killed"
			_, next := f.start(t, true)
			terminate(t, next)
		}
		hwsim.Await(t, 2*time.Minute, "the laptop back in its owner's network", func() bool {
			if f.connected(t) {
				return true
			}
			meanwhile()
			return false
		})
		f.settles(t, way, before)
	}
}

// settles gives a manager the time that connecting takes it.
func (f radioField) settles(t *testing.T, when, before string) {
	t.Helper()
	mustEqual(t, when, before, testnet.Settled(30*time.Second, before, func() string { return f.snapshot(t) }))
}

// Debian's wpa_supplicant, as a unit of its own runs it: it lets its interface
// go, and where an interface is made beside that, it goes on.
func TestGuestSupplicantAside(t *testing.T) {
	f := atHome(t)
	config := filepath.Join(t.TempDir(), "laptop.conf")
	if err := os.WriteFile(config, []byte("ctrl_interface=/run/wpa_supplicant\nnetwork={\n ssid=\"home\"\n "+
		"key_mgmt=NONE\n}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	hwsim.Daemon(t, f.ns, "/usr/sbin/wpa_supplicant", "-i", device, "-c", config)
	runAside(t, f, []string{inOrder, byNextLife}, func() bool {
		return strings.Contains(f.ns.Run(t, "/usr/sbin/wpa_cli", "-i", device, "status"), "wpa_state=DISCONNECTED")
	}, func() {})
	runBeside(t, f, newRadioField(t, hwsim.Plug(t, "peer"), "b"))
}

const nmConfig = `[main]
plugins=keyfile
dns=none
rc-manager=unmanaged
[device]
wifi.scan-rand-mac-address=no
[keyfile]
path=%s
`

const nmProfile = `[connection]
id=home
uuid=5f1c3a52-6f0e-4a3e-9d0e-000000000001
type=wifi
interface-name=wlan0
autoconnect=false
[wifi]
ssid=home
mode=infrastructure
[ipv4]
method=manual
address1=192.168.9.2/24,192.168.9.1
[ipv6]
method=link-local
`

// Debian's NetworkManager with its wpa_supplicant, connected to a network that
// it does not join by itself. It is told by D-Bus.
func TestGuestNetworkManagerAside(t *testing.T) { runNetworkManagerAside(t, byNextLife) }

func TestGuestNetworkManagerAsideInOrder(t *testing.T) { runNetworkManagerAside(t, inOrder) }

func runNetworkManagerAside(t *testing.T, way string) {
	t.Helper()
	f := atHome(t)
	startNetworkManager(t, f)
	runAside(t, f, []string{way}, func() bool { return strings.HasPrefix(nmState(t, f), "10") }, ownerOf(t, f))
}

// ownerOf is who tries again. NetworkManager gives up an association after 25 s, and a guest beside other work may need
// more. That it was told to join is what counts.
func ownerOf(t *testing.T, f radioField) (tries func()) {
	joining := false
	return func() {
		state := nmState(t, f)
		joining = joining || slices.Contains([]string{"40", "50", "70", "80", "90"}, state[:min(2, len(state))])
		if joining && strings.HasPrefix(state, "30") {
			out, err := nmcli(t, f, "--wait", "40", "connection", "up", "home")
			t.Log("joined again: ", out, err)
			joining = false
		}
	}
}

// refusingKernel has a driver that refuses a part of an undo, after the others.
type refusingKernel struct {
	*change.Kernel
	refused change.Undo
}

func (r *refusingKernel) Revert(u change.Undo) (string, error) {
	note, err := r.Kernel.Revert(u)
	if u == r.refused {
		err = errors.Join(err, errors.New("the driver says no"))
	}
	return note, err
}

// keeperIn is a host process's keeper in the laptop's namespace, where the undo of the radio always fails in part. The
// manager that was set aside has set the interface down, as Android does.
func (f radioField) keeperIn(t *testing.T) (k *keeper) {
	t.Helper()
	f.ns.Do(t, func() error {
		kernel, err := change.NewKernel(t.TempDir(), nil, 0, "", quiet())
		if err != nil {
			return err
		}
		s := &refusingKernel{Kernel: kernel}
		k = newKeeper(s, &journal{file: &disk{bomb: &bomb{}}}, replayed{}, testPolicy(), quiet())
		if _, err = k.apply(ScopeRun, trialAside()[:1]); err != nil {
			return err
		}
		f.ns.Run(t, "ip", "link", "set", device, "down")
		if _, err = k.apply(ScopeRun, []change.Change{adhoc()}); err == nil {
			s.refused = k.pending[1].Undo
		}
		return err
	})
	return k
}

// An undo of the radio that always fails in part takes no network from its owner, neither at once nor when it is tried
// again later.
func TestGuestARadioThatIsNotPutBackIsItsOwners(t *testing.T) {
	f := atHome(t)
	startNetworkManager(t, f)
	k := f.keeperIn(t)
	for _, when := range []string{"at once", "later"} {
		f.ns.Do(t, func() error {
			report, err := k.restore("")
			if err == nil && len(report.Failed) != 1 {
				t.Errorf("%s: report %+v", when, report)
			}
			return err
		})
		if link := f.ns.Run(t, "ip", "-o", "link", "show", device); !strings.Contains(link, ",UP") {
			t.Errorf("%s: NetworkManager's interface is down: %s", when, link)
		}
		tries := ownerOf(t, f)
		hwsim.Await(t, 2*time.Minute, "the laptop back in its owner's network, "+when, func() bool {
			if !f.connected(t) {
				tries()
				return false
			}
			return true
		})
		for range 10 {
			time.Sleep(300 * time.Millisecond)
			if !f.connected(t) {
				t.Fatalf("%s: no longer in the owner's network", when)
			}
		}
	}
}

// A NetworkManager that holds the interface only in a run, as it does one that is plugged in again, is set aside at the
// next arming, and has the interface back at the end.
func TestGuestNetworkManagerThatComesInARun(t *testing.T) {
	f := atHome(t)
	client, host := f.start(t, true)
	apply(t, client, ScopeRun, trialAside())
	runNetworkManager(t, f)
	manages := func() bool {
		state := nmState(t, f)
		return len(state) > 2 && state[0] >= '1' && state[0] <= '9' && !strings.HasPrefix(state, "10 ")
	}
	hwsim.Await(t, 2*time.Minute, "NetworkManager to take the interface", manages)
	apply(t, client, ScopeRun, trialAside())
	for range 10 {
		time.Sleep(300 * time.Millisecond)
		if info := f.radio.IW(t, "dev", device, "info"); !strings.Contains(info, "ssid fieldmesh") || manages() {
			t.Fatalf("NetworkManager is not aside:\n%s", info)
		}
	}
	restoreAll(t, client)
	hwsim.Await(t, time.Minute, "NetworkManager to have the interface back", manages)
	terminate(t, host)
	link, info := f.ns.Run(t, "ip", "-o", "link", "show", device), f.radio.IW(t, "dev", device, "info")
	if !strings.Contains(link, ",UP") || !strings.Contains(info, "type managed") ||
		strings.Contains(f.ns.Run(t, "ip", "addr"), "10.77.0.1") {
		t.Errorf("afterwards: %s\n%s", link, info)
	}
}

// Where wpa_supplicant ends during a run, NetworkManager cannot join the owner's
// network. That is told, and made good by the next restore.
func TestGuestNetworkManagerWithoutSupplicant(t *testing.T) {
	f := atHome(t)
	supplicant := startNetworkManager(t, f)
	client, _ := f.start(t, true)
	apply(t, client, ScopeRun, trialAside())
	if err := supplicant.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = supplicant.Wait() // "signal: killed"
	hwsim.Await(t, 2*time.Minute, "the undo that fails to be told", func() bool {
		_, err := client.Restore(t.Context(), "") // on a slow machine it outlasts the call
		status, serr := client.Status(t.Context())
		t.Log(status.Failed, err, serr)
		return len(status.Failed) == 1 && strings.Contains(status.Failed[0], "see that wpa_supplicant runs")
	})
	startSupplicant(t, f)
	hwsim.Await(t, 2*time.Minute, "NetworkManager to see wpa_supplicant", func() bool {
		return strings.HasPrefix(nmState(t, f), "30")
	})
	restoreAll(t, client)
	hwsim.Await(t, 2*time.Minute, "the laptop back in its owner's network", func() bool { return f.connected(t) })
}

func startSupplicant(t *testing.T, f radioField) *exec.Cmd {
	t.Helper()
	return hwsim.Daemon(t, f.ns, "/usr/sbin/wpa_supplicant", "-u", "-s", "-O", "/run/wpa_supplicant")
}

func nmcli(t *testing.T, f radioField, args ...string) (string, error) {
	t.Helper()
	out, err := f.ns.Command(t.Context(), "nmcli", args...).CombinedOutput()
	return string(out), err
}

func nmState(t *testing.T, f radioField) string {
	t.Helper()
	out, err := nmcli(t, f, "-g", "GENERAL.STATE", "device", "show", device)
	t.Log(out, err)
	return out
}

// startNetworkManager starts NetworkManager, has it join the laptop's network,
// and returns the wpa_supplicant that it uses.
func startNetworkManager(t *testing.T, f radioField) (supplicant *exec.Cmd) {
	t.Helper()
	// All that is set on its interfaces is its own.
	f.ns.Run(t, "ip", "route", "flush", "dev", device)
	f.ns.Run(t, "ip", "addr", "flush", "dev", device)
	supplicant = runNetworkManager(t, f)
	// A guest beside other work has needed 40 s for wpa_supplicant to come, and over 20 s to join.
	hwsim.Await(t, 5*time.Minute, "NetworkManager to see the network", func() bool {
		out, err := nmcli(t, f, "--wait", "90", "connection", "up", "home")
		if err != nil {
			t.Log(out)
		}
		return err == nil
	})
	return supplicant
}

func runNetworkManager(t *testing.T, f radioField) (supplicant *exec.Cmd) {
	t.Helper()
	hwsim.Bus(t)
	dir := t.TempDir()
	config := filepath.Join(dir, "nm.conf")
	for path, text := range map[string]string{config: fmt.Sprintf(nmConfig, dir),
		filepath.Join(dir, "home.nmconnection"): nmProfile} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, d := range []string{"/var/lib/NetworkManager", "/run/NetworkManager"} {
		if err := os.MkdirAll(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	supplicant = startSupplicant(t, f)
	// A read-only /sys tells it that no udev runs.
	hwsim.Daemon(t, f.ns, "unshare", "--mount", "sh", "-ec",
		"mount -o remount,ro,bind /sys; exec /usr/sbin/NetworkManager --debug --log-level=INFO --config="+config+
			" --config-dir="+dir+"/none --system-config-dir="+dir+"/none")
	return supplicant
}
