package synthetic

import (
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// Conditions are what an attempt met with.
type Conditions struct {
	MB              float64 // delivered in the window, MB of 10^6 bytes
	NoConnection    bool    // the radio was dead: no socket ever
	SpeedOffsetMps  float64 // the car drives this much beside its target
	GPSGapFromS     float64 // no fix in [from, to) of the window's time
	GPSGapToS       float64
	NoWindow        string // a node whose window never opened
	FailedNode      string // a node that kept the trial as failed
	InterruptedNode string // a node whose agent was restarted when the window had closed
	GateTimeout     bool   // the initiator gave up before the window
	LatenessShare   float64
	GoUncertainUs   float64
	// ReceiverCutS ends the receiver's records this long after the window
	// opened; 0: they are whole.
	ReceiverCutS float64
}

// OpenBootNs is each node's boot clock when the window opens. The clocks differ
// widely, as those of real machines do.
var OpenBootNs = map[string]int64{"car": 5_000e9, "roadside": 81_000e9, "field": 5_000e9}

// relayBootNs is that of every relay.
const relayBootNs = 33_000e9

func openBootNs(node string) int64 {
	if at, ok := OpenBootNs[node]; ok {
		return at
	}
	return relayBootNs
}

const (
	siteLatDeg = 52.5
	siteLonDeg = 13.4
	// earthRadiusM is the mean radius (IUGG R1), as in package metrics.
	earthRadiusM = 6371008.8
	tick         = 100 // ms, the samplers' period
	leadMs       = 1000
	tailMs       = 300
)

// maker collects one node's records.
type maker struct {
	node string
	key  wire.TrialKey
	run  string
	seq  *uint64
	out  []wire.Record
}

func (m *maker) add(ms float64, b wire.Body) {
	*m.seq++
	m.out = append(m.out, wire.Record{Header: wire.Header{
		Node: m.node, Epoch: "e-" + m.node, Seq: *m.seq, TBootNs: openBootNs(m.node) + int64(ms*1e6),
		Run: m.run, Trial: m.key.Trial, Attempt: m.key.Attempt,
	}, Body: b})
}

// Attempt makes all records of one attempt, node by node. seqs counts each
// node's records on from trial to trial.
func Attempt(p wire.RunPlan, t wire.Trial, attempt int, c Conditions, seqs map[string]*uint64) map[string][]wire.
	Record {
	out := map[string][]wire.Record{}
	for _, node := range append([]string{"car", "roadside", "field"}, t.Relays...) {
		if seqs[node] == nil {
			seqs[node] = new(uint64)
		}
		m := &maker{node: node, run: p.Run, seq: seqs[node], key: wire.TrialKey{Trial: t.Number, Attempt: attempt}}
		switch i := slices.Index(t.Relays, node); {
		case node == "field":
			m.field(t, c)
		case i >= 0:
			m.relay(t, i)
		default:
			m.agent(t, c)
		}
		out[node] = m.out
	}
	return out
}

func (m *maker) agent(t wire.Trial, c Conditions) {
	durationMs := t.DurationS * 1000
	m.add(-leadMs, &wire.TrialState{State: wire.StateArmed})
	m.add(-leadMs, provenance(m.node))
	if c.GateTimeout {
		m.add(0, &wire.TrialState{State: wire.StateKept, Outcome: wire.Rejected,
			Reason: wire.ParseReason("gate_timeout: the band was never held for 1 s")})
		return
	}
	if c.NoWindow == m.node {
		return
	}
	m.compare(-500)
	w := &wire.Window{OpenBootNs: OpenBootNs[m.node], CloseBootNs: OpenBootNs[m.node] + int64(durationMs*1e6),
		GoPath: "self"}
	if m.node != t.Initiator {
		w.GoPath, w.GoUncertaintyUs = "mesh", new(c.GoUncertainUs+900)
	}
	m.add(0, w)
	for ms := -float64(leadMs); ms <= durationMs+tailMs; ms += tick {
		if m.node == t.Receiver && c.ReceiverCutS > 0 && ms > c.ReceiverCutS*1000 {
			return
		}
		m.gps(t, c, ms)
		m.add(ms, &wire.Station{Peer: "02:00:00:00:00:0" + map[string]string{"car": "2", "roadside": "1"}[m.node],
			SignalDbm: new(signalDbm(distanceM(t, c, ms/1000))), TxBitrateMbps: new(54.0),
			TxRetries: new(uint64(ms + leadMs)), TxFailed: new(uint64(0)), InactiveMs: new(2.0)})
		if ms >= 0 && ms <= durationMs && !c.NoConnection {
			m.sockets(t, c, ms)
		}
	}
	m.iperf3(t, c)
	m.delays(t)
	m.compare(durationMs + tailMs)
	m.add(durationMs+tailMs, &wire.Lateness{Source: "sampler", WindowS: t.DurationS, Events: 100, MeanUs: 120,
		P99Us: 900, WorstUs: 2100})
	if c.FailedNode == m.node {
		m.add(durationMs+tailMs, &wire.TrialState{State: wire.StateKept, Outcome: wire.Failed,
			Reason: wire.ParseReason("iperf3: did not start")})
		return
	}
	if c.InterruptedNode == m.node {
		m.add(durationMs+tailMs, &wire.TrialState{State: wire.StateKept, Outcome: wire.Interrupted,
			Reason: wire.ParseReason("agent_restarted: the agent was started again during the attempt")})
		return
	}
	m.add(durationMs+tailMs, &wire.TrialState{State: wire.StateKept, Outcome: wire.Accepted})
}

// compare compares the node's clock with the other's.
func (m *maker) compare(ms float64) {
	m.add(ms, &wire.Clock{Peer: other(m.node), OffsetNs: openBootNs(other(m.node)) - openBootNs(m.node),
		UncertaintyNs: 800_000, RTTNs: 1_600_000, Exchanges: 8})
}

// relay stands at its place in the rows, or goes round it once in a minute.
func (m *maker) relay(t wire.Trial, i int) {
	durationMs := t.DurationS * 1000
	m.add(-leadMs, &wire.TrialState{State: wire.StateArmed})
	m.add(0, &wire.Window{OpenBootNs: relayBootNs, CloseBootNs: relayBootNs + int64(durationMs*1e6), GoPath: "mesh"})
	lat := siteLatDeg + float64(20*(i/10))/earthRadiusM*180/math.Pi
	lon := siteLonDeg + float64(15+10*(i%10))/(earthRadiusM*math.Cos(lat*math.Pi/180))*180/math.Pi
	every, roundM, mps := float64(tick), 0.0, 0.1
	if t.RelaySampleHz != nil {
		every, roundM, mps = 1000/float64(*t.RelaySampleHz), 40, 40*2*math.Pi/60
	}
	for ms := -float64(leadMs); ms <= durationMs+tailMs; ms += every {
		g := &wire.GPS{Mode: 3, Connected: true, FixAgeMs: new(40 + math.Mod(ms+leadMs, 200))}
		if *g.FixAgeMs < tick {
			at := ms/60_000*2*math.Pi + float64(i)
			g.FixBootNs, g.SpeedMps = new(relayBootNs+int64((ms-40)*1e6)), &mps
			g.LatDeg = new(lat + roundM*math.Sin(at)/earthRadiusM*180/math.Pi)
			g.LonDeg = new(lon + roundM*math.Cos(at)/(earthRadiusM*math.Cos(lat*math.Pi/180))*180/math.Pi)
		}
		m.add(ms, g)
		m.add(ms, &wire.Station{Peer: "02:00:00:00:00:02", SignalDbm: new(-60.0), TxBitrateMbps: new(54.0),
			TxRetries: new(uint64(ms + leadMs))})
	}
	m.add(durationMs+tailMs, &wire.TrialState{State: wire.StateKept, Outcome: wire.Accepted})
}

// gps writes one tick; fixes come at 5 Hz, 40 ms before their tick.
func (m *maker) gps(t wire.Trial, c Conditions, ms float64) {
	g := &wire.GPS{Mode: 3, Connected: true}
	lastMs := math.Floor((ms+leadMs)/200)*200 - leadMs - 40
	if c.GPSGapToS > c.GPSGapFromS && lastMs >= c.GPSGapFromS*1000 && lastMs < c.GPSGapToS*1000 {
		lastMs = math.Ceil((c.GPSGapFromS*1000+leadMs+40)/200)*200 - 200 - leadMs - 40 // the last one before the gap
	}
	age := ms - lastMs
	g.FixAgeMs = new(age)
	if age < tick { // the fix is told once, in the first tick after it came
		g.FixBootNs = new(OpenBootNs[m.node] + int64(lastMs*1e6))
		lat, lon, speed := siteLatDeg, siteLonDeg, 0.0
		if m.node == t.Car {
			lat = siteLatDeg + alongM(t, c, lastMs/1000)/earthRadiusM*180/math.Pi
			lon = siteLonDeg + t.Course.OffsetM/(earthRadiusM*math.Cos(lat*math.Pi/180))*180/math.Pi
			speed = carSpeed(t, c)
		}
		g.LatDeg, g.LonDeg, g.SpeedMps = &lat, &lon, &speed
		g.SatellitesUsed, g.SpeedErrMps = new(11), new(0.3)
	}
	m.add(ms, g)
}

func carSpeed(t wire.Trial, c Conditions) float64 {
	if t.SpeedMps == nil {
		return 0
	}
	return *t.SpeedMps + c.SpeedOffsetMps
}

// alongM is where the car is on the road: on course depart it set off at the
// roadside node, so that it is the farther out the faster it drives; on the
// others it drives a stretch of its own.
func alongM(t wire.Trial, c Conditions, s float64) float64 {
	v := carSpeed(t, c)
	switch t.Course.Kind {
	case "depart":
		return v*v/(2*t.Course.AccelMps2) + v*(t.Gate.HoldS+t.Gate.LeadS) + v*s
	case "parked":
		if t.Course.MarkM != nil {
			return *t.Course.MarkM
		}
	}
	return 20 + v*s
}

func distanceM(t wire.Trial, c Conditions, s float64) float64 {
	return math.Hypot(alongM(t, c, s), t.Course.OffsetM)
}

// signalDbm falls with distance so that figures have a shape; its numbers claim
// nothing.
func signalDbm(distanceM float64) float64 { return math.Round(-30 - 20*math.Log10(max(distanceM, 1))) }

// StreamBytes shares an attempt's bytes among its streams: all the same, the
// rest to the first.
func StreamBytes(mb float64, streams, stream int) uint64 {
	total := uint64(math.Round(mb * 1e6))
	share := total / uint64(streams)
	if stream == 0 {
		share += total % uint64(streams)
	}
	return share
}

func (m *maker) sockets(t wire.Trial, c Conditions, ms float64) {
	f := t.Traffic[0]
	if f.Kind == wire.KindDelay {
		return
	}
	share := ms / (t.DurationS * 1000)
	wobble := share + 0.02*math.Sin(6*math.Pi*share) // still 0 and 1 at the edges
	edge := map[float64]string{0: "open", t.DurationS * 1000: "close"}[ms]
	if edge == "open" {
		return // the client starts when the window opens: no socket yet
	}
	for i := range f.Streams {
		bytes := uint64(math.Round(wobble * float64(StreamBytes(c.MB, f.Streams, i))))
		s := &wire.TCPSample{Flow: f.Name, Stream: new(i), Edge: edge,
			Cookie: uint64(1000*m.key.Trial + 10*m.key.Attempt + i),
			State:  "ESTABLISHED", Congestion: t.TCP.Variant,
			CwndSegments: uint32(10 + 3*math.Abs(math.Sin(float64(i)+5*share))),
			MSSBytes:     1448, RTTUs: uint32(8000 + 3000*share), RTTVarUs: 500, RTOUs: 208000}
		client, server := fmt.Sprintf("10.77.0.1:%d", f.ClientPort+i), fmt.Sprintf("10.77.0.2:%d", f.Port)
		if m.node == t.Receiver {
			s.Local, s.Remote, s.BytesReceived = server, client, bytes
		} else {
			s.Local, s.Remote, s.BytesAcked = client, server, bytes
			s.Retransmits = uint32(5 * share)
		}
		m.add(ms, s)
	}
}

func (m *maker) iperf3(t wire.Trial, c Conditions) {
	for _, f := range t.Traffic {
		if f.Kind == wire.KindDelay {
			continue
		}
		if m.node == f.Server() {
			m.iperf3Of(t, f, c, "server")
		}
		if m.node == f.Client() {
			m.iperf3Of(t, f, c, "client")
		}
	}
}

// AddDelay adds a flow of kind delay to a trial.
func AddDelay(t *wire.Trial) {
	t.Traffic = append(t.Traffic, wire.Flow{Name: "delay", Kind: wire.KindDelay, From: t.Sender, To: t.Receiver,
		Port: 5002, Streams: 1, ClientPort: 43000, IntervalMs: new(20.0), PayloadBytes: new(172),
		DurationS: t.DurationS})
}

// DelayMs is how long a datagram of a flow of kind delay, and its answer, are under way together. One of
// DelayLostEvery is lost on its way out, from the first on.
func DelayMs(t wire.Trial) float64 { return 4 + *t.SpeedMps/2 + float64(t.Block) }

// DelayLostEvery is explained at DelayMs.
const DelayLostEvery = 50

// delays are what the ends of flows of kind delay record. The responder answers at once.
func (m *maker) delays(t wire.Trial) {
	for _, f := range t.Traffic {
		if f.Kind != wire.KindDelay {
			continue
		}
		end := wire.DelayEnd{Flow: f.Name, Side: wire.DelaySender}
		if m.node == f.To {
			end.Side = wire.DelayResponder
		}
		for n := range f.Datagrams() {
			due := f.DatagramDueNs(0, n)
			came := due + int64(DelayMs(t)/2*1e6)
			back := due + int64(DelayMs(t)*1e6)
			b := &wire.Delay{Flow: f.Name, Side: end.Side, Datagram: uint32(n)}
			lost := n%DelayLostEvery == 0
			switch {
			case m.node == f.From:
				b.HandedBootNs, b.DueBootNs = new(openBootNs(f.From)+due), new(openBootNs(f.From)+due)
				if !lost {
					b.ReceivedBootNs, b.ReceivedStamp = new(openBootNs(f.From)+back), wire.StampKernel
					b.PeerReceivedBootNs, b.PeerReceivedStamp = new(openBootNs(f.To)+came), wire.StampKernel
					b.PeerHandedBootNs = b.PeerReceivedBootNs
					end.Received++
				}
			case lost:
				continue
			default:
				b.HandedBootNs = new(openBootNs(f.To) + came)
				b.ReceivedBootNs, b.ReceivedStamp = b.HandedBootNs, wire.StampKernel
				end.Received++
			}
			end.Sent++
			m.add(float64(due)/1e6, b)
		}
		m.add(t.DurationS*1000+tailMs, &end)
	}
}

// iperf3Of is one process that lived to its flow's end, or that found no network.
func (m *maker) iperf3Of(t wire.Trial, f wire.Flow, c Conditions, side string) {
	began := openBootNs(m.node) + int64(f.StartS*1e9)
	over := began + int64(f.DurationS*1e9) + tailMs*1e6
	b := &wire.Iperf3{Flow: f.Name, Side: side, ExitCode: new(0), StartedBootNs: &began, EndedBootNs: &over,
		Ended: wire.EndedItself}
	switch {
	case c.NoConnection && side == "server":
		b.ExitCode, b.Killed, b.Ended = nil, "time", wire.EndedDeadline
	case c.NoConnection:
		b.ExitCode, b.Error, b.Cause = new(1), "unable to connect to server: No route to host", wire.CauseUnreachable
	default:
		sent := map[string]any{"bytes": c.MB*1e6 + 70000, "seconds": 10.0, "bits_per_second": c.MB*8e5 + 56000,
			"retransmits": 30}
		received := map[string]any{"bytes": c.MB * 1e6, "seconds": 10.02, "bits_per_second": c.MB * 8e6 / 10.02}
		raw, err := json.Marshal(map[string]any{"end": map[string]any{"sum_sent": sent, "sum_received": received}})
		if err == nil {
			b.Output = raw
		}
	}
	m.add(t.DurationS*1000+tailMs, b)
}

func (m *maker) field(t wire.Trial, c Conditions) {
	if c.GateTimeout {
		return
	}
	for ms := 0.0; ms <= t.DurationS*1000; ms += tick {
		m.add(ms, &wire.Truth{Of: t.Car, XM: alongM(t, c, ms/1000), YM: t.Course.OffsetM,
			SpeedMps: carSpeed(t, c), DistanceM: distanceM(t, c, ms/1000)})
	}
	m.add(t.DurationS*1000+tailMs, &wire.Lateness{Source: "medium", WindowS: t.DurationS, Events: 90000,
		SumS: c.LatenessShare * t.DurationS, MeanUs: 40, P99Us: 300, WorstUs: 2500})
}

func provenance(node string) *wire.Provenance {
	return &wire.Provenance{
		Agent: software, Kernel: "6.12.9", Arch: "amd64", Machine: "Test laptop <one>", Interface: "wlan0",
		Driver:    "medium",
		MAC:       "02:00:00:00:00:0" + map[string]string{"car": "1", "roadside": "2"}[node],
		Tools:     map[string]string{"iperf3": "3.12", "gpsd": "3.22"},
		Sysctls:   map[string]string{"net.ipv4.tcp_congestion_control": "reno", "net.ipv4.tcp_no_metrics_save": "1"},
		Offloads:  map[string]bool{"gro": false, "gso": false, "tso": false},
		Addresses: []string{"10.77.0.1/24"}, Routes: []string{"10.77.0.0/24 dev wlan0"},
		Congestion: []string{"bbr", "cubic", "reno"},
	}
}

func other(node string) string {
	if node == "car" {
		return "roadside"
	}
	return "car"
}

// Noise is the source of randomness of one trial.
func Noise(seed uint64, trial int) *rand.Rand { return rand.New(rand.NewPCG(seed, uint64(1000+trial))) }
