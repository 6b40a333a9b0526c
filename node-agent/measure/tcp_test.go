package measure

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os/exec"
	"strings"
	"testing"
	"time"

	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// pair is a set of loopback connections laid out as iperf3's: one control
// connection and streams from consecutive client ports.
type pair struct {
	flow           wire.Flow
	control        [2]net.Conn // client, server
	client, server []net.Conn  // by stream
	listener       *net.TCPListener
}

// connect makes the connections; first says which client port to try first.
func connect(t testing.TB, streams, first int) *pair {
	t.Helper()
	l, err := net.ListenTCP("tcp4", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	p := &pair{listener: l, flow: wire.Flow{
		Name: "main", Kind: "iperf3_tcp", From: "sender", To: "receiver", Port: l.Addr().(*net.TCPAddr).Port,
		Streams: streams,
	}}
	p.control[0], p.control[1] = p.dial(t, 0)
	for try := range 50 {
		if p.data(t, first+try*(streams+1)) {
			return p
		}
	}
	t.Fatalf("no %d free ports in a row", streams)
	return nil
}

// data connects all streams from consecutive ports; false when one is taken.
func (p *pair) data(t testing.TB, first int) bool {
	for i := range p.flow.Streams {
		probe, err := net.ListenTCP("tcp4", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: first + i})
		if err != nil {
			return false
		}
		_ = probe.Close()
	}
	p.flow.ClientPort = first
	for i := range p.flow.Streams {
		c, s := p.dial(t, first+i)
		p.client, p.server = append(p.client, c), append(p.server, s)
	}
	return true
}

func (p *pair) dial(t testing.TB, port int) (client, server net.Conn) {
	t.Helper()
	client, err := net.DialTCP("tcp4", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: port},
		p.listener.Addr().(*net.TCPAddr))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	server, err = p.listener.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Close() })
	return client, server
}

// transfer sends n bytes over a connection and reads them at its other end.
func transfer(t testing.TB, from, to net.Conn, n int) {
	t.Helper()
	if _, err := from.Write(make([]byte, n)); err != nil {
		t.Fatal(err)
	}
	for buf := make([]byte, 4096); n > 0; {
		got, err := to.Read(buf)
		if err != nil {
			t.Fatal(err)
		}
		n -= got
	}
}

func source(t testing.TB, self string, flows ...wire.Flow) *TCP {
	t.Helper()
	here := netip.MustParseAddr("127.0.0.1")
	return sourceAt(t, self, map[string]netip.Addr{"sender": here, "receiver": here}, flows...)
}

func sourceAt(t testing.TB, self string, addresses map[string]netip.Addr, flows ...wire.Flow) *TCP {
	t.Helper()
	s := NewTCP(self, flows, addresses)
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// edge is Edge where the end of every socket is known.
func edge(s *TCP, name string) ([]wire.Body, error) {
	bodies, missed, err := s.Edge(name, 1)
	if err == nil && missed != (Missed{}) {
		err = fmt.Errorf("sockets were missed: %+v", missed)
	}
	return bodies, err
}

func byStream(t testing.TB, bodies []wire.Body, err error) map[int]*wire.TCPSample {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	out := map[int]*wire.TCPSample{}
	for _, b := range bodies {
		s := b.(*wire.TCPSample)
		stream := -1
		if s.Stream != nil {
			stream = *s.Stream
		}
		if out[stream] != nil {
			t.Fatalf("two samples of stream %d", stream)
		}
		out[stream] = s
	}
	return out
}

func TestSocketsAreFoundAndCountedExactly(t *testing.T) {
	p := connect(t, 3, 23100)
	receiver, sender := source(t, "receiver", p.flow), source(t, "sender", p.flow)
	bodies, err := edge(receiver, "open")
	open := byStream(t, bodies, err)
	if len(open) != 3 || open[-1] != nil {
		t.Fatalf("an edge is of the data sockets only: %v", open)
	}
	for i := range 3 {
		transfer(t, p.client[i], p.server[i], 1000*(i+1))
	}
	transfer(t, p.control[0], p.control[1], 77)
	bodies, err = receiver.Before("close")
	before := byStream(t, bodies, err)
	for i := range 3 {
		transfer(t, p.client[i], p.server[i], 1)
	}
	bodies, err = edge(receiver, "close")
	closing := byStream(t, bodies, err)
	bodies, err = receiver.Sample(1e9)
	ticks := byStream(t, bodies, err)
	for i := range 3 {
		c := closing[i]
		if c == nil || ticks[i] == nil {
			t.Fatalf("stream %d is missing: %v %v", i, closing, ticks)
		}
		if got := c.BytesReceived - open[i].BytesReceived; got != uint64(1000*(i+1)+1) {
			t.Errorf("stream %d received %d bytes", i, got)
		}
		if b := before[i]; b == nil || b.BytesReceived+1 != c.BytesReceived || b.Edge != "before_close" || !b.Before() {
			t.Errorf("stream %d had %+v before", i, b)
		}
		if len(before) != 3 || c.Edge != "close" || open[i].Edge != "open" || ticks[i].Edge != "" || c.Flow != "main" ||
			c.State != "ESTABLISHED" || c.Cookie == 0 || c.Cookie != ticks[i].Cookie {
			t.Errorf("stream %d: %+v", i, c)
		}
		if c.Local != p.listener.Addr().String() || c.Remote != fmt.Sprintf("127.0.0.1:%d", p.flow.ClientPort+i) {
			t.Errorf("stream %d: %s from %s", i, c.Local, c.Remote)
		}
		if c.MSSBytes == 0 || c.RTOUs == 0 || c.CwndSegments == 0 || c.Congestion == "" || c.SsthreshSegments != nil ||
			c.BytesSent == nil || *c.BytesSent != 0 {
			t.Errorf("stream %d: %+v", i, c)
		}
	}
	if ticks[-1] == nil || ticks[-1].BytesReceived != 77 || len(ticks) != 4 {
		t.Errorf("control connection: %+v", ticks[-1])
	}
	bodies, err = sender.Sample(1e9)
	sent := byStream(t, bodies, err)
	for i := range 3 {
		if sent[i] == nil || *sent[i].BytesSent != uint64(1000*(i+1)+1) || sent[i].BytesReceived != 0 ||
			*sent[i].BytesRetrans != 0 {
			t.Errorf("sender's stream %d: %+v", i, sent[i])
		}
	}
}

// A link that comes back while the flow's ends still wait brings sockets after the close.
// They are seen while they live, which tells them from those of the window.
func TestASocketThatComesAfterTheCloseIsSeenAlive(t *testing.T) {
	p := connect(t, 1, 24600)
	s := source(t, "receiver", p.flow)
	if bodies, err := edge(s, "open"); err != nil || len(bodies) != 1 {
		t.Fatalf("%v, %v", bodies, err)
	}
	for _, c := range []net.Conn{p.client[0], p.server[0]} { // with a reset, so that the port is free
		if err := errors.Join(c.(*net.TCPConn).SetLinger(0), c.Close()); err != nil {
			t.Fatal(err)
		}
	}
	for _, at := range []int64{1e9, 5e9, 10e9} {
		if _, err := s.Sample(at); err != nil {
			t.Fatal(err)
		}
	}
	if _, _, err := s.Edge("close", 10e9+1); err != nil {
		t.Fatal(err)
	}
	p.dial(t, p.flow.ClientPort)
	bodies, err := s.Sample(10e9 + 1e8)
	if got := byStream(t, bodies, err); got[0] == nil || got[0].State != "ESTABLISHED" {
		t.Errorf("a tenth of a second after the close: %v", bodies)
	}
}

// A link that comes late in the window brings its sockets late, and at which beat is what
// the figures of an outage and of the first byte are told by.
func TestASocketThatComesLateInTheWindowIsSeenAtTheNextBeat(t *testing.T) {
	p := connect(t, 1, 24700)
	for _, c := range []net.Conn{p.client[0], p.server[0]} { // with a reset, so that the port is free
		if err := errors.Join(c.(*net.TCPConn).SetLinger(0), c.Close()); err != nil {
			t.Fatal(err)
		}
	}
	p.flow.DurationS = 2
	s := source(t, "receiver", p.flow)
	if bodies, err := edge(s, "open"); err != nil || len(bodies) != 0 {
		t.Fatalf("%v, %v", bodies, err)
	}
	const connects, beat = int64(3.05e9), int64(1e8) // after the flow's own end: its client may connect so late
	for now := beat; now < 10e9; now += beat {
		if now > connects && now <= connects+beat {
			p.dial(t, p.flow.ClientPort)
		}
		bodies, err := s.Sample(now)
		if got := byStream(t, bodies, err); got[0] != nil {
			if now > connects+beat {
				t.Errorf("it is seen %d ms after it came, want at most a beat of 100 ms", (now-connects)/1e6)
			}
			return
		}
	}
	t.Error("it is never seen")
}

func TestSampleBySocketEqualsWhatADumpSays(t *testing.T) {
	p := connect(t, 2, 23200)
	s := source(t, "receiver", p.flow)
	transfer(t, p.client[0], p.server[0], 5000)
	// Two looks at quiet sockets say the same, whichever way they are asked.
	bodies, err := s.Sample(1)
	dumped := byStream(t, bodies, err)
	bodies, err = s.Sample(2)
	asked := byStream(t, bodies, err)
	for stream, d := range dumped {
		a, err := json.Marshal(asked[stream])
		if err != nil {
			t.Fatal(err)
		}
		if b, err := json.Marshal(d); err != nil || string(a) != string(b) {
			t.Errorf("asked  %s\ndumped %s (%v)", a, b, err)
		}
	}
	if len(asked) != 3 {
		t.Errorf("%d sockets", len(asked))
	}
}

func TestAGoneSocketIsAbsentAndALateOneIsFound(t *testing.T) {
	p := connect(t, 2, 23300)
	s := source(t, "receiver", p.flow)
	bodies, err := s.Sample(1e9)
	if first := byStream(t, bodies, err); len(first) != 3 {
		t.Fatalf("%d sockets", len(first))
	}
	transfer(t, p.client[0], p.server[0], 10)
	// A reset leaves no TIME_WAIT behind.
	if err := p.client[0].(*net.TCPConn).SetLinger(0); err != nil {
		t.Fatal(err)
	}
	_, _ = p.client[0].Close(), p.server[0].Close()
	last := false // the kernel reports its end a little after it
	for now := int64(2e9); now < 3e9 && !last; now += 1e7 {
		time.Sleep(10 * time.Millisecond)
		bodies, err = s.Sample(now)
		got := byStream(t, bodies, err)
		last = got[0] != nil && got[0].State == "CLOSE"
		if got[0] != nil && !last || got[1] == nil {
			t.Errorf("after stream 0 has gone: %v", got)
		}
	}
	if !last {
		t.Error("stream 0 has no last sample")
	}
	bodies, err = edge(s, "close")
	if got := byStream(t, bodies, err); got[0] != nil || got[1] == nil {
		t.Errorf("edge after stream 0 has gone: %v", got)
	}
	p.dial(t, p.flow.ClientPort)
	bodies, err = s.Sample(10e9)
	if got := byStream(t, bodies, err); got[0] == nil || len(got) != 3 {
		t.Errorf("after stream 0 has come back: %v", got)
	}
}

// A socket that ends between its last sample and the edge is counted to its end.
func TestAnEdgeCountsWhatASocketReceivedBeforeItEnded(t *testing.T) {
	p := connect(t, 2, 23700)
	s := source(t, "receiver", p.flow)
	transfer(t, p.client[0], p.server[0], 1000)
	bodies, err := s.Sample(1e9)
	if first := byStream(t, bodies, err); first[0] == nil || first[0].BytesReceived != 1000 {
		t.Fatalf("before its end: %+v", first[0])
	}
	transfer(t, p.client[0], p.server[0], 234_000)
	_, _ = p.client[0].Close(), p.server[0].Close()
	bodies, err = edge(s, "close")
	got := byStream(t, bodies, err)
	// A FIN counts as a byte.
	if got[0] == nil || got[0].BytesReceived-235_000 > 1 || got[0].Edge != "close" || got[0].State != "CLOSE" ||
		got[0].Congestion == "" {
		t.Errorf("the ended one: %+v", got[0])
	}
	if got[1] == nil || got[1].State != "ESTABLISHED" {
		t.Errorf("the other: %+v", got[1])
	}
	bodies, err = edge(s, "close")
	if got := byStream(t, bodies, err); got[0] != nil || got[1] == nil {
		t.Errorf("its end is told again: %+v", got[0])
	}
}

// Of a socket that is gone without a word of the kernel's nothing is known, and
// an edge says so, once.
func TestAnEdgeCountsTheSocketsOfWhoseEndNothingIsKnown(t *testing.T) {
	p := connect(t, 2, 23800)
	s := source(t, "receiver", p.flow)
	transfer(t, p.client[0], p.server[0], 1000)
	if _, err := s.Sample(1e9); err != nil {
		t.Fatal(err)
	}
	if err := s.ends.close(); err != nil { // a kernel that reports no ends
		t.Fatal(err)
	}
	s.deaf = true
	_, _ = p.client[0].Close(), p.server[0].Close()
	bodies, missed, err := s.Edge("close", 2)
	if got := byStream(t, bodies, err); missed.Unknown != 1 || got[0] != nil || got[1] == nil {
		t.Errorf("%d sockets of whose end nothing is known, want 1; samples %v", missed.Unknown, got)
	}
	if _, missed, err := s.Edge("close", 2); missed.Unknown != 0 || err != nil {
		t.Errorf("told again: %d, %v", missed.Unknown, err)
	}
	s.ends.overruns = 1 // the kernel had more to tell than there was room for
	if _, missed, err := s.Edge("close", 2); missed.Unknown != 1 || err != nil {
		t.Errorf("news was lost: %d, %v, want 1", missed.Unknown, err)
	}
}

// A socket of another address at the flow's server is a stranger's: it is
// reported, and counts for nothing.
//
//attack:air a stranger on the mesh who talks to a flow's server
func TestASocketOfAnotherAddressIsAStrangers(t *testing.T) {
	p := connect(t, 1, 23900)
	here, away := netip.MustParseAddr("127.0.0.1"), netip.MustParseAddr("127.0.0.66")
	s := NewTCP("receiver", []wire.Flow{p.flow}, map[string]netip.Addr{"receiver": here, "sender": away})
	defer s.Close()
	transfer(t, p.client[0], p.server[0], 4321)
	bodies, missed, err := s.Edge("close", 2)
	if err != nil || missed != (Missed{}) || len(bodies) != 2 { // the data and the control connection
		t.Fatalf("%v, %+v, %v", bodies, missed, err)
	}
	data := uint64(0)
	for _, b := range bodies {
		v := b.(*wire.TCPSample)
		data = max(data, v.BytesReceived)
		if !v.Stranger || v.Stream != nil || v.Edge != "close" || !strings.HasPrefix(v.Remote, "127.0.0.1:") {
			t.Errorf("%+v is not told as a stranger's", v)
		}
	}
	if data != 4321 {
		t.Errorf("the stranger's bytes: %d", data)
	}
	if got, err := NewTCP("sender", []wire.Flow{p.flow}, map[string]netip.Addr{"receiver": away, "sender": here}).
		Sample(1); len(got) != 0 || err != nil {
		t.Errorf("this node's own connections to others are none of the flow's: %v, %v", got, err)
	}
}

// More strangers than are watched are counted at an edge, and reported between.
//
//attack:air a crowd of connections to a flow's port, to slow the sampling down | some are watched, and the others
//attack:and counted
func TestACrowdOfStrangersIsNotAllWatched(t *testing.T) {
	p := connect(t, strangersMost+3, 24000)
	here, away := netip.MustParseAddr("127.0.0.1"), netip.MustParseAddr("127.0.0.66")
	s := NewTCP("receiver", []wire.Flow{p.flow}, map[string]netip.Addr{"receiver": here, "sender": away})
	defer s.Close()
	bodies, missed, err := s.Edge("open", 1)
	if err != nil || len(bodies) != strangersMost || missed.Unwatched != 4 { // and the control connection
		t.Errorf("%d samples, %+v, %v", len(bodies), missed, err)
	}
	bodies, err = s.Sample(1)
	if len(bodies) != strangersMost || err == nil || !strings.Contains(err.Error(), "20 connections of strangers") {
		t.Errorf("%d samples, %v", len(bodies), err)
	}
}

func TestFlowsOfOthersAndOtherAttemptsAreNotMixed(t *testing.T) {
	p := connect(t, 2, 23400)
	if got, err := source(t, "relay", p.flow).Sample(1); len(got) != 0 || err != nil {
		t.Errorf("a node without a part in the flow has %d samples, %v", len(got), err)
	}
	another := p.flow
	another.ClientPort -= 128
	bodies, err := edge(source(t, "receiver", another), "open")
	if got := byStream(t, bodies, err); len(got) != 0 {
		t.Errorf("sockets of another attempt are taken for this one's: %v", got)
	}
	reverse := p.flow
	reverse.Reverse, reverse.From, reverse.To = true, reverse.To, reverse.From
	bodies, err = edge(source(t, "receiver", reverse), "open")
	if got := byStream(t, bodies, err); len(got) != 2 ||
		!strings.HasSuffix(got[0].Local, fmt.Sprint(":", p.flow.Port)) {
		t.Errorf("reversed, the sending node is the server: %v", got)
	}
	second := connect(t, 1, 23450)
	second.flow.Name = "other"
	bodies, err = edge(source(t, "receiver", p.flow, second.flow), "open")
	if err != nil || len(bodies) != 3 {
		t.Errorf("two flows: %d samples, %v", len(bodies), err)
	}
	udp := p.flow
	udp.Kind = "iperf3_udp"
	bodies, err = edge(source(t, "receiver", udp), "open")
	if err != nil || len(bodies) != 0 {
		t.Errorf("a UDP flow has no data sockets of TCP: %d, %v", len(bodies), err)
	}
}

func TestLooksAreRareOnceAllIsFound(t *testing.T) {
	missing := source(t, "receiver", wire.Flow{Kind: "iperf3_tcp", From: "s", To: "receiver", Port: 9, Streams: 1,
		ClientPort: 9})
	looks := 0
	for now := int64(0); now < 20e9; now += 100e6 {
		if _, err := missing.Sample(now); err != nil {
			t.Fatal(err)
		}
		if missing.lookedNs == now {
			looks++
		}
	}
	if looks < 30 || looks > 45 {
		t.Errorf("%d looks in 20 s for a socket that is not there, want 20 in the first 2 s and then one a second",
			looks)
	}
	p := connect(t, 1, 23500)
	there := source(t, "receiver", p.flow)
	for now := int64(1e9); now < 5e9; now += 100e6 {
		if _, err := there.Sample(now); err != nil {
			t.Fatal(err)
		}
	}
	if there.lookedNs != 1e9 {
		t.Errorf("looked again at %d though all was found", there.lookedNs)
	}
}

// In the window the kernel's table is walked at every beat for sockets that are missing, and not for those of flows
// that are over or not due yet, nor for a UDP flow, which has none.
func TestLooksAreRareForFlowsThatDoNotRun(t *testing.T) {
	p := connect(t, 1, 24800)
	p.flow.DurationS = 2
	later, udp := p.flow, p.flow
	later.StartS, later.Port, later.ClientPort = 10, 9, 9
	udp.Kind, udp.Port = "iperf3_udp", 9
	over := source(t, "receiver", p.flow)
	sources := map[string]*TCP{"over": over, "not due yet": source(t, "receiver", later),
		"udp": source(t, "receiver", udp)}
	for name, s := range sources {
		if bodies, err := edge(s, "open"); err != nil || len(bodies) > 0 && s != over {
			t.Fatalf("%s: %v, %v", name, bodies, err)
		}
	}
	looks := map[string]int{}
	for now := int64(1e8); now < 10e9; now += 1e8 {
		if now == 2e9 {
			for _, c := range []net.Conn{p.client[0], p.server[0], p.control[0], p.control[1]} {
				if err := errors.Join(c.(*net.TCPConn).SetLinger(0), c.Close()); err != nil {
					t.Fatal(err)
				}
			}
		}
		for name, s := range sources {
			if _, err := s.Sample(now); err != nil {
				t.Fatal(err)
			}
			if s.lookedNs == now && now >= 3e9 {
				looks[name]++
			}
		}
	}
	for name := range sources {
		if looks[name] > 8 {
			t.Errorf("%s: %d looks from 3 s to 10 s, want one a second", name, looks[name])
		}
	}
}

func TestInterfaceCountersOfLoopback(t *testing.T) {
	i := NewInterface("lo")
	defer i.Close()
	first, err := i.Sample(0)
	if err != nil {
		t.Fatal(err)
	}
	before := first[0].(*wire.Interface)
	p := connect(t, 1, 23600)
	transfer(t, p.client[0], p.server[0], 100_000)
	second, err := i.Sample(1)
	if err != nil {
		t.Fatal(err)
	}
	after := second[0].(*wire.Interface)
	if after == before || after.Name != "lo" || after.RxBytes-before.RxBytes < 100_000 || after.TxBytes-before.TxBytes <
		100_000 || after.RxPackets == before.RxPackets {
		t.Errorf("before %+v, after %+v", before, after)
	}
	if _, err := NewInterface("nonesuch0").Sample(0); err == nil || !strings.Contains(err.Error(), `"nonesuch0"`) {
		t.Errorf("no such interface: %v", err)
	}
}

// The two benchmarks are one comparison: what a sample costs for each
// connection, here and by running ss.
func BenchmarkSampleTCP(b *testing.B) {
	for _, streams := range []int{6, 32} {
		b.Run(fmt.Sprintf("streams=%d", streams), func(b *testing.B) {
			p := connect(b, streams, 24000)
			s := source(b, "receiver", p.flow)
			if got, err := s.Sample(1); err != nil || len(got) != streams+1 {
				b.Fatalf("%d sockets, %v", len(got), err)
			}
			b.ReportAllocs()
			for b.Loop() {
				if got, err := s.Sample(1); err != nil || len(got) != streams+1 {
					b.Fatalf("%d sockets, %v", len(got), err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(streams+1), "ns/connection")
		})
	}
}

func BenchmarkSS(b *testing.B) {
	ss, err := exec.LookPath("ss")
	if err != nil {
		b.Skip("needs ss (iproute2), which is not installed")
	}
	for _, streams := range []int{6, 32} {
		b.Run(fmt.Sprintf("streams=%d", streams), func(b *testing.B) {
			p := connect(b, streams, 24100)
			var cpu time.Duration
			for b.Loop() {
				ctx, cancel := context.WithTimeout(b.Context(), 10*time.Second)
				cmd := exec.CommandContext(ctx, ss, "-Htin", "sport", "=", fmt.Sprintf(":%d", p.flow.Port))
				out, err := cmd.Output()
				cancel()
				if got := strings.Count(string(out), "cubic") + strings.Count(string(out), "bbr") +
					strings.Count(string(out), "reno"); err != nil || got < streams {
					b.Fatalf("%d sockets, %v", got, err)
				}
				cpu += cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
			}
			b.ReportMetric(float64(cpu.Nanoseconds())/float64(b.N)/float64(streams+1), "cpu-ns/connection")
		})
	}
}

func BenchmarkLook(b *testing.B) {
	p := connect(b, 6, 24200)
	s := source(b, "receiver", p.flow)
	b.ReportAllocs()
	for b.Loop() {
		if got, _, err := s.Edge("open", 1); err != nil || len(got) != 6 {
			b.Fatalf("%d sockets, %v", len(got), err)
		}
	}
}

func BenchmarkSampleInterface(b *testing.B) {
	i := NewInterface("lo")
	defer i.Close()
	b.ReportAllocs()
	for b.Loop() {
		if _, err := i.Sample(0); err != nil {
			b.Fatal(err)
		}
	}
}
