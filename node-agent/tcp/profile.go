package tcp

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"fieldmesh.dev/fieldmesh/protocols/tcpcc"
	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// Machine is what a profile's making depends on.
type Machine struct {
	Cookie uint64   // of the network namespace
	Native []string // congestion controls that the kernel has or has modules of
	// Kernel is the running kernel's version; the zero value is unknown.
	Kernel Version
	// CompiledIn is the SHA-256 of the list of the sources whose programs the
	// kernel has compiled in; empty where they are loaded as BPF.
	CompiledIn string
}

// provider is how programs get into the kernel, as records have it.
func (m Machine) provider() string {
	if m.CompiledIn != "" {
		return "compiled"
	}
	return "bpf"
}

// Profile is a plan's transport, worked out for a machine.
type Profile struct {
	Kernel    string          // name of the congestion control in the kernel
	Program   string          // tcpcc's, to be loaded first; empty for the kernel's own
	Settings  []tcpcc.Setting // to be made in this order, before the congestion control's
	Immediate bool            // every segment is to be acknowledged at once
	HoldRTO   bool            // the retransmission timer is to be held
	Reference bool            // and asks why a segment was lost
	Window    *int            // in segments, that no sender is to go beyond
	InForce   wire.TCPInForce
}

// bpfOnly are the papers' variants that no kernel has of its own.
var bpfOnly = []string{tcpcc.Tahoe, tcpcc.NewReno, tcpcc.Fack, tcpcc.Reference, tcpcc.Vegas1995,
	tcpcc.Westwood2001}

// Resolve works a plan's transport out. What the machine lacks shows when the
// host process makes the changes; the probe tells before.
func Resolve(t wire.TCP, m Machine) (Profile, error) {
	p := Profile{Window: t.WindowPackets, InForce: wire.TCPInForce{Variant: t.Variant, FixedRTO: t.FixedRTO,
		WindowPackets: t.WindowPackets}}
	switch {
	case tcpcc.RunsReno(t) && t.Classic:
		p.Program = tcpcc.Reno
	case tcpcc.RunsReno(t):
		p.Kernel = "reno"
	case slices.Contains(bpfOnly, t.Variant):
		p.Program = t.Variant
	case slices.Contains(tcpcc.Programs(), t.Variant) && t.Variant != tcpcc.Reno &&
		!slices.Contains(m.Native, t.Variant):
		p.Program = t.Variant
	default:
		p.Kernel = t.Variant
	}
	if t.SACK != nil && !*t.SACK && tcpcc.NeedsSACK(t.Variant) {
		return Profile{}, fmt.Errorf("variant %s needs SACK, and the plan turns it off", t.Variant)
	}
	if err := tcpcc.CheckRTOMin(t); err != nil {
		return Profile{}, err
	}
	if p.Program != "" {
		var err error
		if p.Kernel, err = tcpcc.KernelName(p.Program, m.Cookie); err != nil {
			return Profile{}, err
		}
	}
	p.Settings = slices.DeleteFunc(tcpcc.Settings(t), func(s tcpcc.Setting) bool {
		return s.Key == tcpcc.SYNLinearKey && !m.Kernel.AtLeast(synLinear)
	})
	p.Immediate = t.DelayedACK != nil && !*t.DelayedACK
	p.Reference = p.Program == tcpcc.Reference
	p.HoldRTO = t.FixedRTO || p.Reference
	return p, p.describe(t, m)
}

// describe says what stands for the variant, for the records.
func (p *Profile) describe(t wire.TCP, m Machine) error {
	f := &p.InForce
	f.Kernel, f.Provider = p.Kernel, "native"
	if p.Program != "" {
		object, err := tcpcc.Object(p.Program)
		if err != nil {
			return err
		}
		sum := sha256.Sum256(object)
		f.Provider, f.Program, f.SHA256 = m.provider(), p.Program, cmp.Or(m.CompiledIn, hex.EncodeToString(sum[:]))
		if !m.Kernel.AtLeast(congControlOfFour) && m.Kernel != (Version{}) {
			f.Notes = append(f.Notes, fmt.Sprintf("cong_control has two arguments before Linux %s, where the program "+
				"is not proved", congControlOfFour))
		}
	}
	if sack := tcpcc.SACK(t); sack != nil && *sack && t.Classic && m.Kernel.AtLeast(rackAlways) {
		f.Notes = append(f.Notes, fmt.Sprintf("from Linux %s on losses are detected by RACK wherever SACK is on; "+
			"tcp_recovery=0 has no effect", rackAlways))
	}
	return nil
}

// Kernels at which the transport changed.
var (
	structOpsLink     = Version{6, 4}  // struct_ops behind a link
	cookieSince       = Version{5, 14} // SO_NETNS_COOKIE
	synLinear         = Version{6, 5}  // tcp_syn_linear_timeouts
	congControlOfFour = Version{6, 10} // cong_control(sk, ack, flag, rate_sample)
	rtoMinSysctl      = Version{6, 11} // tcp_rto_min_us
	rtoMaxOption      = Version{6, 15} // TCP_RTO_MAX_MS, tcp_rto_max_ms
	rackAlways        = Version{6, 17} // RFC 6675's loss detection is gone
)

// Version is a kernel's version.
type Version struct{ Major, Minor int }

func (v Version) String() string { return fmt.Sprintf("%d.%d", v.Major, v.Minor) }

// AtLeast compares versions.
func (v Version) AtLeast(w Version) bool {
	return v.Major > w.Major || v.Major == w.Major && v.Minor >= w.Minor
}

// ParseVersion reads a kernel's release, such as "6.12.5-cloud-amd64".
func ParseVersion(release string) (Version, error) {
	var v Version
	if n, err := fmt.Sscanf(release, "%d.%d", &v.Major, &v.Minor); err != nil || n != 2 {
		return Version{}, fmt.Errorf("read kernel release %q: it does not begin with two numbers", release)
	}
	return v, nil
}

// InForce is a profile as a node's state, read after the changes, has it.
func InForce(p Profile, state wire.Provenance) *wire.TCPInForce {
	f := p.InForce
	held := f.FixedRTO || f.Variant == tcpcc.Reference // by a largest RTO of each connection's own
	if ms, err := strconv.Atoi(state.Sysctls[tcpcc.RTOMaxKey]); err == nil && !held {
		f.RTOMaxMs = &ms
	}
	if slices.ContainsFunc(state.Routes, func(r string) bool { return strings.Contains(r, tcpcc.RouteRTOMin) }) {
		f.Notes = append(slices.Clone(f.Notes), tcpcc.RouteRTOMinNote)
		return &f
	}
	if us, err := strconv.Atoi(state.Sysctls[tcpcc.RTOMinKey]); err == nil {
		f.RTOMinUs = &us
	}
	return &f
}
