package medium

import (
	"encoding/binary"
	"testing"
	"time"

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

func TestFlowsOfPackets(t *testing.T) {
	tcp := ports(5201, 40000, 0xde, 0xad, 0xbe, 0xef, 0, 0, 0, 0)
	options := ipv4Frame(0, 1, hostA, hostB, 6, 7, append(make([]byte, 4), tcp...))
	options[14] = 0x46
	later := ipv4Frame(0, 1, hostA, hostB, 17, 8, ports(1, 2, 0, 0, 0, 0))
	later[21] = 185
	arp := ethernet(0, -1, 0, 28)
	arp[12], arp[13] = 0x08, 0x06
	for name, v := range map[string]struct {
		frame []byte
		flow  string
		seq   uint32
	}{
		"tcp":              {ipv4Frame(0, 1, hostA, hostB, 6, 7, tcp), "10.0.0.1:5201>10.0.0.2:40000/tcp", 0xdeadbeef},
		"tcp with options": {options, "10.0.0.1:5201>10.0.0.2:40000/tcp", 0xdeadbeef},
		"udp": {ipv4Frame(0, 1, hostA, hostB, 17, 999, ports(698, 699, 0, 0, 0, 0)),
			"10.0.0.1:698>10.0.0.2:699/udp", 999},
		"icmp":           {ipv4Frame(0, 1, hostA, hostB, 1, 3, make([]byte, 8)), "10.0.0.1>10.0.0.2/icmp", 3},
		"another":        {ipv4Frame(0, 1, hostA, hostB, 89, 4, make([]byte, 8)), "10.0.0.1>10.0.0.2/89", 4},
		"later fragment": {later, "10.0.0.1>10.0.0.2/udp", 8},
		"cut short":      {ipv4Frame(0, 1, hostA, hostB, 6, 7, ports(1, 2)), "10.0.0.1>10.0.0.2/tcp", 7},
		"arp":            {arp, "", 0},
	} {
		flow, seq := "", uint32(0)
		if ip, is := ipv4Of(v.frame); is {
			flow, seq = flowOf(ip)
		}
		if flow != v.flow || seq != v.seq {
			t.Errorf("%s: flow %q, seq %d; want %q and %d", name, flow, seq, v.flow, v.seq)
		}
	}
}

func FuzzFlowOf(f *testing.F) {
	f.Add([]byte{})
	f.Add(ipv4Frame(0, 1, hostA, hostB, 6, 7, ports(1, 2, 3, 4, 5, 6)))
	f.Add(ipv4Frame(0, 1, hostA, hostB, 17, 7, nil))
	f.Add(append(ethernet(0, 1, 0, 20)[:12], 8, 0, 0x4f))
	f.Fuzz(func(t *testing.T, frame []byte) {
		if ip, is := ipv4Of(frame); is {
			if flow, _ := flowOf(ip); flow == "" {
				t.Errorf("an IPv4 packet without a flow: %x", frame)
			}
		}
	})
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
			FrameLoss{Node: 0, Peer: 3, Flow: flow, Seq: 7, Cause: OutOfRange, RetryLimit: true}},
		"dead": {nil, func(c *Core) { c.SetDead(true); c.Enqueue(0, udp(0, 1, 8)) },
			FrameLoss{Node: 0, Peer: 1, Flow: flow, Seq: 8, Cause: RadioDead, RetryLimit: true}},
		"queue full": {func(cfg *Config) { cfg.QueueFrames = 1 }, func(c *Core) {
			for id := range uint16(3) {
				c.Enqueue(0, udp(0, 1, id))
			}
		}, FrameLoss{Node: 0, Peer: -1, Flow: flow, Seq: 2, Cause: QueueFull}},
		"channel error": {func(cfg *Config) {
			cfg.ChannelError = propagation.ChannelErrorConfig{Mean: 0.9999, BurstS: 1e6}
		},
			func(c *Core) { c.Enqueue(0, udp(0, 1, 9)) },
			FrameLoss{Node: 0, Peer: 1, Flow: flow, Seq: 9, Cause: ChannelError, RetryLimit: true}},
		"collision": {nil, func(c *Core) {
			c.Enqueue(0, udp(0, -1, 10))
			c.Enqueue(2, ethernet(2, -1, 0, 500))
		}, FrameLoss{Node: 0, Peer: 1, Flow: flow, Seq: 10, Cause: Collision}},
	} {
		cfg := testConfig(Standard80211g, 6, 4)
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
