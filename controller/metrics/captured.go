package metrics

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"net/netip"
	"os"
	"slices"

	"fieldmesh.dev/fieldmesh/controller/archive"
	"fieldmesh.dev/fieldmesh/controller/packets"
	"fieldmesh.dev/fieldmesh/internal/verdict"
	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// captured computes the rows of an attempt's captures; unreadable says which
// could not be read, and where they are not what they should be. What needs one
// that cannot be read, or is not of the whole window, is left out.
func (at Attempt) captured(a *archive.Archive) (rows []Row, unreadable error) {
	s := &set{at: at}
	bad, short := map[string]bool{}, map[string]bool{}
	spoilt := func(err error, nodes ...string) {
		for _, n := range nodes {
			bad[n] = true
		}
		unreadable = errors.Join(unreadable, fmt.Errorf("trial %d attempt %d: %w", at.key.Trial, at.key.Attempt, err))
	}
	lacks := at.Lacks(a)
	for _, l := range lacks {
		short[l.Node] = true
	}
	read := at.scanAll(a, spoilt)
	for _, p := range at.pairs() {
		if bad[p.from] || bad[p.to] || short[p.from] || short[p.to] {
			continue
		}
		if err := s.pair(a, p); err != nil {
			spoilt(err, p.from, p.to)
		}
	}
	if len(read) > 0 {
		s.ends(read, len(lacks) == 0 && unreadable == nil)
	}
	if len(lacks) > 0 {
		s.put("", incompleteCaptures, new(float64(len(lacks))))
	}
	if unreadable != nil {
		s.put("", unreadableCaptures, new(float64(len(bad))))
	}
	return s.rows, unreadable
}

// scanAll scans the captures of all nodes that have one.
func (at Attempt) scanAll(a *archive.Archive, spoilt func(error, ...string)) (read []packets.EndResult) {
	for _, node := range at.trial.Nodes() {
		e, err := at.scan(a, node)
		switch {
		case errors.Is(err, fs.ErrNotExist):
		case err != nil:
			spoilt(err, node)
		default:
			read = append(read, e)
		}
	}
	return read
}

// CapturedRouting computes the rows of what the captures say apart from flows: routing's
// packets, and its messages by type, where all nodes' captures are whole.
func (at Attempt) CapturedRouting(a *archive.Archive) []Row {
	s := &set{at: at}
	whole := len(at.Lacks(a)) == 0
	if read := at.scanAll(a, func(error, ...string) { whole = false }); len(read) > 0 {
		s.ends(read, whole)
	}
	return s.rows
}

// pair is two nodes and the flows from one to the other.
type pair struct {
	from, to string
	flows    []wire.Flow
}

func (p pair) hasUDP() bool {
	return slices.ContainsFunc(p.flows, func(f wire.Flow) bool { return f.Kind == "iperf3_udp" })
}

// pairs groups the flows, so that each two captures are read once.
func (at Attempt) pairs() []pair {
	var out []pair
next:
	for _, f := range at.trial.Traffic {
		if f.Timed() { // its ends record each datagram
			continue
		}
		for i := range out {
			if out[i].from == f.From && out[i].to == f.To {
				out[i].flows = append(out[i].flows, f)
				continue next
			}
		}
		out = append(out, pair{f.From, f.To, []wire.Flow{f}})
	}
	return out
}

// link opens a node's capture to look at the interface under test, by a clock that it
// shares with a peer; fs.ErrNotExist says that there is none, or that there was no window.
func (at Attempt) link(a *archive.Archive, node, peer string) (packets.End, *alignment, *os.File, error) {
	w := verdict.WindowOf(node, at.records)
	told := at.captureOf(node)
	if w == nil || told == nil {
		return packets.End{}, nil, nil, fs.ErrNotExist
	}
	f, err := a.OpenCapture(at.key, node)
	if err != nil {
		return packets.End{}, nil, nil, err
	}
	clock := at.align(node, peer, *told, *w)
	e := packets.End{Name: node, Capture: f, Common: clock.common, UncertaintyNs: int64(clock.uncertaintyNs()),
		OpenNs: clock.of(w.OpenBootNs), CloseNs: clock.of(w.CloseBootNs)}
	return e, clock, f, nil
}

func (at Attempt) captureOf(node string) *wire.Capture {
	for _, r := range at.records {
		if b, ok := r.Body.(*wire.Capture); ok && r.Node == node {
			return b
		}
	}
	return nil
}

func (at Attempt) scan(a *archive.Archive, node string) (packets.EndResult, error) {
	e, _, f, err := at.link(a, node, node)
	if err != nil {
		return packets.EndResult{}, err
	}
	out, err := packets.Scan(e)
	if told := at.captureOf(node); told != nil && out.KernelDropped == nil {
		out.KernelDropped = &told.KernelDrops
	}
	return out, errors.Join(err, f.Close())
}

// pair computes the rows of the flows between two nodes: as they are on the
// interface under test, and as they are where the application stands.
func (s *set) pair(a *archive.Archive, p pair) error {
	seen, uncertaintyNs, err := s.at.analyse(a, p, onTheLink)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if !s.at.hidden() {
		for i, r := range seen {
			s.onLink(r, p.flows[i], uncertaintyNs)
		}
	}
	where := onTheLink
	if p.hasUDP() {
		where = byStamps
	}
	if s.at.trial.Routing.HoldsData() {
		if !s.at.seenAbove(p) {
			return nil // an older agent's capture: what was sent nobody knows
		}
		where = aboveTheLink
	}
	if where != onTheLink {
		if seen, _, err = s.at.analyse(a, p, where); err != nil {
			return err
		}
	}
	for i, r := range seen {
		s.result(r, p.flows[i], uncertaintyNs)
	}
	return nil
}

// hidden reports whether flows cannot be told on the interface under test:
// batman-adv's frames hold others, some of them in parts.
func (at Attempt) hidden() bool { return at.trial.Routing.Protocol == "batman-adv" }

// seenAbove reports whether both ends captured on the device of their routing daemon.
func (at Attempt) seenAbove(p pair) bool {
	from, to := at.captureOf(p.from), at.captureOf(p.to)
	return from != nil && to != nil && from.Above != "" && to.Above != ""
}

// view is where a pair's packets are looked at.
type view int

const (
	onTheLink    view = iota // the interface under test
	byStamps                 // there, and datagrams when they were handed on
	aboveTheLink             // that, and on the routing daemon's device
)

// analyse reads the captures of a pair. uncertainty is that of the two clocks against each other.
func (at Attempt) analyse(a *archive.Archive, p pair, where view) (out []packets.Result,
	uncertaintyNs *float64, err error) {
	from, fromClock, f, err := at.link(a, p.from, p.to)
	if err != nil {
		return nil, nil, err
	}
	defer f.Close() //nolint:errcheck // read only
	to, toClock, g, err := at.link(a, p.to, p.from)
	if err != nil {
		return nil, nil, err
	}
	defer g.Close() //nolint:errcheck // read only
	if where == aboveTheLink {
		for _, e := range []*packets.End{&from, &to} {
			again, err := a.OpenCapture(at.key, e.Name)
			if err != nil {
				return nil, nil, err
			}
			defer again.Close() //nolint:errcheck // read only
			e.Above = again
		}
	}
	flows, err := at.packetFlows(p)
	if err != nil {
		return nil, nil, err
	}
	for i := range flows {
		flows[i].ByStamp = where != onTheLink
	}
	out, _, err = packets.Analyse(from, to, flows)
	return out, fromClock.together(toClock), err
}

// packetFlows says how the flows' packets look.
func (at Attempt) packetFlows(p pair) ([]packets.Flow, error) {
	from, to := at.address(p.from), at.address(p.to)
	for node, address := range map[string]netip.Addr{p.from: from, p.to: to} {
		if !address.IsValid() {
			return nil, fmt.Errorf("find address: the plan has no node %q with one", node)
		}
	}
	out := make([]packets.Flow, 0, len(p.flows))
	for _, f := range p.flows {
		k := packets.Flow{Name: f.Name, UDP: f.Kind == "iperf3_udp", From: from, To: to, Port: uint16(f.Port),
			Reverse: f.Reverse, Streams: f.Streams}
		if f.ClientPort != 0 && !k.UDP {
			// Each attempt has ports of its own, as the nodes reckon them.
			k.ClientFirst = uint16(f.ClientPort + (at.key.Attempt-1)*max(f.Streams, 1))
		}
		out = append(out, k)
	}
	return out, nil
}

// onLink puts what the captures say of a flow on the interface under test.
func (s *set) onLink(r packets.Result, f wire.Flow, uncertaintyNs *float64) {
	s.put(r.Flow, linkSent, new(float64(r.Sent)))
	if r.Merged > 0 {
		return
	}
	if r.Sent > 0 {
		s.put(r.Flow, linkLoss, new(100*float64(r.Sent-r.Arrived)/float64(r.Sent)))
		if lost, told := s.at.lostByField(f); told {
			s.put(r.Flow, trueLoss, new(100*float64(lost)/float64(r.Sent)))
		}
	}
	if uncertaintyNs != nil {
		s.put(r.Flow, linkDelay, milliseconds(r.OneWay.MeanNs()))
	}
}

// handedOn is how many packets the application's end handed on; false where nobody knows.
func (at Attempt) handedOn(f wire.Flow, r packets.Result) (n float64, known bool) {
	if f.Kind != "iperf3_udp" {
		return float64(r.Sent), true
	}
	d := at.datagrams(f, r)
	return d.sent()
}

// result puts what the captures say of a flow where the application stands.
// uncertainty is that of the two ends' clocks against each other; nil when they
// were not compared.
func (s *set) result(r packets.Result, f wire.Flow, uncertaintyNs *float64) {
	count := func(d definition, n uint64) { s.put(r.Flow, d, new(float64(n))) }
	handed, known := s.at.handedOn(f, r)
	if known {
		s.put(r.Flow, packetsSent, &handed)
	}
	count(packetsMerged, r.Merged)
	count(packetsUnmatched, r.Unmatched)
	count(packetsRetransmitted, r.Retransmitted)
	s.put(r.Flow, capturedRetransMB, new(float64(r.RetransmittedBytes)/1e6))
	s.put(r.Flow, capturedMB, new(float64(r.DeliveredBytes)/1e6))
	s.delays(r.Flow, "round_trip", roundTripText, r.RoundTrip)
	if f.StartS >= 0 { // else it connected before the window
		s.put(r.Flow, handshakeMs, milliseconds(r.Handshake.MeanNs()))
		if uncertaintyNs != nil {
			s.put(r.Flow, firstSegmentMs, milliseconds(r.FirstSegment.MeanNs()))
		}
		s.connecting(r, f)
	}
	if r.Merged > 0 { // what one end's packets are the other's are not
		return
	}
	if known && handed > 0 {
		s.put(r.Flow, packetLoss, new(100*(handed-float64(r.Arrived))/handed))
		s.put(r.Flow, goodput, new(float64(r.Delivered)/handed))
		s.put(r.Flow, deliveryFraction, new(float64(r.Arrived)/handed))
	}
	count(packetsOutOfOrder, r.OutOfOrder)
	count(packetsTwice, r.ArrivedTwice)
	if uncertaintyNs == nil || r.OneWay.N == 0 {
		return
	}
	s.delays(r.Flow, "one_way_delay", oneWayText, r.OneWay)
	s.put(r.Flow, oneWayError, milliseconds(*uncertaintyNs))
}

// delays puts a distribution's rows.
func (s *set) delays(flow, name, text string, d packets.Delays) {
	if d.N == 0 {
		return
	}
	row := func(part, what string, ns float64) {
		s.put(flow, definition{name + "_" + part + "_ms", "ms", what + " of " + text}, milliseconds(ns))
	}
	row("mean", "mean", d.MeanNs())
	row("min", "least", float64(d.MinNs))
	row("p50", "median, within 1 %,", d.PercentileNs(0.5))
	row("p95", "95th percentile, within 1 %,", d.PercentileNs(0.95))
	row("p99", "99th percentile, within 1 %,", d.PercentileNs(0.99))
	row("max", "greatest", float64(d.MaxNs))
}

// milliseconds of nanoseconds; nil of what is not known.
func milliseconds(ns float64) *float64 {
	if math.IsNaN(ns) {
		return nil
	}
	return new(ns / 1e6)
}

// ends puts what the captures say of the network as a whole. What is summed over
// its nodes is told only if their captures are whole, each of them.
func (s *set) ends(all []packets.EndResult, whole bool) {
	var routed, routedBytes, headers, arp, dropped float64
	known := true
	for _, e := range all {
		routed, routedBytes, arp = routed+float64(e.RoutingPackets), routedBytes+float64(e.RoutingBytes),
			arp+float64(e.ARPPackets)
		headers += float64(e.RoutingHeaders)
		if known = known && e.KernelDropped != nil; known {
			dropped += float64(*e.KernelDropped)
		}
	}
	s.put("", nodesCaptured, new(float64(len(all))))
	if known {
		s.put("", captureDropped, &dropped)
	}
	s.put("", captureFileDropped, s.at.fileDrops())
	if seconds := s.at.windowSeconds(); whole && seconds > 0 {
		s.put("", routingPackets, new(routed/seconds))
		s.put("", routingBytes, new(routedBytes/seconds))
		s.put("", routingHeaders, new(headers/seconds))
		s.put("", arpPackets, new(arp/seconds))
		s.messages(all, seconds)
	}
}
