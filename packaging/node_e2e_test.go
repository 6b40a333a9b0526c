//go:build e2e

package packaging

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"fieldmesh.dev/fieldmesh/node-agent/host"
	"fieldmesh.dev/fieldmesh/node-agent/host/change"
	"fieldmesh.dev/fieldmesh/test/testnet"
)

func umask(mask int) int { return unix.Umask(mask) }

// desk is one machine in a namespace: a fleet of one node, which is itself.
type desk struct {
	ns  *testnet.NS
	dir string
	via []string // what runs the programs: nothing, or an emulator
	bin string   // ending of the programs' names in dist
	ctx context.Context
}

func newDesk(t *testing.T, arch string, via ...string) desk {
	t.Helper()
	needDist(t)
	// An emulator that hangs fails its test, not the suite.
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	t.Cleanup(cancel)
	d := desk{ns: testnet.NewNS(t, "pkg"), dir: testnet.Folder(t), via: via, bin: "-linux-" + arch, ctx: ctx}
	other := testnet.NewNS(t, "peer")
	testnet.Veth(t, d.ns, "wlan0", "", other, "wlan0", "")
	config := fmt.Sprintf("node: car\nlisten: 127.0.0.1:7443\ninterface: wlan0\ngpsd: none\nstate_dir: %s\nkeys_dir: "+
		"%s\nface_user: \"%d:%d\"\n",
		d.path("state"), d.path("keys"), testnet.Nobody, testnet.Nobody)
	if err := os.WriteFile(d.path("agent.yaml"), []byte(config), 0o644); err != nil {
		t.Fatal(err)
	}
	return d
}

func (d desk) path(name string) string { return filepath.Join(d.dir, name) }

// command is one of the packages' programs, run by way of wrap first.
func (d desk) command(wrap []string, program string, args ...string) *exec.Cmd {
	words := slices.Concat(wrap, d.via, []string{filepath.Join(dist, program+d.bin)}, args)
	cmd := d.ns.Command(d.ctx, words[0], words[1:]...)
	cmd.WaitDelay = 10 * time.Second // what it forked may have its output open
	return cmd
}

func (d desk) must(t *testing.T, program string, args ...string) string {
	t.Helper()
	out, err := d.command(nil, program, args...).CombinedOutput()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", program, strings.Join(args, " "), err, out)
	}
	return string(out)
}

// begin runs one of the agent's halves until the test ends.
func (d desk) begin(t *testing.T, wrap []string, half string) {
	t.Helper()
	testnet.Start(t, d.command(wrap, "fieldmesh-agent", half, "--config", d.path("agent.yaml")))
}

// confined is how systemd would start a unit: with its umask and capabilities, and no way to others.
func confined(t *testing.T, name string, uid int) []string {
	t.Helper()
	capabilities := "-all"
	for _, c := range unit(t, name, "CapabilityBoundingSet") {
		capabilities += ",+" + strings.ToLower(strings.TrimPrefix(c, "CAP_"))
	}
	mask := strings.Join(unit(t, name, "UMask"), "")
	if mask == "" {
		mask = "0022" // systemd.exec(5)
	}
	out := []string{"sh", "-c", "umask " + mask + ` && exec "$@"`, "-", "setpriv", "--bounding-set=" + capabilities, "--inh-caps=-all", "--no-new-privs"}
	if uid != 0 {
		out = append(out, fmt.Sprintf("--reuid=%d", uid), fmt.Sprintf("--regid=%d", uid), "--clear-groups")
	}
	return out
}

// startHalves starts both halves of the node, which has its keys.
func (d desk) startHalves(t *testing.T, hostWrap, faceWrap []string) {
	t.Helper()
	// As the face's StateDirectory= makes it.
	if err := os.MkdirAll(d.path("state/face"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Chown(d.path("state/face"), testnet.Nobody, testnet.Nobody); err != nil {
		t.Fatal(err)
	}
	d.begin(t, hostWrap, "host")
	d.begin(t, faceWrap, "face")
}

// endHungForks ends, until the test does, the children that QEMU's user emulation
// left hanging: it forks with its own locks as they are, and where another thread
// holds one at that moment the child waits for it for ever (seen with QEMU 7.2
// beside other work). Such a child is still its parent's program long after it
// began; the parent then goes on as it does where a tool cannot be run.
func (d desk) endHungForks(t *testing.T) {
	t.Helper()
	const long = 10 * time.Second // from fork to exec takes milliseconds
	done, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		since := map[int]time.Time{}
		for {
			select {
			case <-done:
				return
			case <-time.After(time.Second):
			}
			for _, pid := range testnet.Pids(d.ns.Name) {
				switch began, known := since[pid]; {
				case !isFork(pid):
					delete(since, pid)
				case !known:
					since[pid] = time.Now()
				case time.Since(began) > long:
					delete(since, pid)
					t.Logf("process %d hangs in QEMU's fork and is ended: %v", pid, syscall.Kill(pid, syscall.SIGKILL))
				}
			}
		}
	}()
	t.Cleanup(func() { close(done); <-ended })
}

// isFork reports whether a process still runs what its parent runs.
func isFork(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return false
	}
	var state string
	var parent int
	if _, err := fmt.Sscan(string(stat[bytes.LastIndexByte(stat, ')')+1:]), &state, &parent); err != nil {
		return false
	}
	line := func(pid int) []byte {
		text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid)) // it may have ended
		return text
	}
	own := line(pid)
	return len(own) > 0 && bytes.Equal(own, line(parent))
}

// usual are changes that every node can make.
func usual() []change.Change {
	return []change.Change{
		change.Link{Interface: "wlan0", Up: new(true), MTUBytes: new(1400)},
		change.Address{Interface: "wlan0", Prefix: netip.MustParsePrefix("10.77.0.1/24")},
		change.Sysctl{Key: "net.ipv4.tcp_congestion_control", Value: "reno"},
	}
}

// answers reports whether the node answers its controller: its version is shown
// then.
func (d desk) answers() bool {
	out, _ := d.command(nil, "fieldmesh", "nodes", "--fleet", d.path("fleet/fleet.yaml")).CombinedOutput()
	return strings.Contains(string(out), "0.1.0")
}

// The units' capabilities and umask are right for what trials need: the face reaches its other half and our routing
// daemons, TCP variants in BPF are there, and what was changed is put back.
//
//attack:face the network face taken over
func TestE2EUnitsHaveThePrivilegesThatTheyNeed(t *testing.T) {
	testnet.Need(t, "setpriv")
	d := newDesk(t, "amd64")
	before := testnet.Snapshot(t, d.ns.Name)
	d.must(t, "fieldmesh", "keys", "init", "--dir", d.path("fleet"))
	d.must(t, "fieldmesh", "keys", "issue", "car", "--dir", d.path("fleet"), "--address", "127.0.0.1:7443")
	testnet.GiveKeys(t, d.path("fleet/nodes/car"), d.path("keys"))
	d.startHalves(t, confined(t, "fieldmesh-host.service", 0), confined(t, "fieldmesh-face.service", testnet.Nobody))
	testnet.Await(t, 90*time.Second, "the node answers its controller", d.answers)
	client := host.Dial(d.path("state/host/host.sock"))
	changes := append(usual(), change.Sysctl{Key: "net.ipv4.conf.wlan0.rp_filter", Value: "0"},
		change.BPFCongestion{Program: "tahoe"})
	if _, err := client.Apply(t.Context(), host.ScopeRun, changes); err != nil {
		t.Fatal(err)
	}
	ask := confined(t, "fieldmesh-face.service", testnet.Nobody)
	for _, name := range []string{"aodv", "olsr", "dsr", "dsdv"} { // ports below 1024, and packets without one
		daemon := change.Daemon{Name: name, Interface: "wlan0", Announce: netip.MustParsePrefix("10.77.0.0/24")}
		if _, err := client.Apply(t.Context(), host.ScopeTrial, []change.Change{daemon}); err != nil {
			t.Error(err)
			continue
		}
		run(t, ask[0], append(ask[1:], "test", "-w", change.DaemonSocket(d.path("state/host"), name))...)
		if _, err := client.Restore(t.Context(), host.ScopeTrial); err != nil {
			t.Error(err)
		}
	}
	status, err := client.Status(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	missing := 0
	for _, a := range status.TCP {
		if strings.Contains(a.Reason, "not permitted") || strings.Contains(a.Needs, "CAP_") {
			missing++
			t.Errorf("for lack of a privilege: %+v", a)
		}
	}
	t.Logf("%d abilities, %d for lack of a privilege not there", len(status.TCP), missing)
	if _, err := client.Restore(t.Context(), ""); err != nil {
		t.Error(err)
	}
	if after := testnet.Snapshot(t, d.ns.Name); after != before {
		t.Errorf("put back it is\n%s\nwas\n%s", after, before)
	}
}

// A whole arm64 node and its controller, emulated: what the programs are and see,
// that they pair with each other, that both halves of the node serve, refuse what
// is not allowed, change the machine and put it back. What qemu-user has no
// translation for is the machine's and cannot be had there: BPF, and with it the
// TCP variants that need it, packet sockets' filters, 802.11's netlink.
func TestE2EArm64UnderEmulation(t *testing.T) {
	testnet.Need(t, "qemu-aarch64", "setpriv")
	d := newDesk(t, "arm64", "qemu-aarch64")
	d.endHungForks(t)
	for _, program := range []string{"fieldmesh", "fieldmesh-agent"} {
		if out := d.must(t, program, "--version"); !strings.Contains(out, commit) ||
			!strings.Contains(out, "linux/arm64") {
			t.Errorf("%s says %s", program, out)
		}
	}
	config := d.path("agent.yaml")
	if out := d.must(t, "fieldmesh-agent", "probe", "--config", config); !strings.Contains(out, "arm64") &&
		!strings.Contains(out, "aarch64") {
		t.Errorf("probe says %s", out)
	}
	if out := d.must(t, "fieldmesh", "plan", "show", "../campaigns/velocity.yaml"); !strings.Contains(out, "16.7") {
		t.Errorf("the plan is shown as %s", out)
	}
	d.must(t, "fieldmesh", "keys", "init", "--dir", d.path("fleet"))
	d.pair(t, config)
	before := testnet.Snapshot(t, d.ns.Name)
	d.startHalves(t, nil, []string{"setpriv", fmt.Sprintf("--reuid=%d", testnet.Nobody),
		fmt.Sprintf("--regid=%d", testnet.Nobody), "--clear-groups", "--no-new-privs"})
	testnet.Await(t, 90*time.Second, "the emulated node answers the emulated controller", d.answers)
	client := host.Dial(d.path("state/host/host.sock"))
	if _, err := client.Apply(t.Context(), host.ScopeRun, usual()); err != nil {
		t.Errorf("changes: %v", err)
	} else if testnet.Snapshot(t, d.ns.Name) == before {
		t.Error("nothing was changed")
	}
	outside := []change.Change{change.Address{Interface: "wlan0", Prefix: netip.MustParsePrefix("192.0.2.1/24")}}
	var refused *change.Refused
	if _, err := client.Apply(t.Context(), host.ScopeRun, outside); !errors.As(err, &refused) ||
		!strings.Contains(refused.Reason, "outside the allowed prefixes") {
		t.Errorf("an address that is not allowed: %v", err)
	}
	if out := d.must(t, "fieldmesh", "nodes", "restore", "--fleet", d.path("fleet/fleet.yaml")); !strings.Contains(out,
		"car") {
		t.Errorf("restore says %s", out)
	}
	if after := testnet.Snapshot(t, d.ns.Name); after != before {
		t.Errorf("put back it is\n%s\nwas\n%s", after, before)
	}
}

// The ARMv7 packages are built as the others are, and their programs run.
func TestE2EArmv7UnderEmulation(t *testing.T) {
	testnet.Need(t, "qemu-arm")
	needDist(t)
	to := testnet.Folder(t)
	if err := build(to, "armhf"); err != nil {
		t.Fatal(err)
	}
	for _, program := range []string{"fieldmesh", "fieldmesh-agent"} {
		if out := run(t, "qemu-arm", filepath.Join(to, "dist", program+"-linux-armv7"),
			"--version"); !strings.Contains(out, commit) || !strings.Contains(out, "linux/arm") {
			t.Errorf("%s says %s", program, out)
		}
		if out := run(t, "dpkg-deb", "--field", filepath.Join(to, "dist", program+"_0.1.0_armhf.deb"),
			"Architecture"); strings.TrimSpace(out) != "armhf" {
			t.Errorf("the package of %s is for %s", program, out)
		}
	}
}

// pair has the emulated programs pair with each other.
func (d desk) pair(t *testing.T, config string) {
	t.Helper()
	offer := testnet.Start(t, d.command(nil, "fieldmesh", "keys", "pair", "car", "--dir", d.path("fleet"), "--listen",
		"127.0.0.1:7447", "--qr=false"))
	offer.Says(t, "nobody else")
	code := regexp.MustCompile(`FIELDMESH-PAIR/\S+`).FindString(offer.Said())
	pair := d.command(nil, "fieldmesh-agent", "pair", "--config", config)
	pair.Stdin = strings.NewReader(code + "\n")
	if out, err := pair.CombinedOutput(); err != nil {
		t.Fatalf("pair: %v\n%s", err, out)
	}
	if err := offer.Wait(t, time.Minute); err != nil {
		t.Errorf("the offer ends with %v", err)
	}
}
