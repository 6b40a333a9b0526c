//go:build e2e

package traffic

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"fieldmesh.dev/fieldmesh/node-agent/clock"
	"fieldmesh.dev/fieldmesh/node-agent/descriptor"
	"fieldmesh.dev/fieldmesh/node-agent/host/flows"
	"fieldmesh.dev/fieldmesh/node-agent/measure"
	"fieldmesh.dev/fieldmesh/protocols/wire"
	"fieldmesh.dev/fieldmesh/test/testnet"
)

// A node of these tests is this test program again, in a namespace of its
// own: as in the field, the whole process lives there.
const nodeEnv = "FIELDMESH_TRAFFIC_TEST_NODE"

type nodeSpec struct {
	Self, Iface, Bin string
	Flow             wire.Flow
	Server           bool
	Addr             netip.Addr // to listen on, or to connect to
	Congestion       string
	EndWithin        time.Duration // from go; the server's
	Descriptors      bool          // the sockets are reached by descriptors, as without root
}

type nodeResult struct {
	Error                 string
	Iperf3                wire.Iperf3
	Open, Close           []*wire.TCPSample
	IfaceOpen, IfaceClose *wire.Interface
	EdgeTookNs            int64                      // at most, from before its sockets until after its interface
	Newest                map[uint64]*wire.TCPSample // by cookie: the last sample of each socket
	Samples               int
	WorstGapNs            int64 // between two looks at the sockets
	LeftRunning           bool
}

func TestMain(m *testing.M) {
	if spec := os.Getenv(nodeEnv); spec != "" {
		var s nodeSpec
		result := nodeResult{}
		err := json.Unmarshal([]byte(spec), &s)
		if err == nil {
			err = s.run(&result)
		}
		if err != nil {
			result.Error = err.Error()
		}
		if err := json.NewEncoder(os.Stdout).Encode(result); err != nil {
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// run does what an agent does in a window: it starts its side of iperf3 when
// told, samples, and reads the receiver's edges.
func (s nodeSpec) run(r *nodeResult) (err error) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	g := Generator{Bin: s.Bin, Folder: os.TempDir(), Clock: clock.System{}, Descriptors: s.Descriptors}
	var p *Process
	if s.Server {
		if p, err = g.Server(ctx, s.Flow, s.Addr); err != nil {
			return err
		}
	}
	fmt.Println("ready")
	if !bufio.NewScanner(os.Stdin).Scan() {
		return fmt.Errorf("no go")
	}
	tcp, iface := measure.NewTCP(s.Self, []wire.Flow{s.Flow},
		map[string]netip.Addr{"n1": netip.MustParseAddr("10.77.0.1"), "n2": netip.MustParseAddr("10.77.0.2")}),
		measure.NewInterface(s.Iface)
	var mu sync.Mutex
	if s.Descriptors {
		tcp.ReachBy(func() []*descriptor.Program {
			mu.Lock()
			defer mu.Unlock()
			if p == nil {
				return nil
			}
			return []*descriptor.Program{p.Program()}
		})
	}
	if err := s.edge("open", tcp, iface, r, &r.Open, &r.IfaceOpen); err != nil {
		return err
	}
	if s.Server {
		p.EndWithin(s.EndWithin)
	} else if err = func() (err error) {
		mu.Lock()
		defer mu.Unlock()
		p, err = g.Client(ctx, s.Flow, map[string]netip.Addr{"n1": netip.MustParseAddr("10.77.0.1"),
			"n2": netip.MustParseAddr("10.77.0.2")}[s.Self], s.Addr, s.Congestion, 2*time.Second)
		return err
	}(); err != nil {
		return err
	}
	sampled, lastNs := make(chan error, 1), int64(0)
	r.Newest = map[uint64]*wire.TCPSample{}
	go func() {
		sampled <- measure.Loop(ctx, clock.System{}, 5*time.Millisecond, []measure.Source{tcp},
			func(atNs int64, b wire.Body) error {
				if one, ok := b.(*wire.TCPSample); ok {
					if lastNs != 0 {
						r.WorstGapNs = max(r.WorstGapNs, atNs-lastNs)
					}
					lastNs = atNs
					r.Newest[one.Cookie] = one
					r.Samples++
				}
				return nil
			})
	}()
	time.Sleep(time.Duration(s.Flow.DurationS * float64(time.Second)))
	if err := s.edge("close", tcp, iface, r, &r.Close, &r.IfaceClose); err != nil {
		return err
	}
	r.Iperf3 = p.Wait()
	_, err = os.Stat(fmt.Sprintf("/proc/%d", p.Pid()))
	r.LeftRunning = err == nil
	cancel()
	return <-sampled
}

func (s nodeSpec) edge(name string, tcp *measure.TCP, iface *measure.Interface, r *nodeResult,
	to *[]*wire.TCPSample, counters **wire.Interface) error {
	began := clock.System{}.BootNs()
	bodies, missed, err := tcp.Edge(name, clock.System{}.BootNs())
	if err != nil || missed != (measure.Missed{}) {
		return fmt.Errorf("sockets were missed: %+v, %w", missed, err)
	}
	for _, b := range bodies {
		*to = append(*to, b.(*wire.TCPSample))
	}
	if bodies, err = iface.Sample(0); err != nil {
		return err
	}
	*counters = bodies[0].(*wire.Interface)
	r.EdgeTookNs = max(r.EdgeTookNs, clock.System{}.BootNs()-began)
	return nil
}

// pair is two nodes joined by a veth pair without segmentation offload, so
// that the interface counts what would be on the air.
type pair struct {
	n1, n2      *testnet.NS
	bin         string
	descriptors bool
}

// byEither runs a test with either way to the sockets.
func byEither(t *testing.T, test func(t *testing.T, descriptors bool)) {
	for name, descriptors := range map[string]bool{"sock_diag": false, "descriptors": true} {
		t.Run(name, func(t *testing.T) { test(t, descriptors) })
	}
}

func newPair(t *testing.T) *pair {
	t.Helper()
	testnet.Need(t, "iperf3", "ethtool", "ip")
	bin, err := exec.LookPath("iperf3")
	if err != nil {
		t.Fatal(err)
	}
	w := &pair{n1: testnet.NewNS(t, "a"), n2: testnet.NewNS(t, "b"), bin: bin}
	testnet.Veth(t, w.n1, "wlan0", "10.77.0.1/24", w.n2, "wlan0", "10.77.0.2/24")
	for _, n := range []*testnet.NS{w.n1, w.n2} {
		n.Run(t, "ethtool", "-K", "wlan0", "tso", "off", "gso", "off", "gro", "off")
	}
	return w
}

// node starts a node; tell says go, result waits for its end.
func (w *pair) node(t *testing.T, spec nodeSpec) (tell func(), result func() nodeResult) {
	t.Helper()
	ns := w.n1
	if spec.Self == "n2" {
		ns = w.n2
	}
	spec.Iface, spec.Bin, spec.Descriptors = "wlan0", w.bin, w.descriptors
	text, err := json.Marshal(spec)
	if err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	t.Cleanup(cancel)
	cmd := ns.Command(ctx, self, "-test.run=^$")
	cmd.Env = append(os.Environ(), nodeEnv+"="+string(text))
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	lines.Buffer(nil, 64<<20)
	if !lines.Scan() || lines.Text() != "ready" {
		t.Fatalf("node %s said %q", spec.Self, lines.Text())
	}
	return func() { fmt.Fprintln(in, "go") }, func() nodeResult {
		var r nodeResult
		if !lines.Scan() {
			t.Fatalf("node %s ended without a result: %v", spec.Self, lines.Err())
		}
		if err := json.Unmarshal(lines.Bytes(), &r); err != nil {
			t.Fatal(err)
		}
		if err := cmd.Wait(); err != nil {
			t.Fatal(err)
		}
		return r
	}
}

func mainFlow(seconds float64) wire.Flow {
	return wire.Flow{
		Name: "main", Kind: "iperf3_tcp", From: "n1", To: "n2", Port: 5000, Streams: 6,
		WindowBytes: ptr(65536), DurationS: seconds, ClientPort: 21000,
	}
}

// drive runs a flow between the two nodes and gives the results of iperf3's
// client and server; during runs once the window is open.
func (w *pair) drive(t *testing.T, f wire.Flow, during func()) (client, server nodeResult) {
	t.Helper()
	clientName, serverName, addr := "n1", "n2", netip.MustParseAddr("10.77.0.2")
	if f.Reverse {
		clientName, serverName, addr = "n2", "n1", netip.MustParseAddr("10.77.0.1")
	}
	serverGo, serverEnd := w.node(t, nodeSpec{Self: serverName, Flow: f, Server: true, Addr: addr,
		EndWithin: time.Duration(f.DurationS*float64(time.Second)) + Grace})
	clientGo, clientEnd := w.node(t, nodeSpec{Self: clientName, Flow: f, Addr: addr, Congestion: "reno"})
	serverGo()
	clientGo()
	if during != nil {
		during()
	}
	return clientEnd(), serverEnd()
}

// iperf3JSON is what these tests read of iperf3's output.
type iperf3JSON struct {
	Intervals []struct {
		Sum struct {
			Bytes float64 `json:"bytes"`
		} `json:"sum"`
	} `json:"intervals"`
	End struct {
		SumReceived struct {
			Bytes float64 `json:"bytes"`
		} `json:"sum_received"`
		Sum struct {
			Bytes       float64 `json:"bytes"`
			LostPackets float64 `json:"lost_packets"`
		} `json:"sum"`
	} `json:"end"`
}

func readJSON(t *testing.T, r nodeResult) iperf3JSON {
	t.Helper()
	var out iperf3JSON
	if len(r.Iperf3.Output) == 0 {
		t.Fatalf("no JSON of iperf3: %+v; node's error %q", r.Iperf3, r.Error)
	}
	if err := json.Unmarshal(r.Iperf3.Output, &out); err != nil {
		t.Fatal(err)
	}
	return out
}

func near(t *testing.T, what string, got, want, share float64) {
	t.Helper()
	t.Logf("%s: %.0f against %.0f (%+.3f %%)", what, got, want, 100*(got/want-1))
	if !(got >= want*(1-share) && got <= want*(1+share)) {
		t.Errorf("%s: %.0f is not within %.1f %% of %.0f", what, got, 100*share, want)
	}
}

const (
	// edgeMostNs keeps what comes between an edge's two readings below half of what
	// checkWindow allows.
	edgeMostNs = 10_000_000
	// gapMostNs keeps what comes after the last look at the sockets below what
	// checkTotals allows.
	gapMostNs = 30_000_000
)

func TestSixStreamsBothWaysAgreeWithIperf3AndTheInterface(t *testing.T) { byEither(t, sixStreams) }

func sixStreams(t *testing.T, descriptors bool) {
	w := newPair(t)
	w.descriptors = descriptors
	attempt := 0
	for _, reverse := range []bool{false, true} {
		f := mainFlow(4)
		f.Reverse = reverse
		var client, server, receiver, sender nodeResult
		for again := 2; ; again-- {
			f.ClientPort = mainFlow(4).ClientPort + f.Streams*attempt // those of the first may still be in TIME_WAIT
			attempt++
			client, server = w.drive(t, f, nil)
			receiver, sender = server, client
			if reverse {
				receiver, sender = client, server
			}
			if len(receiver.Open) == 0 && receiver.EdgeTookNs < edgeMostNs && receiver.WorstGapNs < gapMostNs ||
				again == 0 {
				break
			}
			t.Logf("the machine was late: at the open there were %d sockets, an edge took %d ns, and the sockets were "+
				"not looked at for %d ns; once more", len(receiver.Open), receiver.EdgeTookNs, receiver.WorstGapNs)
		}
		for side, r := range map[string]nodeResult{"client": client, "server": server} {
			if r.Error != "" || r.Iperf3.Killed != "" || r.Iperf3.ExitCode == nil || *r.Iperf3.ExitCode != 0 ||
				r.LeftRunning || r.Iperf3.Side != side {
				t.Fatalf("reverse %v, %s: error %q, killed %q, exit %v", reverse, side, r.Error, r.Iperf3.Killed,
					r.Iperf3.ExitCode)
			}
		}
		checkWindow(t, receiver)
		checkTotals(t, receiver, readJSON(t, receiver))
		checkSockets(t, sender, receiver, f.ClientPort)
	}
}

// checkWindow compares the edges with the interface's counters. Between them
// lie a few milliseconds, and the interface also counts headers, ACKs of the
// control connection and retransmissions.
func checkWindow(t *testing.T, r nodeResult) {
	t.Helper()
	if len(r.Open) != 0 || len(r.Close) != 6 {
		t.Fatalf("edges have %d and %d sockets, want none yet and 6", len(r.Open), len(r.Close))
	}
	var received uint64
	for _, s := range r.Close {
		received += s.BytesReceived
	}
	const headers = 14 + 20 + 20 + 12 // Ethernet, IPv4, TCP, timestamps
	frames := r.IfaceClose.RxPackets - r.IfaceOpen.RxPackets
	payload := r.IfaceClose.RxBytes - r.IfaceOpen.RxBytes - headers*frames
	near(t, "edges against the interface", float64(received), float64(payload), 0.01)
}

// checkTotals compares the last samples of the receiver's sockets with what
// iperf3 says that it received.
func checkTotals(t *testing.T, r nodeResult, iperf3 iperf3JSON) {
	t.Helper()
	var total, control uint64
	controls := 0
	for _, s := range r.Newest {
		if s.Stream == nil {
			controls++
			control += s.BytesReceived
			continue
		}
		total += s.BytesReceived
	}
	near(t, "samples against iperf3's own count", float64(total), iperf3.End.SumReceived.Bytes, 0.01)
	if controls != 1 || control == 0 || control > 100_000 {
		t.Errorf("%d control connections with %d bytes", controls, control)
	}
}

// checkSockets looks at what tells the sockets apart.
func checkSockets(t *testing.T, sender, receiver nodeResult, firstPort int) {
	t.Helper()
	streams := map[int]bool{}
	for _, r := range []nodeResult{sender, receiver} {
		for _, s := range r.Newest {
			port := netip.MustParseAddrPort(s.Remote).Port()
			if port == 5000 {
				port = netip.MustParseAddrPort(s.Local).Port()
			}
			inRange := int(port) >= firstPort && int(port) < firstPort+6
			if (s.Stream != nil) != inRange {
				t.Errorf("socket %s–%s has stream %v", s.Local, s.Remote, s.Stream)
			}
			if s.Stream != nil {
				streams[*s.Stream] = true
			}
		}
	}
	if len(streams) != 6 || len(sender.Newest) != 7 {
		t.Errorf("streams %v, %d sockets at the sender", streams, len(sender.Newest))
	}
	for _, s := range sender.Newest {
		if s.Stream != nil && (s.Congestion != "reno" || s.BytesAcked == 0) {
			t.Errorf("sender's stream %d: congestion control %q, %d bytes acked", *s.Stream, s.Congestion, s.BytesAcked)
		}
	}
}

func TestUDPAtAConstantRate(t *testing.T) {
	w := newPair(t)
	f := wire.Flow{Name: "cbr", Kind: "iperf3_udp", From: "n1", To: "n2", Port: 5001, Streams: 2,
		PayloadBytes: ptr(1000), BitrateBps: ptr(4e6), DurationS: 2, ClientPort: 22000}
	client, server := w.drive(t, f, nil)
	if client.Error != "" || server.Error != "" || client.Iperf3.Killed != "" || server.Iperf3.Killed != "" {
		t.Fatalf("client %+v, server %+v", client.Iperf3, server.Iperf3)
	}
	near(t, "bytes of 2 s at 4 Mbit/s", readJSON(t, client).End.Sum.Bytes, 1e6, 0.05)
	if len(server.Close) != 0 || len(server.Newest) != 1 {
		t.Errorf("edges %d, sockets %d: want only the control connection", len(server.Close), len(server.Newest))
	}
}

// Reached by descriptors, what iperf3 had not sent goes with it, and stays with the kernel else.
func TestPeerThatVanishesLeavesPartialResultsInTime(t *testing.T) { byEither(t, peerVanishes) }

func peerVanishes(t *testing.T, descriptors bool) {
	f := mainFlow(4)
	var start time.Time
	var client, server nodeResult
	var w *pair
	for again := 2; ; again-- {
		var cutAfter time.Duration
		w = newPair(t)
		w.descriptors = descriptors
		start = time.Now()
		client, server = w.drive(t, f, func() {
			time.Sleep(2500 * time.Millisecond)
			w.n2.Run(t, "ip", "link", "set", "wlan0", "down")
			cutAfter = time.Since(start)
		})
		if cutAfter < 3500*time.Millisecond || again == 0 {
			break
		}
		t.Logf("the machine was late: the link was cut after %v; once more", cutAfter)
	}
	limit := 4*time.Second + 2*time.Second /* connect */ + Grace + interruptGrace
	if took := time.Since(start); took > limit+10*time.Second {
		t.Errorf("took %v, the time-outs add up to %v", took, limit)
	}
	for side, r := range map[string]nodeResult{"client": client, "server": server} {
		if r.Error != "" || r.LeftRunning || !strings.Contains(r.Iperf3.Killed, "time-out") {
			t.Errorf("%s: error %q, left running %v, killed %q", side, r.Error, r.LeftRunning, r.Iperf3.Killed)
		}
		if r.Iperf3.Ended != wire.EndedDeadline || r.Iperf3.Signal != "" || r.Iperf3.Cause != "" {
			t.Errorf("%s lived till its time was over: %+v", side, r.Iperf3)
		}
		if out := readJSON(t, r); len(out.Intervals) < 2 {
			t.Errorf("%s kept %d intervals of the 2.5 s before", side, len(out.Intervals))
		}
	}
	var received uint64
	for _, s := range server.Close {
		received += s.BytesReceived
	}
	if received == 0 || len(server.Close) != 6 {
		t.Errorf("the closing edge has %d bytes on %d sockets", received, len(server.Close))
	}
	var left int
	w.n1.Do(t, func() (err error) {
		left, err = flows.Left(netip.MustParseAddr("10.77.0.1"), []flows.End{{Port: f.Port,
			Peer: netip.MustParseAddr("10.77.0.2"), ClientPort: f.ClientPort, Streams: f.Streams}})
		return err
	})
	if descriptors != (left == 0) {
		t.Errorf("%d sockets still send, though iperf3 has ended", left)
	}
}

func TestServerThatIsNeverContactedEnds(t *testing.T) {
	w := newPair(t)
	tell, result := w.node(t, nodeSpec{Self: "n2", Flow: mainFlow(0.2), Server: true,
		Addr: netip.MustParseAddr("10.77.0.2"), EndWithin: 300 * time.Millisecond})
	tell()
	r := result()
	if r.Error != "" || r.LeftRunning || !strings.Contains(r.Iperf3.Killed, "time-out") || len(r.Close) != 0 {
		t.Errorf("%+v", r)
	}
	// The port is free again.
	again, result := w.node(t, nodeSpec{Self: "n2", Flow: mainFlow(0.2), Server: true,
		Addr: netip.MustParseAddr("10.77.0.2"), EndWithin: 300 * time.Millisecond})
	again()
	if r := result(); r.Error != "" {
		t.Error(r.Error)
	}
}

func TestClientWithoutAServerSaysSo(t *testing.T) {
	w := newPair(t)
	tell, result := w.node(t, nodeSpec{Self: "n1", Flow: mainFlow(0.2), Addr: netip.MustParseAddr("10.77.0.2")})
	tell()
	r := result()
	// iperf3 3.12 with -J exits with 0 though it failed: its error counts.
	if r.Error != "" || r.Iperf3.ExitCode == nil || r.Iperf3.Ended != wire.EndedItself || r.Iperf3.Cause !=
		wire.CauseRefused || r.Iperf3.Killed != "" {
		t.Errorf("%+v", r)
	}
}

// One end is killed in the midst of a test: it says so, and the other says that
// its peer has gone, in the words of the iperf3 that is installed.
func TestAnEndThatIsKilledIsToldFromItsPeer(t *testing.T) { byEither(t, endKilled) }

func endKilled(t *testing.T, descriptors bool) {
	w := newPair(t)
	w.descriptors = descriptors
	for attempt, victim := range []string{"client", "server"} {
		f := mainFlow(3)
		f.ClientPort += f.Streams * attempt
		ns := map[string]*testnet.NS{"client": w.n1, "server": w.n2}[victim]
		client, server := w.drive(t, f, func() {
			testnet.Await(t, time.Minute, "iperf3's connections", func() bool {
				return strings.Contains(w.n1.Run(t, "ss", "-Htn", "sport", "=", fmt.Sprint(f.ClientPort)), "ESTAB")
			})
			time.Sleep(time.Second)
			for _, pid := range testnet.Pids(ns.Name) {
				if name, err := os.ReadFile(fmt.Sprintf("/proc/%d/comm", pid)); err == nil && string(name) ==
					"iperf3\n" {
					if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
						t.Error(err)
					}
				}
			}
		})
		dead, other := client.Iperf3, server.Iperf3
		if victim == "server" {
			dead, other = other, dead
		}
		t.Logf("%s killed; its peer: %q (%s)", victim, other.Error, other.Cause)
		if dead.Ended != wire.EndedSignal || dead.Signal != "SIGKILL" {
			t.Errorf("the %s was killed: %+v", victim, dead)
		}
		if other.Ended != wire.EndedItself || other.Cause != wire.CausePeerGone && other.Cause != wire.CauseReset {
			t.Errorf("the %s's peer: %+v", victim, other)
		}
	}
}

func TestServerOnATakenPortIsAnError(t *testing.T) {
	testnet.Need(t, "iperf3")
	bin, err := exec.LookPath("iperf3")
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.ListenTCP("tcp4", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	f := mainFlow(1)
	f.Port = l.Addr().(*net.TCPAddr).Port
	byEither(t, func(t *testing.T, descriptors bool) {
		g := generator(t, bin)
		g.Descriptors = descriptors
		if _, err := g.Server(t.Context(), f, netip.MustParseAddr("127.0.0.1")); err == nil ||
			!strings.Contains(err.Error(), "in use") {
			t.Errorf("somebody else's listener was taken for iperf3's: %v", err)
		}
	})
}
