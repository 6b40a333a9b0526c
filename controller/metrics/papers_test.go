package metrics

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"math"
	"net/netip"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"fieldmesh.dev/fieldmesh/controller/archive"
	"fieldmesh.dev/fieldmesh/internal/pcapng"
	"fieldmesh.dev/fieldmesh/protocols/wire"
)

const (
	msNs      = int64(time.Millisecond)
	aheadNs   = 3 * int64(time.Second)     // b's boot clock before a's
	wallNs    = 1_700_000_000 * int64(1e9) // both nodes' wall clock at their boot
	comparedN = 100_000                    // each comparison's uncertainty
)

// path is a made-up path from a to b, with the captures of both ends. Times are
// since the window opened.
type path struct {
	t    testing.TB
	ids  uint16
	ends map[string][]seen
}

type seen struct {
	atNs int64 // by the node's boot clock
	out  bool
	data []byte
}

// packet is a TCP segment, or a datagram that iperf3 numbered.
type packet struct {
	udp         bool
	client, srv uint16
	seq         uint32 // the datagram's number
	flags       byte
	payload     int
	back        bool  // from b to a
	held        int64 // below its socket, before it leaves
}

func (p *path) frame(k packet) []byte {
	p.ids++
	f, ip, bytes := make([]byte, 14+20+20+12), []byte(nil), 40+k.payload
	ip = f[14:]
	binary.BigEndian.PutUint16(f[12:], 0x0800)
	ip[0], ip[9] = 0x45, 6
	ends := [][]byte{{10, 0, 0, 1}, {10, 0, 0, 2}}
	ports := []uint16{k.client, k.srv}
	if k.back {
		slices.Reverse(ends)
		slices.Reverse(ports)
	}
	binary.BigEndian.PutUint16(ip[4:], p.ids)
	copy(ip[12:], ends[0])
	copy(ip[16:], ends[1])
	binary.BigEndian.PutUint16(ip[20:], ports[0])
	binary.BigEndian.PutUint16(ip[22:], ports[1])
	if k.udp {
		ip[9], bytes = 17, 28+k.payload
		binary.BigEndian.PutUint32(ip[28+8:], k.seq)
	} else {
		binary.BigEndian.PutUint32(ip[24:], k.seq)
		ip[32], ip[33] = 0x50, k.flags
	}
	binary.BigEndian.PutUint16(ip[2:], uint16(bytes))
	return f
}

// send has a packet leave a and arrive at b, each time after a delay; none is lost.
func (p *path) send(at int64, k packet, delays ...int64) {
	f := p.frame(k)
	if k.udp { // as iperf3 stamps it
		binary.BigEndian.PutUint32(f[14+28:], uint32((tenS+at)/1e9))
		binary.BigEndian.PutUint32(f[14+28+4:], uint32((tenS+at)%1e9/1e3))
	}
	at += k.held
	p.ends["a"] = append(p.ends["a"], seen{tenS + at, !k.back, f})
	for _, d := range delays {
		p.ends["b"] = append(p.ends["b"], seen{tenS + at + d + aheadNs, k.back, f})
	}
}

// file is a node's capture; packets carry its wall clock.
func (p *path) file(node string) []byte {
	p.t.Helper()
	all := p.ends[node]
	slices.SortStableFunc(all, func(a, b seen) int { return cmp.Compare(a.atNs, b.atNs) })
	var b bytes.Buffer
	w, err := pcapng.NewWriter(&b, "test", pcapng.Interface{Name: "wlan0", LinkType: pcapng.LinkEthernet,
		SnapBytes: 96})
	if err != nil {
		p.t.Fatal(err)
	}
	for _, s := range all {
		d := pcapng.Inbound
		if s.out {
			d = pcapng.Outbound
		}
		if err := w.Packet(0, wallNs+s.atNs, len(s.data), d, s.data); err != nil {
			p.t.Fatal(err)
		}
	}
	if err := w.Counts(0, 0, uint64(len(all)), 0); err != nil {
		p.t.Fatal(err)
	}
	return b.Bytes()
}

// rows computes what the captures and the field's losses say.
func (p *path) rows(t wire.Trial, losses ...wire.Record) []Row {
	p.t.Helper()
	t.Number, t.Sender, t.Receiver, t.Initiator, t.DurationS = 1, "a", "b", "a", 10
	plan := wire.RunPlan{Run: "known", Campaign: "known", Nodes: []wire.PlanNode{{Name: "a", MeshPrefix: "10.0.0.1/24"},
		{Name: "b", MeshPrefix: "10.0.0.2/24"}}, Trials: []wire.Trial{t}}
	at := Attempt{run: "known", key: wire.TrialKey{Trial: 1, Attempt: 1}, trial: t, plan: plan, records: losses}
	a, err := archive.Create(filepath.Join(p.t.TempDir(), "run"), archive.RunInfo{Run: "known", Campaign: "known",
		Place: archive.PlaceRehearsal, Plan: plan})
	if err != nil {
		p.t.Fatal(err)
	}
	defer a.Close()
	for node, ahead := range map[string]int64{"a": 0, "b": aheadNs} {
		keep(p.t, a, &at, node, p.file(node), ahead)
	}
	rows, unreadable := at.captured(a)
	if unreadable != nil {
		p.t.Fatal(unreadable)
	}
	return rows
}

// keep puts a node's capture into the archive, and what the node and the desk
// recorded into the attempt.
func keep(t testing.TB, a *archive.Archive, at *Attempt, node string, file []byte, ahead int64) {
	t.Helper()
	sum := sha256.Sum256(file)
	if err := a.AppendCapture(at.key, node, file); err != nil {
		t.Fatal(err)
	}
	if err := a.CloseCapture(at.key, node, hex.EncodeToString(sum[:])); err != nil {
		t.Fatal(err)
	}
	own := func(ns int64, b wire.Body) wire.Record {
		return wire.Record{Header: wire.Header{Kind: b.Kind(), Node: node, TBootNs: ns}, Body: b}
	}
	at.records = append(at.records,
		own(tenS+ahead, &wire.Window{OpenBootNs: tenS + ahead, CloseBootNs: 2*tenS + ahead}),
		own(2*tenS+ahead, &wire.Capture{WallOffsetOpen: wallNs, WallOffsetClose: wallNs, OpenBootNs: ahead,
			CloseBootNs: 3*tenS + ahead}))
	for _, when := range []int64{8e9, 22e9} {
		at.records = append(at.records, wire.Record{Header: wire.Header{Kind: "clock", Node: "desk", TBootNs: when},
			Body: &wire.Clock{Peer: node, OffsetNs: ahead, UncertaintyNs: comparedN}})
	}
}

func want(t *testing.T, rows []Row, flow, name string, value float64) {
	t.Helper()
	got := Value(rows, flow, name)
	if got == nil {
		t.Errorf("%s of %q is absent, want %g", name, flow, value)
	} else if math.Abs(*got-value) > 1e-9*max(1, math.Abs(value)) {
		t.Errorf("%s of %q is %.12g, want %.12g", name, flow, *got, value)
	}
}

func lostPacket(at int64, flow string) wire.Record {
	return wire.Record{Header: wire.Header{Kind: "loss", Node: "field", TBootNs: tenS + at},
		Body: &wire.Loss{Of: "a", Flow: flow, PayloadBytes: new(uint64(512)), Cause: "collision"}}
}

const bulkInField = "10.0.0.1:20000>10.0.0.2:5000/tcp"

// bulk sends 1000 segments of 512 bytes, one each 5 ms, 20 ms from end to end.
// A tenth is lost and sent again after 100 ms, a fiftieth comes twice, a
// hundredth is overtaken by the next. What leaves before the window warms up.
func (p *path) bulk() (lost []wire.Record) {
	data := func(i int) packet {
		return packet{client: 20000, srv: 5000, seq: uint32(1 + 512*i), flags: 16, payload: 512}
	}
	p.send(-2000*msNs, packet{client: 20000, srv: 5000, seq: 0, flags: 2})
	const warm = 50
	for i := range warm { // slow, and half of them lost
		at := int64(i-warm) * 20 * msNs
		if i%2 == 0 {
			p.send(at, data(i), 15*msNs, 500*msNs)
		} else {
			p.send(at, data(i))
			p.send(at+msNs, data(i), 15*msNs)
		}
	}
	for i := range 1000 {
		at, k := int64(i)*5*msNs, data(warm+i)
		switch {
		case i%10 == 9:
			p.send(at, k)
			p.send(at+101*msNs, k, 20*msNs)
			lost = append(lost, lostPacket(at, bulkInField))
		case i%50 == 0:
			p.send(at, k, 20*msNs, 22*msNs)
		case i%100 == 1:
			p.send(at, k, 27*msNs)
		default:
			p.send(at, k, 20*msNs)
		}
	}
	return lost
}

// Known loss, delay, duplication and reordering give the exact figures of the
// papers' definitions, and what warmed the network up is in none of them.
func TestThePapersMetricsOfAKnownPath(t *testing.T) {
	p := &path{t: t, ends: map[string][]seen{}}
	losses := p.bulk()
	syn := lostPacket(0, bulkInField)
	syn.Body.(*wire.Loss).PayloadBytes = new(uint64(0))
	losses = append(losses, syn, lostPacket(-msNs, bulkInField), lostPacket(msNs, "10.0.0.2:5000>10.0.0.1:20000/tcp"),
		lostPacket(msNs, "10.0.0.1:20001>10.0.0.2:5000/tcp"),
		wire.Record{Header: wire.Header{Kind: "medium", Node: "field", TBootNs: 2 * tenS},
			Body: &wire.MediumCount{Of: "a"}})
	rows := p.rows(wire.Trial{Traffic: []wire.Flow{{Name: "bulk", Kind: "iperf3_tcp", From: "a", To: "b", Port: 5000,
		Streams: 1, ClientPort: 20000, StartS: -2}}}, losses...)
	want(t, rows, "bulk", "packets_sent", 1100)
	want(t, rows, "bulk", PacketLossPercent, 100*100.0/1100)
	want(t, rows, "bulk", TrueLossPercent, 100*100.0/1100)
	want(t, rows, "bulk", OneWayMeanMs, (990*20+10*27)/1000.0)
	want(t, rows, "bulk", "one_way_delay_max_ms", 27)
	want(t, rows, "bulk", "one_way_delay_uncertainty_ms", 2*comparedN/1e6)
	want(t, rows, "bulk", GoodputRatio, 1000.0/1100)
	want(t, rows, "bulk", DeliveryFraction, 1000.0/1100)
	want(t, rows, "bulk", "packets_duplicated", 20)
	want(t, rows, "bulk", "packets_out_of_order", 10)
	want(t, rows, "bulk", "packets_retransmitted", 100)
	if v := Value(rows, "bulk", ConnectTimeMs); v != nil {
		t.Errorf("a flow that connected before the window took %g ms to connect", *v)
	}
}

func TestFieldsLossesOfAFlow(t *testing.T) {
	at := measured(wire.Trial{}, lostPacket(0, ""), lostPacket(0, "10.0.0.1>10.0.0.2/48"))
	tcp := wire.Flow{Name: "bulk", Kind: "iperf3_tcp", From: "a", To: "b", Port: 5000, Streams: 2, ClientPort: 20000}
	for _, c := range []struct {
		change func(*wire.Flow)
		flow   string
		is     bool
	}{
		{nil, bulkInField, true},
		{nil, "10.0.0.1:20001>10.0.0.2:5000/tcp", true},
		{nil, "10.0.0.1:20002>10.0.0.2:5000/tcp", false},
		{nil, "10.0.0.2:5000>10.0.0.1:20000/tcp", false},
		{nil, "10.0.0.1>10.0.0.3/48", false},
		{nil, "nonsense", false},
		{func(f *wire.Flow) { f.Reverse = true }, "10.0.0.1:5000>10.0.0.2:20000/tcp", true},
		{func(f *wire.Flow) { f.Kind = "iperf3_udp" }, "10.0.0.1:9>10.0.0.2:5000/udp", true},
	} {
		f := tcp
		if c.change != nil {
			c.change(&f)
		}
		at.key.Attempt = 1
		if got, known := at.flowInField(f)(c.flow); got != c.is || !known {
			t.Errorf("%q is of %+v: %v, and that is known: %v", c.flow, f, got, known)
		}
	}
	// As archives of before had it of DSR.
	at.trial.Traffic = []wire.Flow{tcp}
	if of, known := at.flowInField(tcp)("10.0.0.1>10.0.0.2/48"); !of || !known {
		t.Error("the only flow between two nodes is not known over DSR")
	}
	at.trial.Traffic = append(at.trial.Traffic, wire.Flow{Name: "other", From: "b", To: "a"})
	if of, known := at.flowInField(tcp)("10.0.0.1>10.0.0.2/48"); !of || known {
		t.Error("one of two flows is known over DSR")
	}
	if at.address("nobody").IsValid() || at.address("a") != netip.MustParseAddr("10.0.0.1") {
		t.Error("addresses")
	}
}

// What the report explains must be what is computed.
func TestPaperMetricsAreWhole(t *testing.T) {
	seen := map[string]bool{}
	for _, m := range PaperMetrics() {
		if m.Name == "" || m.Unit == "" || m.Text == "" || m.Source == "" || len(m.Papers) == 0 || seen[m.Name] {
			t.Errorf("%+v", m)
		}
		seen[m.Name] = true
	}
}
