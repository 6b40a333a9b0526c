//go:build e2e

package tcp

import (
	"net/netip"
	"testing"

	"fieldmesh.dev/fieldmesh/protocols/tcpcc"
	"fieldmesh.dev/fieldmesh/test/testnet"
)

// A bound in segments holds for whatever variant, from the first window on, and
// where slow start would long have gone beyond it. Connections of other
// namespaces do not know of it. Vegas is not among the variants: it leaves slow
// start when round trips lengthen, which on a busy machine is at any window.
func TestAWindowInPacketsIsNeverExceeded(t *testing.T) {
	testnet.Need(t)
	for program, segments := range map[string]int{tcpcc.Tahoe: 1, tcpcc.NewReno: 8, tcpcc.Westwood: 20, "reno": 4} {
		name := program
		if program != "reno" { // the kernel's own
			name = register(t, program).Name
		}
		for _, elsewhere := range []bool{false, true} {
			p := newPeer(t, false)
			var cookie uint64
			if elsewhere {
				cookie = cookieHere(t) // the test's own
			} else {
				p.ns.Do(t, func() error {
					cookie = cookieHere(t)
					return nil
				})
			}
			clamp, err := ClampWindow(Clamp{Of: Of{Cookie: cookie,
				Peers: netip.MustParsePrefix("10.55.0.0/24")}, Segments: segments})
			if err != nil {
				t.Fatal(err)
			}
			c := p.dial(t, name, 0)
			c.write(t, 400)
			p.drain(t)
			seen := c.sent / mss
			for c.acked < 200*mss {
				c.acked += mss
				p.give(t, p.ack(c, c.acked))
				p.drain(t)
				seen = max(seen, (c.sent-c.acked)/mss)
			}
			switch {
			case !elsewhere && seen != uint32(segments):
				t.Errorf("%s: up to %d segments were in flight, want %d", name, seen, segments)
			case elsewhere && seen <= uint32(segments):
				t.Errorf("%s: another namespace's bound of %d holds here: %d were in flight", name, segments, seen)
			}
			if err := clamp.Close(); err != nil {
				t.Error(err)
			}
		}
	}
}

// After two lost SYNs a connection begins with one segment (RFC 5681, section 3.1), and a bound is no window that it
// would begin with instead.
func TestAWindowInPacketsIsNoFirstWindow(t *testing.T) {
	testnet.Need(t)
	p := newPeer(t, false)
	var cookie uint64
	p.ns.Do(t, func() error { cookie = cookieHere(t); return nil })
	clamp, err := ClampWindow(Clamp{Of: Of{Cookie: cookie, Peers: netip.MustParsePrefix("10.55.0.0/24")}, Segments: 8})
	if err != nil {
		t.Fatal(err)
	}
	testnet.CloseAtEnd(t, clamp)
	for lost, want := range map[int]uint32{0: 8, 2: 1} {
		p.syns = lost
		c := p.dial(t, "reno", 0)
		c.write(t, 20)
		if p.drain(t); c.sent != want*mss {
			t.Errorf("after %d lost SYNs %d segments leave at once, want %d", lost, c.sent/mss, want)
		}
	}
}
