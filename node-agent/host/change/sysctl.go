package change

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"fieldmesh.dev/fieldmesh/node-agent/host/netstack"
	"fieldmesh.dev/fieldmesh/protocols/tcpcc"
)

// sysctlKey is an allowed key, taken apart. Interfaces' names may hold dots,
// so a key cannot be turned into a path by replacing its dots.
type sysctlKey struct {
	parts       []string // of the path under /proc/sys
	device      string   // interface, or "all"; empty for a key that is not an interface's
	least, most int      // that the value may be; a congestion control has a name
}

// deviceKey is a key that each interface has.
type deviceKey struct {
	prefix, name string
	path         []string
	value        int // the only one that a trial or a run sets
	// ofAll: it may also be set under "all", where the kernel combines the value with
	// the interface's own when it looks, and copies nothing to other interfaces.
	ofAll bool
}

const congestionKey = "net.ipv4.tcp_congestion_control"

func deviceKeys() []deviceKey {
	v4, v6 := []string{"net", "ipv4", "conf"}, []string{"net", "ipv6", "conf"}
	return []deviceKey{
		{prefix: "net.ipv4.conf.", path: v4, name: "accept_redirects", ofAll: true},
		{prefix: "net.ipv4.conf.", path: v4, name: "rp_filter", ofAll: true},
		{prefix: "net.ipv4.conf.", path: v4, name: "send_redirects", ofAll: true},
		{prefix: "net.ipv6.conf.", path: v6, name: "disable_ipv6", value: 1},
	}
}

// parseKey takes an allowed key apart; every other key is an error.
func parseKey(key string) (sysctlKey, error) {
	switch least, most, isTCPs := tcpcc.SettingBounds(key); {
	case isTCPs:
		return sysctlKey{parts: strings.Split(key, "."), least: least, most: most}, nil
	case key == congestionKey:
		return sysctlKey{parts: strings.Split(key, ".")}, nil
	case key == "net.ipv4.ip_forward":
		return sysctlKey{parts: strings.Split(key, "."), most: 1}, nil
	}
	for _, k := range deviceKeys() {
		rest, found := strings.CutPrefix(key, k.prefix)
		dot := strings.LastIndexByte(rest, '.')
		if !found || dot < 0 || rest[dot+1:] != k.name {
			continue
		}
		device := rest[:dot]
		if device == "all" && !k.ofAll {
			continue
		}
		if err := CheckInterfaceName(device); device != "all" && err != nil {
			return sysctlKey{}, err
		}
		return sysctlKey{parts: append(slices.Clone(k.path), device, k.name), device: device, least: k.value,
			most: k.value}, nil
	}
	return sysctlKey{}, fmt.Errorf("sysctl %.80q is not among those that may be changed", key)
}

// Sysctl sets one of the allowed keys, named as sysctl(8) names it:
// "net.ipv4.tcp_congestion_control", "net.ipv4.conf.wlan0.rp_filter".
type Sysctl struct {
	Key   string `json:"key"`
	Value string `json:"value"`
}

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
	if s.Key == congestionKey {
		if !congestionPattern.MatchString(s.Value) {
			return fmt.Sprintf("%.40q is not the name of a congestion control", s.Value), ""
		}
		return "", ""
	}
	n, err := strconv.Atoi(s.Value)
	if err != nil || s.Value != strconv.Itoa(n) || n < key.least || n > key.most {
		if key.least == key.most {
			return fmt.Sprintf("%.40q is not the one value that is set, %d", s.Value, key.least), ""
		}
		return fmt.Sprintf("%.40q is not a number from %d to %d", s.Value, key.least, key.most), ""
	}
	return "", ""
}

func (s Sysctl) prepare(*Kernel, uint64) (*sysctlUndo, error) {
	key, err := parseKey(s.Key)
	if err != nil {
		return nil, err
	}
	also, err := netstack.SideEffects(key.parts, s.Value)
	if err != nil {
		return nil, err
	}
	u := &sysctlUndo{}
	written := append([]netstack.Setting{{Parts: key.parts, Value: s.Value}}, also...)
	if u.Sysctls, err = netstack.ReadSettings(written); err != nil {
		return nil, err
	}
	if len(key.parts) == 5 && key.parts[4] == "disable_ipv6" {
		// Off takes the interface's IPv6 addresses and routes with it.
		_, state, err := netstack.FindInterface(key.device)
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
	if err == nil || s.Key != congestionKey {
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
	_, index := u.on()
	return netstack.Vanished(index)
}

func (u *sysctlUndo) on() (string, int) {
	if len(u.Sysctls) == 0 {
		return "", 0
	}
	return u.Sysctls[0].Interface, u.Sysctls[0].Index
}
