// Package delay sends datagrams at fixed times, and stamps each at both ends.
// Those of kind delay are answered, those of kind cbr are not. It reckons no
// delays: what was seen of each datagram is a record.
//
// An end counts only what bears its flow's key of this attempt and comes from
// the other end's address and port. Whoever repeats a datagram makes a copy,
// which is counted apart and not answered.
package delay

import (
	"cmp"
	"context"
	"errors"
	"math"
	"net/netip"
	"sync"
	"time"

	"fieldmesh.dev/fieldmesh/internal/pause"
	"fieldmesh.dev/fieldmesh/node-agent/clock"
	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// End is one end of a flow.
type End struct {
	Flow      wire.Flow
	Key       []byte // see Key
	Own, Peer netip.AddrPort
	Clock     clock.Clock
	// Emit takes a record, in their order; it may take its time, and an error of its ends the flow.
	Emit func(tBootNs int64, b wire.Body) error
	// Bound is the interface that the socket keeps to; empty: packets go as the routes have it.
	Bound string
}

// tally is what an end counts, and its records.
type tally struct {
	queue
	end wire.DelayEnd
}

// answered reports whether the flow's receiver answers.
func (e End) answered() bool { return e.Flow.Kind == wire.KindDelay }

// Receiver is the end to which a flow's datagrams come. Of kind delay it answers them.
type Receiver struct {
	End
	socket *socket

	// those of the goroutine that serves, until it is done
	tally
	seen map[uint32]bool
}

// Receive takes a flow's datagrams until Close.
func Receive(ctx context.Context, e End) (*Receiver, error) {
	r, err := newReceiver(ctx, e)
	if err == nil {
		r.socket.start(r.arrived, nil)
	}
	return r, err
}

// newReceiver opens the end of a flow to which datagrams come.
func newReceiver(ctx context.Context, e End) (*Receiver, error) {
	s, err := listen(ctx, e, false)
	if err != nil {
		return nil, err
	}
	side := wire.DelayReceiver
	if e.answered() {
		side = wire.DelayResponder
	}
	return &Receiver{End: e, socket: s, seen: map[uint32]bool{},
		tally: tally{queue: queue{emit: e.Emit}, end: wire.DelayEnd{Flow: e.Flow.Name, Side: side}}}, nil
}

func (r *Receiver) arrived(b []byte, from netip.AddrPort, at stamp) {
	d, ok := open(r.Key, b, request)
	switch {
	case !ok || from != r.Peer || uint64(d.number) >= uint64(r.Flow.Datagrams()):
		r.end.Foreign++
		return
	case r.seen[d.number]:
		r.end.Duplicates++
		return
	}
	r.seen[d.number] = true
	r.end.Received++
	body := &wire.Delay{Flow: r.Flow.Name, Side: r.end.Side, Datagram: d.number, ReceivedBootNs: &at.bootNs,
		ReceivedStamp: whose(at.byKernel)}
	if r.answered() {
		back := datagram{kind: answer, number: d.number, byKernel: at.byKernel, receivedNs: at.bootNs,
			handedNs: r.Clock.BootNs()}
		body.HandedBootNs = &back.handedNs
		if body.Refused = r.socket.send(back.seal(r.Key, len(b)), r.Peer); body.Refused == "" {
			r.end.Sent++
		}
	}
	r.record(at.bootNs, body)
}

func whose(byKernel bool) string {
	if byKernel {
		return wire.StampKernel
	}
	return wire.StampProgram
}

// Close ends the receiver and records what it has counted.
func (r *Receiver) Close() error {
	err := r.socket.close()
	if err == nil {
		r.record(r.Clock.BootNs(), &r.end)
	}
	return errors.Join(err, r.flush())
}

// Sender sends a flow's datagrams.
type Sender struct {
	End
	socket *socket

	mu sync.Mutex // guards what follows
	tally
	sent map[uint32]*sent
	due  []uint32      // of those in sent whose record is due, in the order of their sending
	open int           // of those in sent, without an answer
	all  chan struct{} // closed when the last was sent and none is open
	over bool          // the last was sent
}

// sent is a datagram that was handed to the kernel.
type sent struct {
	dueNs, handedNs int64
	queuedNs        *int64
	refused         string
	answered        bool
	lost            bool // it was recorded so
}

// NewSender opens the end of a flow that sends. Run closes it; without Run, Close does.
func NewSender(ctx context.Context, e End) (*Sender, error) {
	s, err := listen(ctx, e, e.answered())
	if err != nil {
		return nil, err
	}
	return &Sender{End: e, socket: s, sent: map[uint32]*sent{}, all: make(chan struct{}),
		tally: tally{queue: queue{emit: e.Emit}, end: wire.DelayEnd{Flow: e.Flow.Name, Side: wire.DelaySender}}}, nil
}

// Close closes a sender that was not run.
func (s *Sender) Close() error { return s.socket.close() }

// Run sends each datagram at its time, of a window that opens at openNs, and
// waits for the answers, where there are any. Datagrams whose time has passed when
// the next one's comes are not sent. One without an answer is recorded when the time
// to wait for it is over, so that whatever ends the sender, all before is known. The
// end of ctx ends it: then it has not recorded all, and says so by recording no end.
// When it returns, all is emitted.
func (s *Sender) Run(ctx context.Context, openNs int64) error {
	err := s.run(ctx, openNs)
	return cmp.Or(s.flush(), err)
}

func (s *Sender) run(ctx context.Context, openNs int64) error {
	if s.answered() {
		s.socket.start(s.arrived, s.queued)
	}
	err := s.sendAll(ctx, openNs)
	if err == nil && s.answered() {
		err = s.await(ctx)
	}
	err = errors.Join(err, s.socket.close())
	if err != nil {
		s.giveUp(s.Clock.BootNs() - wire.DelayGrace.Nanoseconds())
		return err
	}
	s.giveUp(math.MaxInt64)
	s.record(s.Clock.BootNs(), &s.end)
	return nil
}

// giveUp records what was sent by a time and was not answered.
func (s *Sender) giveUp(handedNs int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for ; len(s.due) > 0; s.due = s.due[1:] {
		k := s.sent[s.due[0]]
		if k.handedNs > handedNs {
			return
		}
		if k.lost = !k.answered; k.lost {
			s.record(k.handedNs, s.recordOf(s.due[0], k))
		}
	}
}

func (s *Sender) sendAll(ctx context.Context, openNs int64) error {
	for n := range s.Flow.Datagrams() {
		due := s.Flow.DatagramDueNs(openNs, n)
		if err := pause.For(ctx, time.Duration(due-s.Clock.BootNs())); err != nil {
			return err
		}
		if now := s.Clock.BootNs(); now >= s.Flow.DatagramDueNs(openNs, n+1) {
			if !s.answered() {
				s.record(now, &wire.Delay{Flow: s.Flow.Name, Side: s.end.Side, Datagram: uint32(n), DueBootNs: &due})
			}
			continue
		}
		s.giveUp(s.Clock.BootNs() - wire.DelayGrace.Nanoseconds())
		if err := s.one(uint32(n), due); err != nil {
			return err
		}
	}
	return nil
}

// one sends a datagram. Who answers at once must find it in the list; one that
// nobody answers is recorded, and forgotten.
func (s *Sender) one(n uint32, dueNs int64) error {
	b := datagram{kind: request, number: n}.seal(s.Key, *s.Flow.PayloadBytes)
	k := &sent{dueNs: dueNs}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.answered() {
		s.sent[n] = k
		s.due = append(s.due, n)
		s.open++
	}
	k.handedNs = s.Clock.BootNs()
	if k.refused = s.socket.send(b, s.Peer); k.refused == "" {
		s.end.Sent++
	}
	if !s.answered() {
		s.record(k.handedNs, s.recordOf(n, k))
	}
	return s.failed()
}

// await waits until every datagram is answered, or the time to wait for the last
// one's answer is over.
func (s *Sender) await(ctx context.Context) error {
	s.mu.Lock()
	s.over = true
	if s.open == 0 {
		close(s.all)
	}
	s.mu.Unlock()
	grace := time.NewTimer(wire.DelayGrace)
	defer grace.Stop()
	select {
	case <-s.all:
	case <-grace.C:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	return nil
}

// queued takes the kernel's stamp of a datagram on its way out. The frame has
// headers before it.
func (s *Sender) queued(frame []byte, bootNs int64) {
	size := *s.Flow.PayloadBytes
	if len(frame) < size {
		return
	}
	d, ok := open(s.Key, frame[len(frame)-size:], request)
	if !ok {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if k := s.sent[d.number]; k != nil {
		k.queuedNs = &bootNs
	}
}

func (s *Sender) arrived(b []byte, from netip.AddrPort, at stamp) {
	d, ok := open(s.Key, b, answer)
	s.mu.Lock()
	defer s.mu.Unlock()
	k := s.sent[d.number]
	switch {
	case !ok || from != s.Peer || k == nil:
		s.end.Foreign++
		return
	case k.answered:
		s.end.Duplicates++
		return
	}
	k.answered = true
	s.end.Received++
	if s.open--; s.open == 0 && s.over {
		close(s.all)
	}
	if k.lost {
		return
	}
	body := s.recordOf(d.number, k)
	body.ReceivedBootNs, body.ReceivedStamp = &at.bootNs, whose(at.byKernel)
	body.PeerReceivedBootNs, body.PeerReceivedStamp = &d.receivedNs, whose(d.byKernel)
	body.PeerHandedBootNs = &d.handedNs
	s.record(k.handedNs, body)
}

func (s *Sender) recordOf(n uint32, k *sent) *wire.Delay {
	return &wire.Delay{Flow: s.Flow.Name, Side: wire.DelaySender, Datagram: n, DueBootNs: &k.dueNs,
		HandedBootNs: &k.handedNs, QueuedBootNs: k.queuedNs, Refused: k.refused}
}
