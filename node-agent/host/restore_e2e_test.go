//go:build e2e

package host

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"fieldmesh.dev/fieldmesh/node-agent/host/change"
	"fieldmesh.dev/fieldmesh/node-agent/host/netstack"
	"fieldmesh.dev/fieldmesh/test/testnet"
)

// Everything by which an interface is found again works under the name that it has meanwhile.
func TestE2EAnInterfaceThatIsRenamed(t *testing.T) {
	const renamed = "wlp3s0"
	f, _ := newField(t)
	before := f.snapshot(t)
	c, cmd := f.start(t, true)
	apply(t, c, ScopeRun, runChanges())
	apply(t, c, ScopeTrial, trialChanges())
	f.ns.Run(t, "ip", "link", "set", device, "name", renamed)
	f.ns.Run(t, "ip", "link", "add", device, "type", "veth", "peer", "name", "far0") // another one by its name
	if _, err := c.Apply(t.Context(), ScopeRun, runChanges()); err == nil || !strings.Contains(err.Error(), renamed) {
		t.Errorf("the run's changes are made on another interface: %v", err)
	}
	report := restoreAll(t, c)
	if strings.Contains(strings.Join(report.Undone, "\n"), "gone") {
		t.Errorf("report %q", report.Undone)
	}
	f.ns.Run(t, "ip", "link", "del", device)
	f.ns.Run(t, "ip", "link", "set", renamed, "name", device)
	mustEqual(t, "under its former name again", before, f.snapshot(t))
	terminate(t, cmd)
}

// The kernel gives no interface the number of one that has gone, so that one tells them apart.
func TestE2EANumberIsGivenOnce(t *testing.T) {
	f, _ := newField(t)
	last := ""
	for range 5 {
		f.ns.Run(t, "ip", "link", "add", "plugged0", "type", "veth", "peer", "name", "far0")
		now, _, _ := strings.Cut(f.ns.Run(t, "ip", "-o", "link", "show", "plugged0"), ":")
		if now == last {
			t.Fatalf("number %s is given again", now)
		}
		last = now
		f.ns.Run(t, "ip", "link", "del", "plugged0")
	}
}

// What somebody else has set since stays: an administrator, Docker, tethering.
func TestE2EASettingOfSomebodyElses(t *testing.T) {
	const forward, filter = "/proc/sys/net/ipv4/ip_forward", "/proc/sys/net/ipv4/conf/wlan0/rp_filter"
	f, _ := newField(t)
	set := func(path, value string) {
		t.Helper()
		f.ns.Do(t, func() error { return netstack.WriteSysctl(path, value) })
	}
	set(forward, "0")
	c, cmd := f.start(t, true)
	apply(t, c, ScopeTrial, []change.Change{sysctl("net.ipv4.ip_forward", "0"),
		sysctl("net.ipv4.conf.wlan0.rp_filter", "0"), sysctl("net.ipv4.tcp_sack", "0")})
	set(forward, "1")
	set(filter, "1")
	report := strings.Join(restoreAll(t, c).Undone, "\n")
	if got := f.ns.Run(t, "cat", forward, filter); got != "1\n1\n" {
		t.Errorf("they are %q", got)
	}
	if !strings.Contains(report, "rp_filter=0 (net.ipv4.conf.wlan0.rp_filter is 1, which somebody else has set)") {
		t.Errorf("report %s", report)
	}
	if got := f.ns.Run(t, "cat", "/proc/sys/net/ipv4/tcp_sack"); got != "1\n" {
		t.Errorf("tcp_sack is %q", got)
	}
	terminate(t, cmd)
}

// Where the kernel deletes a subnet's other addresses with its first one, those of somebody else's are put back.
func TestE2EAnAddressOfSomebodyElsesInTheSubnet(t *testing.T) {
	for _, promote := range []string{"0", "1"} {
		f, _ := newField(t)
		f.ns.Do(t, func() error {
			return netstack.WriteSysctl("/proc/sys/net/ipv4/conf/wlan0/promote_secondaries", promote)
		})
		c, cmd := f.start(t, true)
		apply(t, c, ScopeRun, []change.Change{address("10.77.0.1/24")})
		f.ns.Run(t, "ip", "addr", "add", "10.77.0.99/24", "dev", device, "label", device+":dhcp")
		f.ns.Run(t, "ip", "addr", "add", "10.77.0.98/24", "dev", device)
		f.ns.Run(t, "ip", "route", "add", "172.30.0.0/16", "via", "10.77.0.2", "src", "10.77.0.99")
		restoreAll(t, c)
		left := f.ns.Run(t, "ip", "-4", "addr", "show", "dev", device) + f.ns.Run(t, "ip", "route")
		for _, want := range []string{"10.77.0.99/24", "wlan0:dhcp", "10.77.0.98/24", "10.77.0.0/24 dev wlan0",
			"172.30.0.0/16 via 10.77.0.2"} {
			if !strings.Contains(left, want) {
				t.Errorf("promote_secondaries=%s: %s went, too:\n%s", promote, want, left)
			}
		}
		if now := f.ns.Run(t, "cat", "/proc/sys/net/ipv4/conf/wlan0/promote_secondaries"); now != promote+"\n" {
			t.Errorf("promote_secondaries was %s and is %s", promote, now)
		}
		if strings.Contains(left, "10.77.0.1/24") {
			t.Errorf("the run's own address stays:\n%s", left)
		}
		terminate(t, cmd)
	}
}

// killedOn has a life killed whose state lies on a small disk of its own, with a routing daemon's files, too.
func killedOn(t *testing.T) (f field, before, disk string) {
	t.Helper()
	f, _ = newField(t)
	before = f.snapshot(t)
	disk = filepath.Join(t.TempDir(), "disk")
	if err := os.Mkdir(disk, 0o700); err != nil {
		t.Fatal(err)
	}
	mount(t, "-t", "tmpfs", "-o", "size=400k", "none", disk)
	t.Cleanup(func() {
		if out, err := exec.Command("umount", "-l", disk).CombinedOutput(); err != nil {
			t.Errorf("umount: %v %s", err, out)
		}
	})
	f.cfg.StateDir = filepath.Join(disk, "host")
	c, cmd := f.start(t, true)
	apply(t, c, ScopeRun, runChanges())
	apply(t, c, ScopeTrial, trialChanges())
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // "signal: killed"
	for until := time.Now().Add(10 * time.Second); opens(t, disk); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(until) {
			t.Fatalf("10 s after the host was killed its daemons have files on %s open", disk)
		}
	}
	return f, before, disk
}

// opens reports whether any process has a file below a folder open.
func opens(t *testing.T, folder string) bool {
	t.Helper()
	links, err := filepath.Glob("/proc/[0-9]*/fd/*")
	if err != nil {
		t.Fatal(err)
	}
	return slices.ContainsFunc(links, func(link string) bool {
		to, err := os.Readlink(link)
		return err == nil && strings.HasPrefix(to, folder+"/")
	})
}

func mount(t *testing.T, args ...string) {
	t.Helper()
	if out, err := exec.Command("mount", args...).CombinedOutput(); err != nil {
		t.Fatalf("mount %q: %v %s", args, err, out)
	}
}

// The node is put back also where its disk takes no more writes, and the report says that this is not recorded.
func TestE2EADiskThatIsReadOnly(t *testing.T) {
	f, before, disk := killedOn(t)
	mount(t, "-o", "remount,ro", disk)
	for range 2 {
		if out := f.restoreByHand(t); !strings.Contains(out, "read-only file system") ||
			!strings.Contains(out, `"failed":[]`) {
			t.Errorf("report %s", out)
		}
		mustEqual(t, "restored from a read-only disk", before, f.snapshot(t))
	}
	c, cmd := f.start(t, true)
	mustEqual(t, "after the next start", before, f.snapshot(t))
	if _, err := c.Apply(t.Context(), ScopeRun, runChanges()); err == nil ||
		!strings.Contains(err.Error(), "read-only file system") {
		t.Errorf("a change without its undo on disk: %v", err)
	}
	terminate(t, cmd)
	mustEqual(t, "after its end", before, f.snapshot(t))
	mount(t, "-o", "remount,rw", disk)
	if out := f.restoreByHand(t); strings.Contains(out, "unrecorded") {
		t.Errorf("report %s", out)
	}
	if out := f.restoreByHand(t); !strings.Contains(out, `"undone":[]`) {
		t.Errorf("what is undone was not recorded when that could be done: %s", out)
	}
}

// On a full disk the journal is emptied all the same, and nothing is left to be told.
func TestE2EADiskThatIsFull(t *testing.T) {
	f, before, disk := killedOn(t)
	_ = os.WriteFile(filepath.Join(disk, "big"), make([]byte, 1<<20), 0o600) // fails when it is full
	if out := f.restoreByHand(t); !strings.Contains(out, `"failed":[]`) || strings.Contains(out, "write journal") {
		t.Errorf("report %s", out)
	}
	mustEqual(t, "restored on a full disk", before, f.snapshot(t))
	if out := f.restoreByHand(t); !strings.Contains(out, `"undone":[]`) {
		t.Errorf("the journal is not emptied: %s", out)
	}
}

// One network namespace has one agent, whatever state directories they have.
func TestE2EASecondAgentInTheNamespace(t *testing.T) {
	f, other := newField(t)
	before := f.snapshot(t)
	_, cmd := f.start(t, true)
	second := field{ns: f.ns, cfg: fieldConfig(t)}
	for _, role := range []string{"host", "restore"} {
		if out, err := second.command(t, role).CombinedOutput(); err == nil ||
			!strings.Contains(string(out), "another agent changes this network namespace") {
			t.Errorf("%s: %v %s", role, err, out)
		}
	}
	_, there := other.start(t, true)
	terminate(t, there)
	terminate(t, cmd)
	mustEqual(t, "after both", before, f.snapshot(t))
	_, cmd = second.start(t, true)
	terminate(t, cmd)
}

// Nobody but root keeps the agent from its work, and changes in force, by taking the name that keeps agents apart.
//
//attack:local a local user takes the name by which agents of a machine keep apart | only root's counts
func TestE2ETheNameThatKeepsAgentsApart(t *testing.T) {
	testnet.Need(t, "setpriv")
	f, _ := newField(t)
	before := f.snapshot(t)
	squatter := f.ns.Command(t.Context(), "setpriv", "--reuid", "65534", "--clear-groups", "--",
		filepath.Join(copyForStrangers(t), "program"))
	squatter.Env, squatter.Dir = []string{envRole + "=squat", envConfig + "={}"}, "/"
	testnet.Start(t, squatter).Says(t, "taken")
	c, cmd := f.start(t, true)
	apply(t, c, ScopeRun, runChanges())
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // "signal: killed"
	f.restoreByHand(t)
	mustEqual(t, "beside a squatter", before, f.snapshot(t))
}
