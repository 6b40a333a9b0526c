package routing

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/vishvananda/netlink"

	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// protocolBabel marks babeld's routes (RTPROT_BABEL of rtnetlink.h).
const protocolBabel = 42

// babeldInfinity is the cost of a neighbour that is heard but does not hear
// us, or not at all (RFC 8966, section 3.5.2).
const babeldInfinity = 65535

// babeld speaks babeld's line protocol (babeld(8), "Configuration socket"); its
// routes are the kernel's, where their next hops are IPv4.
type babeld struct{ Target }

func (b *babeld) kernel() kernelRoutes { return kernelRoutes{protocol: protocolBabel, boot: b.BootNs} }

func (b *babeld) ask(ctx context.Context) (state, error) {
	var neighbors []wire.RoutingNeighbor
	err := converse(ctx, b.Socket, "dump\n", func(r io.Reader) error {
		var err error
		neighbors, err = readDump(r)
		return err
	})
	if err != nil {
		return state{}, err
	}
	if table, err := neighborTable(b.Interface); err == nil { // addresses are a nicety
		name(neighbors, b.Interface, table)
	}
	at := b.BootNs()
	routes, err := b.kernel().list()
	if err != nil {
		return state{}, err
	}
	counts := wire.RoutingCount{Protocol: "babeld", RoutesInstalled: len(routes), Neighbors: neighbors}
	return state{at: at, counts: counts, routes: routes}, nil
}

func name(neighbors []wire.RoutingNeighbor, device string, table []netlink.Neigh) {
	for i := range neighbors {
		neighbors[i].Addr = meshAddress(device, neighbors[i].Addr, table)
	}
}

// readDump reads babeld's greeting, which ends in "ok", and the answer to
// "dump", which does too, and takes the neighbours out:
//
//	add neighbour 55… address fe80::… if wlan0 reach ffff ureach 0000 rxcost 96 txcost 96 cost 96
func readDump(r io.Reader) ([]wire.RoutingNeighbor, error) {
	out := []wire.RoutingNeighbor{}
	lines := bufio.NewScanner(r)
	for oks := 0; lines.Scan(); {
		words := strings.Fields(lines.Text())
		switch {
		case len(words) == 0:
		case words[0] == "ok":
			if oks++; oks == 2 {
				return out, nil
			}
		case words[0] == "bad" || words[0] == "no":
			return nil, fmt.Errorf("babeld answers %.80q", lines.Text())
		case len(words) > 2 && words[0] == "add" && words[1] == "neighbour":
			out = append(out, parseNeighbor(words[3:]))
		}
	}
	return nil, errors.Join(lines.Err(), io.ErrUnexpectedEOF)
}

// parseNeighbor reads pairs of a name and a value.
func parseNeighbor(words []string) wire.RoutingNeighbor {
	var n wire.RoutingNeighbor
	for ; len(words) >= 2; words = words[2:] {
		switch words[0] {
		case "address":
			n.Addr = words[1]
		case "cost":
			if c := number(words[1]); c != nil && *c < babeldInfinity {
				n.Cost, n.Symmetric = c, true
			}
		}
	}
	return n
}

// follow holds a connection to babeld's socket, by whose end its own shows.
func (b *babeld) follow(ctx context.Context, begun func(*state), told func(wire.Body)) error {
	routes := func(ctx context.Context) error { return b.kernel().follow(ctx, begun, told) }
	return alongside(ctx, routes, func(ctx context.Context) error {
		return converse(ctx, b.Socket, "", func(r io.Reader) error {
			if _, err := io.Copy(io.Discard, r); err != nil {
				return err
			}
			return io.ErrUnexpectedEOF
		})
	})
}
