package metrics

import (
	"encoding/json"
	"math"

	"fieldmesh.dev/fieldmesh/controller/packets"
	"fieldmesh.dev/fieldmesh/internal/verdict"
	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// datagrams is what a UDP flow's sender handed to its sockets. Captures do not
// tell it all: what waits for a neighbour's address, or is dropped by a queue,
// comes to none, and behind the last datagram that was seen no number reports
// others. iperf3 counts what it sends, second by second.
type datagrams struct {
	flow    wire.Flow
	seen    packets.Result
	counted map[uint16]ownCount // by the client's port
	endNs   *int64              // when the sender's iperf3 had ended, by common time
	never   bool                // the flow's client never connected
	perS    float64             // datagrams of one stream a second, by the plan; 0: not known
}

// ownCount is iperf3's count of one stream's datagrams.
type ownCount struct {
	at    []countedAt // at the ends of its seconds, as far as none is missing
	total *float64
}

type countedAt struct{ s, n float64 } // since the stream's beginning

// ownJSON is the part of iperf3's JSON that tells what it sent.
type ownJSON struct {
	Start struct {
		Cookie    string `json:"cookie"` // of a control connection that stood
		Connected []struct {
			Socket     int    `json:"socket"`
			LocalPort  uint16 `json:"local_port"`
			RemotePort uint16 `json:"remote_port"`
		} `json:"connected"`
		TestStart struct {
			BlockBytes float64 `json:"blksize"`
		} `json:"test_start"`
	} `json:"start"`
	Intervals []struct {
		Streams []struct {
			Socket  int     `json:"socket"`
			Start   float64 `json:"start"`
			End     float64 `json:"end"`
			Packets float64 `json:"packets"`
		} `json:"streams"`
	} `json:"intervals"`
	End struct {
		Streams []struct {
			UDP *struct {
				Socket  int     `json:"socket"`
				Packets float64 `json:"packets"`
			} `json:"udp"`
		} `json:"streams"`
	} `json:"end"`
	Error string `json:"error"`
}

// iperf3At gives a node's record of a flow's iperf3, and what it printed; nil
// where there is none.
func (at Attempt) iperf3At(node, flow string) (*wire.Iperf3, *ownJSON) {
	for _, r := range at.records {
		b, ok := r.Body.(*wire.Iperf3)
		if !ok || r.Node != node || b.Flow != flow {
			continue
		}
		var out ownJSON
		if len(b.Output) == 0 || json.Unmarshal(b.Output, &out) != nil {
			return b, nil // killed while it printed, or it printed something else
		}
		return b, &out
	}
	return nil, nil
}

// neverConnected reports whether a flow's client says that it never had a
// connection. It is false where the client says nothing.
func (at Attempt) neverConnected(f wire.Flow) bool {
	_, out := at.iperf3At(f.Client(), f.Name)
	return out != nil && out.Error != "" && out.Start.Cookie == "" && len(out.Start.Connected) == 0
}

func (at Attempt) datagrams(f wire.Flow, r packets.Result) datagrams {
	d := datagrams{flow: f, seen: r, counted: map[uint16]ownCount{}, never: at.neverConnected(f)}
	b, out := at.iperf3At(f.From, f.Name)
	if w := verdict.WindowOf(f.From, at.records); w != nil && b != nil && b.EndedBootNs != nil {
		d.endNs = new(r.OpenNs + *b.EndedBootNs - w.OpenBootNs)
	}
	if out != nil && !d.never {
		d.take(out)
	}
	d.perS = d.rate(out)
	return d
}

// rate is how many datagrams a second the plan has a stream send.
func (d *datagrams) rate(out *ownJSON) float64 {
	bytes := 0.0
	switch {
	case d.flow.PayloadBytes != nil:
		bytes = float64(*d.flow.PayloadBytes)
	case out != nil:
		bytes = out.Start.TestStart.BlockBytes
	}
	for _, n := range d.seen.Numbers {
		bytes = float64(n.Bytes)
	}
	if d.flow.BitrateBps == nil || bytes == 0 {
		return 0
	}
	return *d.flow.BitrateBps / float64(max(d.flow.Streams, 1)) / (8 * bytes)
}

// take reads what iperf3 counted. One that is cut short leaves a second out, or
// prints one twice.
func (d *datagrams) take(out *ownJSON) {
	const apartS = 0.05 // of one second's end and the next one's start
	for _, c := range out.Start.Connected {
		port := c.LocalPort
		if d.flow.Reverse {
			port = c.RemotePort
		}
		var own ownCount
		last := countedAt{}
		for _, second := range out.Intervals {
			for _, s := range second.Streams {
				if s.Socket == c.Socket && math.Abs(s.Start-last.s) < apartS && s.End > s.Start {
					last = countedAt{s.End, last.n + s.Packets}
					own.at = append(own.at, last)
				}
			}
		}
		for _, s := range out.End.Streams {
			if s.UDP != nil && s.UDP.Socket == c.Socket && s.UDP.Packets >= last.n {
				own.total = &s.UDP.Packets
			}
		}
		d.counted[port] = own
	}
}

// beganNs is when the flow's first datagram was handed on: a stream's first that
// was seen, less the time that those before it took.
func (d *datagrams) beganNs() (ns int64, known bool) {
	for _, n := range d.seen.Numbers {
		if n.First.Number > 1 && d.perS == 0 {
			return 0, false
		}
		at := n.First.AtNs
		if n.First.Number > 1 {
			at -= int64(float64(n.First.Number-1) / d.perS * 1e9)
		}
		if !known || at < ns {
			ns, known = at, true
		}
	}
	return ns, known
}

// sent is how many datagrams were handed on within the sender's window.
func (d *datagrams) sent() (n float64, known bool) {
	if len(d.seen.Numbers) == 0 && len(d.counted) == 0 {
		return 0, d.never
	}
	ports := map[uint16]bool{}
	for port := range d.seen.Numbers {
		ports[port] = true
	}
	for port := range d.counted {
		ports[port] = true
	}
	for port := range ports {
		numbers := d.seen.Numbers[port]
		until, known := d.by(port, numbers.Close, d.seen.CloseNs)
		if !known {
			return 0, false
		}
		before := 0.0
		if d.flow.StartS < 0 {
			if before, known = d.by(port, numbers.Open, d.seen.OpenNs); !known {
				return 0, false
			}
		}
		n += until - before
	}
	return max(n, float64(d.seen.Sent)), true
}

// by is how many datagrams of a stream were handed on by a moment.
func (d *datagrams) by(port uint16, about packets.Edge, whenNs int64) (n float64, known bool) {
	began, ok := d.beganNs()
	seen := countedAt{0, 1} // the first is handed on at the beginning
	if b := about.Before; b != nil {
		seen = countedAt{float64(b.AtNs-began) / 1e9, float64(b.Number)}
	}
	when := float64(whenNs-began) / 1e9
	switch a := about.After; {
	case !ok:
		return 0, false
	case when < 0:
		return 0, true
	case a != nil: // between two that were seen: they are evenly spaced
		next := countedAt{float64(a.AtNs-began) / 1e9, float64(a.Number)}
		share := (when - seen.s) / max(next.s-seen.s, 1e-9)
		return min(seen.n+math.Floor(share*(next.n-seen.n)), next.n-1), true
	}
	return d.behind(d.counted[port], seen, when, began)
}

// behind is by behind the last datagram that was seen: as many as the plan's rate
// adds, between iperf3's counts at the ends of its seconds about the moment.
func (d *datagrams) behind(own ownCount, seen countedAt, when float64, beganNs int64) (n float64, known bool) {
	least, most := seen.n, math.Inf(1)
	if own.total != nil {
		most = *own.total
	}
	for _, p := range own.at {
		if p.s > when {
			most = min(most, p.n)
			break
		}
		least = max(least, p.n)
	}
	failed := 0.0
	if math.IsInf(most, 1) { // it does not say how many it came to
		if d.endNs == nil || len(own.at) == 0 {
			return 0, false
		}
		if end := float64(*d.endNs-beganNs) / 1e9; end < when {
			when, failed = end, 1 // the one whose failure ended it
		}
	}
	if d.perS == 0 {
		return 0, false
	}
	const grainS = 1e-3 // of iperf3's pacing
	n = seen.n + math.Floor((when-seen.s+grainS)*d.perS) - failed
	return max(least, min(n, most)), true
}
