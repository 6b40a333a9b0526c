package simtest

import (
	"net/netip"
	"testing"
	"time"

	"fieldmesh.dev/fieldmesh/protocols/manet"
)

// Lab is one node whose neighbours are played by the test. Fields hold what
// the node asked for since it started or since the test emptied them.
type Lab struct {
	T        *testing.T
	Node     manet.Node
	Now      manet.Time
	Timers   map[manet.TimerKey]manet.Time
	Routes   map[netip.Prefix]manet.SetRoute
	Released []netip.Addr
	Dropped  []manet.Drop
	Reports  map[string]float64 // the last value of each kind
	// Sent, where set, sees every packet that the node sends.
	Sent func(manet.Send)
}

// NewLab starts a node. The packets of its start go to sent too.
func NewLab(t *testing.T, node manet.Node, sent func(manet.Send)) *Lab {
	t.Helper()
	l := &Lab{T: t, Node: node, Timers: map[manet.TimerKey]manet.Time{}, Routes: map[netip.Prefix]manet.SetRoute{},
		Reports: map[string]float64{}, Sent: sent}
	l.Handle(manet.Start{})
	return l
}

// Handle gives the node an event.
func (l *Lab) Handle(e manet.Event) {
	l.T.Helper()
	for _, a := range l.Node.Handle(l.Now, e) {
		switch a := a.(type) {
		case manet.SetTimer:
			l.Timers[a.Key] = a.At
		case manet.StopTimer:
			delete(l.Timers, a.Key)
		case manet.SetRoute:
			a.Next = append([]manet.Hop(nil), a.Next...)
			l.Routes[a.Destination] = a
		case manet.DeleteRoute:
			delete(l.Routes, a.Destination)
		case manet.Release:
			l.Released = append(l.Released, a.Destination)
		case manet.Drop:
			l.Dropped = append(l.Dropped, a)
		case manet.Report:
			l.Reports[a.Kind] = a.Value
		case manet.Send:
			if l.Sent != nil {
				l.Sent(a)
			}
		}
	}
}

// Wait lets time pass. Of timers that are due at once the lower kind and then
// the lower address goes first.
func (l *Lab) Wait(d time.Duration) {
	l.T.Helper()
	for end := l.Now + d; ; {
		var first manet.TimerKey
		found := false
		for k, at := range l.Timers {
			if !found || at < l.Timers[first] || at == l.Timers[first] && before(k, first) {
				first, found = k, true
			}
		}
		if !found || l.Timers[first] > end {
			l.Now = end
			return
		}
		l.Now = max(l.Now, l.Timers[first])
		delete(l.Timers, first)
		l.Handle(manet.Timer{Key: first})
	}
}

func before(a, b manet.TimerKey) bool {
	return a.Kind < b.Kind || a.Kind == b.Kind && a.Addr.Less(b.Addr)
}

// Need says that the node's own host has data for a destination.
func (l *Lab) Need(to string) {
	l.T.Helper()
	l.Handle(manet.NeedRoute{Destination: netip.MustParseAddr(to), Local: true})
}

// Route is the best next hop to a host, "" where there is none.
func (l *Lab) Route(to string) string {
	if r, ok := l.Routes[netip.PrefixFrom(netip.MustParseAddr(to), 32)]; ok {
		return r.Next[0].Addr.String()
	}
	return ""
}
