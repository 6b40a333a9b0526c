package simtest

import (
	"bytes"
	"net/netip"
	"slices"
	"testing"
	"time"

	"fieldmesh.dev/fieldmesh/protocols/manet"
)

// Me is the address of the node in a lab.
const Me = "10.0.0.1"

// Lab is one node, Me, whose neighbours are played by the test. Fields hold
// what the node asked for since it started or since the test emptied them.
type Lab[N manet.Node] struct {
	T           *testing.T
	Node        N
	Now         manet.Time
	Timers      map[manet.TimerKey]manet.Time
	Routes      map[netip.Prefix]manet.SetRoute
	Released    []netip.Addr
	Dropped     []manet.Drop
	Reports     []manet.Report
	Transmitted []manet.Transmit // a carrier's
	Delivered   [][]byte         // a carrier's
	// Sent, where set, sees every packet that the node sends.
	Sent func(manet.Send)
}

// standard gives a whole configuration of a protocol, to be changed by a test.
type standard[C any] func(interfaces []manet.Interface, seed uint64) C

func (s standard[C]) changed(changes ...func(*C)) C {
	c := s([]manet.Interface{{Name: "wlan0", Address: netip.MustParseAddr(Me), MTU: 1500}}, 1)
	for _, change := range changes {
		if change != nil {
			change(&c)
		}
	}
	return c
}

// New makes the node of a lab from a configuration after the changes that are
// not nil.
func New[C, N any](t *testing.T, config standard[C], build func(C) (N, error), changes ...func(*C)) N {
	t.Helper()
	node, err := build(config.changed(changes...))
	if err != nil {
		t.Fatal(err)
	}
	return node
}

// Refused asks that no node is made from a configuration after any one of the
// changes.
func Refused[C, N any](t *testing.T, config standard[C], build func(C) (N, error), changes map[string]func(*C)) {
	t.Helper()
	for name, change := range changes {
		if _, err := build(config.changed(change)); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

// NewLab starts a node. The packets of its start go to sent too.
func NewLab[N manet.Node](t *testing.T, node N, sent func(manet.Send)) *Lab[N] {
	t.Helper()
	l := &Lab[N]{T: t, Node: node, Timers: map[manet.TimerKey]manet.Time{},
		Routes: map[netip.Prefix]manet.SetRoute{}, Sent: sent}
	l.Handle(manet.Start{})
	return l
}

// Handle gives the node an event.
func (l *Lab[N]) Handle(e manet.Event) {
	l.T.Helper()
	for _, a := range l.Node.Handle(l.Now, e) {
		switch a := a.(type) {
		case manet.SetTimer:
			l.Timers[a.Key] = a.At
		case manet.StopTimer:
			delete(l.Timers, a.Key)
		case manet.SetRoute:
			a.Next = slices.Clone(a.Next)
			l.Routes[a.Destination] = a
		case manet.DeleteRoute:
			delete(l.Routes, a.Destination)
		case manet.Release:
			l.Released = append(l.Released, a.Destination)
		case manet.Drop:
			l.Dropped = append(l.Dropped, a)
		case manet.Report:
			l.Reports = append(l.Reports, a)
		case manet.Send:
			if l.Sent != nil {
				l.Sent(a)
			}
		case manet.Transmit:
			a.Packet = bytes.Clone(a.Packet)
			l.Transmitted = append(l.Transmitted, a)
		case manet.Deliver:
			l.Delivered = append(l.Delivered, a.Packet)
		}
	}
}

// Wait lets time pass. Of timers that are due at once the lower kind and then
// the lower address goes first.
func (l *Lab[N]) Wait(d time.Duration) {
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
func (l *Lab[N]) Need(to string) {
	l.T.Helper()
	l.Handle(manet.NeedRoute{Destination: netip.MustParseAddr(to), Local: true})
}

// Route is the best next hop to a host, "" where there is none.
func (l *Lab[N]) Route(to string) string {
	if r, ok := l.Routes[netip.PrefixFrom(netip.MustParseAddr(to), 32)]; ok {
		return r.Next[0].Addr.String()
	}
	return ""
}

// Reported is the last value that was reported of a kind, 0 where none was.
func (l *Lab[N]) Reported(kind string) (value float64) {
	for _, r := range l.Reports {
		if r.Kind == kind {
			value = r.Value
		}
	}
	return value
}
