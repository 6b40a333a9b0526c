package routing

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"

	"fieldmesh.dev/fieldmesh/node-agent/routing/control"
	"fieldmesh.dev/fieldmesh/node-agent/routing/manetd"
	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// own speaks with manetd.
type own struct{ Target }

// converse sends a line to a unix socket and hands the answer to read.
func converse(ctx context.Context, socket, line string, read func(io.Reader) error) error {
	var d net.Dialer
	conn, err := d.DialContext(ctx, "unix", socket)
	if err != nil {
		return err
	}
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	defer stop()
	_, err = io.WriteString(conn, line)
	if err == nil {
		err = read(conn)
	}
	if closing := conn.Close(); err == nil && ctx.Err() == nil {
		err = closing
	}
	return err
}

func (o *own) ask(ctx context.Context) (state, error) {
	var s manetd.State
	err := converse(ctx, o.Socket, control.CommandState+"\n", func(r io.Reader) error {
		return json.NewDecoder(r).Decode(&s)
	})
	if err != nil {
		return state{}, err
	}
	return o.state(s), nil
}

func (o *own) state(s manetd.State) state {
	c := s.Runner
	out := state{at: s.TBootNs, counts: wire.RoutingCount{Protocol: o.Protocol,
		PacketsSent: count(c.PacketsSent), DataPacketsSent: count(c.DataPacketsSent), BytesSent: count(c.BytesSent),
		Messages: counts(c.Messages), MessageBytes: counts(c.MessageBytes), RoutesInstalled: len(s.Routes),
		HeldPackets: count(int64(s.HeldPackets)), Neighbors: []wire.RoutingNeighbor{}, Dropped: counts(c.Dropped)}}
	if !(wire.Routing{Protocol: o.Protocol}).CarriesData() { // whose packets are mostly data
		out.counts.PacketsReceived, out.counts.BytesReceived = count(c.PacketsReceived), count(c.BytesReceived)
	}
	for _, n := range s.Neighbors {
		out.counts.Neighbors = append(out.counts.Neighbors, wire.RoutingNeighbor{Addr: n.Addr.String(),
			Symmetric: n.Symmetric, Cost: n.Cost, Role: n.Role})
	}
	for _, r := range s.Routes {
		c := wire.RouteChange{Destination: r.Destination.String(), NextHops: []string{r.NextHop.String()},
			Metric: &r.Metric}
		if r.Hops > 0 {
			c.Hops = &r.Hops
		}
		out.routes = append(out.routes, c)
	}
	return out
}

func count(n int64) *uint64 {
	out := uint64(max(n, 0))
	return &out
}

func counts(m map[string]int64) map[string]uint64 {
	if len(m) == 0 {
		return nil
	}
	out := map[string]uint64{}
	for k, v := range m {
		out[k] = uint64(max(v, 0))
	}
	return out
}

func (o *own) follow(ctx context.Context, begun func(*state), told func(wire.Body)) error {
	return converse(ctx, o.Socket, control.CommandFollow+"\n", func(r io.Reader) error {
		lines := bufio.NewScanner(r)
		var missed int64
		for first := true; lines.Scan(); first = false {
			n, err := parseNotice(lines.Bytes())
			if err != nil {
				return err
			}
			if first { // it says nothing but that what comes now is told
				begun(nil)
			}
			if n.Missed > missed {
				told(&wire.Event{Level: "warning", Text: fmt.Sprintf("%d changes of routes came too fast to be told",
					n.Missed-missed)})
				missed = n.Missed
			}
			if b := bodyOf(n); b != nil {
				told(b)
			}
		}
		return errors.Join(lines.Err(), io.ErrUnexpectedEOF) // it never ends by itself
	})
}

func parseNotice(line []byte) (manetd.Notice, error) {
	var n manetd.Notice
	if err := json.Unmarshal(line, &n); err != nil {
		return n, fmt.Errorf("decode notice %.80q: %w", line, err)
	}
	return n, nil
}

// bodyOf is a notice as a record; nil for one that says nothing.
func bodyOf(n manetd.Notice) wire.Body {
	switch {
	case n.Route != nil:
		r := n.Route
		return &wire.RouteChange{Action: r.Action, AtBootNs: n.TBootNs, Destination: r.Destination,
			NextHops: r.NextHops, Hops: r.Hops, Metric: r.Metric, Cause: r.Cause}
	case n.Report != nil:
		r := n.Report
		out := &wire.RoutingEvent{Report: r.Kind, AtBootNs: n.TBootNs, Addr: r.Addr, Note: r.Note}
		if r.Value != 0 { // a report without a value has none
			out.Value = &r.Value
		}
		return out
	}
	return nil
}
