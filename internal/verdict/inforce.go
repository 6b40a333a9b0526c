package verdict

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"fieldmesh.dev/fieldmesh/protocols/tcpcc"
	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// notInForce returns where a node had not made what the trial asks of TCP, or a
// sender's data sockets ran something else; zero when all that is known of
// them is right. A trial with another TCP than its cell's would be a result of
// a cell that was never measured.
func notInForce(t wire.Trial, records []wire.Record) wire.Reason {
	made, withoutRoot := map[string]*wire.TCPInForce{}, map[string]bool{}
	for _, r := range records {
		if p, ok := r.Body.(*wire.Provenance); ok && p.TCP != nil {
			made[r.Node], withoutRoot[r.Node] = p.TCP, p.Privileges == wire.NoPrivileges
			if fault := madeOtherwise(t.TCP, p.TCP); fault != "" {
				return alienTCP("node %s %s", r.Node, fault)
			}
		}
	}
	senders := map[string]string{} // flow → node
	for _, f := range t.Traffic {
		senders[f.Name] = f.From
	}
	var sent []wire.Record // samples of data sockets
	for _, r := range records {
		s, ok := r.Body.(*wire.TCPSample)
		if !ok || s.Stream == nil || senders[s.Flow] != r.Node || made[r.Node] == nil {
			continue
		}
		sent = append(sent, r)
		// Without root, iperf3 chooses it for a socket that has connected and sent its cookie.
		early := withoutRoot[r.Node] && cookieAlone(s)
		if s.Congestion != "" && !early && s.Congestion != made[r.Node].Kernel {
			return alienTCP("a socket of flow %s on %s runs %q, and %s of the trial is %q there", s.Flow, r.Node,
				s.Congestion, t.TCP.Variant, made[r.Node].Kernel)
		}
		if least := tcpcc.RTOMinMs(t.TCP); below(s, least) {
			return alienTCP("a socket of flow %s on %s had an RTO of %d µs, and the trial's least is %d ms", s.Flow,
				r.Node, s.RTOUs, *least)
		}
		if most := t.TCP.RTOMaxMs; above(s, most) {
			return alienTCP("a socket of flow %s on %s had an RTO of %d µs, and the trial's largest is %d ms", s.Flow,
				r.Node, s.RTOUs, *most)
		}
		if what := impossible(s); what != "" {
			return alienTCP("a socket of flow %s on %s had a %s, which no rule gives (TCP's largest window is 2^30 "+
				"bytes, RFC 7323): the kernel did not run the program of %s at a loss, or the program is wrong",
				s.Flow, r.Node, what, t.TCP.Variant)
		}
		if most := t.TCP.WindowPackets; beyond(s, most) {
			return alienTCP("a socket of flow %s on %s had a window of %d segments, and the trial's is %d", s.Flow,
				r.Node, s.CwndSegments, *most)
		}
		if learned(s, t.TCP.Classic) {
			return alienTCP("a socket of flow %s on %s takes a segment for lost at %d duplicate ACKs, and classic TCP "+
				"at %d: its kernel has that from an earlier connection to the peer (`ip tcp_metrics flush` has it "+
				"forget them) or from net.ipv4.tcp_reordering", s.Flow, r.Node, *s.Reordering, classicReordering)
		}
	}
	if t.TCP.FixedRTO {
		return backsOff(sent)
	}
	return wire.Reason{}
}

func alienTCP(format string, args ...any) wire.Reason {
	return wire.Reason{Code: wire.ReasonNotInForce, Text: fmt.Sprintf(format, args...)}
}

// cookieBytes is what iperf3's client sends on each connection before all else: the
// test's cookie, with the zero that ends it (COOKIE_SIZE of its iperf.h).
const cookieBytes = 37

// cookieAlone reports whether a socket has sent nothing but iperf3's cookie, or not even that.
func cookieAlone(s *wire.TCPSample) bool {
	if s.BytesSent == nil || s.BytesRetrans == nil { // as a kernel before Linux 4.19 does not tell
		const syn = 1 // counts as a byte
		return s.BytesAcked <= cookieBytes+syn
	}
	return *s.BytesSent <= cookieBytes+*s.BytesRetrans
}

// beyond reports whether a socket's window was larger than the trial's. The bound
// comes with the connection: before, the kernel's own first window stands there,
// of which nothing is sent.
func beyond(s *wire.TCPSample, most *int) bool {
	return most != nil && !s.Unconnected() && s.CwndSegments > uint32(*most)
}

// impossible says what of a socket is above the largest window that TCP can have (RFC 7323, 2.3), or a threshold of 0;
// a socket without a loss has no threshold. No rule of TCP gives such a number: a kernel that skips a program takes
// whatever is in memory for the program's answer.
func impossible(s *wire.TCPSample) string {
	const bytesMax = 1 << 30
	above := func(segments uint32) bool { return uint64(segments)*uint64(max(s.MSSBytes, 1)) > bytesMax }
	if threshold := s.SsthreshSegments; threshold != nil && (*threshold == 0 || above(*threshold)) {
		return fmt.Sprintf("slow-start threshold of %d segments", *threshold)
	}
	if above(s.CwndSegments) {
		return fmt.Sprintf("window of %d segments", s.CwndSegments)
	}
	return ""
}

// classicReordering is how many duplicate ACKs make a loss (RFC 5681, section 3.2). With classic no connection learns
// another number (tcp_max_reordering).
const classicReordering = 3

// learned reports whether a socket of classic TCP waits for more duplicate ACKs than it can have come to by itself. A
// kernel gives a new connection what it remembers of an earlier one to that peer, whatever tcp_no_metrics_save says
// (tcp_init_metrics).
func learned(s *wire.TCPSample, classic bool) bool {
	return classic && s.Reordering != nil && *s.Reordering > classicReordering
}

// madeOtherwise says how what a node has made differs from the profile.
func madeOtherwise(want wire.TCP, made *wire.TCPInForce) string {
	var faults []string
	if made.Variant != want.Variant {
		faults = append(faults, fmt.Sprintf("has made variant %q of %q", made.Variant, want.Variant))
	}
	if made.FixedRTO != want.FixedRTO {
		faults = append(faults, fmt.Sprintf("has a fixed RTO: %t, wanted: %t", made.FixedRTO, want.FixedRTO))
	}
	if fault := otherRTOMin(want, made); fault != "" {
		faults = append(faults, fault)
	}
	if most := want.RTOMaxMs; most != nil && (made.RTOMaxMs == nil || *made.RTOMaxMs != *most) {
		faults = append(faults, fmt.Sprintf("does not bound the RTO to %d ms", *most))
	}
	if given := made.WindowPackets; want.WindowPackets != nil && (given == nil || *given != *want.WindowPackets) {
		faults = append(faults, fmt.Sprintf("does not bound windows to %d segments", *want.WindowPackets))
	}
	return strings.Join(faults, " and ")
}

// otherRTOMin is where a node's least RTO is not the profile's. Archives that do
// not tell it have no rto_min_ms in their plans.
func otherRTOMin(want wire.TCP, made *wire.TCPInForce) string {
	least := tcpcc.RTOMinMs(want)
	switch {
	case least != nil && made.RTOMinUs != nil && *made.RTOMinUs != *least*1000:
		return fmt.Sprintf("has a least RTO of %d µs, wanted: %d ms", *made.RTOMinUs, *least)
	case least != nil && slices.Contains(made.Notes, tcpcc.RouteRTOMinNote):
		return fmt.Sprintf("has a route with a least RTO of its own, wanted: %d ms", *least)
	case want.RTOMinMs != nil && made.RTOMinUs == nil:
		return fmt.Sprintf("does not tell its least RTO, wanted: %d ms", *least)
	}
	return ""
}

// below reports whether a socket that has measured a round trip had an RTO under
// the trial's least.
func below(s *wire.TCPSample, leastMs *int) bool {
	return leastMs != nil && s.RTTUs > 0 && s.State != "SYN_SENT" && int64(s.RTOUs) < int64(*leastMs)*1000
}

// tickUs is the longest tick of a kernel, which rounds RTOs up.
const tickUs = 10_000

// above reports whether a socket's RTO was over the trial's largest.
func above(s *wire.TCPSample, mostMs *int) bool {
	return mostMs != nil && int64(s.RTOUs) > int64(*mostMs)*1000+tickUs
}

// Evidence keeps of an attempt's samples what a verdict needs: of every socket
// one for each congestion control that it was seen with before it sent the flow's data and
// after, for a window that was too large, for an RTO that was too short or too long, for a
// threshold that cannot be and for too many duplicate ACKs, and two where a timer that is to be held
// backs off. An attempt may have hundreds of thousands. Of those that it does
// not keep it gives the last by Rest.
type Evidence struct {
	seen  map[evidence]bool
	last  last
	held  timers        // nil where none is to be held
	first []wire.Record // of two that say that one backs off
	tcp   wire.TCP
	least *int // ms of an RTO
}

type evidence struct {
	node, congestion string
	cookie           uint64
	large, early     bool
	late             bool
	absurd, learned  bool
	unsent           bool // of the flow's data
}

// NewEvidence is for an attempt at a trial.
func NewEvidence(t wire.Trial) *Evidence {
	e := &Evidence{seen: map[evidence]bool{}, last: newLast(), tcp: t.TCP, least: tcpcc.RTOMinMs(t.TCP)}
	if t.TCP.FixedRTO {
		e.held = timers{}
	}
	return e
}

// Rest returns the samples that a verdict needs though Needs did not know it: each socket's last, and those to which
// a later one that Needs asked for is compared. Judge takes them after the others.
func (e *Evidence) Rest() []wire.Record {
	return slices.AppendSeq(e.first, maps.Values(e.last.samples))
}

// Needs reports whether a verdict needs the record. Each node's records come in their order.
func (e *Evidence) Needs(r wire.Record) bool {
	if w, ok := r.Body.(*wire.Window); ok {
		e.last.closes[r.Node] = w.CloseBootNs
	}
	switch b := r.Body.(type) {
	case *wire.GPS, *wire.Window, *wire.TrialState, *wire.Clock, *wire.Lateness, *wire.Provenance,
		*wire.Iperf3, *wire.Edge:
		return true
	case *wire.TCPSample:
		if b.Stream == nil {
			return b.StillMs != nil || alien(b)
		}
		if b.StillMs != nil || b.Edge != "" {
			return true
		}
		if e.held != nil {
			if first := e.held.backedOff(r, b); first != nil {
				e.first = append(e.first, *first)
				return true
			}
		}
		k := evidence{r.Node, b.Congestion, b.Cookie, beyond(b, e.tcp.WindowPackets), below(b, e.least),
			above(b, e.tcp.RTOMaxMs), impossible(b) != "", learned(b, e.tcp.Classic), cookieAlone(b)}
		fresh := !e.seen[k]
		if e.seen[k] = true; !fresh {
			e.last.take(r, b)
		}
		return fresh
	}
	return false
}
