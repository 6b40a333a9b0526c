package host

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"fieldmesh.dev/fieldmesh/protocols/tcpcc"
)

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

// absent reports that a sysctl's file is not there: its interface is gone.
func absent(err error) bool { return errors.Is(err, fs.ErrNotExist) }

// readSettings reads the present values, the first of which must be there.
func readSettings(keys [][]string) ([]setting, error) {
	var out []setting
	for i, parts := range keys {
		s := setting{Parts: parts}
		value, err := readSysctl(s.path())
		if i > 0 && absent(err) {
			continue
		}
		if err != nil {
			return nil, err
		}
		s.Value = value
		if device := deviceOf(parts); device != "" {
			link, err := findLink(device)
			var missing netlink.LinkNotFoundError
			if errors.As(err, &missing) && i > 0 {
				continue // it vanished between the two calls
			}
			if err != nil {
				return nil, err
			}
			s.Interface, s.Index = device, link.Attrs().Index
		}
		out = append(out, s)
	}
	return out, nil
}

// deviceOf is the interface that a sysctl's path belongs to, if any.
func deviceOf(parts []string) string {
	if len(parts) != 5 || parts[3] == "all" || parts[3] == "default" {
		return ""
	}
	return parts[3]
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

// noticedWithin bounds awaitNoticed; the kernel reports a carrier once a second.
const noticedWithin = 3 * time.Second

// awaitNoticed waits until the kernel's protocols have noticed that a link has
// lost its carrier. IPv6 would give a link that it still takes for ready an
// address, which was not there before.
func awaitNoticed(name string) {
	for until := time.Now().Add(noticedWithin); time.Now().Before(until); time.Sleep(20 * time.Millisecond) {
		link, err := netlink.LinkByName(name)
		if err != nil {
			return
		}
		if f := link.Attrs().RawFlags; f&unix.IFF_RUNNING == 0 || f&unix.IFF_LOWER_UP != 0 {
			return
		}
	}
}

// settings are what several sysctls were.
type settings []setting

func (all settings) revert() (string, error) {
	var note string
	var errs []error
	for _, s := range all {
		if s.Interface != "" {
			link, err := sameLink(s.Interface, s.Index)
			if err != nil {
				errs = append(errs, err)
				continue
			}
			if link == nil {
				note = gone(s.Interface)
				continue
			}
			if s.Parts[len(s.Parts)-1] == "disable_ipv6" {
				awaitNoticed(s.Interface)
			}
		}
		switch err := writeSysctl(s.path(), s.valueNow()); {
		case absent(err):
			note = "sysctl " + strings.Join(s.Parts, ".") + " is gone"
		case err != nil:
			errs = append(errs, fmt.Errorf("set %s to %q: %w", strings.Join(s.Parts, "."), s.Value, err))
		}
	}
	return note, errors.Join(errs...)
}
