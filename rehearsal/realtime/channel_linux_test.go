package realtime

import (
	"bytes"
	"encoding/binary"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"fieldmesh.dev/fieldmesh/protocols/wire"
	"fieldmesh.dev/fieldmesh/rehearsal/medium"
	"fieldmesh.dev/fieldmesh/rehearsal/medium/phy"
	"fieldmesh.dev/fieldmesh/rehearsal/medium/propagation"
	"fieldmesh.dev/fieldmesh/test/testnet"
)

// start runs a medium whose hosts are the far ends of datagram sockets: what
// a TAP is to a Channel, without root.
func start(t *testing.T, cfg medium.Config, sockets bool) (*Channel, []int, []Port) {
	t.Helper()
	return startWith(t, cfg, sockets, Options{NoFIFO: true})
}

func startWith(t *testing.T, cfg medium.Config, sockets bool, opts Options) (*Channel, []int, []Port) {
	t.Helper()
	var hosts []int
	var ports []Port
	dir := t.TempDir()
	for i := range cfg.Nodes {
		pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = unix.Close(pair[0]) })
		hosts = append(hosts, pair[1])
		port := Port{FD: pair[0]}
		if sockets {
			port.FeedbackSocket = filepath.Join(dir, cfg.Nodes[i].Name)
		}
		ports = append(ports, port)
		tv := unix.NsecToTimeval(int64(20 * time.Second))
		if err := unix.SetsockoptTimeval(pair[1], unix.SOL_SOCKET, unix.SO_RCVTIMEO, &tv); err != nil {
			t.Fatal(err)
		}
	}
	live, err := New(cfg, line(5), ports, opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		live.SetDead(true) // after the end: must not hang
		for _, fd := range hosts {
			_ = unix.Close(fd)
		}
	})
	keepRunning(t, live)
	return live, hosts, ports
}

// keepRunning runs a medium until the test ends.
func keepRunning(t *testing.T, live *Channel) {
	t.Helper()
	testnet.Background(t, live.Run)
}

func TestChannelCarriesFrames(t *testing.T) {
	live, hosts, _ := start(t, testConfig(phy.Standard80211g, 54, 3), false)
	from := live.now()
	sent := ethernet(0, 1, 42, 300)
	if _, err := unix.Write(hosts[0], sent); err != nil {
		t.Fatal(err)
	}
	buf := make([]byte, 2048)
	n, err := unix.Read(hosts[1], buf)
	if err != nil || !bytes.Equal(buf[:n], sent) {
		t.Fatalf("node 1 read %d bytes, %v; want the frame as sent", n, err)
	}
	late, err := live.Lateness(from, live.now())
	if err != nil {
		t.Fatal(err)
	}
	if late.Events != 1 || late.WorstUs <= 0 || late.MeanUs != late.WorstUs || late.WindowS <= 0 {
		t.Errorf("lateness of one delivery: %+v", late)
	}
	if c := live.Counters(1); c.Delivered != 1 {
		t.Errorf("counters %+v", c)
	}
	if c := live.Counters(2); c.Delivered != 0 {
		t.Errorf("node 2 was handed a frame for node 1: %+v", c)
	}
}

// What is due when the radio is asked for its lateness counts, though the radio has not come to it.
func TestLatenessHasWhatIsDueWhenAsked(t *testing.T) {
	live, _, _ := start(t, testConfig(phy.Standard80211g, 54, 2), false)
	held, release := make(chan struct{}), make(chan struct{})
	orders := func() (n int, running bool) {
		live.mu.Lock()
		defer live.mu.Unlock()
		return len(live.orders), live.running
	}
	for running := false; !running; _, running = orders() {
		time.Sleep(time.Millisecond)
	}
	live.post(func() { close(held); <-release })
	<-held
	open := live.now()
	closed := open + 500*time.Millisecond
	var sent time.Duration
	live.post(func() {
		live.core.Advance(live.now())
		sent = live.core.Now()
		live.core.Enqueue(0, ethernet(0, 1, 1, 300))
		time.Sleep(closed + 20*time.Millisecond - live.now()) // a stall
	})
	asked := make(chan wire.Lateness, 1)
	go func() {
		late, err := live.Lateness(open, closed)
		if err != nil {
			t.Error(err)
		}
		asked <- late
	}()
	for queued := 0; queued < 2; queued, _ = orders() { // both are run in one go
		time.Sleep(time.Millisecond)
	}
	close(release)
	late := <-asked
	// The frame is on the air for far less than 2 ms, and is late only after Tolerance.
	if want := closed - sent - 2*time.Millisecond - Tolerance; late.SumS < want.Seconds() {
		t.Errorf("a frame due since %v before the close: %+v, want %v at least", closed-sent, late, want)
	}
}

// Frames of 802.11n go through a host's device in order, also when several come in one moment.
func TestChannelCarriesAMPDUsInOrder(t *testing.T) {
	cfg := testConfig(phy.Standard80211n, 65, 2)
	cfg.Radio, cfg.QueueFrames = phy.RadioHT20, 400
	cfg.ChannelError = propagation.ChannelErrorConfig{Mean: 0.2, BurstFrames: 1}
	_, hosts, _ := start(t, cfg, false)
	const frames = 400
	for i := range frames {
		if i%50 == 0 {
			time.Sleep(20 * time.Millisecond) // in which some 80 go over the air
		}
		if _, err := unix.Write(hosts[0], ethernet(0, 1, i, 1000)); err != nil {
			t.Fatal(err)
		}
	}
	buf := make([]byte, 2048)
	for last, got := -1, 0; last < frames-1; got++ {
		if _, err := unix.Read(hosts[1], buf); err != nil {
			t.Fatalf("after %d frames, the last of which was number %d: %v", got, last, err)
		}
		number := int(binary.BigEndian.Uint32(buf[14:]))
		if number <= last {
			t.Fatalf("number %d came after %d", number, last)
		}
		last = number
	}
}

func TestChannelGoesOnWithoutADeviceThatIsGone(t *testing.T) {
	live, hosts, _ := start(t, testConfig(phy.Standard80211g, 54, 3), false)
	if err := unix.Shutdown(hosts[2], unix.SHUT_RDWR); err != nil {
		t.Fatal(err)
	}
	if _, err := unix.Write(hosts[0], ethernet(0, -1, 1, 300)); err != nil {
		t.Fatal(err)
	}
	buf := make([]byte, 2048)
	if n, err := unix.Read(hosts[1], buf); err != nil || n != 314 {
		t.Fatalf("read %d bytes, %v", n, err)
	}
	if c := live.Counters(0); c.Lost[medium.HostRefused] != 1 {
		t.Errorf("a frame to a device that is gone is not counted: %+v", c)
	}
}

// A reader that does not read loses lines, is told how many, and holds nobody
// up.
func TestFeedbackToASlowReaderIsDroppedAndCounted(t *testing.T) {
	live, _, ports := start(t, testConfig(phy.Standard80211g, 54, 2), true)
	next := testnet.Feedback(t, ports[0].FeedbackSocket)
	feed := live.feeds[0]
	for feed.active.Load() == 0 {
		time.Sleep(time.Millisecond)
	}
	const flood = 50000
	for range flood {
		feed.publish(wire.Feedback{TxFailed: &wire.TxFailed{Peer: nodeMAC(1)}})
	}
	got, dropped := 0, uint64(0)
	// The count comes with the next line that is written, such as a survey.
	for got+int(dropped) < flood {
		line, ok := next()
		if !ok {
			break
		}
		if line.TxFailed != nil {
			got++
		}
		dropped = line.Dropped
	}
	if dropped == 0 || got+int(dropped) < flood {
		t.Errorf("%d lines came and %d were said to be dropped, of %d", got, dropped, flood)
	}
}

// Each client is told in the turns that it wishes for, and events whenever they come.
func TestFeedbackByWish(t *testing.T) {
	clients := map[string]*feedbackClient{}
	feed := &feedbackServer{clients: map[*feedbackClient]struct{}{}}
	for name, hz := range map[string]int{"all": 10, "some": 2, "none": 0} {
		c := &feedbackClient{lines: make(chan wire.Feedback, clientQueue)}
		c.turns.Store(wire.FeedbackWish{SampleHz: hz}.Turns())
		clients[name], feed.clients[c] = c, struct{}{}
	}
	for turn, want := range map[int64]int64{0: 1, 3: 4, 19: 20} {
		if got, any := feed.next(turn); !any || got != want {
			t.Errorf("after turn %d: %d (%v), want %d", turn, got, any, want)
		}
	}
	for turn := range int64(20) {
		feed.turn(turn, func() []wire.Feedback { return []wire.Feedback{{Survey: &wire.Survey{Channel: 6}}} })
	}
	feed.publish(wire.Feedback{TxFailed: &wire.TxFailed{Peer: nodeMAC(1)}})
	for name, want := range map[string]int{"all": 21, "some": 5, "none": 1} {
		if got := len(clients[name].lines); got != want {
			t.Errorf("%s: %d lines, want %d", name, got, want)
		}
	}
	delete(feed.clients, clients["all"])
	for turn, want := range map[int64]int64{0: 5, 4: 5, 5: 10, 19: 20} {
		if got, any := feed.next(turn); !any || got != want {
			t.Errorf("after turn %d for who wishes for each fifth: %d (%v), want %d", turn, got, any, want)
		}
	}
	delete(feed.clients, clients["some"])
	if got, any := feed.next(0); any {
		t.Errorf("nobody wishes for a turn, and the next is %d", got)
	}
	feed.turn(0, func() []wire.Feedback { t.Error("a turn that nobody wants is made"); return nil })
}

func TestPortsMustMatchNodes(t *testing.T) {
	if _, err := New(testConfig(phy.Standard80211g, 54, 2), line(5), nil, Options{}); err == nil {
		t.Error("no ports for two nodes, and no error")
	}
	cfg := testConfig(phy.Standard80211g, 54, 2)
	if _, err := New(cfg, line(5), []Port{{FD: -1}, {FD: -1}}, Options{}); err == nil {
		t.Error("a descriptor that is none, and no error")
	}
}

// A flood of lost frames leaves room for the lines that come beside it.
func TestFloodOfLostFramesLeavesRoomForOthers(t *testing.T) {
	client := &feedbackClient{lines: make(chan wire.Feedback, clientQueue)}
	feed := &feedbackServer{clients: map[*feedbackClient]struct{}{client: {}}}
	const flood = 1000
	for range flood {
		feed.publish(wire.Feedback{FrameLost: &wire.FrameLost{Cause: "queue_full"}})
	}
	feed.publish(wire.Feedback{Survey: &wire.Survey{Channel: 6}})
	if n, dropped := len(client.lines), client.dropped.Load(); n != clientQueue/2+1 || dropped != flood-clientQueue/2 {
		t.Errorf("%d lines wait and %d are dropped", n, dropped)
	}
	for len(client.lines) > 1 {
		<-client.lines
	}
	if last := <-client.lines; last.Survey == nil {
		t.Errorf("the last line is %+v, want the survey", last)
	}
}
