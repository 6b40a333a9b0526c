package field

import (
	"context"
	"fmt"
	"net/netip"
	"time"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"

	"fieldmesh.dev/fieldmesh/internal/pause"
)

// rerouted is what a channel may want to hear of routing: that a node has
// another route to a network than before.
type rerouted interface {
	Rerouted(node int, to netip.Prefix)
}

// Rerouted passes it on to the medium.
func (r *liveRadio) Rerouted(node int, to netip.Prefix) { r.live.Rerouted(node, to) }

// watchRoutes follows the routes of every node's kernel from now on, whoever
// makes them, for a TCP that is to know which losses are a route change's.
func (f *Field) watchRoutes() error {
	if !f.cfg.Field.FrameLost {
		return nil
	}
	for _, n := range f.nodes {
		f.rest.Go(func() error {
			for f.restCtx.Err() == nil {
				if err := f.followRoutes(n); err != nil {
					f.note("warning", "route changes of %s are not told: %v", n.Name, err)
					return nil
				}
				_ = pause.For(f.restCtx, 100*time.Millisecond) // news was lost: start over
			}
			return nil
		})
	}
	return nil
}

// followRoutes passes a node's changes of routes on until they end.
func (f *Field) followRoutes(n *node) error {
	ns, err := netns.GetFromName(n.netns)
	if err != nil {
		return fmt.Errorf("open namespace %q: %w", n.netns, err)
	}
	defer ns.Close()
	news, done := make(chan netlink.RouteUpdate, 64), make(chan struct{})
	err = netlink.RouteSubscribeWithOptions(news, done, netlink.RouteSubscribeOptions{Namespace: &ns,
		ErrorCallback: func(error) {}, ReceiveBufferSize: 1 << 20})
	if err != nil {
		return fmt.Errorf("listen to news of routes: %w", err)
	}
	defer context.AfterFunc(f.restCtx, func() { close(done) })()
	known := knownRoutes{}
	for u := range news {
		if to, changed := known.see(u); changed {
			if a := f.air.Load(); a != nil {
				if r, is := a.channel.(rerouted); is {
					r.Rerouted(n.index, to)
				}
			}
		}
	}
	return nil
}

// knownRoutes are a node's routes, and those that it had.
type knownRoutes map[netip.Prefix]knownRoute

type knownRoute struct {
	by   string // the way that it leads
	gone bool
}

// see takes one piece of news. A route to a network has changed when it leads
// another way than before, or is made again after it had been taken out; the
// first to a network is none that has changed.
func (k knownRoutes) see(u netlink.RouteUpdate) (to netip.Prefix, changed bool) {
	r := u.Route
	if r.Dst == nil || r.Table != unix.RT_TABLE_MAIN || r.Type != unix.RTN_UNICAST || r.Flags&unix.RTM_F_CLONED != 0 {
		return to, false
	}
	addr, ok := netip.AddrFromSlice(r.Dst.IP.To4())
	if !ok {
		return to, false
	}
	bits, _ := r.Dst.Mask.Size()
	to = netip.PrefixFrom(addr, bits)
	by := fmt.Sprint(r.LinkIndex, r.Gw)
	for _, hop := range r.MultiPath {
		by += fmt.Sprint(" ", hop.LinkIndex, hop.Gw)
	}
	was, known := k[to]
	switch u.Type {
	case unix.RTM_NEWROUTE:
		k[to] = knownRoute{by: by}
		return to, known && (was.gone || was.by != by)
	case unix.RTM_DELROUTE:
		if known && was.by == by {
			k[to] = knownRoute{by: by, gone: true}
		}
	}
	return to, false
}
