//go:build e2e

package host

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"strings"
	"testing"
	"time"

	"fieldmesh.dev/fieldmesh/node-agent/host/change"
	"fieldmesh.dev/fieldmesh/node-agent/host/flows"
	"fieldmesh.dev/fieldmesh/protocols/wire"
	"fieldmesh.dev/fieldmesh/test/testnet"
)

// ends are two joined namespaces, the first with a host process; the second has
// an address more, a stranger's.
type ends struct {
	server, client field
	host           *Client
	flow           flows.End // as the server sees it
}

func newEnds(t *testing.T) ends {
	t.Helper()
	a, b := newField(t)
	e := ends{server: a, client: b, flow: flows.End{Peer: netip.MustParseAddr("10.77.0.2"), Port: 5000, Streams: 1,
		ClientPort: 20000, Server: true}}
	e.host, _ = a.start(t, true)
	apply(t, e.host, ScopeRun, []change.Change{address("10.77.0.1/24")})
	for _, line := range []string{"addr add 10.77.0.2/24 dev wlan0", "addr add 10.77.0.66/24 dev wlan0"} {
		b.ns.Run(t, "ip", strings.Fields(line)...)
	}
	return e
}

// listen serves a port of the server's namespace.
func (e ends) listen(t *testing.T, at string) *net.TCPListener {
	t.Helper()
	var l *net.TCPListener
	e.server.ns.Do(t, func() error {
		any, err := net.Listen("tcp4", at)
		if err == nil {
			l = any.(*net.TCPListener)
		}
		return err
	})
	t.Cleanup(func() { _ = l.Close() })
	return l
}

// dial connects from an address of the client's namespace.
func (e ends) dial(t *testing.T, from, to string) (net.Conn, error) {
	t.Helper()
	local, err := net.ResolveTCPAddr("tcp4", from)
	if err != nil {
		t.Fatal(err)
	}
	var c net.Conn
	var dialErr error
	e.client.ns.Do(t, func() error {
		c, dialErr = (&net.Dialer{LocalAddr: local, Timeout: 500 * time.Millisecond}).Dial("tcp4", to)
		return nil
	})
	if c != nil {
		t.Cleanup(func() { _ = c.Close() })
	}
	return c, dialErr
}

// reach dials where somebody should answer: again where a busy machine was late.
func (e ends) reach(t *testing.T, from, to string) (err error) {
	t.Helper()
	for range 20 {
		if _, err = e.dial(t, from, to); !isTimeout(err) {
			break
		}
	}
	return err
}

func (e ends) sever(t *testing.T) flows.Severed {
	t.Helper()
	s, err := e.host.Sever(t.Context(), Sever{Interface: device, Own: netip.MustParseAddr("10.77.0.1"),
		Flows: []flows.End{e.flow}})
	if err != nil || s.Error != "" {
		t.Fatalf("severed %+v, %v", s, err)
	}
	return s
}

// Only a flow's other end reaches its server; what else comes is dropped and
// counted, and other ports are as they were.
//
//attack:air a stranger on the mesh who talks to a flow's server | only the flow's peer is let in, by nftables; a
//attack:and socket of another address counts for nothing, and fails the attempt
func TestE2EAdmissionIsTheFlowsPeerOnly(t *testing.T) {
	e := newEnds(t)
	e.listen(t, "10.77.0.1:5000")
	e.listen(t, "10.77.0.1:5001")
	if err := e.reach(t, "10.77.0.66:0", "10.77.0.1:5000"); err != nil {
		t.Fatalf("without admission: %v", err)
	}
	if s := e.sever(t); s.Refused != nil {
		t.Errorf("without admission %d packets are refused", *s.Refused)
	}
	before := e.server.snapshot(t)
	apply(t, e.host, ScopeTrial,
		[]change.Change{change.Admission{Own: netip.MustParseAddr("10.77.0.1"), Flows: []flows.End{e.flow}}})
	if _, err := e.dial(t, "10.77.0.66:0", "10.77.0.1:5000"); !isTimeout(err) {
		t.Errorf("a stranger reaches the server: %v", err)
	}
	for _, way := range [][2]string{{"10.77.0.2:0", "10.77.0.1:5000"}, {"10.77.0.66:0", "10.77.0.1:5001"}} {
		if err := e.reach(t, way[0], way[1]); err != nil {
			t.Errorf("%s to %s: %v", way[0], way[1], err)
		}
	}
	if s := e.sever(t); s.Refused == nil || *s.Refused < 1 || *s.Refused > 3 {
		t.Errorf("severed %+v, want the stranger's SYN refused", s)
	}
	if _, err := e.host.Restore(t.Context(), ScopeTrial); err != nil {
		t.Fatal(err)
	}
	mustEqual(t, "after admission", before, e.server.snapshot(t))
}

// What a node's own firewall stops is told apart from what the network does, of
// packets in and out; what it lets pass is no firewall's.
func TestE2EWhatAFirewallStopsIsTold(t *testing.T) {
	testnet.Need(t, "nft")
	const table = "table inet firewalld { chain filter_INPUT { type filter hook input priority 10; %s; }; " +
		"chain filter_OUTPUT { type filter hook output priority 10; %s; }; }"
	for name, c := range map[string]struct {
		in, out string
		stopped bool // all of the flow
		refusal bool // the client hears of it
	}{
		"none":            {"accept", "accept", false, false},
		"a reject":        {"tcp dport 5000 reject with icmpx type admin-prohibited", "accept", true, true},
		"a drop":          {"tcp dport 5000 drop", "accept", true, false},
		"a drop of all":   {"ip saddr 10.77.0.2 drop", "accept", true, false},
		"on its way out":  {"accept", "tcp sport 5000 drop", true, false},
		"of another port": {"tcp dport 5001 drop", "accept", false, false},
	} {
		t.Run(name, func(t *testing.T) {
			e := newEnds(t)
			e.listen(t, "10.77.0.1:5000")
			e.server.ns.Run(t, "nft", fmt.Sprintf(table, c.in, c.out))
			apply(t, e.host, ScopeTrial,
				[]change.Change{change.Admission{Own: netip.MustParseAddr("10.77.0.1"), Flows: []flows.End{e.flow}}})
			try := e.reach
			if c.stopped {
				try = func(t *testing.T, from, to string) error { _, err := e.dial(t, from, to); return err }
			}
			err := try(t, "10.77.0.2:20000", "10.77.0.1:5000")
			if (err != nil) != c.stopped || c.stopped && isTimeout(err) == c.refusal {
				t.Fatalf("dialled: %v", err)
			}
			s := e.sever(t)
			if len(s.Filtered) != 1 || s.Filtered[0].Wholly != c.stopped || (s.Filtered[0].Packets > 0) != c.stopped {
				t.Errorf("severed %+v, want all stopped: %t", s, c.stopped)
			}
		})
	}
}

// A kernel that destroys sockets is told as one that can.
func TestE2EThatSocketsCanBeDestroyedIsTold(t *testing.T) {
	e := newEnds(t)
	st, err := e.host.Status(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range st.TCP {
		if a.Feature == wire.DestroySockets {
			if a.How != "native" {
				t.Errorf("%+v, and the sockets of these tests are destroyed", a)
			}
			return
		}
	}
	t.Errorf("it is not told: %+v", st.TCP)
}

// A network that loses the server's answers is no firewall of the server's.
func TestE2EALostAnswerIsNoFirewall(t *testing.T) {
	testnet.Need(t, "nft")
	e := newEnds(t)
	e.listen(t, "10.77.0.1:5000")
	e.client.ns.Run(t, "nft", "table ip lost { chain in { type filter hook prerouting priority 0; "+
		"tcp sport 5000 drop; }; }")
	apply(t, e.host, ScopeTrial,
		[]change.Change{change.Admission{Own: netip.MustParseAddr("10.77.0.1"), Flows: []flows.End{e.flow}}})
	if _, err := e.dial(t, "10.77.0.2:20000", "10.77.0.1:5000"); !isTimeout(err) {
		t.Fatalf("dialled: %v", err)
	}
	if s := e.sever(t); len(s.Filtered) != 1 || s.Filtered[0] != (flows.Filtered{}) {
		t.Errorf("severed %+v, want nothing filtered", s)
	}
}

func isTimeout(err error) bool {
	var n net.Error
	return errors.As(err, &n) && n.Timeout()
}

// Where the controller has a link of its own, nobody on the network under test
// reaches the agent's port, at whichever of the node's addresses; other ports
// and other interfaces are as they were.
//
//attack:air whoever knocks at the agent's own port over the mesh under test | where the plan gives the controller a
//attack:and link of its own, nftables drops it for the run
func TestE2EControlPortIsClosedToTheNetworkUnderTest(t *testing.T) {
	e := newEnds(t)
	testnet.Veth(t, e.server.ns, "ctl0", "192.168.9.1/24", e.client.ns, "ctl0", "192.168.9.2/24")
	for _, port := range []string{"7443", "7444"} {
		e.listen(t, "0.0.0.0:"+port)
	}
	before := e.server.snapshot(t)
	apply(t, e.host, ScopeRun, []change.Change{closedControl()})
	for to, reached := range map[string]bool{"10.77.0.1:7443": false, "192.168.7.1:7443": false,
		"192.168.9.1:7443": true, "10.77.0.1:7444": true, "192.168.7.1:7444": true} {
		from := "192.168.9.2:0"
		switch {
		case strings.HasPrefix(to, "10.77"):
			from = "10.77.0.66:0"
		case strings.HasPrefix(to, "192.168.7"):
			from = "192.168.7.2:0"
		}
		if reached {
			if err := e.reach(t, from, to); err != nil {
				t.Errorf("%s to %s: %v", from, to, err)
			}
		} else if _, err := e.dial(t, from, to); !isTimeout(err) {
			t.Errorf("%s to %s: %v", from, to, err)
		}
	}
	// A weak host has its other addresses at every interface.
	e.client.ns.Run(t, "ip", "route", "add", "192.168.9.1/32", "via", "192.168.7.1", "dev", device)
	if _, err := e.dial(t, "192.168.7.2:0", "192.168.9.1:7443"); !isTimeout(err) {
		t.Errorf("the control link's address over the network under test: %v", err)
	}
	restoreAll(t, e.host)
	if err := e.reach(t, "192.168.7.2:0", "192.168.7.1:7443"); err != nil {
		t.Errorf("after the run: %v", err)
	}
	apply(t, e.host, ScopeRun, []change.Change{address("10.77.0.1/24")})
	mustEqual(t, "after the run", before, e.server.snapshot(t))
	for port, iface := range map[int]string{22: device, 7443: "ctl0"} {
		c := change.ControlPort{Interface: iface, Own: netip.MustParseAddr("10.77.0.1"), Port: port}
		if _, err := e.host.Apply(t.Context(), ScopeRun, []change.Change{c}); err == nil {
			t.Errorf("port %d is closed on %s", port, iface)
		}
	}
}

// What a flow leaves is destroyed, in whatever state, without a packet; other
// connections of the node stay.
func TestE2ESeveredSocketsAreGoneAndSilent(t *testing.T) {
	testnet.Need(t, "ss")
	for _, admitted := range []bool{true, false} {
		t.Run(fmt.Sprintf("admission %t", admitted), func(t *testing.T) {
			e := newEnds(t)
			if admitted {
				apply(t, e.host, ScopeTrial, []change.Change{change.Admission{Own: netip.MustParseAddr("10.77.0.1"),
					Flows: []flows.End{e.flow}}})
			}
			flow, other := e.listen(t, "10.77.0.1:5000"), e.listen(t, "10.77.0.1:5001")
			open, err1 := e.dial(t, "10.77.0.2:20000", "10.77.0.1:5000")
			orphaned, err2 := e.dial(t, "10.77.0.2:20001", "10.77.0.1:5000")
			kept, err3 := e.dial(t, "10.77.0.2:0", "10.77.0.1:5001")
			if err := errors.Join(err1, err2, err3); err != nil {
				t.Fatal(err)
			}
			for range 2 {
				c, err := flow.AcceptTCP()
				if err != nil {
					t.Fatal(err)
				}
				if c.RemoteAddr().String() == orphaned.LocalAddr().String() {
					// Nobody takes what is sent: the orphan has data to send on and on.
					e.client.ns.Run(t, "ip", "link", "set", "dev", device, "down")
					if _, err := c.Write(make([]byte, 10_000)); err != nil {
						t.Fatal(err)
					}
				}
				_ = c.Close()
			}
			if left := e.server.ns.Run(t, "ss", "-Htan", "sport", "=", ":5000"); strings.Count(left, "\n") < 2 {
				t.Fatalf("there is nothing to destroy: this test shows nothing\n%s", left)
			}
			sentBefore := e.sent(t)
			s := e.sever(t)
			if s.Destroyed != 2 {
				t.Errorf("%d sockets are destroyed, want 2", s.Destroyed)
			}
			if left := e.server.ns.Run(t, "ss", "-Htan", "state", "connected", "sport", "=", ":5000"); left != "" {
				t.Errorf("left:\n%s", left)
			}
			if now := e.sent(t); admitted && now != sentBefore {
				t.Errorf("%d packets left the node while sockets were destroyed", now-sentBefore)
			}
			e.client.ns.Run(t, "ip", "link", "set", "dev", device, "up")
			_ = open
			in, err := other.Accept()
			if err != nil {
				t.Fatal(err)
			}
			if _, err := kept.Write([]byte("here")); err != nil {
				t.Errorf("another connection: %v", err)
			}
			buf := make([]byte, 4)
			_ = in.SetReadDeadline(time.Now().Add(20 * time.Second))
			if _, err := io.ReadFull(in, buf); err != nil || string(buf) != "here" {
				t.Errorf("another connection: %q, %v", buf, err)
			}
		})
	}
}

// sent counts the packets that left the server's interface.
func (e ends) sent(t *testing.T) (n int) {
	t.Helper()
	text := e.server.ns.Run(t, "cat", "/sys/class/net/wlan0/statistics/tx_packets")
	if _, err := fmt.Sscan(text, &n); err != nil {
		t.Fatal(err)
	}
	return n
}

// A packet that waits for its neighbour to be found is not sent once the trial
// is over.
func TestE2ESeveredPacketsDoNotWaitForANeighbour(t *testing.T) {
	testnet.Need(t, "tcpdump")
	for _, severed := range []bool{false, true} {
		e := newEnds(t)
		// The kernel asks once a second. It asks for longer than usual, so that whoever listens is there.
		e.server.ns.Run(t, "sysctl", "-qw", "net.ipv4.neigh.wlan0.mcast_solicit=30")
		e.client.ns.Run(t, "ip", "link", "set", "dev", device, "arp", "off") // it does not answer
		e.server.ns.Do(t, func() error {
			c, err := net.Dial("udp4", "10.77.0.2:5009")
			if err != nil {
				return err
			}
			defer c.Close()
			_, err = c.Write([]byte("of the former trial"))
			return err
		})
		if severed {
			if s, err := e.host.Sever(t.Context(), Sever{Interface: device}); err != nil || s.Error != "" {
				t.Fatalf("severed %+v, %v", s, err)
			}
		}
		heard := testnet.Start(t, e.client.ns.Command(t.Context(), "timeout", "6", "tcpdump", "-nn", "-c", "1", "-i",
			device, "udp", "port", "5009"))
		heard.Says(t, "listening on")
		e.client.ns.Run(t, "ip", "link", "set", "dev", device, "arp", "on")
		err := heard.Wait(t, time.Minute) // tcpdump ends well when it has heard one
		if severed && err == nil {
			t.Error("a packet of before is sent to the neighbour that was found")
		}
		if !severed && err != nil {
			t.Errorf("without severing no packet comes: this test shows nothing: %v", err)
		}
	}
}

// What is not a flow of this node's on the mesh is not severed.
func TestE2ESeverIsBounded(t *testing.T) {
	e := newEnds(t)
	good := Sever{Interface: device, Own: netip.MustParseAddr("10.77.0.1"), Flows: []flows.End{e.flow}}
	for name, spoil := range map[string]func(*Sever){
		"another address": func(s *Sever) { s.Own = netip.MustParseAddr("192.168.7.1") },
		"another peer":    func(s *Sever) { s.Flows[0].Peer = netip.MustParseAddr("192.168.7.2") },
		"a system's port": func(s *Sever) { s.Flows[0].Port = 22 },
		"another link":    func(s *Sever) { s.Interface = "lo" },
		"no address":      func(s *Sever) { s.Own = netip.Addr{} },
	} {
		s := Sever{Interface: device, Own: good.Own, Flows: []flows.End{e.flow}}
		spoil(&s)
		var refused *change.Refused
		if _, err := e.host.Sever(t.Context(), s); !errors.As(err, &refused) {
			t.Errorf("%s: %v, want it refused", name, err)
		}
	}
}

// As many flows as a trial may have find room in the table, and their counts are
// read back.
func TestE2EAdmissionOfTheMostFlows(t *testing.T) {
	e := newEnds(t)
	var ends []flows.End
	for i := range wire.MaxFlows {
		ends = append(ends, flows.End{Peer: netip.MustParseAddr("10.77.0.2"), Port: 5000 + i, Streams: 1,
			ClientPort: 20000 + i, Server: i%2 == 0})
	}
	own := netip.MustParseAddr("10.77.0.1")
	apply(t, e.host, ScopeTrial, []change.Change{change.Admission{Own: own, Flows: ends}})
	s, err := e.host.Sever(t.Context(), Sever{Interface: device, Own: own, Flows: ends})
	if err != nil || s.Error != "" || len(s.Filtered) != len(ends) || s.Refused == nil {
		t.Errorf("severed %+v, %v", s, err)
	}
}
