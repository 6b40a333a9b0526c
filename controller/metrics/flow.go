package metrics

import (
	"cmp"
	"encoding/json"
	"maps"

	"fieldmesh.dev/fieldmesh/internal/verdict"
	"fieldmesh.dev/fieldmesh/protocols/wire"
)

func (s *set) flow(f wire.Flow) {
	switch f.Kind {
	case wire.KindDelay:
		s.delay(f)
		return
	case wire.KindCBR: // see constantRate
		return
	}
	if f.Kind == "iperf3_tcp" {
		s.delivered(f)
		s.sent(f)
	}
	s.iperf3(f)
}

// socket is what the samples of one data socket say about the window.
type socket struct {
	atOpen  *wire.TCPSample // at the window's open; nil when the socket did not exist then
	atClose *wire.TCPSample // at its close, or at the socket's end before; nil: not known
	lived   bool            // within the window
	// The newest before each edge.
	beforeOpen, beforeClose *wire.TCPSample
	edged                   bool            // atClose is the edge's own
	firstNs                 int64           // when it was first seen alive; 0: never
	gone                    *wire.TCPSample // what it had at its end, which was not in time to be the window's
	unsureBytes             float64         // of what was received; see unsure
}

// nearest takes the samples before an edge for its own, where they are nearer to it, or
// where the edge's own came so late that the socket had ended.
// A socket that they do not have had ended before they were taken.
func (k *socket) nearest(early map[string]bool) {
	is := func(before *wire.TCPSample, edge string) bool {
		return early[edge] && before != nil && before.Edge == wire.BeforeEdge+edge
	}
	if k.atOpen != nil && is(k.beforeOpen, "open") {
		k.atOpen = k.beforeOpen
	}
	if (k.edged || k.lived && k.atClose == nil) && is(k.beforeClose, "close") { // not: that ended in time
		k.atClose = k.beforeClose
	}
}

// sockets follows a flow's data sockets on one node. All that existed at the
// window's open were sampled then, so that one without such a sample is newer,
// whatever an ordinary sample says: its time is that before the kernel was
// asked, and the answer may come much later on a busy machine. A socket that
// ended before the close counts with what the kernel reported about its end.
// known is false when of some socket neither was seen in time: an older sample
// is not what it had at the close. One that was first seen alive after the close, all
// of whose living had been sampled, is no part of the window.
func (at Attempt) sockets(node, flow string, w wire.Window) (out map[uint64]*socket, known bool) {
	out = map[uint64]*socket{}
	early, known := at.edgesKnown(node, w)
	inTime := func(r wire.Record, due int64) bool {
		return float64(r.TBootNs-due)/1e6 <= verdict.EdgeLateMsMax(w)
	}
	for _, r := range at.records {
		b, ok := r.Body.(*wire.TCPSample)
		if !ok || r.Node != node || b.Flow != flow || b.Stream == nil {
			continue
		}
		if out[b.Cookie] == nil {
			out[b.Cookie] = &socket{}
		}
		k := out[b.Cookie]
		ended := b.State == "CLOSE"
		if !ended && (k.firstNs == 0 || r.TBootNs < k.firstNs) {
			k.firstNs = r.TBootNs
		}
		if (b.Edge == "" || b.Before()) && !ended {
			k.before(b, r.TBootNs, w)
		}
		switch {
		case b.Edge == "open":
			k.atOpen, k.lived = b, k.lived || !ended
			known = known && (early["open"] || inTime(r, w.OpenBootNs))
		case b.Edge == "close":
			k.atClose, k.edged = b, true
			known = known && (early["close"] || inTime(r, w.CloseBootNs))
		case ended && r.TBootNs > w.OpenBootNs && inTime(r, w.CloseBootNs):
			if !k.edged { // what came after the edge is no part of the window
				k.atClose = b
			}
		case r.TBootNs > w.OpenBootNs:
			k.lived = k.lived || r.TBootNs <= w.CloseBootNs || ended
			if ended {
				k.gone = b
			}
		}
	}
	maps.DeleteFunc(out, func(_ uint64, k *socket) bool { return !k.edged && k.firstNs > w.CloseBootNs })
	for _, k := range out {
		k.unsureBytes = k.unsure(received)
		k.nearest(early)
		known = known && (k.atClose != nil || !k.lived)
	}
	return out, known
}

// before keeps the newest samples before the window's edges. None is newer than the one
// that was taken right before an edge: an ordinary one bears the time before the kernel
// was asked, and may have been answered after the edge.
func (k *socket) before(b *wire.TCPSample, bootNs int64, w wire.Window) {
	newer := func(than *wire.TCPSample, edge string) bool {
		return than == nil || than.Edge != wire.BeforeEdge+edge || b.Edge == than.Edge
	}
	if bootNs <= w.OpenBootNs && newer(k.beforeOpen, "open") {
		k.beforeOpen = b
	}
	if bootNs <= w.CloseBootNs && newer(k.beforeClose, "close") {
		k.beforeClose = b
	}
}

// unsure is how much of a count's gain may be of the time next to the window: what
// came between the last sample before an edge and that edge's own, which is never
// before its time. One of the two is the edge's. A socket that was new since may
// have had all of it then.
func (k *socket) unsure(count func(*wire.TCPSample) uint64) float64 {
	between := func(from, to *wire.TCPSample) float64 {
		base := uint64(0)
		if from != nil {
			base = count(from)
		}
		if to == nil || count(to) < base {
			return 0
		}
		return float64(count(to) - base)
	}
	closing := k.beforeClose
	if closing == nil {
		closing = k.atOpen
	}
	return between(k.beforeOpen, k.atOpen) + between(closing, cmp.Or(k.atClose, k.gone))
}

// edgesKnown reports whether a node sampled its sockets at both edges of the
// window, as far as it records that it did, and at which of them its samples
// before the edge are nearer than the edge's own.
func (at Attempt) edgesKnown(node string, w wire.Window) (early map[string]bool, known bool) {
	early = map[string]bool{}
	records, sampled := false, 0
	for _, r := range at.records {
		e, ok := r.Body.(*wire.Edge)
		if !ok || r.Node != node {
			continue
		}
		records = true
		if (e.Edge == "open" || e.Edge == "close") && verdict.EdgeInTime(e, w) {
			sampled++
			early[e.Edge] = e.Early()
		}
	}
	return early, !records || sampled == 2
}

// gain is how much a count of a socket rose in the window.
func (k *socket) gain(count func(*wire.TCPSample) uint64) float64 { return k.upTo(k.atClose, count) }

// upTo is how much it rose from the window's open up to a sample.
func (k *socket) upTo(b *wire.TCPSample, count func(*wire.TCPSample) uint64) float64 {
	base := uint64(0)
	if k != nil && k.atOpen != nil {
		base = count(k.atOpen)
	}
	if b == nil || count(b) < base {
		return 0
	}
	return float64(count(b) - base)
}

// delivered is the throughput: what the receiver's kernel delivered. It is
// absent when the receiver's records do not reach the window's close, or when it
// did not sample a socket at an edge, for then nobody knows; no connection is 0.
func (s *set) delivered(f wire.Flow) {
	w := verdict.WindowOf(f.To, s.at.records)
	if w == nil || !s.at.reaches(f.To, w.CloseBootNs) {
		return
	}
	sockets, known := s.at.sockets(f.To, f.Name, *w)
	if !known {
		return
	}
	var bytes, unsure, streams float64
	for _, k := range sockets {
		bytes += k.gain(received)
		unsure += k.unsureBytes
		if k.atClose != nil {
			streams++
		}
	}
	s.put(f.Name, transferred, new(bytes/1e6))
	s.put(f.Name, transferredUnsure, new(unsure/1e6))
	if seconds := f.WindowS(float64(w.CloseBootNs-w.OpenBootNs) / 1e9); seconds > 0 {
		s.put(f.Name, throughput, new(bytes*8/seconds))
	}
	s.put(f.Name, connected, &streams)
	s.put(f.Name, firstByte, s.at.firstByte(f, *w, sockets))
}

func received(b *wire.TCPSample) uint64 { return b.BytesReceived }

// reaches reports whether a node's records go on to a moment of its clock.
func (at Attempt) reaches(node string, bootNs int64) bool {
	for _, r := range at.records {
		if r.Node == node && r.TBootNs >= bootNs {
			return true
		}
	}
	return false
}

func (at Attempt) firstByte(f wire.Flow, w wire.Window, sockets map[uint64]*socket) *float64 {
	var first *float64
	for _, r := range at.records {
		b, ok := r.Body.(*wire.TCPSample)
		if !ok || r.Node != f.To || b.Flow != f.Name || b.Stream == nil || !inside(w, r.TBootNs) ||
			sockets[b.Cookie].upTo(b, received) == 0 {
			continue
		}
		if at := float64(r.TBootNs-w.OpenBootNs) / 1e9; first == nil || at < *first {
			first = &at
		}
	}
	return first
}

// sent is what the sender's sockets report about the path.
func (s *set) sent(f wire.Flow) {
	w := verdict.WindowOf(f.From, s.at.records)
	if w == nil || !s.at.reaches(f.From, w.CloseBootNs) {
		return
	}
	var again, againBytes float64
	sockets, known := s.at.sockets(f.From, f.Name, *w)
	bytesKnown := known
	for _, k := range sockets {
		again += k.gain(func(b *wire.TCPSample) uint64 { return uint64(b.Retransmits) })
		if k.atClose != nil {
			bytesKnown = bytesKnown && k.atClose.BytesRetrans != nil
			againBytes += k.gain(func(b *wire.TCPSample) uint64 { return deref(b.BytesRetrans) })
		}
	}
	if len(sockets) == 0 { // no connection: nothing was sent, so nothing can be said of it
		return
	}
	if known {
		s.put(f.Name, retransmits, &again)
	}
	if bytesKnown {
		s.put(f.Name, retransMB, new(againBytes/1e6))
	}
	var cwnd, rtt mean
	for _, r := range s.at.records {
		b, ok := r.Body.(*wire.TCPSample)
		if !ok || r.Node != f.From || b.Flow != f.Name || b.Stream == nil || b.Before() || b.Unconnected() ||
			!inside(*w, r.TBootNs) {
			continue
		}
		cwnd.add(float64(b.CwndSegments))
		if b.RTTUs > 0 { // before the handshake is over there is none
			rtt.add(float64(b.RTTUs) / 1e3)
		}
	}
	s.put(f.Name, cwndMean, cwnd.value())
	s.put(f.Name, rttMean, rtt.value())
}

func deref(p *uint64) uint64 {
	if p == nil {
		return 0
	}
	return *p
}

func inside(w wire.Window, bootNs int64) bool {
	return bootNs >= w.OpenBootNs && bootNs <= w.CloseBootNs
}

// mean of values, absent without any.
type mean struct {
	sum float64
	n   int
}

func (m *mean) add(v float64) { m.sum += v; m.n++ }

func (m *mean) value() *float64 {
	if m.n == 0 {
		return nil
	}
	return new(m.sum / float64(m.n))
}

// iperfEnd is the part of iperf3's JSON that is kept beside our own figures.
type iperfEnd struct {
	End struct {
		SumSent     *iperfSum `json:"sum_sent"`
		SumReceived *iperfSum `json:"sum_received"`
		Sum         *iperfSum `json:"sum"`
	} `json:"end"`
}

type iperfSum struct {
	Bytes         *float64 `json:"bytes"`
	BitsPerSecond *float64 `json:"bits_per_second"`
	Retransmits   *float64 `json:"retransmits"`
	LostPercent   *float64 `json:"lost_percent"`
}

// iperf3 keeps the client's own figures. What it printed may be anything: a
// killed iperf3 prints half, and then there is nothing to keep.
func (s *set) iperf3(f wire.Flow) {
	for _, r := range s.at.records {
		b, ok := r.Body.(*wire.Iperf3)
		if !ok || b.Flow != f.Name || b.Side != "client" {
			continue
		}
		var out iperfEnd
		if json.Unmarshal(b.Output, &out) != nil {
			continue
		}
		// The ends exchange their figures when a test ends well. Of one that does not, the
		// client knows its own end's, and prints 0 for the other's.
		exchanged := b.Error == ""
		if sum := out.End.SumReceived; sum != nil && (exchanged || f.Reverse) {
			s.put(f.Name, iperfReceived, megabytes(sum.Bytes))
			s.put(f.Name, iperfRate, sum.BitsPerSecond)
		}
		if sum := out.End.SumSent; sum != nil && (exchanged || !f.Reverse) {
			s.put(f.Name, iperfSent, megabytes(sum.Bytes))
			s.put(f.Name, iperfRetrans, sum.Retransmits)
		}
		if sum := out.End.Sum; sum != nil && (exchanged || f.Reverse) {
			s.put(f.Name, iperfLost, sum.LostPercent)
		}
		return
	}
}

func megabytes(bytes *float64) *float64 {
	if bytes == nil {
		return nil
	}
	return new(*bytes / 1e6)
}
