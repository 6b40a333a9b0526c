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

// maxLosses is how many lost frames are kept for one trial, the newest. A saturated
// queue loses thousands a second, all for one reason: the counters report the rest.
const maxLosses = 20_000

// lossLog keeps lost frames until they are asked for. The radio's thread
// writes it, and who watches the nodes' kernels.
type lossLog struct {
	bootAt0 time.Duration // boot clock at model time 0

	mu     sync.Mutex
	kept   []loss        // a ring, once it is full
	gone   int           // how many had to give way to newer ones
	goneAt time.Duration // the last of them was lost
}

func (l *lossLog) add(f medium.FrameLoss) {
	l.mu.Lock()
	defer l.mu.Unlock()
	x := loss{l.bootAt0 + f.At, f}
	if len(l.kept) < maxLosses {
		l.kept = append(l.kept, x)
		return
	}
	oldest := &l.kept[l.gone%maxLosses]
	l.gone, l.goneAt = l.gone+1, max(l.goneAt, oldest.boot)
	*oldest = x
}

// Forget drops the lost frames that were kept so far.
func (l *lossLog) Forget() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.kept, l.gone, l.goneAt = nil, 0, 0
}

// Losses are the frames lost in the interval. If not all of them were kept, untold
// is how many were not since Forget; otherwise it is 0.
func (l *lossLog) Losses(open, closed time.Duration) (out []loss, untold uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i := range l.kept {
		if x := l.kept[(l.gone+i)%len(l.kept)]; x.boot >= open && x.boot <= closed {
			out = append(out, x)
		}
	}
	if l.goneAt >= open {
		untold = uint64(l.gone)
	}
	return out, untold
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
