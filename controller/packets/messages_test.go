package packets

import (
	"maps"
	"testing"
)

// routingFrame is an Ethernet frame of a routing packet to all, of which at
// most cut bytes were captured.
func routingFrame(port uint16, cut int, body ...byte) (captured []byte, wireBytes int) {
	f := make([]byte, 14+20+8, 14+20+8+len(body))
	order.PutUint16(f[12:], etherIPv4)
	ip := f[14:]
	ip[0], ip[9] = 0x45, protoUDP
	order.PutUint16(ip[2:], uint16(28+len(body)))
	order.PutUint16(ip[20:], port)
	order.PutUint16(ip[22:], port)
	f = append(f, body...)
	return f[:min(cut, len(f))], len(f)
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
		"OLSR":               {portOLSR, 1500, olsr, map[string]MessageCount{"HELLO": {1, 8}, "TC": {1, 8}, "other": {1, 4}}, true},
		"OLSR, cut":          {portOLSR, 14 + 28 + 14, olsr, map[string]MessageCount{"HELLO": {1, 8}}, false},
		"Babel":              {portBabel, 1500, babel, map[string]MessageCount{"Hello": {1, 8}, "Pad1": {1, 1}, "IHU": {1, 6}}, true},
		"Babel, cut":         {portBabel, 14 + 28 + 12, babel, map[string]MessageCount{"Hello": {1, 8}}, false},
		"AODV":               {portAODV, 14 + 28 + 4, make([]byte, 20), map[string]MessageCount{"other": {1, 20}}, true},
		"AODV, a request":    {portAODV, 1500, append([]byte{1}, make([]byte, 23)...), map[string]MessageCount{"RREQ": {1, 24}}, true},
		"a length of nought": {portOLSR, 1500, []byte{0, 8, 0, 1, 1, 0, 0, 0}, map[string]MessageCount{}, false},
		"nothing":            {portBabel, 1500, nil, map[string]MessageCount{}, false},
	} {
		frame, _ := routingFrame(c.port, c.cut, c.body...)
		var h header
		if !h.decode(frame) {
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

func FuzzMessages(f *testing.F) {
	f.Add(uint16(portOLSR), []byte{0, 12, 0, 1, 1, 0, 0, 8, 9, 9, 9, 9})
	f.Add(uint16(portBabel), []byte{42, 2, 0, 1, 0})
	f.Add(uint16(portAODV), []byte{3})
	f.Fuzz(func(t *testing.T, port uint16, body []byte) {
		frame, _ := routingFrame(port, 1<<16, body[:min(len(body), 60000)]...)
		var h header
		if !h.decode(frame) {
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
