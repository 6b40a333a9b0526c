package packets

import (
	"bytes"
	"errors"
	"io"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"fieldmesh.dev/fieldmesh/internal/pcapng"
	"fieldmesh.dev/fieldmesh/protocols/manet/signalling"
	"fieldmesh.dev/fieldmesh/test/fuzz"
)

// What a random path did is found again, to the packet and the nanosecond.
func TestKnownPathsGiveExactFigures(t *testing.T) {
	for seed := range uint64(20) {
		w := newWire(t)
		first := uint32(seed * 429_496_729) // near the end of the numbers too
		const n = 3000
		k := w.random(rand.New(rand.NewPCG(seed, 1)), n, first)
		got, ends := w.analyse(w.flow())
		have := truth{Sent: got.Sent, Arrived: got.Arrived, Twice: got.ArrivedTwice, OutOfOrder: got.OutOfOrder,
			Retransmitted: got.Retransmitted, Delivered: got.Delivered}
		want := k
		want.delays, want.landed = nil, nil
		if have.Sent != want.Sent || have.Arrived != want.Arrived || have.Twice != want.Twice || have.OutOfOrder !=
			want.OutOfOrder ||
			have.Retransmitted != want.Retransmitted || have.Delivered != want.Delivered {
			t.Errorf("seed %d: %+v, want %+v", seed, have, want)
		}
		if got.DeliveredBytes != 1000*n || got.SentBytes != 1000*k.Sent || got.RetransmittedBytes !=
			1000*k.Retransmitted || got.Unmatched+got.Merged != 0 {
			t.Errorf("seed %d: %+v", seed, got)
		}
		checkDelays(t, "one-way delay", got.OneWay, k.delays)
		checkDelays(t, "handshake", got.Handshake, []int64{4 * ms})
		if ends[0].Packets != k.Sent+2 || ends[0].Undecoded != 0 || *ends[0].KernelDropped != 0 {
			t.Errorf("seed %d: the sender's capture: %+v", seed, ends[0])
		}
	}
}

func checkDelays(t *testing.T, what string, got Delays, want []int64) {
	t.Helper()
	slices.Sort(want)
	sum := 0.0
	for _, v := range want {
		sum += float64(v)
	}
	if got.N != uint64(len(want)) || got.MinNs != want[0] || got.MaxNs != want[len(want)-1] ||
		math.Abs(got.MeanNs()-sum/float64(len(want))) > 1e-3 {
		t.Errorf("%s: %d from %d to %d ns, mean %f; want %d from %d to %d", what, got.N, got.MinNs, got.MaxNs,
			got.MeanNs(), len(want), want[0], want[len(want)-1])
	}
	for _, p := range []float64{0.01, 0.5, 0.95, 0.99, 1} {
		exact := float64(want[int(math.Ceil(p*float64(len(want))))-1])
		if g := got.PercentileNs(p); math.Abs(g-exact) > exact/128 {
			t.Errorf("%s: percentile %g is %.0f, want %.0f", what, p, g, exact)
		}
	}
}

func TestRoundTripsAreOfSegmentsSentOnce(t *testing.T) {
	w := newWire(t)
	w.handshake(99, 0, 5*ms)
	w.send(100, 1000, 100*ms, 105*ms)
	w.ack(1100, 105*ms, 110*ms) // 10 ms
	w.send(1100, 1000, 200*ms, 205*ms)
	w.send(2100, 1000, 201*ms, 206*ms)
	w.ack(3100, 206*ms, 212*ms) // of the second: 11 ms
	w.send(3100, 1000, 300*ms)
	w.send(3100, 1000, 500*ms, 505*ms)
	w.ack(4100, 505*ms, 510*ms) // of a segment that was sent twice: none
	w.ack(4100, 506*ms, 511*ms) // nothing new: none
	w.send(4100, 1000, 600*ms, 605*ms)
	w.send(5100, 1000, 601*ms, 606*ms)
	w.ack(4600, 606*ms, 611*ms) // half of a segment: none
	w.ack(6100, 607*ms, 613*ms) // 12 ms
	got, _ := w.analyse(w.flow())
	checkDelays(t, "round trip", got.RoundTrip, []int64{10 * ms, 11 * ms, 12 * ms})
	if got.Retransmitted != 1 || got.Sent != 7 || got.Delivered != 6 {
		t.Errorf("%+v", got)
	}
}

func TestConnectingEndsWithTheFirstSegmentDelivered(t *testing.T) {
	w := newWire(t)
	syn := w.frame(true, 99, 0, flagSYN, 0, 0)
	w.see(0, 1000*ms, true, syn) // lost
	w.handshake(99, 2000*ms, 5*ms)
	w.send(100, 500, 2020*ms) // lost
	w.send(600, 500, 2021*ms, 2030*ms)
	got, _ := w.analyse(w.flow())
	checkDelays(t, "time to connect", got.FirstSegment, []int64{1030 * ms})
	checkDelays(t, "handshake", got.Handshake, []int64{1010 * ms})
	if got.DeliveredBytes != 0 {
		t.Errorf("%d bytes are delivered behind a hole", got.DeliveredBytes)
	}
}

// A capture that missed packets does not take bytes away that the receiver acknowledged.
func TestWhatIsAcknowledgedIsDelivered(t *testing.T) {
	w := newWire(t)
	w.handshake(99, 0, 5*ms)
	w.send(100, 1000, 100*ms) // came, and the capture dropped it
	w.send(1100, 1000, 101*ms, 106*ms)
	w.ack(2101, 107*ms, 112*ms) // with the number of a FIN
	got, _ := w.analyse(w.flow())
	if got.DeliveredBytes != 2000 {
		t.Errorf("%d bytes, want 2000", got.DeliveredBytes)
	}
}

func TestOnlyTheWindowCounts(t *testing.T) {
	w := newWire(t)
	w.handshake(99, 0, 5*ms)
	for i := range 10 {
		at := int64(i) * 100 * ms
		w.send(uint32(100+1000*i), 1000, at, at+30*ms)
	}
	got, _ := w.analyse(w.flow(), func(sender, receiver *End) {
		sender.OpenNs, sender.CloseNs = 200*ms, 700*ms
		receiver.OpenNs, receiver.CloseNs = 200*ms, 700*ms
	})
	if got.Sent != 5 || got.Arrived != 5 || got.OneWay.N != 5 || got.DeliveredBytes != 7000 {
		t.Errorf("%+v", got)
	}
}

// Ends whose clocks differ by hours, as their callers' conversion puts them right.
func TestClocksAreTheCallers(t *testing.T) {
	const hours = 7_200_000_000_000
	w := newWire(t)
	w.handshake(99, 0, 5*ms)
	for i := range 500 {
		at := int64(i) * ms
		w.send(uint32(100+1000*i), 1000, at, at+30*ms)
	}
	for i := range w.ends[1] {
		w.ends[1][i].at += hours
	}
	got, _ := w.analyse(w.flow(), func(_, receiver *End) {
		receiver.Common = func(ns int64) int64 { return ns - hours }
	})
	if got.Arrived != 500 || got.OneWay.MinNs != 30*ms || got.OneWay.MaxNs != 30*ms {
		t.Errorf("%+v", got)
	}
}

// Ends whose times are wrong against each other by as much as is said: packets seem to
// come before they left, and have come all the same.
func TestWhatArrivedIsFoundWhateverTheClocksError(t *testing.T) {
	w := newWire(t)
	w.handshake(99, 0, 5*ms)
	for i := range 500 {
		at := int64(i) * ms
		w.send(uint32(100+1000*i), 1000, at, at+5*ms)
	}
	for name, change := range map[string]func(sender, receiver *End){
		"the receiver's are early": func(_, receiver *End) {
			receiver.Common = func(ns int64) int64 { return ns - 80*ms }
			receiver.UncertaintyNs = 80 * ms
		},
		"the sender's are late": func(sender, _ *End) {
			sender.Common = func(ns int64) int64 { return ns + 80*ms }
			sender.UncertaintyNs = 80 * ms
		},
	} {
		if got, _ := w.analyse(w.flow(), change); got.Sent != 500 || got.Arrived != 500 || got.Unmatched != 0 {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

func TestMergedSegmentsAreTold(t *testing.T) {
	w := newWire(t)
	w.handshake(99, 0, 5*ms)
	w.ids++
	w.see(0, 10*ms, true, w.frame(true, 100, 1, flagACK, 2000, w.ids))
	w.see(1, 15*ms, true, w.frame(true, 100, 1, flagACK, 1000, w.ids))
	w.see(1, 16*ms, true, w.frame(true, 1100, 1, flagACK, 1000, w.ids+1))
	got, _ := w.analyse(w.flow())
	if got.Merged != 1 || got.Unmatched != 1 || got.Sent != 1 || got.DeliveredBytes != 2000 {
		t.Errorf("%+v", got)
	}
}

func TestOthersPacketsAreNotTheFlows(t *testing.T) {
	w := newWire(t)
	w.handshake(99, 0, 5*ms)
	w.high = 19999 // iperf3's control connection
	w.send(100, 1000, 10*ms, 15*ms)
	w.high = 20000
	w.send(100, 1000, 20*ms, 25*ms)
	routing := []byte(w.frame(true, 0, 0, 0, 100, 9))
	routing[14+9] = signalling.ProtocolUDP
	order.PutUint16(routing[14+20:], 6696)
	w.see(0, 30*ms, true, routing)
	w.see(1, 31*ms, true, routing)
	arp := make([]byte, 42)
	order.PutUint16(arp[12:], etherARP)
	w.see(0, 32*ms, true, arp)
	w.see(0, 33*ms, true, []byte{1, 2, 3})
	w.high = 20000
	got, ends := w.analyse(w.flow())
	if got.Sent != 1 || got.Arrived != 1 || got.StreamsSeen != 1 {
		t.Errorf("%+v", got)
	}
	if e := ends[0]; e.RoutingPackets != 1 || e.RoutingBytes != 140 || e.ARPPackets != 1 || e.Undecoded != 1 {
		t.Errorf("%+v", e)
	}
	if e := ends[1]; e.RoutingPackets != 0 {
		t.Errorf("what the receiver heard counts as sent by it: %+v", e)
	}
}

func TestDatagramsAreKnownByTheirNumbers(t *testing.T) {
	w := newWire(t)
	send := func(number uint32, at int64, arrives ...int64) {
		f := w.frame(true, 0, 0, 0, 200, 0)
		udp := f[14+20:]
		f[14+9] = signalling.ProtocolUDP
		order.PutUint32(udp[8+8:], number)
		w.see(0, at, true, f)
		for _, a := range arrives {
			w.see(1, a, true, f)
		}
	}
	send(1, 10*ms, 15*ms)
	send(2, 20*ms)
	send(3, 30*ms, 45*ms)
	send(4, 40*ms, 44*ms, 46*ms)
	flow := w.flow()
	flow.UDP = true
	got, _ := w.analyse(flow)
	const payload = 20 + 200 - 8 // TCP's header is part of it here
	if got.Sent != 4 || got.Arrived != 3 || got.ArrivedTwice != 1 || got.OutOfOrder != 1 || got.Delivered != 3 ||
		got.DeliveredBytes != 3*payload || got.Retransmitted != 0 {
		t.Errorf("%+v", got)
	}
	checkDelays(t, "one-way delay", got.OneWay, []int64{5 * ms, 15 * ms, 4 * ms})
}

func TestCorruptCapturesSayWhoseAndWhere(t *testing.T) {
	w := newWire(t)
	w.handshake(99, 0, 5*ms)
	w.send(100, 1000, 10*ms, 15*ms)
	whole := w.file(1)
	_, _, err := Analyse(End{Name: "car", Capture: bytes.NewReader(w.file(0)), CloseNs: forever},
		End{Name: "roadside", Capture: bytes.NewReader(whole[:len(whole)-100]), CloseNs: forever}, []Flow{w.flow()})
	var corrupt *pcapng.CorruptError
	if !errors.As(err, &corrupt) || !strings.Contains(err.Error(), "roadside") ||
		!strings.Contains(err.Error(), "byte ") {
		t.Errorf("%v", err)
	}
	if _, err := Scan(End{Name: "car", Capture: strings.NewReader("no capture")}); !errors.As(err, &corrupt) {
		t.Errorf("%v", err)
	}
	if e, err := Scan(End{Name: "car", Capture: bytes.NewReader(whole)}); err != nil || e.Packets != 3 {
		t.Errorf("%+v %v", e, err)
	}
}

// Whatever is in flight for long, or never answered, memory has a bound.
//
//attack:air packets with numbers made to fill the memory of who analyses a capture of them | what is remembered of a
//attack:and connection is bounded
func TestMemoryHasABound(t *testing.T) {
	var f flight
	for i := range 3 * mostInFlight {
		f.put(key{uint32(i), 0}, transmission{at: int64(i)})
	}
	if len(f.ring) != mostInFlight || f.used != mostInFlight {
		t.Errorf("%d in the ring, %d known", len(f.ring), f.used)
	}
	for seq, want := range map[uint32]uint64{3*mostInFlight - 1: 3 * mostInFlight, 2 * mostInFlight: 2*mostInFlight + 1,
		2*mostInFlight - 1: 0} {
		if x, number := f.find(key{seq, 0}); (x != nil) != (want != 0) || number != want {
			t.Errorf("transmission %d is number %d", seq, number)
		}
	}
	var u unacked
	for i := range int64(3 * mostUnacked) {
		u.add(i+1, i, false)
	}
	if len(u.segments) > mostUnacked {
		t.Errorf("%d segments wait for an ACK", len(u.segments))
	}
	var s spans
	for i := range int64(3 * mostIslands) {
		s.add(span{2*i + 1, 2*i + 2})
	}
	if len(s.islands) > mostIslands {
		t.Errorf("%d islands", len(s.islands))
	}
}

// TestFlightFindsTheNewest holds flight against a list that is searched from its end.
func TestFlightFindsTheNewest(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 3))
	for range 50 {
		var f flight
		var sent []key
		few, now := 1+r.Uint32N(2000), int64(0)
		for range 3000 {
			k := key{r.Uint32N(few), uint16(r.Uint32N(2))}
			now += r.Int64N(youngNs / 200)
			f.put(k, transmission{at: now})
			sent = append(sent, k)
			asked := key{r.Uint32N(few), uint16(r.Uint32N(2))}
			want := uint64(0)
			for n := len(sent); n > len(sent)-int(f.used); n-- {
				if sent[n-1] == asked {
					want = uint64(n)
					break
				}
			}
			if x, got := f.find(asked); got != want || (x != nil) != (want != 0) {
				t.Fatalf("%v is number %d, want %d, of %d", asked, got, want, len(sent))
			}
		}
	}
}

func TestSpans(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 7))
	for range 300 {
		var s spans
		var have [64]bool
		for range 30 {
			from := r.Int64N(60)
			p := span{from, from + 1 + r.Int64N(4)}
			want := int64(0)
			for i := p.from; i < p.to && i < 64; i++ {
				if !have[i] {
					want++
				}
				have[i] = true
			}
			if got := s.add(p); got != want {
				t.Fatalf("%v: %d new bytes, want %d", p, got, want)
			}
			next := slices.Index(have[:], false)
			if s.next != int64(next) {
				t.Fatalf("all up to %d, want %d", s.next, next)
			}
		}
	}
}

//attack:air frames made to break the analysis of a capture | they are read within their own bytes
func FuzzAnalyse(f *testing.F) {
	w := newWire(f)
	w.handshake(99, 0, 5*ms)
	w.send(100, 1000, 10*ms, 15*ms)
	w.ack(1100, 15*ms, 20*ms)
	f.Add(w.file(0), w.file(1))
	f.Add([]byte{}, w.file(1)[:200])
	flow := w.flow()
	fuzz.Run(f, func(_ *testing.T, a, b []byte) {
		udp := flow
		udp.Name, udp.UDP = "cross", true
		// Whatever it is, it ends and does not panic.
		_, _, err := Analyse(End{Name: "a", Capture: io.Reader(bytes.NewReader(a)), CloseNs: forever},
			End{Name: "b", Capture: bytes.NewReader(b), CloseNs: forever}, []Flow{flow, udp})
		_ = err
	})
}

// DSR carries a flow's packets behind its own header; they are the flow's all
// the same, and only what carries nothing is routing.
func TestDSRCarriesTheFlow(t *testing.T) {
	w := newWire(t)
	carried := func(next byte, options int, f []byte) []byte {
		out := append(append(bytes.Clone(f[:34]), make([]byte, 4+options)...), f[34:]...)
		out[14+9], out[34] = signalling.ProtocolDSR, next
		order.PutUint16(out[36:], uint16(options))
		order.PutUint16(out[16:], order.Uint16(f[16:])+uint16(4+options))
		return out
	}
	for i := range 3 {
		w.ids++
		f := w.frame(true, uint32(100+1000*i), 1, flagACK, 1000, w.ids)
		at := int64(10+i) * ms
		w.see(0, at, true, carried(protoTCP, 20, f))
		if i != 1 {
			w.see(1, at+7*ms, true, carried(protoTCP, 20, f))
		}
	}
	w.see(0, 30*ms, true, carried(signalling.NoNextHeader, 8, w.frame(true, 0, 0, 0, 0, 9)))
	w.see(0, 31*ms, true, carried(protoTCP, 60000, w.frame(true, 0, 0, 0, 0, 9)))
	got, ends := w.analyse(w.flow())
	if got.Sent != 3 || got.Arrived != 2 || got.SentBytes != 3000 || got.OneWay.MinNs != 7*ms || got.OneWay.MaxNs !=
		7*ms {
		t.Errorf("%+v", got)
	}
	if e := ends[0]; e.RoutingPackets != 1 || e.Undecoded != 1 || e.RoutingHeaders != 3*24 || e.RoutingBytes != 3*24+
		52 {
		t.Errorf("%+v", e)
	}
}
