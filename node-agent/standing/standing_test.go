package standing

import (
	"errors"
	"io"
	"net"
	"net/netip"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"fieldmesh.dev/fieldmesh/node-agent/host"
	"fieldmesh.dev/fieldmesh/node-agent/host/change"
	"fieldmesh.dev/fieldmesh/node-agent/host/flows"
	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// A change is in force when the machine has it already, and is refused with its cure else.
func TestWhatStandsIsInForce(t *testing.T) {
	sack, err := os.ReadFile("/proc/sys/net/ipv4/tcp_sack")
	if err != nil {
		t.Fatal(err)
	}
	begin, err := os.ReadFile("/proc/sys/net/ipv4/tcp_congestion_control")
	if err != nil {
		t.Fatal(err)
	}
	first := strings.TrimSpace(string(begin))
	isSACK := strings.TrimSpace(string(sack))
	other := map[string]string{"0": "1", "1": "0"}[isSACK]
	address := func(text string) change.Change {
		return change.Address{Interface: "lo", Prefix: netip.MustParsePrefix(text)}
	}
	sysctl := func(key, value string) change.Change { return change.Sysctl{Key: "net.ipv4." + key, Value: value} }
	for name, c := range map[string]struct {
		change change.Change
		says   []string // of the refusal; nil: it stands
	}{
		"an address":      {address("127.0.0.1/8"), nil},
		"another length":  {address("127.0.0.1/24"), []string{"lo has 127.0.0.1/8", "mesh_address", "as root"}},
		"no such address": {address("10.77.0.1/24"), []string{"lo does not have it", "by hand"}},
		"up":              {change.Link{Interface: "lo", Up: new(true)}, nil},
		"no such link":    {change.Link{Interface: "none0", Up: new(true)}, []string{"join the network with none0"}},
		"an MTU":          {change.Link{Interface: "lo", Up: new(true), MTUBytes: new(1400)}, []string{"by hand"}},
		"a rule":          {change.Rule{Network: netip.MustParsePrefix("10.77.0.0/24")}, nil},
		"hygiene":         {sysctl("tcp_no_metrics_save", "1"), nil},
		"memory":          {change.TCPMetrics{Peers: netip.MustParsePrefix("10.77.0.0/24")}, nil},
		"patience":        {sysctl("tcp_syn_retries", "127"), nil},
		"as it is":        {sysctl("tcp_sack", isSACK), nil},
		"otherwise":       {sysctl("tcp_sack", other), []string{"it is " + isSACK + ", and only root can set it"}},
		"unknown":         {sysctl("tcp_none", "1"), []string{"cannot be read"}},
		"a variant":       {sysctl("tcp_congestion_control", first), nil},
		"an unknown one": {sysctl("tcp_congestion_control", "none"), []string{"refused congestion control none",
			"plan one of " + strings.Join(Offered(), ", ")}},
		"another kind":     {change.Offloads{Interface: "lo"}, []string{"only root can do that", "privileges: none"}},
		"an ad hoc radio":  {change.Radio{Interface: "lo", Mode: "adhoc"}, []string{"only root can do that"}},
		"a routing daemon": {change.Daemon{Name: "aodv", Interface: "lo"}, []string{"only root can do that"}},
	} {
		h := New()
		_, err := h.Apply(t.Context(), host.ScopeTrial, []change.Change{c.change})
		var refused *change.Refused
		if (c.says == nil) != (err == nil) || err != nil && !errors.As(err, &refused) {
			t.Errorf("%s: %v", name, err)
			continue
		}
		for _, text := range c.says {
			if !strings.Contains(err.Error(), text) {
				t.Errorf("%s: %q has no %q", name, err, text)
			}
		}
		st, err := h.Status(t.Context())
		if err != nil || slices.Contains(st.Pending, c.change.String()) != (c.says == nil) {
			t.Errorf("%s: in force are %q, %v", name, st.Pending, err)
		}
		if report, err := h.Restore(t.Context(), host.ScopeTrial); err != nil || len(report.Undone)+len(
			report.Failed) > 0 {
			t.Errorf("%s: it put back %+v, %v", name, report, err)
		}
		if st, _ := h.Status(t.Context()); len(st.Pending) > 0 {
			t.Errorf("%s: after the trial there are %q", name, st.Pending)
		}
	}
}

// What a sender has left drains for a while when its peer reads on, and is then nothing left.
func TestWhatDrainsIsNotLeft(t *testing.T) {
	for name, drains := range map[string]bool{"it drains": true, "it does not": false} {
		l, err := net.Listen("tcp4", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		peer, err := net.Dial("tcp4", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer peer.Close()
		sender, err := l.Accept()
		if err != nil {
			t.Fatal(err)
		}
		if err := sender.SetWriteDeadline(time.Now().Add(100 * time.Millisecond)); err != nil {
			t.Fatal(err)
		}
		if _, err := sender.Write(make([]byte, 64<<20)); !os.IsTimeout(err) {
			t.Fatalf("%s: more than the buffers hold was sent: %v", name, err)
		}
		if err := sender.Close(); err != nil {
			t.Fatal(err)
		}
		if drains {
			time.AfterFunc(100*time.Millisecond, func() { _, _ = io.Copy(io.Discard, peer) })
		}
		at := l.Addr().(*net.TCPAddr).AddrPort()
		out, err := New().Sever(t.Context(), host.Sever{Own: at.Addr(), Flows: []flows.End{{Peer: at.Addr(),
			Port: int(at.Port()), Streams: 1, Server: true}}})
		if err != nil || (out.Error == "") != drains ||
			!drains && !strings.Contains(out.Error, "1 sockets still send") {
			t.Errorf("%s: %+v, %v", name, out, err)
		}
	}
}

// A connection without ECN that chooses dctcp runs another.
func TestDCTCPIsNotChosen(t *testing.T) {
	begin, err := os.ReadFile("/proc/sys/net/ipv4/tcp_congestion_control")
	if err != nil {
		t.Fatal(err)
	}
	if strings.TrimSpace(string(begin)) == "dctcp" {
		t.Skip("connections begin with it here")
	}
	if err := choose("dctcp"); err == nil || !strings.Contains(err.Error(), "ECN") {
		t.Errorf("dctcp: %v", err)
	}
}

// What was found in force and is so no longer is not told as in force.
func TestWhatHasGoneIsNotInForce(t *testing.T) {
	prefix := netip.MustParsePrefix("10.77.0.1/24")
	h := New()
	h.found[host.ScopeTrial] = []change.Change{change.Link{Interface: "lo", Up: new(true)},
		change.Address{Interface: "lo", Prefix: prefix}}
	st, err := h.Status(t.Context())
	if err != nil || len(st.Pending) != 1 || !strings.HasPrefix(st.Pending[0], "link lo") {
		t.Errorf("in force are %q, %v", st.Pending, err)
	}
}

// What TCP can do here is what a program may choose for its sockets.
func TestAbilities(t *testing.T) {
	how := map[string]string{}
	for _, a := range Abilities() {
		if how[a.Feature] != "" {
			t.Errorf("%s is told twice", a.Feature)
		}
		how[a.Feature] = a.How
		if a.How == "none" && (a.Needs == "" || a.Reason == "") {
			t.Errorf("%+v has no cure", a)
		}
	}
	begin, err := os.ReadFile("/proc/sys/net/ipv4/tcp_congestion_control")
	if err != nil {
		t.Fatal(err)
	}
	first := strings.TrimSpace(string(begin))
	for feature, want := range map[string]string{"variant " + first: "native", "variant reno, classic": "none",
		"variant tahoe": "none", "fixed_rto": "none", "rto_min_ms": "none", "window_packets": "none", "sack": "none"} {
		if how[feature] != want {
			t.Errorf("%s: %q, want %q", feature, how[feature], want)
		}
	}
	if m, err := Machine(); err != nil || !slices.Contains(m.Native, first) || m.Kernel.Major == 0 {
		t.Errorf("%+v, %v", m, err)
	}
	if slices.ContainsFunc(Abilities(), func(a wire.Ability) bool { return a.Feature == wire.DestroySockets }) {
		t.Error("it reports whether sockets can be destroyed, which nobody asks it to do")
	}
}
