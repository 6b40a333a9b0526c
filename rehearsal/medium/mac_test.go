package medium

import (
	"testing"
	"time"

	"fieldmesh.dev/fieldmesh/protocols/manet/signalling"
	"fieldmesh.dev/fieldmesh/rehearsal/medium/phy"
)

func TestBroadcastIsSentOnceAtTheLowestBasicRate(t *testing.T) {
	cfg := testConfig(phy.Standard80211g, 54, 3)
	var sends []Trace
	cfg.Trace = func(e Trace) {
		if e.Event == "tx" {
			sends = append(sends, e)
		}
	}
	sink := newRecorder(3)
	// Node 2 is 100 km away.
	c := mustCore(t, cfg, func(n int, _ time.Duration) (float64, float64) {
		return []float64{0, 5, 1e5}[n], 0
	}, sink)
	c.Enqueue(0, ethernet(0, -1, 1, 100))
	c.Advance(time.Second)
	if len(sends) != 1 || sends[0].RateMbps != 6 {
		t.Errorf("a broadcast was sent as %+v, want once at 6 Mbit/s", sends)
	}
	n := c.Counters(0)
	if sink.delivered[[2]int{1, 1}] != 1 || n.Lost[OutOfRange] != 1 || n.TxFailed != 0 {
		t.Errorf("delivered %v, counters %+v: want node 1 served and node 2 out of range", sink.delivered, n)
	}
}

// Control frames go at the highest basic rate that is not above the data's, or else RTS and
// CTS at the lowest basic and the ACK at the highest mandatory one; broadcasts at the lowest basic rate.
func TestBasicRatesCanBeSet(t *testing.T) {
	for _, v := range []struct {
		standard        string
		rate            float64
		basic           []float64
		rts, ack, group float64
	}{
		{phy.Standard80211b, 11, nil, 2, 2, 1}, {phy.Standard80211b, 11, []float64{1}, 1, 1, 1},
		{phy.Standard80211b, 11, []float64{5.5, 2}, 5.5, 5.5, 2}, {phy.Standard80211b, 5.5, []float64{11}, 11, 5.5, 11},
		{phy.Standard80211g, 54, nil, 24, 24, 6}, {phy.Standard80211g, 18, nil, 12, 12, 6},
		{phy.Standard80211g, 54, []float64{6}, 6, 6, 6}, {phy.Standard80211g, 54, []float64{54, 12}, 54, 54, 12},
		{phy.Standard80211g, 18, []float64{24}, 24, 12, 24},
	} {
		cfg := testConfig(v.standard, v.rate, 2)
		cfg.RTSThresholdBytes, cfg.BasicRatesMbps = 1, v.basic
		sent := map[string]float64{}
		cfg.Trace = func(e Trace) {
			if e.Event == "tx" {
				sent[e.Kind] = e.RateMbps
			}
		}
		c := mustCore(t, cfg, line(5), newRecorder(2))
		c.Enqueue(0, ethernet(0, 1, 1, 100))
		c.Advance(time.Second)
		if sent["rts"] != v.rts || sent["cts"] != v.rts || sent["ack"] != v.ack || sent["data"] != v.rate {
			t.Errorf("%s, basic %v: data at %g Mbit/s with frames at %v, want RTS and CTS at %g and the ACK at %g",
				v.standard, v.basic, v.rate, sent, v.rts, v.ack)
		}
		c.Enqueue(0, ethernet(0, -1, 1, 100))
		c.Advance(2 * time.Second)
		if sent["data"] != v.group {
			t.Errorf("%s, basic %v: broadcast at %g Mbit/s, want %g", v.standard, v.basic, sent["data"], v.group)
		}
	}
}

func TestUnicastToNobodyIsGivenUpAfterSevenAttempts(t *testing.T) {
	for _, rts := range []int{0, 1} {
		cfg := testConfig(phy.Standard80211b, 11, 2)
		cfg.RTSThresholdBytes = rts
		var sends int
		cfg.Trace = func(e Trace) {
			if e.Event == "tx" {
				sends++
			}
		}
		sink := newRecorder(2)
		c := mustCore(t, cfg, line(5), sink)
		c.Enqueue(0, ethernet(0, 77, 1, 100))
		c.Advance(time.Second)
		n := c.Counters(0)
		if sends != shortRetryLimit || sink.failed != 1 || n.TxFailed != 1 || n.Lost[OutOfRange] != 1 {
			t.Errorf("rts threshold %d: %d sends, %d failed, counters %+v", rts, sends, sink.failed, n)
		}
	}
}

func TestQueueDropsItsTail(t *testing.T) {
	sink := newRecorder(2)
	c := mustCore(t, testConfig(phy.Standard80211g, 54, 2), line(5), sink)
	taken := 0
	for i := range 80 {
		if c.Enqueue(0, ethernet(0, 1, i, 500)) {
			taken++
		}
	}
	// One is with the MAC, fifty wait.
	if taken != 51 || c.Counters(0).Lost[QueueFull] != 29 {
		t.Errorf("%d of 80 taken, %d dropped; want 51 and 29", taken, c.Counters(0).Lost[QueueFull])
	}
	c.Advance(time.Second)
	for i := range 80 {
		if got := sink.delivered[[2]int{1, i}]; got != boolToInt(i < 51) {
			t.Errorf("frame %d delivered %d times: the tail must be what is dropped", i, got)
		}
	}
}

func boolToInt(b bool) int {
	if b {
		return 1
	}
	return 0
}

func TestDeadRadioDeliversNothing(t *testing.T) {
	sink := newRecorder(2)
	c := mustCore(t, testConfig(phy.Standard80211g, 0, 2), line(5), sink)
	c.SetDead(true)
	for i := range 10 {
		c.Enqueue(0, ethernet(0, i%2*2-1, i, 500))
	}
	c.Advance(time.Second)
	if n := c.Counters(0); len(sink.delivered) != 0 || n.Lost[RadioDead] == 0 || n.Lost[RadioDead] != n.Lost.Total()-
		n.Lost[OutOfRange] {
		t.Errorf("dead radio: delivered %v, counters %+v", sink.delivered, n)
	}
	c.SetDead(false)
	c.Enqueue(0, ethernet(0, 1, 99, 500))
	c.Advance(2 * time.Second)
	if sink.delivered[[2]int{1, 99}] != 1 {
		t.Error("the radio did not come back")
	}
}

func TestSNRDrivenRateFollowsDistanceAndPower(t *testing.T) {
	rateAt := func(distanceM, powerDbm float64) float64 {
		cfg := testConfig(phy.Standard80211g, 0, 2)
		cfg.RateControl = rateControlSNR
		var last float64
		cfg.Trace = func(e Trace) {
			if e.Event == "tx" && e.Kind == "data" && e.Peer == 1 {
				last = e.RateMbps
			}
		}
		c := mustCore(t, cfg, line(distanceM), newRecorder(2))
		c.SetTxPower(0, powerDbm)
		c.SetTxPower(1, powerDbm)
		for i := range 5 {
			c.Enqueue(0, ethernet(0, 1, i, 1500))
			c.Advance(c.Now() + 100*time.Millisecond)
		}
		return last
	}
	if got := rateAt(10, 20); got != 54 {
		t.Errorf("10 m at 20 dBm: %g Mbit/s, want 54", got)
	}
	last := 54.0
	for _, d := range []float64{20, 50, 80, 120, 160, 200} {
		got := rateAt(d, 20)
		if got > last {
			t.Errorf("%g m: %g Mbit/s, more than nearer by (%g)", d, got, last)
		}
		last = got
	}
	if last >= 54 || rateAt(80, 10) > rateAt(80, 20) {
		t.Errorf("rate does not fall: %g at 200 m", last)
	}
}

// onALine are standing nodes by their x.
func onALine(xM ...float64) func(n int, now time.Duration) (float64, float64) {
	return func(n int, _ time.Duration) (float64, float64) { return xM[n], 0 }
}

// A stronger frame that starts within a weaker one's preamble is received; two
// of equal strength are lost.
func TestCapture(t *testing.T) {
	for _, v := range []struct {
		farM float64
		want int
	}{{10, 0}, {60, 1}} {
		cfg := testConfig(phy.Standard80211g, 6, 3)
		sink := newRecorder(3)
		c := mustCore(t, cfg, onALine(-v.farM, 0, 10), sink)
		// Both send in the same instant: the medium was idle for both.
		c.Advance(time.Second)
		c.Enqueue(0, ethernet(0, -1, 1, 500))
		c.Enqueue(2, ethernet(2, -1, 2, 500))
		c.Advance(2 * time.Second)
		if got := sink.delivered[[2]int{1, 2}]; got != v.want {
			t.Errorf("other sender at %g m: near frame delivered %d times, want %d", v.farM, got, v.want)
		}
		if c.Counters(0).Lost[Collision] == 0 {
			t.Errorf("other sender at %g m: no collision counted", v.farM)
		}
	}
}

// Two senders that cannot hear each other: RTS and CTS must help.
func TestHiddenTerminalIsCuredByRTS(t *testing.T) {
	goodput := func(rts int) float64 {
		cfg := testConfig(phy.Standard80211b, 2, 3)
		cfg.RTSThresholdBytes = rts
		// 6 dB of SNR to the middle, -9 dB to the other end.
		cfg.Propagation.Exponent = 5
		sink := newRecorder(3)
		c := mustCore(t, cfg, line(22.3), sink)
		saturate(c, 1500, 20*time.Second, flow{0, 1}, flow{2, 1})
		return float64(sink.bytes[1]) * 8 / 20 / 1e6
	}
	without, with := goodput(0), goodput(1)
	t.Logf("hidden terminal: %.2f Mbit/s without, %.2f with RTS/CTS", without, with)
	if with < 1 || with < 1.5*without {
		t.Errorf("hidden terminal: %g Mbit/s with RTS/CTS, %g without", with, without)
	}
}

// Every frame on the air is of a class: a routing packet to all is one, data
// with RTS and CTS four, an ARP request to a neighbour two.
func TestFramesOnTheAirAreCountedByWhatTheyAreFor(t *testing.T) {
	cfg := testConfig(phy.Standard80211b, 2, 2)
	cfg.RTSThresholdBytes = 500
	c := mustCore(t, cfg, line(10), newRecorder(2))
	broadcast := ethernetOf(0x0800, ipv4Packet(signalling.ProtocolUDP, 0x02, 0xba, 0x02, 0xba)) // port 698
	copy(broadcast, []byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff})
	for _, f := range [][]byte{broadcast, ethernet(0, 1, 0, 1000), ethernetOf(etherTypeARP, make([]byte, 28))} {
		c.Enqueue(0, f)
	}
	c.Advance(time.Second)
	if a, b := c.Counters(0).OnAir, c.Counters(1).OnAir; a != (ClassCounts{2, 1, 1}) || b != (ClassCounts{2, 0, 1}) {
		t.Errorf("sent %v and %v, want traffic 2 and 2, routing 1 and 0, ARP 1 and 1", a, b)
	}
}

// ethernetOf is a frame from the first node to the second.
func ethernetOf(kind uint16, body []byte) []byte {
	f := ethernet(0, 1, 0, 100)[:12]
	return append(f, append([]byte{byte(kind >> 8), byte(kind)}, body...)...)
}

func ipv4Packet(protocol byte, body ...byte) []byte {
	p := make([]byte, 20, 60)
	p[0], p[9] = 0x45, protocol
	return append(append(p, body...), make([]byte, 20)...)
}

func TestClassesOfFrames(t *testing.T) {
	six := make([]byte, 60)
	six[0], six[6], six[42], six[43] = 0x60, signalling.ProtocolUDP, 6696>>8, 6696&255
	for name, want := range map[string]struct {
		frame []byte
		class Class
	}{
		"AODV":  {ethernetOf(0x0800, ipv4Packet(signalling.ProtocolUDP, 654>>8, 654&255, 1, 1)), Routing},
		"DSDV":  {ethernetOf(0x0800, ipv4Packet(signalling.ProtocolUDP, 49654>>8, 49654&255, 1, 1)), Routing},
		"ADV":   {ethernetOf(0x0800, ipv4Packet(signalling.ProtocolUDP, 1, 1, 49655>>8, 49655&255)), Routing},
		"Babel": {ethernetOf(etherTypeIPv6, six), Routing},
		"DSR without data": {ethernetOf(0x0800, ipv4Packet(signalling.ProtocolDSR, signalling.NoNextHeader, 0, 0,
			4)), Routing},
		"DSR with TCP":         {ethernetOf(0x0800, ipv4Packet(signalling.ProtocolDSR, 6, 0, 0, 4)), Traffic},
		"TCP from port 698":    {ethernetOf(0x0800, ipv4Packet(6, 698>>8, 698&255, 1, 1)), Traffic},
		"batman-adv's OGM":     {ethernetOf(signalling.EtherBatman, []byte{0, 15}), Routing},
		"batman-adv's unicast": {ethernetOf(signalling.EtherBatman, []byte{0x40, 15}), Traffic},
		"cut":                  {[]byte{1, 2}, Traffic},
		"nothing in it":        {ethernetOf(0x0800, nil), Traffic},
	} {
		if got := classOf(want.frame); got != want.class {
			t.Errorf("%s is %s, want %s", name, got, want.class)
		}
	}
}
