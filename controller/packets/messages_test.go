package packets

import (
	"bytes"
	"maps"
	"testing"

	"fieldmesh.dev/fieldmesh/protocols/manet/signalling"
	"fieldmesh.dev/fieldmesh/test/fuzz"
)

// routingFrame is an Ethernet frame of a routing packet to all, of which at
// most cut bytes were captured.
func routingFrame(port uint16, cut int, body ...byte) (captured []byte, wireBytes int) {
	f := make([]byte, 14+20+8, 14+20+8+len(body))
	order.PutUint16(f[12:], etherIPv4)
	ip := f[14:]
	ip[0], ip[9] = 0x45, signalling.ProtocolUDP
	order.PutUint16(ip[2:], uint16(28+len(body)))
	order.PutUint16(ip[20:], port)
	order.PutUint16(ip[22:], port)
	f = append(f, body...)
	return f[:min(cut, len(f))], len(f)
}

// Every routing protocol's packets count as routing, with its bytes.
func TestRoutingIsCountedWhateverTheProtocol(t *testing.T) {
	w := newWire(t)
	for i, port := range []uint16{269, 654, 698, 6696, 49654, 49655} {
		frame, n := routingFrame(port, 96, make([]byte, 100)...)
		w.ends[0] = append(w.ends[0], captured{at: int64(10+i) * ms, outbound: true, wire: n, data: frame})
	}
	batman := order.AppendUint16(make([]byte, 12), 0x4305)
	for i, kind := range []byte{0x00, 0x40} { // an originator message, and one that carries a frame
		frame := append(bytes.Clone(batman), append([]byte{kind}, make([]byte, 81)...)...)
		w.ends[0] = append(w.ends[0], captured{at: int64(30+i) * ms, outbound: true, wire: 14 + 52, data: frame})
	}
	_, ends := w.analyse(w.flow())
	if got, want := ends[0], (EndResult{Packets: 8, RoutingPackets: 7, RoutingBytes: 6*128 + 52 + 24,
		RoutingHeaders: 24}); got.Packets != want.Packets ||
		got.RoutingPackets != want.RoutingPackets || got.RoutingBytes != want.RoutingBytes || got.RoutingHeaders !=
		want.RoutingHeaders {
		t.Errorf("%+v, want %+v", got, want)
	}
}

func TestMessagesOfRoutingPackets(t *testing.T) {
	olsr := []byte{0, 24, 0, 1, 1, 0, 0, 8, 9, 9, 9, 9, 202, 0, 0, 8, 9, 9, 9, 9, 77, 0, 0, 4}
	// A Hello, a Pad1, an IHU; what is behind the body is none.
	babel := []byte{42, 2, 0, 15, 4, 6, 0, 0, 0, 1, 0, 100, 0, 5, 4, 9, 9, 9, 9, 8, 0}
	for name, c := range map[string]struct {
		port  uint16
		cut   int
		body  []byte
		want  map[string]MessageCount
		whole bool
	}{
		"OLSR": {signalling.PortOLSR, 1500, olsr, map[string]MessageCount{"HELLO": {1, 8}, "TC": {1, 8},
			"other": {1, 4}}, true},
		"OLSR, cut": {signalling.PortOLSR, 14 + 28 + 14, olsr, map[string]MessageCount{"HELLO": {1, 8}},
			false},
		"Babel": {signalling.PortBabel, 1500, babel, map[string]MessageCount{"Hello": {1, 8},
			"Pad1": {1, 1}, "IHU": {1, 6}}, true},
		"Babel, cut": {signalling.PortBabel, 14 + 28 + 12, babel, map[string]MessageCount{"Hello": {1, 8}},
			false},
		"Babel, a message beyond its packet": {signalling.PortBabel, 1500, []byte{42, 2, 0, 100, 0, 4, 90, 0},
			map[string]MessageCount{"Pad1": {1, 1}}, false},
		"AODV": {signalling.PortAODV, 14 + 28 + 4, make([]byte, 20),
			map[string]MessageCount{"other": {1, 20}}, true},
		"AODV, a request": {signalling.PortAODV, 1500, append([]byte{1}, make([]byte, 23)...),
			map[string]MessageCount{"RREQ": {1, 24}}, true},
		"a length of nought": {signalling.PortOLSR, 1500, []byte{0, 8, 0, 1, 1, 0, 0, 0}, map[string]MessageCount{},
			false},
		"nothing": {signalling.PortBabel, 1500, nil, map[string]MessageCount{}, false},
	} {
		frame, _ := routingFrame(c.port, c.cut, c.body...)
		var h header
		if !h.decode(frame, len(frame)) {
			t.Fatalf("%s: not decoded", name)
		}
		got := map[string]MessageCount{}
		whole := h.messages(func(kind string, bytes int) {
			m := got[kind]
			got[kind] = MessageCount{m.N + 1, m.Bytes + uint64(bytes)}
		})
		if whole != c.whole || !maps.Equal(got, c.want) {
			t.Errorf("%s: %v, whole %v; want %v, %v", name, got, whole, c.want, c.whole)
		}
	}
}

//attack:air frames made to break the analysis of a capture
func FuzzMessages(f *testing.F) {
	f.Add(uint16(signalling.PortOLSR), []byte{0, 12, 0, 1, 1, 0, 0, 8, 9, 9, 9, 9})
	f.Add(uint16(signalling.PortBabel), []byte{42, 2, 0, 1, 0})
	f.Add(uint16(signalling.PortAODV), []byte{3})
	fuzz.Run(f, func(t *testing.T, port uint16, body []byte) {
		frame, _ := routingFrame(port, 1<<16, body[:min(len(body), 60000)]...)
		var h header
		if !h.decode(frame, len(frame)) {
			t.Fatal("not decoded")
		}
		total := 0
		h.messages(func(kind string, bytes int) {
			if kind == "" || bytes < 1 {
				t.Fatalf("a message %q of %d bytes", kind, bytes)
			}
			total += bytes
		})
		if total > len(body) {
			t.Errorf("messages of %d bytes in a packet of %d", total, len(body))
		}
	})
}
