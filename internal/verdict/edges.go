package verdict

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// How far from an edge of the window the nearer sample of a node's sockets may be,
// of that before the edge and its own: what came between is less than 1 % of the
// flow's bytes, unless the flow is then 2.9 times as fast as on average. In windows
// above 7 s it is less, in those below 1.4 s more. A node without samples before the
// edge may be late by twice as much. A client may start late by 1 % of the window.
const (
	edgeOffMsMost  = 25.0
	edgeOffMsLeast = 5.0
	edgeOffShare   = 0.0035
	startLateShare = 0.01
	shortestNs     = 1e9 // of the windows that a campaign may ask for
)

// EdgeOffMsMax returns how far, in ms, the samples of an edge may be from it. A
// window that is shorter than any campaign's has no limit: no machine is that
// punctual.
func EdgeOffMsMax(w wire.Window) float64 {
	if share := shareMs(edgeOffShare, w); !math.IsInf(share, 1) {
		return min(edgeOffMsMost, max(edgeOffMsLeast, share))
	}
	return math.Inf(1)
}

// EdgeLateMsMax returns how late, in ms, the samples of an edge may be where there
// are none before it.
func EdgeLateMsMax(w wire.Window) float64 { return 2 * EdgeOffMsMax(w) }

// tooFar returns the limit that an edge's samples exceed; 0: none.
func tooFar(e *wire.Edge, w wire.Window) float64 {
	limit := EdgeOffMsMax(w)
	if e.EarlyMs == nil {
		limit = EdgeLateMsMax(w)
	}
	if e.OffMs() > limit {
		return limit
	}
	return 0
}

// EdgeInTime reports whether a node's samples of an edge stand for it.
func EdgeInTime(e *wire.Edge, w wire.Window) bool { return e.Unknown == 0 && tooFar(e, w) == 0 }

// startLateMsMax returns how late, in ms, a flow's client may be started: no more
// than that share of the window is lost, however fast the flow is.
func startLateMsMax(w wire.Window) float64 {
	return shareMs(startLateShare, w)
}

func shareMs(share float64, w wire.Window) float64 {
	if w.CloseBootNs-w.OpenBootNs < shortestNs {
		return math.Inf(1)
	}
	return share * float64(w.CloseBootNs-w.OpenBootNs) / 1e6
}

// atEdges says why what the nodes at the ends of flows did and counted between
// the window's edges is not what the flows carried; empty when it is. Nodes of a
// version that records no edges are not judged by them: none of them has one.
func atEdges(t wire.Trial, records []wire.Record, scope Scope) wire.Reason {
	if fault := cmp.Or(strangers(records), filtered(t, records, scope)); !fault.IsZero() {
		return fault
	}
	edges := map[string][]*wire.Edge{}
	for _, r := range records {
		if e, ok := r.Body.(*wire.Edge); ok {
			edges[r.Node] = append(edges[r.Node], e)
		}
	}
	for _, n := range t.Nodes() {
		w := WindowOf(n, records)
		if w == nil || len(edges) == 0 || !t.Ends(n) || !scope.Final && n != t.Initiator {
			continue
		}
		if fault := cmp.Or(edgesOf(n, *w, t, edges[n]), unsure(n, t, edges[n], records)); !fault.IsZero() {
			return fault
		}
	}
	if scope.Final {
		return uncounted(t, records)
	}
	return wire.Reason{}
}

func edgesOf(node string, w wire.Window, t wire.Trial, edges []*wire.Edge) wire.Reason {
	if fault := startsOf(node, w, edges); !fault.IsZero() || !t.EndsTCP(node) {
		return fault
	}
	sampled := map[string]bool{}
	for _, e := range edges {
		if e.Edge != "open" && e.Edge != "close" {
			continue
		}
		limit := tooFar(e, w)
		switch {
		case limit > 0 && e.Early():
			return edgeFault("%s sampled its sockets %s ms before the window's %s, and then %s ms late, limit %g",
				node, beside(*e.EarlyMs, limit), e.Edge, beside(e.LateMs, limit), limit)
		case limit > 0:
			return edgeFault("%s sampled its sockets at the window's %s %s ms late, limit %g", node, e.Edge,
				beside(e.LateMs, limit), limit)
		// A sender's own counts are absent then, and what arrived does not rest on them. Its
		// socket's end comes late where a bad link reset the connection while iperf3 still waits
		// for its peer: to drive such attempts again would be to choose by the result.
		case e.Unknown > 0 && receives(t, node):
			return edgeFault("%s does not know the end of %d sockets at the window's %s", node, e.Unknown, e.Edge)
		}
		sampled[e.Edge] = true
	}
	for _, edge := range []string{"open", "close"} {
		if !sampled[edge] {
			return edgeFault("%s has not sampled its sockets at the window's %s", node, edge)
		}
	}
	return wire.Reason{}
}

// receives reports whether a measured flow arrives at a node.
func receives(t wire.Trial, node string) bool {
	return slices.ContainsFunc(t.Measured(), func(f wire.Flow) bool { return f.To == node })
}

// How many of a flow's bytes may have come between the samples on either side of
// the window's edges: of those nobody knows which are the window's. Two segments
// may, however little the flow carried.
const (
	unsureShare      = 0.01
	unsureBytesLeast = 2 * 1460
)

// unsure says of which flow too much arrived at a node between its samples before
// and after an edge: a segment that fills a gap delivers in one moment all that
// waited behind it, and a sample a few ms off may have all of it or nothing. The
// limit is a share of all that the flow brought up to the close, so that a flow which
// is warm and then cut off is not judged by its silence.
func unsure(node string, t wire.Trial, edges []*wire.Edge, records []wire.Record) wire.Reason {
	for _, f := range t.Measured() {
		if f.To != node {
			continue
		}
		at := map[string]float64{} // bytes of all connections, by their samples' edge
		for _, r := range records {
			s, ok := r.Body.(*wire.TCPSample)
			if ok && r.Node == node && s.Flow == f.Name && s.Stream != nil && !s.Stranger {
				at[s.Edge] += float64(s.BytesReceived)
			}
		}
		var all, most float64
		var worst *wire.Edge
		for _, e := range edges {
			before, sampled := at[wire.BeforeEdge+e.Edge]
			if e.Edge != "open" && e.Edge != "close" || e.EarlyMs == nil || !sampled {
				continue
			}
			between := max(0, at[e.Edge]-before)
			if all += between; between > most {
				most, worst = between, e
			}
		}
		if all > unsureBytesLeast && all > unsureShare*at["close"] {
			share := 100 * all / max(at["close"], all)
			return edgeFault("%.0f bytes of flow %s, %.2g %% of all, came to %s around the window's edges, most "+
				"between its samples %.3g ms before and %.3g ms after the %s: nobody knows which of them are the "+
				"window's, limit %g %%", all, f.Name, share, node, *worst.EarlyMs, worst.LateMs, worst.Edge,
				100*unsureShare)
		}
	}
	return wire.Reason{}
}

func edgeFault(format string, args ...any) wire.Reason {
	return wire.Reason{Code: wire.ReasonEdge, Text: fmt.Sprintf(format, args...)}
}

// startsOf says which client was started too late, of a flow in the background
// or not: a network that is loaded later than planned is another trial. A client
// that was not started at all is in iperf3's record.
func startsOf(node string, w wire.Window, edges []*wire.Edge) wire.Reason {
	limit := startLateMsMax(w)
	for _, e := range edges {
		if e.Edge == "start" && e.LateMs > limit {
			return edgeFault("%s started the client of flow %s %s ms late, limit %g", node, e.Flow,
				beside(e.LateMs, limit), limit)
		}
	}
	return wire.Reason{}
}

// filtered says whose own packet filter let nothing of a flow in or out: that is
// not the network's doing, and a filter's answer looks like a node out of reach.
func filtered(t wire.Trial, records []wire.Record, scope Scope) wire.Reason {
	for _, r := range records {
		e, ok := r.Body.(*wire.Edge)
		if !ok || e.FilteredFlow == "" || !scope.Final && r.Node != t.Initiator {
			continue
		}
		ports := ""
		for _, f := range t.Traffic {
			if f.Name == e.FilteredFlow {
				ports = fmt.Sprintf(" (port %d)", f.Port)
			}
		}
		return wire.Reason{Code: wire.ReasonFirewall,
			Text: fmt.Sprintf("%s stopped all of flow %s%s by its own packet filter: "+
				"let its port pass between the mesh's addresses (nft list ruleset)", r.Node, e.FilteredFlow, ports)}
	}
	return wire.Reason{}
}

// strangers says whose connection at a flow's server carried data within the
// window: that took a share of the medium, and of the server.
func strangers(records []wire.Record) wire.Reason {
	for _, r := range records {
		if e, ok := r.Body.(*wire.Edge); ok && e.Unwatched > 0 {
			return wire.Reason{Code: wire.ReasonStranger, Text: fmt.Sprintf(
				"%d connections more than are watched reached the flows' ports on %s", e.Unwatched, r.Node)}
		}
		s, ok := r.Body.(*wire.TCPSample)
		if !ok || !alien(s) {
			continue
		}
		w := WindowOf(r.Node, records)
		if w != nil && (s.Edge == "close" || s.Edge == "" && r.TBootNs >= w.OpenBootNs && r.TBootNs <= w.CloseBootNs) {
			text := fmt.Sprintf("%s reached the port of flow %s on %s, and sent %d bytes", s.Remote, s.Flow, r.Node,
				s.BytesReceived)
			return wire.Reason{Code: wire.ReasonStranger, Text: text}
		}
	}
	return wire.Reason{}
}

// alien reports whether a sample is of a stranger's connection with data.
func alien(s *wire.TCPSample) bool { return s.Stranger && s.BytesReceived > 0 }
