package field

import (
	"context"
	"sync"
	"time"

	"fieldmesh.dev/fieldmesh/protocols/wire"
	"fieldmesh.dev/fieldmesh/rehearsal/medium"
)

// loss is a lost frame, dated by the boot clock.
type loss struct {
	boot time.Duration
	medium.FrameLoss
}

// maxLosses is how many lost frames are kept for one trial. A saturated queue
// loses thousands a second, all for one reason: the counters report the rest.
const maxLosses = 20_000

// lossLog keeps lost frames until they are asked for. The radio's thread
// writes it, and who watches the nodes' kernels.
type lossLog struct {
	bootAt0 time.Duration // boot clock at model time 0

	mu     sync.Mutex
	kept   []loss
	untold uint64
}

func (l *lossLog) add(f medium.FrameLoss) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.kept) == maxLosses {
		l.untold++
		return
	}
	l.kept = append(l.kept, loss{l.bootAt0 + f.At, f})
}

// begin forgets what was lost before.
func (l *lossLog) begin() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.kept, l.untold = nil, 0
}

func (l *lossLog) between(open, closed time.Duration) (out []loss, untold uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, x := range l.kept {
		if x.boot >= open && x.boot <= closed {
			out = append(out, x)
		}
	}
	return out, l.untold
}

// count notes the counters as a trial begins.
func (a *air) count(nodes int) {
	a.before = make([]medium.Counters, nodes)
	for i := range a.before {
		a.before[i] = a.channel.Counters(i)
	}
	a.channel.Forget()
}

// monitored is what the radio did with frames: each loss inside the window,
// and every node's counters since the nodes were placed.
func (f *Field) monitored(ctx context.Context, a *air, open, closed time.Duration) ([]wire.Record, error) {
	if err := f.settleHosts(ctx); err != nil {
		return nil, err
	}
	hosts, err := f.hosts.sinceBegin()
	if err != nil {
		return nil, err
	}
	losses, untold := a.channel.Losses(open, closed)
	var out []wire.Record
	for _, x := range losses {
		b := &wire.Loss{Of: f.nodes[x.Node].Name, Flow: x.Flow, Seq: x.Seq, Cause: x.Cause.String(),
			RetryLimit: x.RetryLimit}
		if x.Payload >= 0 {
			b.PayloadBytes = new(uint64(x.Payload))
		}
		if x.Peer >= 0 {
			b.Peer = f.nodes[x.Peer].Name
		}
		out = append(out, wire.Record{Header: wire.Header{TBootNs: int64(x.boot)}, Body: b})
	}
	sent := a.channel.Sent(open, closed)
	for i, n := range f.nodes {
		c := difference(a.channel.Counters(i), a.before[i])
		c.Lost[medium.NoRoute], c.Lost[medium.NoNeighbour] = hosts[i][medium.NoRoute], hosts[i][medium.NoNeighbour]
		if c.Enqueued+c.Delivered+c.Attempts+c.Lost.Total() == 0 {
			continue // a silent node says nothing
		}
		b := &wire.MediumCount{
			Of: n.Name, Enqueued: c.Enqueued, Delivered: c.Delivered, Duplicate: c.Duplicate, Attempts: c.Attempts,
			Retries: c.Retries, TxFailed: c.TxFailed,
			Lost: byCause(c.Lost), AttemptsFailed: byCause(c.AttemptsFailed), LossesUntold: untold,
		}
		if sent != nil {
			b.FramesPerS = sent[i]
		}
		out = append(out, wire.Record{Header: wire.Header{TBootNs: int64(closed)}, Body: b})
	}
	return out, nil
}

func difference(now, before medium.Counters) medium.Counters {
	now.Enqueued -= before.Enqueued
	now.Delivered -= before.Delivered
	now.Duplicate -= before.Duplicate
	now.Attempts -= before.Attempts
	now.Retries -= before.Retries
	now.TxFailed -= before.TxFailed
	for i := range now.Lost {
		now.Lost[i] -= before.Lost[i]
		now.AttemptsFailed[i] -= before.AttemptsFailed[i]
	}
	return now
}

func byCause(c medium.CauseCounts) map[string]uint64 {
	out := map[string]uint64{}
	for i, n := range c {
		if cause := medium.Cause(i); n > 0 && cause != medium.NotLost {
			out[cause.String()] = n
		}
	}
	return out
}
