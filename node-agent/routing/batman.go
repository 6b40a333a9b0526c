package routing

import (
	"context"
	"encoding/json"
	"io"
	"maps"
	"time"

	"fieldmesh.dev/fieldmesh/node-agent/routing/batman"
	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// batmanEvery is how often the module's tables are looked at: it tells nobody
// when they change.
const batmanEvery = 500 * time.Millisecond

// batmanAdv asks the process that reads the module (batman.Run).
type batmanAdv struct{ Target }

func (b *batmanAdv) ask(ctx context.Context) (state, error) {
	var s batman.State
	at := b.BootNs()
	err := converse(ctx, b.Socket, "state\n", func(r io.Reader) error { return json.NewDecoder(r).Decode(&s) })
	if err != nil {
		return state{}, err
	}
	out := batmanState(s)
	out.at = at
	return out, nil
}

func batmanState(s batman.State) state {
	out := state{counts: wire.RoutingCount{Protocol: batman.Protocol, RoutesInstalled: s.Originators,
		Neighbors: []wire.RoutingNeighbor{}}}
	for _, n := range s.Neighbors {
		out.counts.Neighbors = append(out.counts.Neighbors, wire.RoutingNeighbor{Addr: n.Addr, Symmetric: n.Symmetric,
			Cost: n.Cost})
	}
	for _, r := range s.Routes {
		out.routes = append(out.routes, wire.RouteChange{Destination: r.Destination, NextHops: []string{r.NextHop},
			Metric: &r.Cost})
	}
	return out
}

// follow compares the routes of one look with those of the last. It begins with
// the first look.
func (b *batmanAdv) follow(ctx context.Context, begun func(*state), told func(wire.Body)) error {
	tick := time.NewTicker(batmanEvery)
	defer tick.Stop()
	var before map[string]wire.RouteChange
	for {
		asking, done := context.WithTimeout(ctx, askTimeout)
		s, err := b.ask(asking)
		done()
		if err != nil {
			return err
		}
		now := map[string]wire.RouteChange{}
		for _, r := range s.routes {
			now[r.Destination] = r
		}
		if before == nil {
			begun(&s)
		} else {
			changes(before, now, b.BootNs(), told)
		}
		before = now
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
	}
}

// changes reports what happened to routes: a next hop that is another one, a
// route that is new or gone. Of a cost that varies nothing is told.
func changes(before, now map[string]wire.RouteChange, at int64, told func(wire.Body)) {
	for destination, r := range now {
		if was, known := before[destination]; !known || was.NextHops[0] != r.NextHops[0] {
			r.Action, r.AtBootNs = "set", at
			told(&r)
		}
	}
	for destination := range maps.Keys(before) {
		if _, still := now[destination]; !still {
			told(&wire.RouteChange{Action: "delete", AtBootNs: at, Destination: destination})
		}
	}
}
