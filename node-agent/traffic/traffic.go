// Package traffic runs iperf3 with time-outs of its own around it, and keeps
// what it printed however it ended. It measures nothing: throughput comes from
// the receiver's kernel.
package traffic

import (
	"context"
	"errors"
	"net/netip"
	"time"

	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// Process is one iperf3 that was started.
type Process struct{}

// Shift is what an attempt (1-based) adds to the client ports of every flow, so
// that no attempt meets the TIME_WAIT sockets of the one before.
func Shift(attempt int) int { return (max(attempt, 1) - 1) % 32 * 128 }

// Server starts iperf3's server for one test and returns when it listens.
func Server(ctx context.Context, bin string, f wire.Flow, bind netip.Addr, shift int) (*Process, error) {
	return nil, errors.New("not built yet")
}

// Client starts iperf3's client.
func Client(ctx context.Context, bin string, f wire.Flow, to netip.Addr, congestion string, shift int, connectTimeout time.Duration) (*Process, error) {
	return nil, errors.New("not built yet")
}

// Pid is the process's id.
func (p *Process) Pid() int { return 0 }

// Stop ends the process early; Wait then tells the reason as Killed.
func (p *Process) Stop(reason string) {}

// Done is closed when the process has ended.
func (p *Process) Done() <-chan struct{} { return nil }

// Wait returns when the process has ended, which it does within its own time-outs.
func (p *Process) Wait() wire.Iperf3 { return wire.Iperf3{} }
