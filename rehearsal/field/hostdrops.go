package field

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"fieldmesh.dev/fieldmesh/rehearsal/drops"
	"fieldmesh.dev/fieldmesh/rehearsal/medium"
)

// hostDrops is what the nodes' kernels threw away before the radio could have
// it: frames that a channel can tell nothing of.
type hostDrops struct {
	counters []*drops.Counter // by node
	watch    *drops.Watch     // nil where the kernel allows none: then packets are counted, not told
	byNetns  map[uint64]int
	told     atomic.Uint64
	missed   uint64               // packets that were counted but not told, as far as noted
	before   []medium.CauseCounts // by node, when the present trial was placed
}

// watchHosts follows the nodes' kernels from now on.
func (f *Field) watchHosts() error {
	h := &f.hosts
	h.byNetns = map[uint64]int{}
	for i, n := range f.nodes {
		h.counters = append(h.counters, n.counter)
		h.byNetns[n.counter.Netns()] = i
	}
	var err error
	if h.watch, err = drops.NewWatch(); err != nil {
		f.note("info", "frames without a route are counted, but not told one by one: %v", err)
		return nil
	}
	for netns := range h.byNetns {
		if err := h.watch.Add(netns); err != nil {
			return err
		}
	}
	f.rest.Go(func() error {
		if err := h.watch.Run(f.restCtx, f.hostDropped); err != nil {
			f.note("warning", "frames without a route are not told one by one any more: %v", err)
		}
		return nil
	})
	return nil
}

// hostDropped passes a drop on to the channel's account of losses.
func (f *Field) hostDropped(d drops.Drop) {
	f.hosts.told.Add(1)
	if a := f.air.Load(); a != nil {
		a.channel.Miss(d.Boot, f.hosts.byNetns[d.Netns], d.Packet, causeOf(d.Reason))
	}
}

func causeOf(r drops.Reason) medium.Cause {
	if r == drops.NoNeighbour {
		return medium.NoNeighbour
	}
	return medium.NoRoute
}

// count is what the nodes' kernels have counted so far.
func (h *hostDrops) count() ([]medium.CauseCounts, error) {
	out := make([]medium.CauseCounts, len(h.counters))
	for i, c := range h.counters {
		var err error
		if out[i][medium.NoRoute], err = c.NoRoute(); err != nil {
			return nil, err
		}
		if h.watch == nil {
			continue // there is no other source for the rest
		}
		if out[i][medium.NoNeighbour], err = h.watch.Count(c.Netns(), drops.NoNeighbour); err != nil {
			return nil, err
		}
		unreachable, err := h.watch.Count(c.Netns(), drops.Unreachable)
		if err != nil {
			return nil, err
		}
		out[i][medium.NoRoute] += unreachable
	}
	return out, nil
}

// begin counts from now on.
func (h *hostDrops) begin() (err error) {
	h.before, err = h.count()
	return err
}

// sinceBegin is what was counted since, by node.
func (h *hostDrops) sinceBegin() ([]medium.CauseCounts, error) {
	out, err := h.count()
	for i := range out {
		for cause := range out[i] {
			out[i][cause] -= h.before[i][cause]
		}
	}
	return out, err
}

// toldWithin bounds the wait for packets that the kernel has dropped and that
// were not told yet.
const toldWithin = 2 * time.Second

// settleHosts waits until every packet that was dropped so far is told, and
// notes how many could not be.
func (f *Field) settleHosts(ctx context.Context) error {
	h := &f.hosts
	if h.watch == nil {
		return nil
	}
	var counted uint64
	for netns := range h.byNetns {
		for _, why := range []drops.Reason{drops.NoRoute, drops.Unreachable, drops.NoNeighbour} {
			n, err := h.watch.Count(netns, why)
			if err != nil {
				return err
			}
			counted += n
		}
	}
	ctx, cancel := context.WithTimeout(ctx, toldWithin)
	defer cancel()
	if err := h.watch.Settled(ctx); err != nil {
		f.note("warning", "the last frames without a route may be missing from the records: %v", err)
	}
	if missed := int64(counted) - int64(h.told.Load()); missed > int64(h.missed) {
		f.note("warning", "%d frames without a route or a neighbour's answer are counted, but came too fast to be "+
			"told one by one", missed-int64(h.missed))
		h.missed = uint64(missed)
	}
	return nil
}

// close ends the watch; the counters are the nodes'.
func (h *hostDrops) close() error {
	err := h.watch.Close()
	h.watch = nil
	if err != nil {
		return fmt.Errorf("stop watching the nodes' kernels: %w", err)
	}
	return nil
}
