package host

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"fieldmesh.dev/fieldmesh/protocols/tcpcc"
)

// sysctlKey is an allowed key, taken apart. Interfaces' names may hold dots,
// so a key cannot be turned into a path by replacing its dots.
type sysctlKey struct {
	parts  []string // of the path under /proc/sys
	device string   // interface, or "all"; empty for a key that is no interface's
}

// tcpKey are the namespace's TCP settings.
var tcpKey = regexp.MustCompile(`^net\.ipv4\.(tcp_[a-z0-9_]{1,40})$`)

// tcpForbidden are TCP keys that hold a secret or are read-only.
var tcpForbidden = []string{"tcp_fastopen_key", "tcp_available_congestion_control", "tcp_available_ulp", "tcp_ehash_entries"}

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
				"log_martians", "promote_secondaries", "rp_filter", "secure_redirects", "send_redirects", "src_valid_mark",
			},
			keysOfAll: []string{"accept_local", "accept_redirects", "arp_announce", "arp_ignore", "rp_filter", "send_redirects"},
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
			keys: []string{"accept_dad", "accept_ra", "accept_redirects", "autoconf", "disable_ipv6", "router_solicitations"},
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
		} else if err := checkInterfaceName(device); err != nil {
			return sysctlKey{}, err
		}
		if slices.Contains(allowed, name) {
			return sysctlKey{parts: append(slices.Clone(tree.path), device, name), device: device}, nil
		}
	}
	return sysctlKey{}, fmt.Errorf("sysctl %.80q is not among those that may be changed", key)
}

func (k sysctlKey) String() string { return strings.Join(k.parts, ".") }

// setting is a sysctl and the value it is to have. Parts rather than a key
// names it, for undos reach keys beyond the allow-list: what the kernel
// changes by itself when an allowed key is written.
type setting struct {
	Parts     []string `json:"parts"`
	Value     string   `json:"value"`
	Interface string   `json:"interface,omitempty"` // whose it is
	Index     int      `json:"index,omitempty"`     // of that interface
}

func (s setting) path() string { return filepath.Join(append([]string{"/proc/sys"}, s.Parts...)...) }

// valueNow is the value that puts the setting back. The list of congestion
// controls that everybody may choose also names the programs of this and other
// agents, which come and go: those that are there now stay in it.
func (s setting) valueNow() string {
	if s.Parts[len(s.Parts)-1] != "tcp_allowed_congestion_control" {
		return s.Value
	}
	now, err := readSysctl(s.path())
	if err != nil {
		return s.Value // writing it will say why
	}
	isProgram := func(name string) bool { _, is := tcpcc.ProgramOf(name); return is }
	isKernels := func(name string) bool { return !isProgram(name) }
	then := slices.DeleteFunc(strings.Fields(s.Value), isProgram)
	if slices.Equal(then, slices.DeleteFunc(strings.Fields(now), isProgram)) {
		return now
	}
	return strings.Join(append(then, slices.DeleteFunc(strings.Fields(now), isKernels)...), " ")
}

// readSysctl gives a value with its words one space apart.
func readSysctl(path string) (string, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return "", fmt.Errorf("read sysctl: %w", err)
	}
	return strings.Join(strings.Fields(string(data)), " "), nil
}

// writeSysctl writes only what differs: a write of the same value has side
// effects for some keys.
func writeSysctl(path, value string) error {
	if now, err := readSysctl(path); err != nil {
		return err
	} else if now == value {
		return nil
	}
	// Without O_CREATE and O_TRUNC, which a control file has no use for.
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return fmt.Errorf("write sysctl: %w", err)
	}
	_, err = f.WriteString(value + "\n")
	return errors.Join(err, f.Close())
}

// sideEffects lists the sysctls that the kernel changes by itself when k is
// written; the undo has to know them.
func sideEffects(k sysctlKey) ([][]string, error) {
	switch k.String() {
	case "net.ipv4.tcp_congestion_control":
		// The default becomes one that every user may choose. In a network
		// namespace of its own a node sees the whole machine's list and cannot
		// write it: what others make of it meanwhile is not this node's to undo.
		info, err := os.Stat("/proc/sys/net/ipv4/tcp_allowed_congestion_control")
		if err != nil || info.Mode().Perm()&0o200 == 0 {
			return nil, err
		}
		return [][]string{{"net", "ipv4", "tcp_allowed_congestion_control"}}, nil
	case "net.ipv4.ip_forward":
		// inet_forward_change sets every interface and turns redirects round.
		entries, err := os.ReadDir("/proc/sys/net/ipv4/conf")
		if err != nil {
			return nil, fmt.Errorf("list interfaces' sysctls: %w", err)
		}
		out := [][]string{{"net", "ipv4", "conf", "all", "accept_redirects"}}
		for _, e := range entries {
			if e.Name() != "all" {
				out = append(out, []string{"net", "ipv4", "conf", e.Name(), "forwarding"})
			}
		}
		return out, nil
	}
	return nil, nil
}

// absent reports that a sysctl's file is not there: its interface is gone.
func absent(err error) bool { return errors.Is(err, fs.ErrNotExist) }
