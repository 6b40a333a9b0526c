package packets

import (
	"bytes"
	"testing"

	"fieldmesh.dev/fieldmesh/protocols/manet/signalling"
)

// up puts a frame into one end's capture of the device above its interface.
func (w *wire) up(end int, at int64, outbound bool, frame []byte) {
	w.ends[end] = append(w.ends[end], captured{at: at, outbound: outbound, above: true, wire: len(frame),
		data: frame[:min(96, len(frame))]})
}

// fromAbove looks at both ends from above their interfaces.
func (w *wire) fromAbove(sender, receiver *End) {
	sender.Above, receiver.Above = bytes.NewReader(w.file(0)), bytes.NewReader(w.file(1))
}

// A datagram of iperf3's.
func (w *wire) datagram(number uint32) []byte {
	f := w.frame(true, 0, 0, 0, 512, uint16(number))
	f[14+9] = signalling.ProtocolUDP
	order.PutUint16(f[16:], 20+8+512)
	order.PutUint32(f[34+8+8:], number)
	return f
}

// A packet that a routing daemon holds leaves when its socket hands it on, and
// one that the daemon discards was sent; on the interface neither is so.
func TestWhatADaemonHoldsWasSent(t *testing.T) {
	w := newWire(t)
	flow := w.flow()
	flow.UDP, flow.ClientFirst = true, 0
	for i := uint32(1); i <= 10; i++ { // 10 a second; 4 to 7 meet no route, 4 and 5 are given up
		f, at := w.datagram(i), int64(i)*100*ms
		if i < 4 || i > 7 {
			w.see(0, at, true, f)
			w.see(1, at+5*ms, true, f)
			continue
		}
		w.up(0, at, true, f)
		if i > 5 {
			w.see(0, 750*ms, true, f)
			w.see(1, 755*ms, true, f)
		}
	}
	under, _ := w.analyse(flow)
	if n := under.Numbers[w.high]; n.First.Number != 1 || n.Close.Before.Number != 10 || n.Close.After != nil ||
		n.Bytes != 512 {
		t.Errorf("numbers: %+v", n)
	}
	if under.Sent != 8 || under.Arrived != 8 || under.OneWay.MaxNs != 5*ms {
		t.Errorf("on the interface: %+v", under)
	}
	got, _ := w.analyse(flow, w.fromAbove)
	if got.Sent != 10 || got.Arrived != 8 || got.OneWay.MinNs != 5*ms || got.OneWay.MaxNs != 155*ms ||
		got.ArrivedTwice != 0 || got.Unmatched != 0 {
		t.Errorf("from above: %+v", got)
	}
}

// A carrier's packets are seen above the interface and, in its header, on it;
// each counts once, at both ends, and one held for half a minute is still known.
func TestACarriersPacketsCountOnce(t *testing.T) {
	w := newWire(t)
	carried := func(f []byte) []byte {
		out := append(append(bytes.Clone(f[:34]), signalling.NoNextHeader, 0, 0, 8, 96, 6, 0, 0, 0, 0, 0, 0), f[34:]...)
		out[34], out[14+9] = f[14+9], signalling.ProtocolDSR
		order.PutUint16(out[16:], order.Uint16(f[16:])+12)
		return out
	}
	for i := range 100 {
		w.ids++
		f := w.frame(true, uint32(100+1000*i), 1, flagACK, 1000, w.ids)
		at := int64(100+100*i) * ms
		wait := int64(1)
		if i == 0 {
			wait = 30_000
		}
		w.up(0, at, true, f)
		w.see(0, at+wait*ms, true, carried(f))
		w.see(1, at+(wait+7)*ms, true, carried(f))
		w.up(1, at+(wait+8)*ms, false, f)
	}
	got, _ := w.analyse(w.flow(), w.fromAbove)
	if got.Sent != 100 || got.Arrived != 100 || got.ArrivedTwice != 0 || got.Retransmitted != 0 || got.Unmatched != 0 ||
		got.OneWay.MinNs != 8*ms || got.OneWay.MaxNs != 30_007*ms || got.DeliveredBytes != 100_000 {
		t.Errorf("%+v", got)
	}
}

// A connection is asked for when its first SYN leaves the socket, before there
// is a route; what iperf3 opens for data comes later.
func TestConnectingHoldsTheSearchForARoute(t *testing.T) {
	w := newWire(t)
	control := w.high - 1000
	w.high, control = control, w.high
	syn, back := w.frame(true, 7, 0, flagSYN, 0, 1), w.frame(false, 0, 8, flagSYN|flagACK, 0, 0)
	w.up(0, 100*ms, true, syn)
	w.see(0, 900*ms, true, syn)
	w.see(1, 905*ms, true, syn)
	w.see(0, 910*ms, false, back)
	w.high = control
	w.handshake(99, 1000*ms, 5*ms)
	w.send(100, 1000, 1011*ms, 1016*ms)
	got, _ := w.analyse(w.flow(), w.fromAbove)
	if got.Ask.AnsweredNs == nil || *got.Ask.AnsweredNs != 910*ms || *got.Ask.AtNs != 100*ms ||
		got.Handshake.MinNs != 10*ms || got.FirstSegment.MinNs != 16*ms {
		t.Errorf("%+v %+v", got.Ask, got)
	}
	censored, _ := w.analyse(w.flow(), w.fromAbove, func(sender, _ *End) { sender.CloseNs = 905 * ms })
	if a := censored.Ask; a.AtNs == nil || *a.AtNs != 100*ms || a.AnsweredNs == nil || *a.AnsweredNs != 910*ms ||
		a.CloseNs != 905*ms {
		t.Errorf("%+v", a)
	}
}

// Where nothing above the interface is captured, iperf3's stamps tell when its
// datagrams were handed on: those that waited for the neighbour's address were
// before they were seen, and the window's edges lie between their numbers.
func TestStampsTellWhenDatagramsWereHandedOn(t *testing.T) {
	w := newWire(t)
	flow := w.flow()
	flow.UDP, flow.ClientFirst, flow.ByStamp = true, 0, true
	for i := uint32(1); i <= 20; i++ { // 10 a second; 5 and 6 are dropped, 7 to 10 leave at 1.05 s
		f, handed := w.datagram(i), int64(i)*100*ms
		stamp := handed + 5_000_000*ms
		order.PutUint32(f[42:], uint32(stamp/(1000*ms)))
		order.PutUint32(f[46:], uint32(stamp%(1000*ms)/1000))
		leaves := handed + ms/10
		if i >= 7 && i <= 10 {
			leaves = 1050 * ms
		}
		if i != 5 && i != 6 {
			w.see(0, leaves, true, f)
			w.see(1, leaves+5*ms, true, f)
		}
	}
	window := func(sender, receiver *End) {
		sender.OpenNs, sender.CloseNs = 500*ms, 1000*ms // 5 to 9
		receiver.OpenNs, receiver.CloseNs = 500*ms, 1000*ms
	}
	got, _ := w.analyse(flow, window)
	if got.Sent != 3 || got.Arrived != 3 || got.OneWay.MaxNs != (1055-700)*ms-ms/10 {
		t.Errorf("%+v", got)
	}
	n := got.Numbers[w.high]
	if n.Open.Before.Number != 4 || n.Open.After.Number != 7 || n.Close.Before.Number != 9 ||
		n.Close.After.Number != 10 {
		t.Errorf("open %+v %+v, close %+v %+v", n.Open.Before, n.Open.After, n.Close.Before, n.Close.After)
	}
	flow.ByStamp = false
	if got, _ := w.analyse(flow, window); got.Sent != 0 {
		t.Errorf("on the link %d left within the window", got.Sent)
	}
}
