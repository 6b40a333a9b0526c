package routing

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"time"

	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// protocolOlsrd marks its routes, as its configuration has it.
const protocolOlsrd = 110

// olsrdJSON is where its plugin jsoninfo listens.
const olsrdJSON = "127.0.0.1:9090"

// jsonMax bounds an answer; a mesh of a thousand nodes has some 200 kB.
const jsonMax = 16 << 20

// olsrd reads olsrd's plugin jsoninfo; its routes are the kernel's.
type olsrd struct{ Target }

func (o *olsrd) kernel() kernelRoutes { return kernelRoutes{protocol: protocolOlsrd, boot: o.BootNs} }

func (o *olsrd) ask(ctx context.Context) (state, error) {
	text, err := getJSON(ctx, "/links")
	if err != nil {
		return state{}, err
	}
	neighbors, err := parseLinks(text)
	if err != nil {
		return state{}, err
	}
	at := o.BootNs()
	routes, err := o.kernel().list()
	if err != nil {
		return state{}, err
	}
	counts := wire.RoutingCount{Protocol: "olsrd", RoutesInstalled: len(routes), Neighbors: neighbors}
	return state{at: at, counts: counts, routes: routes}, nil
}

// getJSON asks the plugin, which understands no more of HTTP than a first
// line, and answers without a header when none is asked for.
func getJSON(ctx context.Context, what string) ([]byte, error) {
	var d net.Dialer
	conn, err := d.DialContext(ctx, "tcp", olsrdJSON)
	if err != nil {
		return nil, err
	}
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	defer stop()
	_, err = fmt.Fprintf(conn, "%s\n", what)
	var text []byte
	if err == nil {
		text, err = io.ReadAll(io.LimitReader(conn, jsonMax))
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("ask olsrd for %s: %w", what, err), conn.Close())
	}
	return text, conn.Close()
}

// linkBroken is the cost of a link that carries nothing: LINK_COST_BROKEN of
// lq_plugin.h, whatever the unit of other costs.
const linkBroken = 1 << 22

// linkETX is a link's cost in expected transmissions, nil for a broken link.
// olsrd tells it with decimals; before 0.9 it told whole 1024ths.
func linkETX(cost json.Number) *float64 {
	v, err := cost.Float64()
	if err != nil || v >= linkBroken {
		return nil
	}
	if !strings.ContainsAny(cost.String(), ".eE") {
		v /= 1024
	}
	return &v
}

// parseLinks reads the neighbours out of an answer to "/links".
func parseLinks(text []byte) ([]wire.RoutingNeighbor, error) {
	var answer struct {
		Links []struct {
			RemoteIP string      `json:"remoteIP"`
			Status   string      `json:"currentLinkStatus"`
			Former   string      `json:"linkStatus"` // its name before 0.9
			LinkCost json.Number `json:"linkCost"`
		} `json:"links"`
	}
	if err := json.Unmarshal(text, &answer); err != nil {
		return nil, fmt.Errorf("decode olsrd's links: %w", err)
	}
	out := []wire.RoutingNeighbor{}
	for _, l := range answer.Links {
		out = append(out, wire.RoutingNeighbor{Addr: l.RemoteIP, Symmetric: cmp.Or(l.Status, l.Former) == "SYMMETRIC",
			Cost: linkETX(l.LinkCost)})
	}
	return out, nil
}

// follow tells the kernel's changes, and looks every second whether olsrd
// still answers: its plugin ends a connection after each answer.
func (o *olsrd) follow(ctx context.Context, begun func(*state), told func(wire.Body)) error {
	routes := func(ctx context.Context) error { return o.kernel().follow(ctx, begun, told) }
	return alongside(ctx, routes, func(ctx context.Context) error {
		tick := time.NewTicker(countEvery)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-tick.C:
			}
			asking, done := context.WithTimeout(ctx, askTimeout)
			_, err := getJSON(asking, "/version")
			done()
			if err != nil {
				return err
			}
		}
	})
}
