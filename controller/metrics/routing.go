package metrics

import (
	"maps"
	"math"
	"slices"
	"strings"

	"fieldmesh.dev/fieldmesh/controller/metrics/series"
	"fieldmesh.dev/fieldmesh/controller/packets"
	"fieldmesh.dev/fieldmesh/controller/stats"
	"fieldmesh.dev/fieldmesh/controller/topology"
	"fieldmesh.dev/fieldmesh/internal/verdict"
	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// untoldLosses and untoldWays are in the definitions of what ways tell.
const untoldLosses = "absent where the emulated field did not tell all its losses"
const untoldWays = untoldLosses + ", and with batman-adv where its nodes did not tell the way throughout"

// What routing did, by its daemons' own word, the kernels' routes, probes, and
// the radios' counts.
var (
	routingReady = definition{"routing_ready_s", "s", "what arming waited for routing: from a daemon's start " +
		"until its node had what the plan asks for, at the node where it took longest"}
	routeOutage = definition{"route_outage_s", "s", "longest time in the window in which no way led from the " +
		"measured flow's sender to its receiver by the kernels' routes (DSR: by the sender's source route), or that " +
		"way had a link whose frames were lost out of reach (rehearsal only: a real radio does not tell why); " +
		untoldWays}
	pingOutage = definition{"ping_outage_s", "s", "longest time in the window in which no probe came back to " +
		"the sender; as fine as the probes' beat, and absent where the sender's sampler was more than 300 ms late"}
	dataOutage = definition{"data_outage_s", "s", "longest time in the window in which the receiver had no new " +
		"byte of TCP's; as fine as the sampler's period, and absent where the sampler was more than 300 ms late"}
	routedShare = definition{"routed_share", "1", "share of the window in which a whole way led from sender to " +
		"receiver; " + untoldWays}
	hopsMean = definition{HopsMean, "hops", "length of the measured flow's way, mean over the time in " +
		"which it had one; " + untoldLosses}
	hopsMost   = definition{"hops_max", "hops", "longest way of the measured flow in the window; " + untoldLosses}
	wayChanges = definition{"way_changes", "1", "how often the measured flow's way changed in the window; " +
		untoldWays}
	routeChanges = definition{"route_changes", "1", "changes of routes in the window, all nodes and destinations " +
		"(DSR: of the sender's source route to its receiver alone; what compares with it is way_changes); " +
		"one that babeld or olsrd makes by deleting a route and setting another is one"}
	discoveryMedian = definition{"discovery_median_ms", "ms", "route discoveries that found a route: from the first " +
		"request to the route, median over all nodes up to the window's close"}
	discoveriesFound = definition{"discoveries", "1", "route discoveries that found a route, all nodes, up to the " +
		"window's close"}
	discoveriesLost = definition{"discoveries_failed", "1", "route discoveries that were given up, all nodes, up to " +
		"the window's close"}
	daemonPackets = definition{"daemon_packets_per_s", "packets/s", "routing packets that a daemon sent in the " +
		"window by its own count, mean of the nodes"}
	daemonBytes = definition{"daemon_bytes_per_s", "B/s", "bytes at IP of those"}
	probeLoss   = definition{"probe_loss_percent", "%", "probes that were sent and had not come back after 30 s " +
		"or when the attempt's flows had ended; of an attempt that does not tell how many were sent, of the window's " +
		"beat; absent where the sender's sampler was more than 300 ms late"}
	probeRTT    = definition{"probe_rtt_median_ms", "ms", "probes there and back, median"}
	radioFrames = definition{"radio_frames_per_s", "frames/s", "frames that real radios put on the air in the " +
		"window, all nodes: what the interface sent and the retries towards every station, for as long as the radio " +
		"knew it; without ACKs, which radios do not count. Absent where a radio does not tell retries, or reported " +
		"neither channel nor stations within three beats of its sampler of an edge"}
	messagesCut = definition{"routing_packets_cut", "packets", "routing packets of which the captures do not hold " +
		"all messages: a larger snap_bytes would"}
)

// Mesh is the attempt's routing over time; nil where nothing was recorded of it.
func (at Attempt) Mesh() *topology.Mesh { return topology.Read(at.plan, at.trial, at.records) }

func (s *set) routing() {
	m := s.at.Mesh()
	if m != nil && m.HasDaemon() {
		s.ways(m)
		s.routingCost(m.Cost())
	}
	s.probes(m)
	s.framesOnAir()
}

// ways puts the outcome of the flow's path, and beside its outage those of
// probes and of data.
func (s *set) ways(m *topology.Mesh) {
	var held, hops, most float64
	paths := m.PathsInWindow()
	for i, p := range paths {
		end := m.Seconds
		if i+1 < len(paths) {
			end = paths[i+1].S
		}
		if p.Whole {
			held += end - p.S
			hops += (end - p.S) * float64(p.Hops())
			most = max(most, float64(p.Hops()))
		}
	}
	if m.OutagesKnown() {
		s.put("", routeOutage, new(m.RouteOutage().Seconds))
		s.put("", routedShare, new(held/m.Seconds))
		s.put("", wayChanges, new(float64(len(paths)-1)))
	}
	if held > 0 && m.WaysKnown() {
		s.put("", hopsMean, new(hops/held))
		s.put("", hopsMost, &most)
	}
	if o, ok := m.TCPOutage(); ok {
		s.put("", dataOutage, &o.Seconds)
	}
}

func (s *set) routingCost(c topology.Cost) {
	s.put("", routingReady, c.ReadyS)
	s.put("", routeChanges, new(float64(c.RouteChanges)))
	s.put("", discoveriesFound, new(float64(len(c.DiscoveryMs))))
	s.put("", discoveriesLost, new(float64(c.Failed)))
	if len(c.DiscoveryMs) > 0 {
		s.put("", discoveryMedian, new(stats.Median(c.DiscoveryMs)))
	}
	s.put("", daemonPackets, c.PacketsPerS)
	s.put("", daemonBytes, c.BytesPerS)
	for _, k := range c.Messages {
		s.message("daemon", "sent in the window by the daemons' own counts, mean of the nodes", k.Kind, k.PerS,
			k.BytesPerS)
	}
	for _, class := range slices.Sorted(maps.Keys(c.FramesPerS)) {
		s.put("", macFrames(class), new(c.FramesPerS[class]))
	}
}

// message puts the rows of one type of message.
func (s *set) message(who, what, kind string, perS, bytesPerS float64) {
	name := who + "_messages_" + strings.ToLower(strings.ReplaceAll(kind, " ", "-"))
	s.put("", definition{name + "_per_s", "messages/s", kind + " messages " + what}, &perS)
	s.put("", definition{name + "_bytes_per_s", "B/s", "bytes of " + kind + " messages with their own headers " + what},
		&bytesPerS)
}

func (s *set) probes(m *topology.Mesh) {
	hz := s.at.trial.Routing.ProbeHz
	w := verdict.WindowOf(s.at.trial.Sender, s.at.records)
	if hz == nil || w == nil || topology.Stalled(s.at.trial.Sender, s.at.records) {
		return
	}
	outage := s.at.trial.DurationS
	if m != nil {
		o, _ := m.PingOutage()
		outage = o.Seconds
	}
	// Where nobody told it: the beat was a whole number of nanoseconds then.
	sent := math.Ceil(s.at.trial.DurationS * 1e9 / math.Floor(1e9 / *hz))
	var rtt []float64
	for _, r := range s.at.records {
		if r.Node != s.at.trial.Sender {
			continue
		}
		switch b := r.Body.(type) {
		case *wire.Probe:
			rtt = append(rtt, b.RTTUs/1e3)
		case *wire.ProbeEnd:
			sent = float64(b.Sent)
		}
	}
	slices.Sort(rtt)
	s.put("", pingOutage, &outage)
	if sent > 0 {
		s.put("", probeLoss, new(100*(1-float64(len(rtt))/sent)))
	}
	if len(rtt) > 0 {
		s.put("", probeRTT, new(stats.Median(rtt)))
	}
}

// framesOnAir puts what real radios count. The emulated one tells more.
func (s *set) framesOnAir() {
	seconds := s.at.windowSeconds()
	total, real := 0.0, false
	for _, node := range s.at.trial.Nodes() {
		w := verdict.WindowOf(node, s.at.records)
		if w == nil {
			continue
		}
		var sent []series.Count
		gapNs := s.at.edgeMaxNs(node)
		retries, asked := map[string][]series.Count{}, s.at.radioTold(node)
		for _, r := range s.at.records {
			if _, emulated := r.Body.(*wire.MediumCount); emulated {
				return // the emulated air counts what was on it
			}
			if r.Node != node {
				continue
			}
			switch b := r.Body.(type) {
			case *wire.Provenance:
				real = real || b.Radio != nil // of an emulated radio it says nothing
			case *wire.Interface:
				sent = append(sent, series.Count{BootNs: r.TBootNs, N: b.TxPackets})
			case *wire.Station:
				if b.TxRetries == nil {
					return
				}
				retries[b.Peer] = append(retries[b.Peer], series.Count{BootNs: r.TBootNs, N: *b.TxRetries})
			}
		}
		n := series.Rise(sent, *w, gapNs)
		if n == nil {
			return // a sum without one of its nodes or peers is none
		}
		total += *n
		for _, of := range retries {
			if n = series.Rise(series.UnknownIsNone(of, asked, gapNs), *w, gapNs); n == nil {
				return
			}
			total += *n
		}
	}
	if real && seconds > 0 {
		s.put("", radioFrames, new(total/seconds))
	}
}

// messages puts the routing messages that captures hold, by type.
func (s *set) messages(all []packets.EndResult, seconds float64) {
	total, cut := map[string]packets.MessageCount{}, uint64(0)
	for _, e := range all {
		cut += e.RoutingCut
		for kind, m := range e.Messages {
			t := total[kind]
			total[kind] = packets.MessageCount{N: t.N + m.N, Bytes: t.Bytes + m.Bytes}
		}
	}
	n := float64(len(all))
	for _, kind := range slices.Sorted(maps.Keys(total)) {
		m := total[kind]
		s.message("captured", "that nodes sent in the window by their captures, mean of all nodes of the trial", kind,
			float64(m.N)/seconds/n, float64(m.Bytes)/seconds/n)
	}
	if cut > 0 {
		s.put("", messagesCut, new(float64(cut)))
	}
}
