// Package testnet gives tests real network namespaces: making them, joining
// them by veth pairs, running programs and functions inside, and a canonical
// snapshot of what a change must leave as it was. It is for tests only; the
// emulated field has its own namespaces.
package testnet

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"
)

// Dir is where named namespaces are bound, as iproute2 does it.
const Dir = "/run/netns"

var counter atomic.Uint32

// Need skips the test, saying why, unless it runs as root and every tool is
// installed.
func Need(t testing.TB, tools ...string) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root: run the tests with sudo")
	}
	for _, tool := range tools {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skipf("needs %s, which is not installed", tool)
		}
	}
}

// Prefix is what the names of this process's test namespaces begin with.
func Prefix() string { return fmt.Sprintf("fmt%d-", os.Getpid()) }

// NS is a named network namespace that ends with its test.
type NS struct{ Name string }

// NewNS makes a namespace with lo up. It is deleted, with the processes that
// are left in it, when the test ends.
func NewNS(t testing.TB, label string) *NS {
	t.Helper()
	n := &NS{Name: fmt.Sprintf("%s%s%d", Prefix(), label, counter.Add(1))}
	if err := shareDir(); err != nil {
		t.Fatal(err)
	}
	err := onThread(func() error {
		h, err := netns.NewNamed(n.Name) // leaves the thread in the new namespace
		if err != nil {
			return err
		}
		return h.Close()
	})
	if err != nil {
		t.Fatalf("create namespace %q: %v", n.Name, err)
	}
	t.Cleanup(func() { n.remove(t) })
	n.netlink(t, func(h *netlink.Handle) error {
		lo, err := h.LinkByName("lo")
		if err != nil {
			return err
		}
		return h.LinkSetUp(lo)
	})
	return n
}

// shareDir makes Dir a shared mount, as the first "ip netns add" of a machine
// does. Otherwise that first one, in another test, would hide this test's
// names under a second mount, and they could not be deleted.
func shareDir() error {
	if err := os.MkdirAll(Dir, 0o755); err != nil {
		return fmt.Errorf("create %s: %w", Dir, err)
	}
	err := unix.Mount("", Dir, "none", unix.MS_SHARED|unix.MS_REC, "")
	if errors.Is(err, unix.EINVAL) { // no mount point yet
		if err = unix.Mount(Dir, Dir, "none", unix.MS_BIND|unix.MS_REC, ""); err == nil {
			err = unix.Mount("", Dir, "none", unix.MS_SHARED|unix.MS_REC, "")
		}
	}
	if err != nil {
		return fmt.Errorf("share %s: %w", Dir, err)
	}
	return nil
}

// remove kills what still runs inside, deletes the veths (a namespace is torn
// down only some time after its name goes) and then the name.
func (n *NS) remove(t testing.TB) {
	for _, pid := range Pids(n.Name) {
		if p, err := os.FindProcess(pid); err == nil {
			_ = p.Kill()
		}
	}
	if fd, err := netns.GetFromName(n.Name); err == nil {
		if h, err := netlink.NewHandleAt(fd, unix.NETLINK_ROUTE); err == nil {
			links, _ := h.LinkList()
			for _, l := range links {
				if l.Type() == "veth" {
					_ = h.LinkDel(l)
				}
			}
			h.Close()
		}
		_ = fd.Close()
	}
	if err := netns.DeleteNamed(n.Name); err != nil {
		t.Errorf("delete namespace %q: %v", n.Name, err)
	}
}

// Pids lists the other processes whose main thread is in the named namespace.
// The caller is not among them, though a thread of it may be there.
func Pids(ns string) []int {
	want, err := netns.GetFromName(ns)
	if err != nil {
		return nil
	}
	defer want.Close()
	entries, _ := filepath.Glob("/proc/[0-9]*/ns/net")
	var out []int
	for _, e := range entries {
		h, err := netns.GetFromPath(e)
		if err != nil {
			continue
		}
		var pid int
		if _, err := fmt.Sscanf(e, "/proc/%d/", &pid); err == nil && pid != os.Getpid() && h.Equal(want) {
			out = append(out, pid)
		}
		_ = h.Close()
	}
	return out
}

// Command is a program to be run inside the namespace.
func (n *NS) Command(ctx context.Context, name string, args ...string) *exec.Cmd {
	return exec.CommandContext(ctx, "ip", append([]string{"netns", "exec", n.Name, name}, args...)...)
}

// Run runs a program inside the namespace and returns what it printed; the
// test ends if it fails.
func (n *NS) Run(t testing.TB, name string, args ...string) string {
	t.Helper()
	out, err := n.Command(t.Context(), name, args...).CombinedOutput()
	if err != nil {
		t.Fatalf("%s %s in %s: %v\n%s", name, strings.Join(args, " "), n.Name, err, out)
	}
	return string(out)
}

// Do calls f on a thread that is inside the namespace: sockets that f opens
// stay there. f must not start goroutines that open sockets, nor processes
// with a parent-death signal (the thread may end after it).
func (n *NS) Do(t testing.TB, f func() error) {
	t.Helper()
	if err := within(n.Name, f); err != nil {
		t.Fatalf("in namespace %q: %v", n.Name, err)
	}
}

func (n *NS) netlink(t testing.TB, f func(*netlink.Handle) error) {
	t.Helper()
	if err := withHandle(n.Name, f); err != nil {
		t.Fatalf("configure namespace %q: %v", n.Name, err)
	}
}

// Veth joins two namespaces by a veth pair, each end up with its address
// ("10.1.0.1/24"; empty for none) and without offloads being changed.
func Veth(t testing.TB, a *NS, aName, aCIDR string, b *NS, bName, bCIDR string) {
	t.Helper()
	bfd, err := netns.GetFromName(b.Name)
	if err != nil {
		t.Fatalf("open namespace %q: %v", b.Name, err)
	}
	defer bfd.Close()
	a.netlink(t, func(h *netlink.Handle) error {
		attrs := netlink.NewLinkAttrs()
		attrs.Name = aName
		return h.LinkAdd(&netlink.Veth{LinkAttrs: attrs, PeerName: bName, PeerNamespace: netlink.NsFd(bfd)})
	})
	a.Up(t, aName, aCIDR)
	b.Up(t, bName, bCIDR)
}

// Up gives a link an address (none when it is empty) and brings it up. IPv6
// gets no address of its own accord: duplicate detection would make the first
// seconds differ from the rest.
func (n *NS) Up(t testing.TB, link, cidr string) {
	t.Helper()
	n.netlink(t, func(h *netlink.Handle) error {
		l, err := h.LinkByName(link)
		if err != nil {
			return err
		}
		if err := h.LinkSetIP6AddrGenMode(l, 1); err != nil {
			return fmt.Errorf("set address generation of %q: %w", link, err)
		}
		if cidr != "" {
			addr, err := netlink.ParseAddr(cidr)
			if err != nil {
				return err
			}
			if err := h.AddrAdd(l, addr); err != nil {
				return err
			}
		}
		return h.LinkSetUp(l)
	})
}

func withHandle(name string, f func(*netlink.Handle) error) error {
	fd, err := netns.GetFromName(name)
	if err != nil {
		return err
	}
	defer fd.Close()
	h, err := netlink.NewHandleAt(fd, unix.NETLINK_ROUTE)
	if err != nil {
		return err
	}
	defer h.Close()
	return f(h)
}

// within calls f inside the named namespace ("" is the one the test is in).
func within(name string, f func() error) error {
	if name == "" {
		return f()
	}
	return onThread(func() error {
		fd, err := netns.GetFromName(name)
		if err != nil {
			return err
		}
		defer fd.Close()
		if err := netns.Set(fd); err != nil {
			return err
		}
		return f()
	})
}

// onThread calls f, which may change the thread's namespace, on a thread of
// its own and puts the thread back. A thread that cannot be put back ends
// with its goroutine.
func onThread(f func() error) error {
	done := make(chan error, 1)
	go func() {
		runtime.LockOSThread()
		done <- func() error {
			home, err := netns.Get()
			if err != nil {
				return err
			}
			defer home.Close()
			err = f()
			back := netns.Set(home)
			if back == nil {
				runtime.UnlockOSThread()
			}
			return errors.Join(err, back)
		}()
	}()
	return <-done
}
