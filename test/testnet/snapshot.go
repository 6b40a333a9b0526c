package testnet

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"sort"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"fieldmesh.dev/fieldmesh/protocols/tcpcc"
)

// sysctls are those that Fieldmesh may change, or that shape TCP; a name with
// a * stands for every interface and "all" and "default".
var sysctls = []string{
	"net/core/default_qdisc", "net/core/rmem_max", "net/core/wmem_max",
	"net/ipv4/ip_forward", "net/ipv4/tcp_allowed_congestion_control", "net/ipv4/tcp_congestion_control",
	"net/ipv4/tcp_early_retrans", "net/ipv4/tcp_ecn", "net/ipv4/tcp_fastopen", "net/ipv4/tcp_frto",
	"net/ipv4/tcp_mtu_probing", "net/ipv4/tcp_no_metrics_save", "net/ipv4/tcp_recovery", "net/ipv4/tcp_retries2",
	"net/ipv4/tcp_rmem", "net/ipv4/tcp_sack", "net/ipv4/tcp_slow_start_after_idle", "net/ipv4/tcp_timestamps",
	"net/ipv4/tcp_syn_linear_timeouts", "net/ipv4/tcp_syn_retries", "net/ipv4/tcp_window_scaling", "net/ipv4/tcp_wmem",
	"net/ipv4/conf/*/accept_redirects", "net/ipv4/conf/*/forwarding", "net/ipv4/conf/*/rp_filter",
	"net/ipv4/conf/*/send_redirects", "net/ipv6/conf/*/accept_ra", "net/ipv6/conf/*/autoconf",
	"net/ipv6/conf/*/disable_ipv6", "net/ipv6/conf/*/forwarding",
}

// Snapshot is a canonical text of a namespace ("" is the root one): named
// namespaces (root only), links, addresses, rules, routes, permanent
// neighbours, sysctls and, where nft is installed, its ruleset. Two snapshots
// of the same state are equal; what changes by itself (indexes, lifetimes,
// counters, carrier, the tables that the kernel derives) is left out, and so
// are the congestion controls that other namespaces have loaded.
//
// With own prefixes, only namespaces, and in the root namespace only links,
// whose names begin with one of them are listed: for tests that run beside
// others on one machine.
func Snapshot(t testing.TB, ns string, own ...string) string {
	t.Helper()
	var b strings.Builder
	if ns == "" {
		for _, n := range Namespaces(t, own...) {
			fmt.Fprintf(&b, "netns %s\n", n)
		}
	}
	keep := func(link string) bool { return ns != "" || len(own) == 0 || hasPrefix(link, own) }
	err := within(ns, func() error {
		h, err := netlink.NewHandle(unix.NETLINK_ROUTE)
		if err != nil {
			return err
		}
		defer h.Close()
		for _, part := range []func(*netlink.Handle, func(string) bool) ([]string, error){links, rules, routes,
			neighbours} {
			lines, err := part(h, keep)
			if err != nil {
				return err
			}
			sort.Strings(lines)
			b.WriteString(strings.Join(lines, ""))
		}
		lines, err := readSysctls(keep)
		b.WriteString(strings.Join(lines, ""))
		if err != nil {
			return err
		}
		rs, err := ruleset()
		b.WriteString(rs)
		return err
	})
	if err != nil {
		t.Fatalf("snapshot namespace %q: %v", ns, err)
	}
	return b.String()
}

// Namespaces lists the named namespaces, those with one of the prefixes when
// any is given.
func Namespaces(t testing.TB, own ...string) []string {
	t.Helper()
	entries, err := os.ReadDir(Dir)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatalf("list namespaces: %v", err)
	}
	var out []string
	for _, e := range entries {
		if len(own) == 0 || hasPrefix(e.Name(), own) {
			out = append(out, e.Name())
		}
	}
	return out
}

func hasPrefix(s string, prefixes []string) bool {
	for _, p := range prefixes {
		if strings.HasPrefix(s, p) {
			return true
		}
	}
	return false
}

// dump calls a netlink dump again while it reports that the state changed
// under it.
func dump[T any](f func() ([]T, error)) ([]T, error) {
	var out []T
	var err error
	for range 10 {
		if out, err = f(); !errors.Is(err, netlink.ErrDumpInterrupted) {
			return out, err
		}
	}
	return out, err
}

// named are the links, and their names by index.
func named(h *netlink.Handle) ([]netlink.Link, map[int]string, error) {
	all, err := dump(h.LinkList)
	if err != nil {
		return nil, nil, fmt.Errorf("list links: %w", err)
	}
	name := map[int]string{}
	for _, l := range all {
		name[l.Attrs().Index] = l.Attrs().Name
	}
	return all, name, nil
}

func links(h *netlink.Handle, keep func(string) bool) ([]string, error) {
	all, name, err := named(h)
	if err != nil {
		return nil, err
	}
	var out []string
	for _, l := range all {
		a := l.Attrs()
		if !keep(a.Name) {
			continue
		}
		out = append(out, fmt.Sprintf("link %s type %s mtu %d up %t master %q mac %s txqlen %d\n",
			a.Name, l.Type(), a.MTU, a.Flags&net.FlagUp != 0, name[a.MasterIndex], a.HardwareAddr, a.TxQLen))
		addrs, err := dump(func() ([]netlink.Addr, error) { return h.AddrList(l, netlink.FAMILY_ALL) })
		if err != nil {
			return nil, fmt.Errorf("list addresses of %q: %w", a.Name, err)
		}
		for _, ad := range addrs {
			flags := ad.Flags &^ (unix.IFA_F_TENTATIVE | unix.IFA_F_OPTIMISTIC)
			out = append(out, fmt.Sprintf("address %s on %s scope %d flags %#x\n", ad.IPNet, a.Name, ad.Scope, flags))
		}
	}
	return out, nil
}

func rules(h *netlink.Handle, _ func(string) bool) ([]string, error) {
	all, err := dump(func() ([]netlink.Rule, error) { return h.RuleList(netlink.FAMILY_ALL) })
	if err != nil && !errors.Is(err, syscall.EAFNOSUPPORT) && !errors.Is(err, syscall.EOPNOTSUPP) {
		return nil, fmt.Errorf("list rules: %w", err)
	}
	var out []string
	for _, r := range all {
		out = append(out, fmt.Sprintf("rule %d family %d from %v to %v iif %q oif %q mark %#x table %d\n",
			r.Priority, r.Family, r.Src, r.Dst, r.IifName, r.OifName, r.Mark, r.Table))
	}
	return out, nil
}

func routes(h *netlink.Handle, keep func(string) bool) ([]string, error) {
	all, err := dump(func() ([]netlink.Route, error) {
		return h.RouteListFiltered(netlink.FAMILY_ALL, &netlink.Route{Table: unix.RT_TABLE_UNSPEC},
			netlink.RT_FILTER_TABLE)
	})
	if err != nil {
		return nil, fmt.Errorf("list routes: %w", err)
	}
	_, name, err := named(h)
	if err != nil {
		return nil, err
	}
	var out []string
	for _, r := range all {
		dev := name[r.LinkIndex]
		if r.Table == unix.RT_TABLE_LOCAL || r.Flags&unix.RTM_F_CLONED != 0 || (dev != "" && !keep(dev)) {
			continue
		}
		var hops []string
		for _, m := range r.MultiPath {
			hops = append(hops, fmt.Sprintf("%s@%s", m.Gw, name[m.LinkIndex]))
		}
		out = append(out, fmt.Sprintf("route %v via %v dev %q hops %v table %d proto %d metric %d scope %d src %v "+
			"type %d\n",
			r.Dst, r.Gw, dev, hops, r.Table, r.Protocol, r.Priority, r.Scope, r.Src, r.Type))
	}
	return out, nil
}

func neighbours(h *netlink.Handle, keep func(string) bool) ([]string, error) {
	ls, _, err := named(h)
	if err != nil {
		return nil, err
	}
	var out []string
	for _, l := range ls {
		all, err := dump(func() ([]netlink.Neigh, error) { return h.NeighList(l.Attrs().Index, netlink.FAMILY_ALL) })
		if err != nil {
			return nil, fmt.Errorf("list neighbours: %w", err)
		}
		for _, n := range all {
			if n.State&netlink.NUD_PERMANENT != 0 && keep(l.Attrs().Name) {
				out = append(out, fmt.Sprintf("neighbour %s %s dev %s\n", n.IP, n.HardwareAddr, l.Attrs().Name))
			}
		}
	}
	return out, nil
}

// allowedControls is the one of sysctls that the kernel keeps once for all
// namespaces.
const allowedControls = "net/ipv4/tcp_allowed_congestion_control"

// ofATest is how node-agent/tcp's tests name the programs that they load.
var ofATest = regexp.MustCompile(`^[a-z]{1,5}_[0-9a-f]+_[0-9a-fx]+$`)

// ownControls leaves out what another namespace has loaded: its agents and
// tests come and go by themselves.
func ownControls(names []string) []string {
	return slices.DeleteFunc(names, func(name string) bool {
		if ofATest.MatchString(name) {
			return true
		}
		program, loaded := tcpcc.ProgramOf(name)
		if !loaded {
			return false
		}
		own, err := tcpcc.KernelName(program, cookie())
		return err != nil || own != name
	})
}

// cookie is the number of this thread's namespace; 0 where the kernel has none.
func cookie() uint64 {
	s, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return 0
	}
	defer func() { _ = unix.Close(s) }() // it has carried nothing
	number, err := unix.GetsockoptUint64(s, unix.SOL_SOCKET, unix.SO_NETNS_COOKIE)
	if err != nil {
		return 0
	}
	return number
}

// readSysctls reads from /proc/sys, which shows the namespace of the thread
// that opens it.
func readSysctls(keep func(string) bool) ([]string, error) {
	var out []string
	for _, s := range sysctls {
		before, after, perLink := strings.Cut(s, "*")
		names := []string{s}
		if perLink {
			entries, err := os.ReadDir("/proc/sys/" + before)
			if errors.Is(err, os.ErrNotExist) {
				continue // the kernel has no IPv6
			}
			if err != nil {
				return nil, fmt.Errorf("list sysctls: %w", err)
			}
			names = nil
			for _, e := range entries {
				if n := e.Name(); n == "all" || n == "default" || keep(n) {
					names = append(names, before+n+after)
				}
			}
		}
		for _, n := range names {
			value, err := os.ReadFile("/proc/sys/" + n)
			if errors.Is(err, os.ErrNotExist) {
				continue // not in this kernel, or not per namespace
			}
			if err != nil {
				return nil, fmt.Errorf("read sysctl %q: %w", n, err)
			}
			words := strings.Fields(string(value))
			if n == allowedControls {
				words = ownControls(words)
			}
			out = append(out, fmt.Sprintf("sysctl %s = %s\n", n, strings.Join(words, " ")))
		}
	}
	return out, nil
}

// ruleset is nft's; the process inherits the calling thread's namespace.
func ruleset() (string, error) {
	nft, err := exec.LookPath("nft")
	if err != nil {
		return "", nil //nolint:nilerr // without nft there is no ruleset to compare
	}
	out, err := exec.Command(nft, "-s", "list", "ruleset").Output()
	if err != nil {
		return "", fmt.Errorf("list nft ruleset: %w", err)
	}
	return string(out), nil
}

// Settled takes snapshots until one is as before or the time is over, and
// returns the last: what a kernel makes by itself, as addresses, takes time.
func Settled(within time.Duration, before string, snapshot func() string) string {
	for until := time.Now().Add(within); ; time.Sleep(100 * time.Millisecond) {
		if now := snapshot(); now == before || time.Now().After(until) {
			return now
		}
	}
}

// Diff lists the lines that only one of two texts has, those of the first with
// "-" before them, and of the second with "+".
func Diff(before, after string) string {
	var b strings.Builder
	for _, side := range []struct{ sign, of, than string }{{"-", before, after}, {"+", after, before}} {
		lines := strings.Split(side.than, "\n")
		for line := range strings.SplitSeq(side.of, "\n") {
			if !slices.Contains(lines, line) {
				fmt.Fprintf(&b, "%s %s\n", side.sign, line)
			}
		}
	}
	if b.Len() == 0 && before != after {
		return "only the order or the number of equal lines differs\n"
	}
	return b.String()
}
