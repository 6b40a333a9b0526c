package tcp

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"

	"fieldmesh.dev/fieldmesh/protocols/tcpcc"
	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// Here reads what a profile's making depends on. It needs no privileges.
func Here() (Machine, error) {
	var m Machine
	var uts unix.Utsname
	if err := unix.Uname(&uts); err != nil {
		return Machine{}, fmt.Errorf("read kernel release: %w", err)
	}
	release := unix.ByteSliceToString(uts.Release[:])
	var err error
	if m.Kernel, err = ParseVersion(release); err != nil {
		return Machine{}, err
	}
	if m.Native, err = native(filepath.Join("/lib/modules", release)); err != nil {
		return Machine{}, err
	}
	if m.CompiledIn, err = compiledIn(); err != nil {
		return Machine{}, err
	}
	if m.Kernel.AtLeast(cookieSince) {
		if m.Cookie, err = Cookie(); err != nil {
			return Machine{}, err
		}
	}
	return m, nil
}

// native lists the kernel's own congestion controls: those that are there, and
// those whose module is installed, which the kernel loads when one is chosen.
func native(modules string) ([]string, error) {
	b, err := os.ReadFile("/proc/sys/net/ipv4/tcp_available_congestion_control")
	if err != nil {
		return nil, fmt.Errorf("list congestion controls: %w", err)
	}
	var out []string
	for _, name := range strings.Fields(string(b)) {
		if _, ours := tcpcc.ProgramOf(name); !ours {
			out = append(out, name)
		}
	}
	dep, err := os.ReadFile(filepath.Join(modules, "modules.dep"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("list modules: %w", err)
	}
	return append(out, modulesOf(dep, out)...), nil
}

// modulesOf names the congestion controls in a modules.dep, beside those known.
func modulesOf(dep []byte, known []string) []string {
	var out []string
	for line := range bytes.Lines(dep) {
		path, _, ok := bytes.Cut(line, []byte(":"))
		name, found := strings.CutPrefix(filepath.Base(string(path)), "tcp_")
		name, _, _ = strings.Cut(name, ".")
		if !ok || !found || !strings.Contains(string(path), "net/ipv4/") || name == "diag" ||
			slices.Contains(known, name) {
			continue
		}
		out = append(out, name)
	}
	return out
}

// Probe tries what of the transport can be had here. As root it loads every
// program and takes it out again; nothing else is changed. feedback reports
// whether an emulated radio tells why frames are lost.
func Probe(feedback bool) []wire.Ability {
	m, err := Here()
	if err != nil {
		return []wire.Ability{{Feature: "tcp", How: "none", Reason: err.Error()}}
	}
	p, err := providerHere()
	if err != nil {
		return []wire.Ability{{Feature: "tcp", How: "none", Reason: err.Error()}}
	}
	var out []wire.Ability
	add := func(feature, how string, err error) { out = append(out, ability(feature, how, err)) }
	for _, name := range m.Native {
		add("variant "+name, "native", nil)
	}
	add("variant sack", "native", nil)
	for _, program := range tcpcc.Programs() {
		feature := "variant " + program
		switch {
		case program == tcpcc.Reno:
			feature = "variant reno, classic"
		case slices.Contains(m.Native, program):
			continue // the kernel's own is preferred
		case program == tcpcc.Reference && !feedback:
			add(feature, m.provider(), &UnsupportedError{Feature: feature,
				Needs: "a rehearsal: only an emulated radio knows why a frame was lost"})
			continue
		}
		add(feature, m.provider(), p.able(m, program, feature))
	}
	add("fixed_rto", "bpf", tryTimer(m))
	add("rto_min_ms", "native", hasSysctl("rto_min_ms", tcpcc.RTOMinKey, rtoMinSysctl))
	add("rto_max_ms", "native", hasSysctl("rto_max_ms", tcpcc.RTOMaxKey, rtoMaxOption))
	add("window_packets", "bpf", trySockops(m, "window_packets", tcpcc.Clamp))
	for _, knob := range []string{"classic", "sack", "delayed_ack"} {
		add(knob, "native", nil)
	}
	return out
}

func ability(feature, how string, err error) wire.Ability {
	if err == nil {
		return wire.Ability{Feature: feature, How: how}
	}
	a := wire.Ability{Feature: feature, How: "none", Reason: err.Error()}
	var u *UnsupportedError
	if errors.As(err, &u) {
		a.Needs = u.Needs
		if a.Reason = "it is not there"; u.Err != nil {
			a.Reason = u.Err.Error()
		}
	}
	return a
}

// able loads a program without making it a congestion control.
func (loaded) able(m Machine, program, feature string) error {
	if err := canLoad(m, feature); err != nil {
		return err
	}
	return tryLoad(program, feature, needsStructOps)
}

// tryLoad loads an object and lets it go.
func tryLoad(object, feature, needs string) error {
	spec, err := specOf(object)
	if err != nil {
		return err
	}
	coll, err := ebpf.NewCollection(spec)
	if err != nil {
		return refused(feature, needs, err)
	}
	coll.Close()
	return nil
}

const (
	needsStructOps = "a kernel that takes BPF congestion controls (CONFIG_BPF_JIT, CONFIG_TCP_CONG_ADVANCED)"
	needsSockops   = "a kernel that takes BPF sockops programs (CONFIG_CGROUP_BPF)"
)

// kernelTypes is where a kernel describes its own types.
const kernelTypes = "/sys/kernel/btf/vmlinux"

// canLoad reports what every program needs, in words rather than the loader's.
func canLoad(m Machine, feature string) error {
	if !m.Kernel.AtLeast(structOpsLink) {
		return &UnsupportedError{Feature: feature, Needs: "Linux " + structOpsLink.String(),
			Err: fmt.Errorf("this is Linux %s", m.Kernel)}
	}
	if _, err := os.Stat(kernelTypes); err != nil && m.CompiledIn == "" { // else the kernel's types are not asked for
		return &UnsupportedError{Feature: feature, Needs: needsBTF, Err: err}
	}
	if os.Geteuid() != 0 {
		return &UnsupportedError{Feature: feature, Needs: needsRoot, Err: errors.New("only root may load BPF")}
	}
	return nil
}

// hasSysctl looks for the sysctl that a feature is, which kernels have since a version.
func hasSysctl(feature, key string, since Version) error {
	if _, err := os.Stat("/proc/sys/" + strings.ReplaceAll(key, ".", "/")); err != nil {
		return &UnsupportedError{Feature: feature, Needs: "Linux " + since.String(), Err: err}
	}
	return nil
}

// tryTimer looks for what rto.bpf.c needs, and loads it.
func tryTimer(m Machine) error {
	const feature = "fixed_rto"
	if !m.Kernel.AtLeast(rtoMaxOption) {
		return &UnsupportedError{Feature: feature, Needs: "Linux " + rtoMaxOption.String(),
			Err: fmt.Errorf("this is Linux %s, which does not bound the RTO (TCP_RTO_MAX_MS)", m.Kernel)}
	}
	return trySockops(m, feature, tcpcc.RTO)
}

// trySockops loads a sockops program without attaching it.
func trySockops(m Machine, feature, object string) error {
	if err := canLoad(m, feature); err != nil {
		return err
	}
	cgroup, err := cgroupRoot(feature)
	if err != nil {
		return err
	}
	defer cgroup.Close() // opened to see that it can be
	return tryLoad(object, feature, needsSockops)
}
