//go:build e2e

package journeys

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"fieldmesh.dev/fieldmesh/protocols/wire"
	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"
	"github.com/gopacket/gopacket/pcapgo"
)

// madeUp writes a capture of frames between alpha (10.77.0.1) and bravo.
type madeUp struct {
	t    *testing.T
	w    *pcapgo.Writer
	open time.Time
}

func (m *madeUp) frame(seconds float64, top ...gopacket.SerializableLayer) {
	m.t.Helper()
	mac := net.HardwareAddr{2, 0, 0, 0, 0, 1}
	eth := &layers.Ethernet{SrcMAC: mac, DstMAC: mac, EthernetType: layers.EthernetTypeIPv4}
	if _, arp := top[0].(*layers.ARP); arp {
		eth.EthernetType = layers.EthernetTypeARP
	}
	buf := gopacket.NewSerializeBuffer()
	err := gopacket.SerializeLayers(buf, gopacket.SerializeOptions{FixLengths: true},
		append([]gopacket.SerializableLayer{eth}, top...)...)
	if err != nil {
		m.t.Fatal(err)
	}
	data := buf.Bytes()
	kept := min(len(data), 134)
	info := gopacket.CaptureInfo{Timestamp: m.open.Add(time.Duration(seconds * 1e9)), CaptureLength: kept,
		Length: len(data)}
	if err := m.w.WritePacket(info, data[:kept]); err != nil {
		m.t.Fatal(err)
	}
}

func ip(from, to byte, protocol layers.IPProtocol) *layers.IPv4 {
	return &layers.IPv4{Version: 4, IHL: 5, TTL: 64, Protocol: protocol, SrcIP: net.IPv4(10, 77, 0, from),
		DstIP: net.IPv4(10, 77, 0, to)}
}

// data is a segment of alpha's to bravo's port 5000, offset bytes after the
// first, whose sequence number is just below its range's end.
func (m *madeUp) data(seconds float64, port layers.TCPPort, offset uint32, n int) {
	const first = 1<<32 - 1000
	m.frame(seconds, ip(1, 2, layers.IPProtocolTCP), &layers.TCP{SrcPort: port, DstPort: 5000, Seq: first + offset,
		ACK: true}, gopacket.Payload(make([]byte, n)))
}

func (m *madeUp) syn(seconds float64, port layers.TCPPort) {
	const first = 1<<32 - 1000
	m.frame(seconds, ip(1, 2, layers.IPProtocolTCP), &layers.TCP{SrcPort: port, DstPort: 5000, Seq: first - 1,
		SYN: true})
}

// What a capture is read for is itself tested: bytes that came twice, early,
// out of order, too late, over the end of the sequence numbers; and strangers.
func TestACaptureIsReadExactly(t *testing.T) {
	path := filepath.Join(t.TempDir(), "capture.pcap")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	w := pcapgo.NewWriterNanos(f)
	if err := w.WriteFileHeader(134, layers.LinkTypeEthernet); err != nil {
		t.Fatal(err)
	}
	m := &madeUp{t: t, w: w, open: time.Unix(1_800_000_000, 0)}
	m.syn(-0.2, 20001)
	m.data(-0.1, 20001, 0, 300)      // before the window
	m.data(0.1, 20001, 300, 500)     // 500
	m.data(0.2, 20001, 300, 500)     // again
	m.data(0.3, 20001, 1200, 400)    // a gap before it
	m.data(0.4, 20001, 700, 300)     // overlaps by 100: 200
	m.data(0.5, 20001, 1000, 200)    // fills the gap: 200 and the 400
	m.data(0.95, 20001, 2000, 1_000) // never whole
	m.data(1.1, 20001, 1600, 400)    // after the window
	m.syn(0.1, 20002)
	m.data(0.2, 20002, 0, 37)
	m.data(0.6, 20000, 0, 90) // below the client ports: iperf3's control
	m.frame(0.2, ip(2, 1, layers.IPProtocolTCP), &layers.TCP{SrcPort: 5000, DstPort: 20001, ACK: true})
	m.frame(0.3, &layers.ARP{AddrType: layers.LinkTypeEthernet, Protocol: layers.EthernetTypeIPv4, HwAddressSize: 6,
		ProtAddressSize: 4, Operation: 1,
		SourceHwAddress: make([]byte, 6), SourceProtAddress: make([]byte, 4), DstHwAddress: make([]byte, 6),
		DstProtAddress: make([]byte, 4)})
	m.frame(-0.01, ip(1, 2, layers.IPProtocolUDP), &layers.UDP{SrcPort: 9, DstPort: 7446}) // GO, just before the window
	m.frame(0.7, ip(1, 2, layers.IPProtocolUDP), &layers.UDP{SrcPort: 9, DstPort: 7446})   // and in it
	m.frame(0.8, ip(1, 2, layers.IPProtocolTCP), &layers.TCP{SrcPort: 40000, DstPort: 7443, ACK: true})
	m.frame(0.9, ip(1, 2, layers.IPProtocolICMPv4), &layers.ICMPv4{})
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	p := wire.RunPlan{Nodes: []wire.PlanNode{{Name: "alpha", MeshPrefix: "10.77.0.1/24"},
		{Name: "bravo", MeshPrefix: "10.77.0.2/24"}}}
	trial := wire.Trial{Receiver: "bravo",
		Traffic: []wire.Flow{{From: "alpha", To: "bravo", Port: 5000, ClientPort: 20001, Streams: 2}}}
	got := (&capture{file: path}).look(t, trial, 1, p, m.open, m.open.Add(time.Second))
	if want := uint64(500 + 200 + 200 + 400 + 37); got.delivered != want {
		t.Errorf("delivered %d bytes, want %d", got.delivered, want)
	}
	for class, want := range map[string]int{flowData: 8, "flow acknowledgements": 1, "iperf3's control": 1, "arp": 1} {
		if got.classes[class] != want {
			t.Errorf("%d frames of class %q, want %d: %v", got.classes[class], class, want, got.classes)
		}
	}
	all := strings.Join(got.strangers, "\n")
	if len(got.strangers) != 3 || !strings.Contains(all, "7446") || !strings.Contains(all, "7443") ||
		!strings.Contains(all, "ICMP") {
		t.Errorf("%d strangers, want three:\n%s", len(got.strangers), all)
	}
	if again := (&capture{file: path}).look(t, trial, 2, p, m.open, m.open.Add(time.Second)); again.delivered != 0 {
		t.Errorf("%d bytes are taken for another attempt's", again.delivered)
	}
}
