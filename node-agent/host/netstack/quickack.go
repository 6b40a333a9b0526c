package netstack

import (
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"slices"
	"sync"

	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

// Whether a segment is acknowledged at once is a property of the route back to
// its sender, and a routing daemon knows nothing of it. Acknowledging gives it
// to every route that a daemon makes, as soon as the kernel reports it: each is
// replaced by itself with the property. A replacement never makes a route, so
// one that the daemon has taken out since stays out; and where it overtakes a
// newer one of the daemon's, the kernel has reported that too, and it is
// replaced in its turn.
type Acknowledging struct {
	protocol int // that marks the daemon's routes
	network  netip.Prefix
	news     *nl.NetlinkSocket
	log      *slog.Logger
	stop     chan struct{}
	group    sync.WaitGroup
}

// lookAgain is how long the end of acknowledging may take to be seen.
var lookAgain = unix.Timeval{Usec: 100_000}

// AcknowledgeOver begins before the daemon does: none of its routes is missed.
func AcknowledgeOver(protocol int, network netip.Prefix, log *slog.Logger) (*Acknowledging, error) {
	a, err := newAcknowledging(protocol, network, log)
	if err == nil {
		a.group.Go(a.run)
	}
	return a, err
}

func newAcknowledging(protocol int, network netip.Prefix, log *slog.Logger) (*Acknowledging, error) {
	news, err := nl.Subscribe(unix.NETLINK_ROUTE, unix.RTNLGRP_IPV4_ROUTE)
	if err != nil {
		return nil, fmt.Errorf("listen to news of routes: %w", err)
	}
	if err := news.SetReceiveTimeout(&lookAgain); err != nil {
		news.Close()
		return nil, fmt.Errorf("listen to news of routes: %w", err)
	}
	return &Acknowledging{protocol: protocol, network: network.Masked(), news: news, log: log,
		stop: make(chan struct{})}, nil
}

// Close ends it. The routes keep the property; they are the daemon's, and end
// with it.
func (a *Acknowledging) Close() error {
	close(a.stop)
	a.group.Wait()
	a.news.Close()
	return nil
}

func (a *Acknowledging) run() {
	for {
		select {
		case <-a.stop:
			return
		default:
		}
		messages, from, err := a.news.Receive()
		switch {
		case errors.Is(err, unix.ENOBUFS): // some news is lost: look at all routes
			a.all()
			continue
		case errors.Is(err, unix.EAGAIN), errors.Is(err, unix.EINTR):
			continue
		case err != nil:
			a.log.Error("listen to news of routes", "error", err)
			return
		}
		for _, m := range messages {
			if m.Header.Type == unix.RTM_NEWROUTE && from.Pid == nl.PidKernel {
				a.see(m.Data)
			}
		}
	}
}

func (a *Acknowledging) all() {
	messages, err := dumpMessages(unix.RTM_GETROUTE, unix.RTM_NEWROUTE, &nl.RtMsg{})
	if err != nil {
		a.log.Error("list routes", "error", err)
	}
	for _, m := range messages {
		a.see(m)
	}
}

// see gives a route the property if it is the daemon's and has it not.
func (a *Acknowledging) see(message []byte) {
	r, err := ParseRoute(message)
	if err != nil {
		a.log.Error("read route", "error", err)
		return
	}
	destination, ok := r.Destination()
	if !ok || int(r.Head.Protocol) != a.protocol || r.Head.Type != unix.RTN_UNICAST ||
		r.Table() != unix.RT_TABLE_MAIN ||
		r.Head.Flags&unix.RTM_F_CLONED != 0 || !a.network.Contains(destination.Addr()) || r.acknowledgesAtOnce() {
		return
	}
	err = SendMessage(unix.RTM_NEWROUTE, unix.NLM_F_REPLACE, r.withQuickAck())
	if err != nil && !errors.Is(err, unix.ENOENT) && !errors.Is(err, unix.ESRCH) { // it is gone again
		a.log.Warn("acknowledge at once", "route", destination, "error", err)
	}
}

// acknowledgesAtOnce looks for the property among the route's metrics.
func (r RouteMessage) acknowledgesAtOnce() bool {
	metrics, err := nl.ParseRouteAttr(attribute(r.attrs, unix.RTA_METRICS))
	return err == nil && attributeUint32(metrics, unix.RTAX_QUICKACK) == 1
}

// withQuickAck is the route, to be sent, with the property beside its other
// metrics.
func (r RouteMessage) withQuickAck() []byte {
	var metrics []byte
	if former, err := nl.ParseRouteAttr(attribute(r.attrs, unix.RTA_METRICS)); err == nil {
		for _, m := range former {
			if m.Attr.Type&nl.NLA_TYPE_MASK != unix.RTAX_QUICKACK {
				metrics = append(metrics, nl.NewRtAttr(int(m.Attr.Type), slices.Clone(m.Value)).Serialize()...)
			}
		}
	}
	metrics = append(metrics, nl.NewRtAttr(unix.RTAX_QUICKACK, binary.NativeEndian.AppendUint32(nil, 1)).Serialize()...)
	bare := RouteMessage{Head: r.Head}
	for _, a := range r.attrs {
		if a.Attr.Type&nl.NLA_TYPE_MASK != unix.RTA_METRICS {
			bare.attrs = append(bare.attrs, a)
		}
	}
	return append(bare.sendable(), nl.NewRtAttr(unix.RTA_METRICS, metrics).Serialize()...)
}
