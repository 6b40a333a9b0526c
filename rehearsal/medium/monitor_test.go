package medium

import (
	"encoding/binary"
	"testing"
	"time"

	"fieldmesh.dev/fieldmesh/rehearsal/medium/phy"
	"fieldmesh.dev/fieldmesh/rehearsal/medium/propagation"
)

// ipv4Frame is an Ethernet frame with an IPv4 packet, numbered by its IP
// identification, with a body such as ports give.
func ipv4Frame(from, to int, src, dst [4]byte, proto byte, id uint16, body []byte) []byte {
	f := ethernet(from, to, 0, 20+len(body))
	binary.BigEndian.PutUint16(f[12:], 0x0800)
	ip := f[14:]
	clear(ip)
	ip[0], ip[8], ip[9] = 0x45, 64, proto
	binary.BigEndian.PutUint16(ip[2:], uint16(len(ip)))
	binary.BigEndian.PutUint16(ip[4:], id)
	copy(ip[12:], src[:])
	copy(ip[16:], dst[:])
	copy(ip[20:], body)
	return f
}

func ports(src, dst uint16, rest ...byte) []byte {
	out := binary.BigEndian.AppendUint16(nil, src)
	return append(binary.BigEndian.AppendUint16(out, dst), rest...)
}

var (
	hostA = [4]byte{10, 0, 0, 1}
	hostB = [4]byte{10, 0, 0, 2}
)

// Who could not notice a broadcast is counted, also where the links know of it, as between ns-2's 250 m and 550 m.
func TestABroadcastOutOfReachIsCountedAndNotTold(t *testing.T) {
	for distanceM, want := range map[float64]uint64{249: 0, 400: 1, 560: 1} {
		cfg := ns2Config(1, 2)
		var told []FrameLoss
		cfg.FrameLost = func(l FrameLoss) { told = append(told, l) }
		c := mustCore(t, cfg, line(distanceM), newRecorder(2))
		c.Enqueue(0, ethernet(0, -1, 1, 500))
		c.Advance(time.Second)
		if got := c.Counters(0).Lost[OutOfRange]; got != want || len(told) != 0 {
			t.Errorf("at %g m %d are out of range, and told %+v; want %d and none", distanceM, got, told, want)
		}
	}
}

// Each cause, told with model time, node, flow and number.
func TestMonitorTellsEveryLossWithItsCause(t *testing.T) {
	udp := func(from, to int, id uint16) []byte {
		return ipv4Frame(from, to, hostA, hostB, 17, id, ports(1000, 2000, make([]byte, 500)...))
	}
	const flow = "10.0.0.1:1000>10.0.0.2:2000/udp"
	far := func(n int, _ time.Duration) (float64, float64) { return []float64{0, 5, 10, 1e5}[n], 0 }
	for name, v := range map[string]struct {
		change func(*Config)
		do     func(*Core)
		want   FrameLoss
	}{
		"out of range": {nil, func(c *Core) { c.Enqueue(0, udp(0, 3, 7)) },
			FrameLoss{Node: 0, Peer: 3, Flow: flow, Seq: 7, Payload: 496, Cause: OutOfRange, RetryLimit: true}},
		"dead": {nil, func(c *Core) { c.SetDead(true); c.Enqueue(0, udp(0, 1, 8)) },
			FrameLoss{Node: 0, Peer: 1, Flow: flow, Seq: 8, Payload: 496, Cause: RadioDead, RetryLimit: true}},
		"queue full": {func(cfg *Config) { cfg.QueueFrames = 1 }, func(c *Core) {
			for id := range uint16(3) {
				c.Enqueue(0, udp(0, 1, id))
			}
		}, FrameLoss{Node: 0, Peer: -1, Flow: flow, Seq: 2, Payload: 496, Cause: QueueFull}},
		"channel error": {func(cfg *Config) {
			cfg.ChannelError = propagation.ChannelErrorConfig{Mean: 0.9999, BurstS: 1e6}
		},
			func(c *Core) { c.Enqueue(0, udp(0, 1, 9)) },
			FrameLoss{Node: 0, Peer: 1, Flow: flow, Seq: 9, Payload: 496, Cause: ChannelError, RetryLimit: true}},
		"collision": {nil, func(c *Core) {
			c.Enqueue(0, udp(0, -1, 10))
			c.Enqueue(2, ethernet(2, -1, 0, 500))
		}, FrameLoss{Node: 0, Peer: 1, Flow: flow, Seq: 10, Payload: 496, Cause: Collision}},
	} {
		cfg := testConfig(phy.Standard80211g, 6, 4)
		var told []FrameLoss
		cfg.FrameLost = func(l FrameLoss) { told = append(told, l) }
		if v.change != nil {
			v.change(&cfg)
		}
		c := mustCore(t, cfg, far, newRecorder(4))
		c.Advance(time.Second)
		v.do(c)
		c.Advance(2 * time.Second)
		found := false
		for _, l := range told {
			if l.At < time.Second || l.At >= 2*time.Second {
				t.Errorf("%s: told at model time %s", name, l.At)
			}
			l.At, l.Src, l.Dst = 0, [4]byte{}, [4]byte{}
			found = found || l == v.want
		}
		if !found {
			t.Errorf("%s: told %+v; want %+v among them", name, told, v.want)
		}
		if name != "collision" && len(told) != 1 {
			t.Errorf("%s: %d losses told, want 1", name, len(told))
		}
	}
}
