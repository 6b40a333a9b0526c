// Package measure samples the kernel's own counters on a fixed beat: one
// interface's, and tcp_info of the measured flows' sockets. It decides neither
// when a trial runs nor what its samples mean.
package measure

import (
	"context"
	"errors"
	"time"

	"fieldmesh.dev/fieldmesh/node-agent/clock"
	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// Source gives samples when asked. Sample is called from one goroutine; the
// slice that it returns is the source's until the next call, its bodies are not.
type Source interface {
	Name() string
	Sample(tBootNs int64) ([]wire.Body, error)
}

var errSkeleton = errors.New("not built yet")

// Sampler asks its sources on a fixed beat and keeps account of its lateness.
type Sampler struct{}

// NewSampler makes a sampler; Run starts it.
func NewSampler(clk clock.Clock, interval time.Duration, sources []Source, emit func(tBootNs int64, b wire.Body) error) *Sampler {
	return &Sampler{}
}

// Run samples until ctx ends (nil) or emit fails.
func (s *Sampler) Run(ctx context.Context) error { return errSkeleton }

// Lateness is how late the ticks due in [fromBootNs, toBootNs) were.
func (s *Sampler) Lateness(fromBootNs, toBootNs int64) *wire.Lateness { return nil }

// Loop is a Sampler's Run which emits, at its end, the lateness of its whole life.
func Loop(ctx context.Context, clk clock.Clock, interval time.Duration, sources []Source, emit func(tBootNs int64, b wire.Body) error) error {
	return errSkeleton
}

// Interface samples one interface's counters.
type Interface struct{ name string }

// NewInterface makes a source of one interface's counters.
func NewInterface(name string) *Interface { return &Interface{name: name} }

// Name names the source.
func (i *Interface) Name() string { return "interface " + i.name }

// Sample reads the counters.
func (i *Interface) Sample(int64) ([]wire.Body, error) { return nil, errSkeleton }

// TCP samples the sockets of flows.
type TCP struct{}

// NewTCP makes a source of tcp_info of the flows' sockets on this node.
func NewTCP(self string, flows []wire.Flow, shift int) *TCP { return &TCP{} }

// Name names the source.
func (t *TCP) Name() string { return "tcp" }

// Sample reads the sockets found so far.
func (t *TCP) Sample(int64) ([]wire.Body, error) { return nil, errSkeleton }

// Edge finds and reads all sockets of the flows at an edge of the window, "open" or "close".
func (t *TCP) Edge(name string) ([]wire.Body, error) { return nil, errSkeleton }

// Close gives the netlink socket back.
func (t *TCP) Close() error { return nil }
