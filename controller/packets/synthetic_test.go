package packets

import (
	"bytes"
	"cmp"
	"math/rand/v2"
	"net/netip"
	"slices"
	"testing"

	"fieldmesh.dev/fieldmesh/internal/pcapng"
)

// wire is a made-up path: what is sent over it lands in the captures of its two
// ends as the test says.
type wire struct {
	t          testing.TB
	from, to   netip.Addr
	port, high uint16 // the server's and the client's
	ids        uint16
	ends       [2][]captured // sender, receiver
}

type captured struct {
	at       int64
	outbound bool
	above    bool // on the device above the interface
	wire     int
	data     []byte
}

const ms = 1_000_000

func newWire(t testing.TB) *wire {
	return &wire{t: t, from: netip.MustParseAddr("10.77.0.1"), to: netip.MustParseAddr("10.77.0.2"), port: 5000,
		high: 20000}
}

func (w *wire) flow() Flow {
	return Flow{Name: "main", From: w.from, To: w.to, Port: w.port, ClientFirst: w.high, Streams: 1}
}

// frame makes an Ethernet frame of a TCP segment, of which 96 bytes are captured.
func (w *wire) frame(forward bool, seq, ack uint32, flags byte, payload int, id uint16) []byte {
	f := make([]byte, 14+20+20, 14+20+32+payload)
	order.PutUint16(f[12:], etherIPv4)
	ip, src, dst, sport, dport := f[14:], w.from, w.to, w.high, w.port
	if !forward {
		src, dst, sport, dport = dst, src, dport, sport
	}
	ip[0], ip[9] = 0x45, protoTCP
	order.PutUint16(ip[2:], uint16(40+payload))
	order.PutUint16(ip[4:], id)
	copy(ip[12:], src.AsSlice())
	copy(ip[16:], dst.AsSlice())
	order.PutUint16(ip[20:], sport)
	order.PutUint16(ip[22:], dport)
	order.PutUint32(ip[24:], seq)
	order.PutUint32(ip[28:], ack)
	ip[32], ip[33] = 0x50, flags
	return append(f, make([]byte, payload)...)
}

// see puts a frame into one end's capture.
func (w *wire) see(end int, at int64, forward bool, frame []byte) {
	w.ends[end] = append(w.ends[end], captured{at: at, outbound: forward == (end == 0), wire: len(frame),
		data: frame[:min(96, len(frame))]})
}

// send sends a data segment at a time; it arrives at each of the times given.
func (w *wire) send(seq uint32, payload int, at int64, arrives ...int64) {
	w.ids++
	f := w.frame(true, seq, 1, flagACK, payload, w.ids)
	w.see(0, at, true, f)
	for _, a := range arrives {
		w.see(1, a, true, f)
	}
}

// ack sends an acknowledgement from the receiver; it arrives at a time, or, at
// 0, never.
func (w *wire) ack(ack uint32, at, arrives int64) {
	f := w.frame(false, 1, ack, flagACK, 0, 0)
	w.see(1, at, false, f)
	if arrives != 0 {
		w.see(0, arrives, false, f)
	}
}

// handshake connects at a time over a path with a delay each way.
func (w *wire) handshake(seq uint32, at, delay int64) {
	syn, back := w.frame(true, seq, 0, flagSYN, 0, 0), w.frame(false, 0, seq+1, flagSYN|flagACK, 0, 0)
	w.see(0, at, true, syn)
	w.see(1, at+delay, true, syn)
	w.see(1, at+delay, false, back)
	w.see(0, at+2*delay, false, back)
}

// file is one end's capture, in the order of its times.
func (w *wire) file(end int) []byte {
	w.t.Helper()
	all := slices.Clone(w.ends[end])
	slices.SortStableFunc(all, func(a, b captured) int { return cmp.Compare(a.at, b.at) })
	var b bytes.Buffer
	out, err := pcapng.NewWriter(&b, "test", pcapng.Interface{Name: "wlan0", LinkType: pcapng.LinkEthernet,
		SnapBytes: 96},
		pcapng.Interface{Name: "fieldmesh0", LinkType: pcapng.LinkIP, SnapBytes: 96})
	if err != nil {
		w.t.Fatal(err)
	}
	for _, c := range all {
		d := pcapng.Inbound
		if c.outbound {
			d = pcapng.Outbound
		}
		iface, head := 0, 0
		if c.above {
			iface, head = 1, 14 // no Ethernet header
		}
		if err := out.Packet(iface, c.at, c.wire-head, d, c.data[head:]); err != nil {
			w.t.Fatal(err)
		}
	}
	if err := out.Counts(0, 0, uint64(len(all)), 0); err != nil {
		w.t.Fatal(err)
	}
	return b.Bytes()
}

const forever = 1 << 62

// analyse computes the one flow; the window is all of time unless the test says.
func (w *wire) analyse(flow Flow, change ...func(sender, receiver *End)) (Result, [2]EndResult) {
	w.t.Helper()
	sender := End{Name: "car", Capture: bytes.NewReader(w.file(0)), CloseNs: forever}
	receiver := End{Name: "roadside", Capture: bytes.NewReader(w.file(1)), CloseNs: forever}
	for _, f := range change {
		f(&sender, &receiver)
	}
	out, ends, err := Analyse(sender, receiver, []Flow{flow})
	if err != nil {
		w.t.Fatal(err)
	}
	return out[0], ends
}

// truth is what a path did.
type truth struct {
	Sent, Arrived, Twice, OutOfOrder, Retransmitted, Delivered uint64
	delays                                                     []int64
	landed                                                     []landing
}

// landing is a packet's first coming.
type landing struct {
	seq    uint32
	number uint64
	at     int64
}

// random sends n segments of 1000 bytes, one a millisecond, over a path that
// loses a tenth, doubles, and lets others overtake; what is lost is sent again
// later until it arrives, and some is sent again in vain.
func (w *wire) random(r *rand.Rand, n int, first uint32) truth {
	var k truth
	at := int64(1000 * ms)
	w.handshake(first-1, at-10*ms, 2*ms)
	send := func(seq uint32) (arrived bool) {
		at += ms
		k.Sent++
		delay := 3*ms + r.Int64N(ms/2)
		p := r.Float64()
		switch {
		case p < 0.1:
			w.send(seq, 1000, at)
			return false
		case p < 0.15:
			k.Twice++
			w.send(seq, 1000, at, at+delay, at+delay+ms/4)
		case p < 0.2:
			delay = 13 * ms
			fallthrough
		default:
			w.send(seq, 1000, at, at+delay)
		}
		k.delays = append(k.delays, delay)
		k.landed = append(k.landed, landing{seq, k.Sent, at + delay})
		return true
	}
	var lost []uint32
	for i := 0; i < n || len(lost) > 0; i++ {
		seq := first + uint32(1000*i)
		if i < n && !send(seq) {
			lost = append(lost, seq)
		}
		if i < n && r.Float64() < 0.02 {
			k.Retransmitted++
			send(seq)
		}
		for len(lost) > 8 || i >= n && len(lost) > 0 {
			k.Retransmitted++
			if send(lost[0]) {
				lost = lost[1:]
			}
		}
	}
	k.settle()
	return k
}

// settle works out what the receiver made of what landed.
func (k *truth) settle() {
	slices.SortFunc(k.landed, func(a, b landing) int { return cmp.Compare(a.at, b.at) })
	had := map[uint32]bool{}
	newest := uint64(0)
	for _, l := range k.landed {
		k.Arrived++
		if !had[l.seq] {
			k.Delivered++
		}
		if l.number < newest {
			k.OutOfOrder++
		}
		had[l.seq], newest = true, max(newest, l.number)
	}
}
