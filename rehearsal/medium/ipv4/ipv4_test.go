package ipv4

import (
	"encoding/binary"
	"testing"

	"fieldmesh.dev/fieldmesh/test/fuzz"
)

// frame is an Ethernet frame with an IPv4 packet from 10.0.0.1 to 10.0.0.2.
func frame(protocol byte, id uint16, body []byte) []byte {
	f := make([]byte, etherBytes+headerBytes, etherBytes+headerBytes+len(body))
	binary.BigEndian.PutUint16(f[12:], EtherType)
	ip := f[etherBytes:]
	ip[0], ip[9] = 0x45, protocol
	binary.BigEndian.PutUint16(ip[2:], uint16(headerBytes+len(body)))
	binary.BigEndian.PutUint16(ip[4:], id)
	copy(ip[12:], []byte{10, 0, 0, 1, 10, 0, 0, 2})
	return append(f, body...)
}

func ports(src, dst uint16, rest ...byte) []byte {
	out := binary.BigEndian.AppendUint16(nil, src)
	return append(binary.BigEndian.AppendUint16(out, dst), rest...)
}

func TestFlowsOfPackets(t *testing.T) {
	tcp := ports(5201, 40000, 0xde, 0xad, 0xbe, 0xef, 0, 0, 0, 0, 6<<4, 16, 1, 0, 0, 0, 0, 0, 1, 1, 1, 1,
		'd', 'a', 't')
	carried := append([]byte{6, 0, 0, 4, 96, 2, 0, 0}, tcp...) // a source route's options, then TCP
	options := frame(6, 7, append(make([]byte, 4), tcp...))
	options[14] = 0x46
	later := frame(17, 8, ports(1, 2, 0, 0, 0, 0))
	later[21] = 185
	arp := append(make([]byte, 12), append([]byte{0x08, 0x06}, make([]byte, 28)...)...)
	for name, v := range map[string]struct {
		frame []byte
		flow  string
		seq   uint32
		data  int
	}{
		"tcp":              {frame(6, 7, tcp), "10.0.0.1:5201>10.0.0.2:40000/tcp", 0xdeadbeef, 3},
		"tcp with options": {options, "10.0.0.1:5201>10.0.0.2:40000/tcp", 0xdeadbeef, 3},
		"udp": {frame(17, 999, ports(698, 699, 0, 0, 0, 0)),
			"10.0.0.1:698>10.0.0.2:699/udp", 999, 0},
		"icmp":           {frame(1, 3, make([]byte, 8)), "10.0.0.1>10.0.0.2/icmp", 3, -1},
		"another":        {frame(89, 4, make([]byte, 8)), "10.0.0.1>10.0.0.2/89", 4, -1},
		"later fragment": {later, "10.0.0.1>10.0.0.2/udp", 8, -1},
		"cut short":      {frame(6, 7, ports(1, 2)), "10.0.0.1>10.0.0.2/tcp", 7, -1},
		"dsr":            {frame(48, 5, carried), "10.0.0.1:5201>10.0.0.2:40000/tcp", 0xdeadbeef, 3},
		"dsr alone":      {frame(48, 6, []byte{59, 0, 0, 0}), "10.0.0.1>10.0.0.2/48", 6, 0},
		"arp":            {arp, "", 0, -1},
	} {
		flow, seq, data := "", uint32(0), -1
		if ip, is := In(v.frame); is {
			flow, seq = Flow(ip)
			data = Payload(ip)
		}
		if flow != v.flow || seq != v.seq || data != v.data {
			t.Errorf("%s: flow %q, seq %d, payload %d; want %q, %d and %d", name, flow, seq, data, v.flow,
				v.seq, v.data)
		}
	}
}

func FuzzPacket(f *testing.F) {
	f.Add([]byte{})
	f.Add(frame(6, 7, ports(1, 2, 3, 4, 5, 6)))
	f.Add(frame(17, 7, nil))
	f.Add(append(make([]byte, 12), 8, 0, 0x4f))
	fuzz.Run(f, func(t *testing.T, frame []byte) {
		if ip, is := In(frame); is {
			if flow, _ := Flow(ip); flow == "" {
				t.Errorf("an IPv4 packet without a flow: %x", frame)
			}
			if n := Payload(ip); n < -1 || n > 1<<16 {
				t.Errorf("a payload of %d bytes: %x", n, frame)
			}
		}
	})
}
