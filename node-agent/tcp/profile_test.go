package tcp

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"fieldmesh.dev/fieldmesh/protocols/tcpcc"
	"fieldmesh.dev/fieldmesh/protocols/wire"
)

func TestResolve(t *testing.T) {
	off, on := new(false), new(true)
	bare := Machine{Cookie: 36, Native: []string{"reno", "cubic", "bbr"}, Kernel: Version{6, 18}}
	stock := Machine{Cookie: 36, Native: []string{"reno", "cubic", "vegas", "westwood"}, Kernel: Version{6, 12}}
	for name, c := range map[string]struct {
		tcp     wire.TCP
		machine Machine
		kernel  string
		program string
		has     []string // settings
	}{
		"the kernel's own reno": {wire.TCP{Variant: "reno"}, bare, "reno", "",
			[]string{"tcp_no_metrics_save=1", "tcp_retries2=255", "tcp_syn_retries=127"}},
		"the papers' reno": {wire.TCP{Variant: "reno", Classic: true}, bare, "reno_10", "reno",
			[]string{"tcp_sack=0", "tcp_recovery=0", "tcp_timestamps=0", "tcp_syn_linear_timeouts=0"}},
		"the papers' reno with sack": {wire.TCP{Variant: "reno", Classic: true, SACK: on}, bare, "reno_10", "reno",
			[]string{"tcp_sack=1"}},
		"sack is the kernel's reno": {wire.TCP{Variant: "sack"}, bare, "reno", "", []string{"tcp_sack=1"}},
		"the papers' sack is their reno": {wire.TCP{Variant: "sack", Classic: true}, bare, "reno_10", "reno",
			[]string{"tcp_sack=1", "tcp_recovery=0"}},
		"fack needs sack": {wire.TCP{Variant: "fack", Classic: true}, bare, "fack_10", "fack",
			[]string{"tcp_sack=1"}},
		"vegas, no module":           {wire.TCP{Variant: "vegas"}, bare, "vegas_10", "vegas", nil},
		"vegas, the kernel's own":    {wire.TCP{Variant: "vegas"}, stock, "vegas", "", nil},
		"vegas as published":         {wire.TCP{Variant: "vegas1995"}, stock, "vegas95_10", "vegas1995", nil},
		"westwood as published":      {wire.TCP{Variant: "westwood2001"}, stock, "west2001_10", "westwood2001", nil},
		"what no program stands for": {wire.TCP{Variant: "illinois"}, bare, "illinois", "", nil},
		"fixed RTO": {wire.TCP{Variant: "reno", SACK: off, FixedRTO: true}, bare, "reno", "",
			[]string{"tcp_sack=0", "tcp_rto_min_us=500000", "tcp_retries2=255"}},
		"reference has its own timer": {wire.TCP{Variant: "reference", FixedRTO: true}, bare, "ideal_10", "reference",
			[]string{"tcp_rto_min_us=1000000", "tcp_retries2=255"}},
		"the least RTO of any": {wire.TCP{Variant: "reno", RTOMinMs: new(1000)}, bare, "reno", "",
			[]string{"tcp_rto_min_us=1000000"}},
		"the largest RTO": {wire.TCP{Variant: "reno", RTOMaxMs: new(60_000)}, bare, "reno", "",
			[]string{"tcp_rto_max_ms=60000"}},
		"the least RTO of fixed RTO": {wire.TCP{Variant: "reno", RTOMinMs: new(700), FixedRTO: true}, bare, "reno", "",
			[]string{"tcp_rto_min_us=700000"}},
	} {
		p, err := Resolve(c.tcp, c.machine)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if p.Kernel != c.kernel || p.Program != c.program {
			t.Errorf("%s: %q by program %q, want %q by %q", name, p.Kernel, p.Program, c.kernel, c.program)
		}
		var settings []string
		for _, s := range p.Settings {
			settings = append(settings, strings.TrimPrefix(s.Key, "net.ipv4.")+"="+s.Value)
		}
		for _, want := range c.has {
			if !slices.Contains(settings, want) {
				t.Errorf("%s: %s is not among %v", name, want, settings)
			}
		}
		if f := p.InForce; f.Kernel != p.Kernel || (f.Provider == "bpf") != (p.Program != "") || (f.SHA256 != "") !=
			(p.Program != "") {
			t.Errorf("%s: in force is %+v", name, f)
		}
	}
	old := Machine{Cookie: 36, Native: []string{"reno"}, Kernel: Version{6, 4}} // which doubles from the first SYN on
	p, err := Resolve(wire.TCP{Variant: "reno", Classic: true}, old)
	linear := func(s tcpcc.Setting) bool { return s.Key == tcpcc.SYNLinearKey }
	if err != nil || slices.ContainsFunc(p.Settings, linear) {
		t.Errorf("Linux 6.4 has no %s: %+v, %v", tcpcc.SYNLinearKey, p.Settings, err)
	}
	if _, err := Resolve(wire.TCP{Variant: "fack", SACK: off}, bare); err == nil {
		t.Error("fack without SACK is not an error")
	}
	for _, low := range []wire.TCP{{Variant: "reference", RTOMinMs: new(999)},
		{Variant: "reno", FixedRTO: true, RTOMinMs: new(499)}} {
		if _, err := Resolve(low, bare); err == nil || !strings.Contains(err.Error(), "too low") {
			t.Errorf("%+v with a timer that cannot be held: %v", low, err)
		}
	}
}

// A timer that is held has a largest RTO of its own, which is not the namespace's.
func TestLargestRTOIsReadBack(t *testing.T) {
	state := wire.Provenance{Sysctls: map[string]string{tcpcc.RTOMaxKey: "60000"}}
	for name, c := range map[string]struct {
		made wire.TCPInForce
		want bool
	}{
		"told":      {wire.TCPInForce{Variant: "reno"}, true},
		"fixed RTO": {wire.TCPInForce{Variant: "reno", FixedRTO: true}, false},
		"reference": {wire.TCPInForce{Variant: "reference"}, false},
	} {
		got := InForce(Profile{InForce: c.made}, state).RTOMaxMs
		if (got != nil) != c.want || got != nil && *got != 60_000 {
			t.Errorf("%s: in force is %v, want one: %t", name, got, c.want)
		}
	}
	if got := InForce(Profile{}, wire.Provenance{}).RTOMaxMs; got != nil {
		t.Errorf("on an older kernel in force is %d", *got)
	}
}

// What is recorded of the least RTO is what the kernel says, and nothing where
// a route may say otherwise.
func TestLeastRTOIsReadBack(t *testing.T) {
	told := map[string]string{tcpcc.RTOMinKey: "700000"}
	for name, c := range map[string]struct {
		state wire.Provenance
		want  *int
	}{
		"told":            {wire.Provenance{Sysctls: told, Routes: []string{"10.77.0.0/24 dev wlan0"}}, new(700000)},
		"an older kernel": {wire.Provenance{Sysctls: map[string]string{}}, nil},
		"a route of its own": {wire.Provenance{Sysctls: told,
			Routes: []string{"10.77.0.0/24 dev wlan0 rto_min_ms 300"}}, nil},
	} {
		got := InForce(Profile{InForce: wire.TCPInForce{Variant: "reno"}}, c.state).RTOMinUs
		if (got == nil) != (c.want == nil) || got != nil && *got != *c.want {
			t.Errorf("%s: in force is %v, want %v", name, got, c.want)
		}
	}
}

func TestNamesInTheKernel(t *testing.T) {
	for _, program := range tcpcc.Programs() {
		for _, cookie := range []uint64{1, 4097, 1 << 26} {
			name, err := tcpcc.KernelName(program, cookie)
			if err != nil {
				t.Fatal(err)
			}
			if back, ok := tcpcc.ProgramOf(name); !ok || back != program {
				t.Errorf("%s is called %s, which is read as %q", program, name, back)
			}
		}
	}
	for _, name := range []string{"reno", "bbr2_x", "reno_", "reno_%", "reference_1", "vegas1995_1"} {
		if p, ok := tcpcc.ProgramOf(name); ok {
			t.Errorf("%q is taken for our %s", name, p)
		}
	}
	if _, err := tcpcc.KernelName("westwood", ^uint64(0)); err == nil {
		t.Error("a name of more than 15 characters is not an error")
	}
	if _, err := Register("compound", "compound_1"); err == nil || !strings.Contains(err.Error(), "compound") {
		t.Errorf("a variant that does not exist: %v", err)
	}
}

func TestModulesOf(t *testing.T) {
	dep := "kernel/net/ipv4/tcp_vegas.ko:\nkernel/net/ipv4/tcp_bbr.ko.xz:\nkernel/net/ipv4/tcp_diag.ko: " +
		"kernel/net/ipv4/inet_diag.ko\nkernel/fs/tcp_fs.ko:\n"
	if got := modulesOf([]byte(dep), []string{"bbr"}); !slices.Equal(got, []string{"vegas"}) {
		t.Errorf("modules of congestion controls: %v", got)
	}
}

func TestAbilityNamesWhatWouldDo(t *testing.T) {
	a := ability("fixed_rto", "bpf",
		fmt.Errorf("probe: %w", &UnsupportedError{Feature: "fixed_rto", Needs: "Linux 6.15",
			Err: errors.New("this is Linux 6.1")}))
	if want := (wire.Ability{Feature: "fixed_rto", How: "none", Reason: "this is Linux 6.1", Needs: "Linux 6.15"}); a !=
		want {
		t.Errorf("%+v, want %+v", a, want)
	}
	for release, want := range map[string]Version{"6.12.5-cloud-amd64": {6, 12}, "5.10.198-android13": {5, 10}} {
		if v, err := ParseVersion(release); err != nil || v != want {
			t.Errorf("%s is read as %v, %v", release, v, err)
		}
	}
	if !(Version{6, 4}).AtLeast(structOpsLink) || (Version{6, 1}).AtLeast(structOpsLink) ||
		!(Version{7, 0}).AtLeast(rackAlways) {
		t.Error("versions compare wrongly")
	}
}

// Where the programs are compiled into the kernel, what is in force is told by
// their sources, and not by an object that was not loaded.
func TestAProgramThatIsCompiledInIsToldAsSuch(t *testing.T) {
	for compiled, want := range map[string]string{"": "bpf", "0123abcd": "compiled"} {
		m := Machine{Cookie: 36, Native: []string{"reno"}, Kernel: Version{7, 3}, CompiledIn: compiled}
		p, err := Resolve(wire.TCP{Variant: "tahoe", Classic: true}, m)
		if err != nil {
			t.Fatal(err)
		}
		f := p.InForce
		if f.Provider != want || f.Program != "tahoe" || f.SHA256 == "" || (f.SHA256 == compiled) != (compiled != "") {
			t.Errorf("compiled in %q: %+v", compiled, f)
		}
		if p, err = Resolve(wire.TCP{Variant: "reno"}, m); err != nil || p.InForce.Provider != "native" ||
			p.InForce.SHA256 != "" {
			t.Errorf("the kernel's own, compiled in %q: %+v, %v", compiled, p.InForce, err)
		}
	}
}
