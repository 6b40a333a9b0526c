//go:build e2e

package journeys

import (
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"
	"github.com/gopacket/gopacket/pcapgo"

	"fieldmesh.dev/fieldmesh/protocols/wire"
	"fieldmesh.dev/fieldmesh/test/testnet"
)

// capture is tcpdump at work on an interface under test: it and the kernel's
// packet socket share nothing with what Fieldmesh measures by.
type capture struct {
	tcpdump *testnet.Running
	file    string
	atOnce  bool
	stopped bool
}

// snapBytes is enough for Ethernet, IPv4 and TCP with all their options.
const snapBytes = "134"

// startCapture returns when tcpdump listens. With atOnce it takes each frame as
// it comes, which is too slow for a cable but can be stopped at any moment.
func startCapture(t *testing.T, ns, iface string, atOnce bool) *capture {
	t.Helper()
	c := &capture{file: filepath.Join(t.TempDir(), "capture.pcap"), atOnce: atOnce}
	args := []string{"netns", "exec", ns, "tcpdump", "-n", "-i", iface, "-s", snapBytes, "-B", "262144", // KiB
		"--time-stamp-precision=nano", "-Z", "root", "-w", c.file}
	if atOnce {
		args = append(args, "--immediate-mode")
	}
	c.tcpdump = testnet.Start(t, exec.Command("ip", args...))
	c.tcpdump.Says(t, "listening on")
	return c
}

var droppedLine = regexp.MustCompile(`(\d+) packets? dropped by kernel`)

// blockTime is how long the kernel may keep frames back until a block of its
// ring is full, for tcpdump's time-out of 1 s; an interrupted tcpdump would
// not see them.
const blockTime = 1100 * time.Millisecond

// stop ends the capture. One that has lost frames proves nothing.
func (c *capture) stop(t *testing.T) {
	t.Helper()
	if c.stopped {
		return
	}
	c.stopped = true
	if !c.atOnce {
		time.Sleep(blockTime)
	}
	c.tcpdump.Stop(t, os.Interrupt)
	if m := droppedLine.FindStringSubmatch(c.tcpdump.Said()); m == nil || m[1] != "0" {
		t.Errorf("tcpdump lost frames, or does not say:\n%s", c.tcpdump.Said())
	}
}

// seen is what a capture shows of one measuring window.
type seen struct {
	delivered uint64         // payload that the receiver's TCP could hand over in the window, each byte once
	classes   map[string]int // frames in the window by what they belong to
	strangers []string       // the first frames that belong to nothing
	lastData  time.Duration  // of the flow, after the window's open
}

// stream is one data connection as its receiver sees it.
type stream struct {
	started bool
	next    uint64 // the byte that is wanted next, counted from the first
	base    uint32 // sequence number of the first
	waiting []span // what came too early, in order
	early   uint64 // delivered before the window
}

type span struct{ from, to uint64 }

// at places a sequence number near the byte that is wanted next.
func (s *stream) at(seq uint32) uint64 {
	return s.next + uint64(int64(int32(seq-(s.base+uint32(s.next)))))
}

// take adds a segment and moves next over all that is whole.
func (s *stream) take(seq uint32, length int) {
	from := s.at(seq)
	if int64(from) < 0 {
		return // a keepalive's byte before the first
	}
	s.waiting = append(s.waiting, span{from, from + uint64(length)})
	slices.SortFunc(s.waiting, func(a, b span) int { return int(int64(a.from) - int64(b.from)) })
	for len(s.waiting) > 0 && s.waiting[0].from <= s.next {
		s.next = max(s.next, s.waiting[0].to)
		s.waiting = s.waiting[1:]
	}
}

// frame is a captured frame, decoded as far as there is something to decode.
type frame struct {
	eth  layers.Ethernet
	arp  layers.ARP
	ip   layers.IPv4
	tcp  layers.TCP
	udp  layers.UDP
	kind []gopacket.LayerType
}

// look reads a capture of the receiver's interface: what of the flow came in
// the window, and what else was there. Edges are wall times.
func (c *capture) look(t *testing.T, trial wire.Trial, attempt int, p wire.RunPlan, open, closed time.Time) seen {
	t.Helper()
	f, err := os.Open(c.file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	r, err := pcapgo.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	l := &looker{seen: seen{classes: map[string]int{}}, flows: flowsOf(t, trial, attempt, p),
		streams: map[uint16]*stream{}, open: open, closed: closed}
	var fr frame
	parser := gopacket.NewDecodingLayerParser(layers.LayerTypeEthernet, &fr.eth, &fr.arp, &fr.ip, &fr.tcp, &fr.udp)
	parser.IgnoreUnsupported = true
	for {
		data, info, err := r.ZeroCopyReadPacketData()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatalf("read capture: %v", err)
		}
		if err := parser.DecodeLayers(data, &fr.kind); err != nil {
			t.Fatalf("decode frame at %v: %v", info.Timestamp, err)
		}
		l.frame(info.Timestamp, &fr, data)
	}
	for _, s := range l.streams {
		l.delivered += s.next - s.early
	}
	return l.seen
}

// looker goes through a capture.
type looker struct {
	seen
	flows   []flowEnds
	streams map[uint16]*stream // by client port
	open    time.Time
	closed  time.Time
}

// flowEnds is what a flow's frames look like.
type flowEnds struct {
	wire.Flow
	from, to netip.Addr // of the data
	client   netip.Addr
	server   netip.Addr
	ports    span // of the client's data sockets
}

func flowsOf(t *testing.T, trial wire.Trial, attempt int, p wire.RunPlan) []flowEnds {
	t.Helper()
	addr := map[string]netip.Addr{}
	for _, n := range p.Nodes {
		addr[n.Name] = netip.MustParsePrefix(n.MeshPrefix).Addr()
	}
	var out []flowEnds
	for _, f := range trial.Traffic {
		e := flowEnds{Flow: f, from: addr[f.From], to: addr[f.To], client: addr[f.From], server: addr[f.To]}
		if f.Reverse {
			e.client, e.server = e.server, e.client
		}
		first := uint64(f.ClientPort + (attempt-1)*f.Streams)
		e.ports = span{first, first + uint64(f.Streams)}
		out = append(out, e)
	}
	return out
}

// flowData is the class of the frames that carry what is measured.
const flowData = "flow data"

// strangersKept bounds what a failed test prints.
const strangersKept = 10

func (l *looker) frame(at time.Time, fr *frame, data []byte) {
	class, payload := l.classify(fr)
	if class == flowData && !at.After(l.closed) {
		l.data(at, fr, payload)
	}
	if at.Before(l.open) || at.After(l.closed) {
		return
	}
	l.classes[class]++
	if class == flowData {
		l.lastData = at.Sub(l.open)
	}
	if strings.HasPrefix(class, "stranger") && len(l.strangers) < strangersKept {
		packet := gopacket.NewPacket(data, layers.LayerTypeEthernet, gopacket.Default)
		l.strangers = append(l.strangers, fmt.Sprintf("%v after the open: %s", at.Sub(l.open), packet.String()))
	}
}

// classify names what a frame belongs to.
func (l *looker) classify(fr *frame) (class string, payload int) {
	has := func(k gopacket.LayerType) bool { return slices.Contains(fr.kind, k) }
	switch {
	case has(layers.LayerTypeARP):
		return "arp", 0
	case !has(layers.LayerTypeIPv4) || !has(layers.LayerTypeTCP) && !has(layers.LayerTypeUDP):
		return fmt.Sprintf("stranger: ethertype %v", fr.eth.EthernetType), 0
	}
	src, _ := netip.AddrFromSlice(fr.ip.SrcIP)
	dst, _ := netip.AddrFromSlice(fr.ip.DstIP)
	if has(layers.LayerTypeUDP) {
		return fmt.Sprintf("stranger: udp %v:%d to %v:%d", src, fr.udp.SrcPort, dst, fr.udp.DstPort), 0
	}
	// Segmentation may be left to hardware that is not there: the length is
	// the IP header's, whatever was captured.
	payload = int(fr.ip.Length) - int(fr.ip.IHL)*4 - int(fr.tcp.DataOffset)*4
	for _, f := range l.flows {
		port := uint64(fr.tcp.SrcPort)
		toServer := src == f.client && dst == f.server && int(fr.tcp.DstPort) == f.Port
		if !toServer {
			port = uint64(fr.tcp.DstPort)
		}
		toClient := src == f.server && dst == f.client && int(fr.tcp.SrcPort) == f.Port
		switch {
		case !toServer && !toClient:
		case port < f.ports.from || port >= f.ports.to:
			return "iperf3's control", payload
		case src == f.from:
			return flowData, payload
		default:
			return "flow acknowledgements", payload
		}
	}
	return fmt.Sprintf("stranger: tcp %v:%d to %v:%d", src, fr.tcp.SrcPort, dst, fr.tcp.DstPort), payload
}

func (l *looker) data(at time.Time, fr *frame, payload int) {
	port := uint16(fr.tcp.SrcPort)
	if slices.ContainsFunc(l.flows, func(f flowEnds) bool { return int(port) == f.Port }) {
		port = uint16(fr.tcp.DstPort)
	}
	s := l.streams[port]
	if s == nil {
		s = &stream{}
		l.streams[port] = s
	}
	if fr.tcp.SYN {
		*s = stream{started: true, base: fr.tcp.Seq + 1}
		return
	}
	if !s.started || payload == 0 {
		return
	}
	s.take(fr.tcp.Seq, payload)
	if at.Before(l.open) {
		s.early = s.next
	}
}

// wallOf gives the wall time of a moment of this machine's boot clock.
func wallOf(ns int64) time.Time {
	now := time.Now()
	return now.Add(time.Duration(ns - testnet.BootNs()))
}
