package fleet

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"golang.org/x/sync/semaphore"
	"golang.org/x/sys/unix"

	"fieldmesh.dev/fieldmesh/protocols/wire"
)

var clockCall = call{doing: "ask clock", method: http.MethodGet, path: "/v1/clock", within: callTime}

// ownClock reads this machine's clocks.
func ownClock() (wire.ClockReply, error) {
	var boot, wall unix.Timespec
	if err := errors.Join(unix.ClockGettime(unix.CLOCK_BOOTTIME, &boot), unix.ClockGettime(unix.CLOCK_REALTIME,
		&wall)); err != nil {
		return wire.ClockReply{}, fmt.Errorf("read own clocks: %w", err)
	}
	return wire.ClockReply{BootNs: boot.Nano(), WallNs: wall.Nano()}, nil
}

// comparing bounds the nodes whose clocks are compared at once: the questions to
// more would wait for each other on this machine, which makes clocks uncertain.
var comparing = semaphore.NewWeighted(together)

const together = 8

// ClockTurns is what comparing the clocks of so many nodes takes for their
// waiting for each other, over slow links.
func ClockTurns(nodes int) time.Duration {
	return time.Duration(nodes/together) * time.Second
}

// ClockOffset estimates the node's clocks against this machine's by n
// exchanges, of which the one with the shortest round trip counts: it waited
// least in queues, and the truth lies within half its round trip (as in
// RFC 5905, section 10). Exchanges that fail are passed over while one succeeds.
func (c *Client) ClockOffset(ctx context.Context, n int) (wire.Clock, error) {
	if n < 1 {
		return wire.Clock{}, fmt.Errorf("compare clocks with node %q: %d exchanges", c.node.Name, n)
	}
	// The first one opens the connection, with retries, and does not count.
	if _, err := c.Clock(ctx); err != nil {
		return wire.Clock{}, err
	}
	if err := comparing.Acquire(ctx, 1); err != nil {
		return wire.Clock{}, fmt.Errorf("compare clocks with node %q: %w", c.node.Name, err)
	}
	defer comparing.Release(1)
	ctx, cancel := context.WithTimeout(ctx, clockCall.within)
	defer cancel()
	began := time.Now()
	var best wire.Clock
	var failed error
	done := 0
	for range n {
		sample, err := c.exchange(ctx)
		if err != nil {
			failed = err
			continue
		}
		if done == 0 || sample.RTTNs < best.RTTNs {
			best = sample
		}
		done++
	}
	if done == 0 {
		return wire.Clock{}, c.explain(clockCall, failed, time.Since(began))
	}
	best.Exchanges = done
	return best, nil
}

// exchange is one question and answer, between two readings of our own clock.
func (c *Client) exchange(ctx context.Context) (wire.Clock, error) {
	before, err := c.clock()
	if err != nil {
		return wire.Clock{}, err
	}
	a, err := c.once(ctx, clockCall)
	if err != nil {
		return wire.Clock{}, err
	}
	after, err := c.clock()
	if err != nil {
		return wire.Clock{}, err
	}
	var theirs wire.ClockReply
	if err := json.Unmarshal(a.body, &theirs); err != nil {
		return wire.Clock{}, fmt.Errorf("decode clocks: %w", err)
	}
	return offset(c.node.Name, before, theirs, after), nil
}

// offset takes the answer to have been given halfway between question and return.
func offset(peer string, before, theirs, after wire.ClockReply) wire.Clock {
	rtt := after.BootNs - before.BootNs
	return wire.Clock{
		Peer:          peer,
		OffsetNs:      theirs.BootNs - (before.BootNs + rtt/2),
		WallOffsetNs:  theirs.WallNs - (before.WallNs + rtt/2),
		UncertaintyNs: (rtt + 1) / 2,
		RTTNs:         rtt,

		OwnWallOffsetNs: new(before.WallNs - before.BootNs),
	}
}
