package change

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"fieldmesh.dev/fieldmesh/node-agent/host/netstack"
)

// sysctlKey is an allowed key, taken apart. Interfaces' names may hold dots,
// so a key cannot be turned into a path by replacing its dots.
type sysctlKey struct {
	parts  []string // of the path under /proc/sys
	device string   // interface, or "all"; empty for a key that is not an interface's
}

// tcpKey are the namespace's TCP settings.
var tcpKey = regexp.MustCompile(`^net\.ipv4\.(tcp_[a-z0-9_]{1,40})$`)

// tcpForbidden are TCP keys that hold a secret or are read-only.
var tcpForbidden = []string{"tcp_fastopen_key", "tcp_available_congestion_control", "tcp_available_ulp",
	"tcp_ehash_entries"}

// deviceTree is a subtree of keys per interface. Keys of all lists those that
// may also be set under "all": there the kernel combines the value with the
// interface's own when it looks, and copies nothing to other interfaces.
type deviceTree struct {
	prefix    string
	path      []string
	keys      []string
	keysOfAll []string
}

func deviceTrees() []deviceTree {
	return []deviceTree{
		{
			prefix: "net.ipv4.conf.", path: []string{"net", "ipv4", "conf"},
			keys: []string{
				"accept_local", "accept_redirects", "arp_announce", "arp_filter", "arp_ignore", "forwarding",
				"log_martians", "promote_secondaries", "rp_filter", "secure_redirects", "send_redirects",
				"src_valid_mark",
			},
			keysOfAll: []string{"accept_local", "accept_redirects", "arp_announce", "arp_ignore", "rp_filter",
				"send_redirects"},
		},
		{
			prefix: "net.ipv4.neigh.", path: []string{"net", "ipv4", "neigh"},
			keys: []string{
				"app_solicit", "base_reachable_time_ms", "delay_first_probe_time", "gc_stale_time",
				"mcast_solicit", "retrans_time_ms", "ucast_solicit",
			},
		},
		{
			prefix: "net.ipv6.conf.", path: []string{"net", "ipv6", "conf"},
			keys: []string{"accept_dad", "accept_ra", "accept_redirects", "autoconf", "disable_ipv6",
				"router_solicitations"},
		},
	}
}

// parseKey takes an allowed key apart; every other key is an error.
func parseKey(key string) (sysctlKey, error) {
	if key == "net.ipv4.ip_forward" {
		return sysctlKey{parts: []string{"net", "ipv4", "ip_forward"}}, nil
	}
	if m := tcpKey.FindStringSubmatch(key); m != nil && !slices.Contains(tcpForbidden, m[1]) {
		return sysctlKey{parts: []string{"net", "ipv4", m[1]}}, nil
	}
	for _, tree := range deviceTrees() {
		rest, found := strings.CutPrefix(key, tree.prefix)
		dot := strings.LastIndexByte(rest, '.')
		if !found || dot < 0 {
			continue
		}
		device, name := rest[:dot], rest[dot+1:]
		allowed := tree.keys
		if device == "all" {
			allowed = tree.keysOfAll
		} else if err := CheckInterfaceName(device); err != nil {
			return sysctlKey{}, err
		}
		if slices.Contains(allowed, name) {
			return sysctlKey{parts: append(slices.Clone(tree.path), device, name), device: device}, nil
		}
	}
	return sysctlKey{}, fmt.Errorf("sysctl %.80q is not among those that may be changed", key)
}

// SysctlPath is the file of an allowed key; every other key is an error.
func SysctlPath(key string) (string, error) {
	k, err := parseKey(key)
	return netstack.Setting{Parts: k.parts}.Path(), err
}

// Sysctl sets one of the allowed keys, named as sysctl(8) names it:
// "net.ipv4.tcp_congestion_control", "net.ipv4.conf.wlan0.rp_filter".
type Sysctl struct {
	Key   string `json:"key"`
	Value string `json:"value"`
}

var valuePattern = regexp.MustCompile(`^[A-Za-z0-9_-]+( [A-Za-z0-9_-]+){0,15}$`)

func (s Sysctl) Target() string { return "sysctl " + s.Key }
func (s Sysctl) String() string { return fmt.Sprintf("sysctl %s=%s", s.Key, s.Value) }

func (s Sysctl) check(p Policy) (reason, cure string) {
	key, err := parseKey(s.Key)
	if err != nil {
		return err.Error(), ""
	}
	if key.device != "" && key.device != "all" {
		if reason, cure = p.CheckInterface(key.device); reason != "" {
			return reason, cure
		}
	}
	if len(s.Value) > 128 || !valuePattern.MatchString(s.Value) {
		return fmt.Sprintf("%.40q is not a value: words of letters, digits, _ and -, one space between", s.Value), ""
	}
	return "", ""
}

func (s Sysctl) prepare(*Kernel, uint64) (*sysctlUndo, error) {
	key, err := parseKey(s.Key)
	if err != nil {
		return nil, err
	}
	also, err := netstack.SideEffects(key.parts)
	if err != nil {
		return nil, err
	}
	u := &sysctlUndo{}
	if u.Sysctls, err = netstack.ReadSettings(append([][]string{key.parts}, also...)); err != nil {
		return nil, err
	}
	if len(key.parts) == 5 && key.parts[4] == "disable_ipv6" {
		// Off takes the interface's IPv6 addresses and routes with it.
		link, err := netstack.FindLink(key.device)
		if err != nil {
			return nil, err
		}
		state, err := netstack.ReadInterface(link)
		if err != nil {
			return nil, err
		}
		u.Interface = &state
	}
	return u, nil
}

func (s Sysctl) apply(*Kernel, *sysctlUndo) error {
	key, err := parseKey(s.Key)
	if err != nil {
		return err
	}
	err = netstack.WriteSysctl(netstack.Setting{Parts: key.parts}.Path(), s.Value)
	if err == nil || key.parts[len(key.parts)-1] != "tcp_congestion_control" {
		return err
	}
	available, readErr := netstack.ReadSysctl("/proc/sys/net/ipv4/tcp_available_congestion_control")
	allowed, allowedErr := netstack.ReadSysctl("/proc/sys/net/ipv4/tcp_allowed_congestion_control")
	if readErr != nil || allowedErr != nil {
		return err
	}
	return fmt.Errorf("%w; this kernel has: %s; a namespace may choose: %s", err, available, allowed)
}

// sysctlUndo puts back what the key was, and what goes or changes with it.
type sysctlUndo struct {
	placed
	Sysctls   netstack.Settings        `json:"sysctls,omitempty"`
	Interface *netstack.InterfaceState `json:"interface,omitempty"` // that loses its IPv6
}

func (u *sysctlUndo) revert(*Kernel) (string, error) {
	return inTurn(u.Sysctls.Revert, u.Interface.Revert)
}

func (u *sysctlUndo) void(*Kernel) bool {
	return len(u.Sysctls) > 0 && netstack.Vanished(u.Sysctls[0].Interface, u.Sysctls[0].Index)
}
