package netstack

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

// Setting is a sysctl and the value it is to have. Parts rather than a key
// names it, for undos reach keys beyond the allow-list: what the kernel
// changes by itself when an allowed key is written.
type Setting struct {
	Parts     []string `json:"parts"`
	Value     string   `json:"value"`
	Written   string   `json:"written,omitempty"`   // by the change; empty: not known
	Interface string   `json:"interface,omitempty"` // whose it is
	Index     int      `json:"index,omitempty"`     // of that interface

	halfUndone string // what an undo that was cut off has made of it; empty: nothing
}

// Path is that of the sysctl's file.
func (s Setting) Path() string { return filepath.Join(append([]string{"/proc/sys"}, s.Parts...)...) }

// valueNow is the value that puts the setting back. The list of congestion
// controls that everybody may choose also names the programs of this and other
// agents, which come and go: those that are there now stay in it.
func (s Setting) valueNow() string {
	if s.Parts[len(s.Parts)-1] != "tcp_allowed_congestion_control" {
		return s.Value
	}
	now, err := ReadSysctl(s.Path())
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

// ReadSysctl gives a value with its words one space apart.
func ReadSysctl(path string) (string, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return "", fmt.Errorf("read sysctl: %w", err)
	}
	return strings.Join(strings.Fields(string(data)), " "), nil
}

// WriteSysctl writes only what differs: a write of the same value has side
// effects for some keys.
func WriteSysctl(path, value string) error {
	if now, err := ReadSysctl(path); err != nil {
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

// Absent reports that a sysctl's file is not there: its interface is gone.
func Absent(err error) bool { return errors.Is(err, fs.ErrNotExist) }

// ReadSettings reads the present values of what is to be written, the first of which must be there.
func ReadSettings(wanted []Setting) ([]Setting, error) {
	var out []Setting
	for i, w := range wanted {
		s := Setting{Parts: w.Parts, Written: w.Value}
		value, err := ReadSysctl(s.Path())
		if i > 0 && Absent(err) {
			continue
		}
		if err != nil {
			return nil, err
		}
		s.Value = value
		if device := deviceOf(s.Parts); device != "" {
			link, err := FindLink(device)
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

// SideEffects lists the sysctls that the kernel changes by itself when one
// is written, and to what; the undo has to know them.
func SideEffects(key []string, value string) ([]Setting, error) {
	switch strings.Join(key, ".") {
	case "net.ipv4.tcp_congestion_control":
		// The default becomes one that every user may choose. In a network
		// namespace of its own a node sees the whole machine's list and cannot
		// write it: what others make of it meanwhile is not this node's to undo.
		info, err := os.Stat("/proc/sys/net/ipv4/tcp_allowed_congestion_control")
		if err != nil || info.Mode().Perm()&0o200 == 0 {
			return nil, err
		}
		return []Setting{{Parts: []string{"net", "ipv4", "tcp_allowed_congestion_control"}}}, nil
	case "net.ipv4.ip_forward":
		// inet_forward_change sets every interface and turns redirects round; the same value does not.
		if now, err := ReadSysctl(Setting{Parts: key}.Path()); err != nil || now == value {
			return nil, err
		}
		entries, err := os.ReadDir("/proc/sys/net/ipv4/conf")
		if err != nil {
			return nil, fmt.Errorf("list interfaces' sysctls: %w", err)
		}
		out := []Setting{{Parts: []string{"net", "ipv4", "conf", "all", "accept_redirects"}}}
		for _, e := range entries {
			if e.Name() != "all" {
				out = append(out, Setting{Parts: []string{"net", "ipv4", "conf", e.Name(), "forwarding"}})
			}
		}
		for i := range out {
			out[i].Value = out[i].forwarded(value)
		}
		return out, nil
	}
	return nil, nil
}

// forwarded is what the kernel sets one of these sysctls to when net.ipv4.ip_forward is set to a value.
func (s Setting) forwarded(value string) string {
	if s.Parts[len(s.Parts)-1] == "forwarding" {
		return value
	}
	return map[bool]string{true: "1", false: "0"}[value == "0"]
}

// begun reports whether an undo was cut off after it had put net.ipv4.ip_forward back, with which the kernel has set
// the others.
func (all Settings) begun() bool {
	if len(all) == 0 || all[0].key() != "net.ipv4.ip_forward" {
		return false
	}
	now, err := ReadSysctl(all[0].Path())
	return err == nil && now == all[0].Value
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

// Settings are what several sysctls were.
type Settings []Setting

// Revert puts those back that are still as they were written: what somebody else has set since stays. All are looked
// at first, for one that is put back may change others. note says what has gone, or stays.
func (all Settings) Revert() (note string, err error) {
	var notes []string
	var errs []error
	var ours []Setting
	begun := all.begun()
	for _, s := range all {
		if begun && s.key() != all[0].key() {
			s.halfUndone = s.forwarded(all[0].Value)
		}
		switch note, mine, err := s.standing(); {
		case err != nil:
			errs = append(errs, err)
		case mine != nil:
			ours = append(ours, *mine)
		case !slices.Contains(notes, note):
			notes = append(notes, note)
		}
	}
	for _, s := range ours {
		if s.Parts[len(s.Parts)-1] == "disable_ipv6" {
			awaitNoticed(s.Interface)
		}
		switch err := WriteSysctl(s.Path(), s.valueNow()); {
		case Absent(err):
			notes = append(notes, "sysctl "+s.key()+" is gone")
		case err != nil:
			errs = append(errs, fmt.Errorf("set %s to %q: %w", s.key(), s.Value, err))
		}
	}
	return strings.Join(notes, ", "), errors.Join(errs...)
}

func (s Setting) key() string { return strings.Join(s.Parts, ".") }

// standing is the setting under the present name of its interface; nil when it is not to be put back, and then note
// says why.
func (s Setting) standing() (note string, mine *Setting, err error) {
	if s.Interface != "" {
		link, err := SameLink(s.Index)
		if err != nil || link == nil {
			return Gone(s.Interface), nil, err
		}
		s.Interface, s.Parts = link.Attrs().Name, slices.Clone(s.Parts)
		s.Parts[3] = s.Interface
	}
	now, err := ReadSysctl(s.Path())
	switch {
	case Absent(err):
		return "sysctl " + s.key() + " is gone", nil, nil
	case err != nil:
		return "", nil, err
	case s.Written != "" && !slices.Contains([]string{s.Written, s.Value, s.halfUndone}, now):
		return fmt.Sprintf("%s is %s, which somebody else has set", s.key(), now), nil, nil
	}
	return "", &s, nil
}
