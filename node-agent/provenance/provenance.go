// Package provenance reads back what is in force on a node: kernel, driver,
// tools, TCP's settings, offloads, addresses and routes. It only reads, and
// needs no privileges.
package provenance

import (
	"context"
	"fmt"
	"maps"
	"net"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"fieldmesh.dev/fieldmesh/internal/version"
	"fieldmesh.dev/fieldmesh/node-agent/link"
	"fieldmesh.dev/fieldmesh/node-agent/routing/batman"
	"fieldmesh.dev/fieldmesh/protocols/tcpcc"
	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// Reader reads one node's state.
type Reader struct {
	iface    string
	binaries map[string]string
	as       *syscall.Credential

	mu       sync.Mutex
	confined []string
	tools    map[string]string // tool → version, read once: starting programs is slow on a phone
}

// New asks the tools for their versions; binaries maps a tool to its absolute
// path. A tool that is absent or does not answer is absent from the result. They run as
// another user where as is not nil: anybody may have written what root asks.
func New(ctx context.Context, iface string, binaries map[string]string, as *syscall.Credential) *Reader {
	r := &Reader{iface: iface, binaries: binaries, as: as, tools: map[string]string{}}
	for tool, path := range binaries {
		if v := r.version(ctx, tool, path); v != "" {
			r.tools[tool] = v
		}
	}
	if v := batman.Version(); v != "" {
		r.tools[batman.Protocol] = v
	}
	return r
}

// Confined says by what this process is confined, from now on.
func (r *Reader) Confined(by []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.confined = by
}

func (r *Reader) confinedBy() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.confined
}

// versionFlag is how each tool is asked for its version.
var versionFlag = map[string]string{"iperf3": "--version", "babeld": "-V", "chronyc": "-v", "gpsd": "-V",
	"wpa_supplicant": "-v"}

// patience bounds a start with tools that hang; a node is not ready before.
const patience = 5 * time.Second

func (r *Reader) version(ctx context.Context, tool, path string) string {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, path, versionFlag[tool])
	if r.as != nil { // with nothing else of the caller's: terminal, folder, environment
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: r.as, Setsid: true}
		cmd.Dir, cmd.Env = "/", []string{}
	}
	out, err := cmd.CombinedOutput()
	if ctx.Err() != nil && len(out) == 0 {
		return "of a version that it did not tell" // it is there: absent means that nothing could be started
	}
	if err != nil && len(out) == 0 {
		return ""
	}
	first, _, _ := strings.Cut(strings.TrimSpace(string(out)), "\n")
	return first
}

// Tools are the tools found, with what they said of their version. One that was
// absent is looked for again: a phone's storage opens when its owner unlocks it.
func (r *Reader) Tools() map[string]string {
	r.mu.Lock()
	defer r.mu.Unlock()
	for tool, path := range r.binaries {
		if r.tools[tool] != "" {
			continue
		}
		if _, err := os.Stat(path); err != nil {
			continue
		}
		if v := r.version(context.Background(), tool, path); v != "" {
			r.tools[tool] = v
		}
	}
	return maps.Clone(r.tools)
}

// Kernel is the running kernel's release.
func Kernel() string {
	var u unix.Utsname
	if unix.Uname(&u) != nil {
		return ""
	}
	return unix.ByteSliceToString(u.Release[:])
}

// Congestion lists the congestion controls that the kernel offers at present.
func Congestion() []string {
	return strings.Fields(sysctl("net.ipv4.tcp_available_congestion_control"))
}

// shaping are the sysctls that shape what TCP does.
var shaping = []string{
	"tcp_congestion_control", "tcp_sack", "tcp_timestamps", "tcp_window_scaling", "tcp_ecn", "tcp_recovery",
	"tcp_early_retrans", "tcp_frto", "tcp_syn_linear_timeouts", "tcp_no_metrics_save", "tcp_rmem", "tcp_wmem",
	"tcp_moderate_rcvbuf", "tcp_slow_start_after_idle", "tcp_mtu_probing", "tcp_retries2", "tcp_syn_retries",
	"tcp_synack_retries",
	"tcp_dsack", "tcp_max_reordering", "tcp_rto_min_us", "tcp_rto_max_ms",
}

func sysctl(key string) string {
	b, err := os.ReadFile("/proc/sys/" + strings.ReplaceAll(key, ".", "/"))
	if err != nil {
		return ""
	}
	return strings.Join(strings.Fields(string(b)), " ")
}

// Read reads everything again. What cannot be read is absent.
func (r *Reader) Read(context.Context) wire.Provenance {
	p := wire.Provenance{Agent: version.String(), Kernel: Kernel(), Arch: runtime.GOARCH, Machine: machine(),
		Interface: r.iface,
		Tools:     r.Tools(), Sysctls: map[string]string{}, Offloads: offloads(r.iface), Congestion: Congestion(),
		Addresses: []string{}, Routes: []string{}, Confined: r.confinedBy()}
	for _, s := range shaping {
		if v := sysctl("net.ipv4." + s); v != "" {
			p.Sysctls["net.ipv4."+s] = v
		}
	}
	if l, err := netlink.LinkByName(r.iface); err == nil {
		p.MAC = l.Attrs().HardwareAddr.String()
		p.Driver = driver(r.iface, l)
		if addrs, err := netlink.AddrList(l, netlink.FAMILY_ALL); err == nil {
			for _, a := range addrs {
				p.Addresses = append(p.Addresses, a.IPNet.String())
			}
		}
	}
	if routes, err := netlink.RouteList(nil, netlink.FAMILY_V4); err == nil {
		for _, rt := range routes {
			p.Routes = append(p.Routes, routeText(rt))
		}
	}
	slices.Sort(p.Addresses)
	slices.Sort(p.Routes)
	return p
}

func routeText(r netlink.Route) string {
	dst := "default"
	if r.Dst != nil && r.Dst.String() != "0.0.0.0/0" {
		dst = r.Dst.String()
	}
	out := dst
	if r.Gw != nil {
		out += " via " + r.Gw.String()
	}
	if l, err := netlink.LinkByIndex(r.LinkIndex); err == nil {
		out += " dev " + l.Attrs().Name
	}
	if r.Priority != 0 {
		out += fmt.Sprintf(" metric %d", r.Priority)
	}
	if r.RtoMin != 0 {
		out += fmt.Sprintf("%s%d", tcpcc.RouteRTOMin, r.RtoMin)
	}
	return out
}

// machine is the model that the firmware tells: DMI on a PC, the device tree
// on a phone.
func machine() string {
	for _, path := range []string{"/sys/class/dmi/id/product_name", "/proc/device-tree/model"} {
		if b, err := os.ReadFile(path); err == nil {
			return strings.Trim(string(b), "\x00\n ")
		}
	}
	return ""
}

// Driver is the name of the interface's driver; "" when there is no such interface.
func Driver(iface string) string {
	l, err := netlink.LinkByName(iface)
	if err != nil {
		return ""
	}
	return driver(iface, l)
}

// Link reports whether the interface exists and is up, and its address.
func Link(iface string) (up *bool, mac string) {
	flags, err := link.Flags(iface)
	if err != nil {
		return nil, ""
	}
	if l, err := netlink.LinkByName(iface); err == nil { // which an app of Android's may not ask
		mac = l.Attrs().HardwareAddr.String()
	}
	return new(flags&net.FlagUp != 0), mac
}
