package radio

import (
	"context"
	"encoding/json"
	"errors"
	"net"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"fieldmesh.dev/fieldmesh/internal/pause"
	"fieldmesh.dev/fieldmesh/internal/unixsocket"
	"fieldmesh.dev/fieldmesh/node-agent/nl80211"
	"fieldmesh.dev/fieldmesh/protocols/wire"
)

const (
	// lookEvery is how often a real radio's stations are looked at for frames
	// that it gave up: no driver reports a single one by itself.
	lookEvery = 50 * time.Millisecond
	// tellEvery is the feedback contract's turn, ten of which are a second, in looks.
	tellEvery = 2
	// queueLines bounds what waits for a reader.
	queueLines = 256
	// readersMost is how many there are at a time.
	readersMost = 16
)

// Server serves the radio-feedback socket of a real radio: the same lines as
// an emulated medium's, as far as nl80211 tells them.
type Server struct {
	kernel *Kernel
	watch  func(ctx context.Context, f func(nl80211.Event)) error

	mu      sync.Mutex
	readers map[*feedbackReader]bool
	failed  map[string]uint64 // frames given up so far, by station
}

type feedbackReader struct {
	lines   chan wire.Feedback
	turns   int64 // between two with stations and survey; 0: none has them
	dropped uint64
}

// NewServer makes a server for one interface.
func NewServer(iface string) *Server {
	return &Server{kernel: NewKernel(iface), watch: watchKernel, readers: map[*feedbackReader]bool{},
		failed: map[string]uint64{}}
}

func watchKernel(ctx context.Context, f func(nl80211.Event)) (err error) {
	c, err := nl80211.Open()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	return c.Watch(ctx, f)
}

// Serve listens on a unix socket, which only this process's user may connect
// to, until ctx ends.
func (s *Server) Serve(ctx context.Context, socket string) error {
	l, err := unixsocket.Listen(socket, 0o600, 0)
	if err != nil {
		return err
	}
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return s.look(ctx) })
	g.Go(func() error { return s.hear(ctx) })
	g.Go(func() error {
		return unixsocket.Serve(ctx, l, readersMost, func(c *net.UnixConn) { _ = c.Close() }, s.feed)
	})
	if err := g.Wait(); ctx.Err() == nil || !errors.Is(err, context.Canceled) {
		return err
	}
	return nil
}

// hear passes the radio's own events on. A radio that is not there yet, or
// goes, is waited for.
func (s *Server) hear(ctx context.Context) error {
	for ctx.Err() == nil {
		_ = s.watch(ctx, func(e nl80211.Event) { // whatever ended it, it is begun again
			switch e.Kind {
			case nl80211.NewStation, nl80211.GoneStation:
				s.publish(wire.Feedback{Neighbour: &wire.Neighbour{Peer: e.MAC, State: e.Kind}}, every)
			case nl80211.Lost:
				s.publish(wire.Feedback{TxFailed: &wire.TxFailed{Peer: e.MAC}}, every)
			}
		})
		_ = pause.For(ctx, lastRetry)
	}
	return ctx.Err()
}

// look asks for the stations while anybody reads.
func (s *Server) look(ctx context.Context) error {
	ticker := time.NewTicker(lookEvery)
	defer ticker.Stop()
	started := time.Now()
	for n := int64(0); ; n++ {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-ticker.C:
		}
		if !s.anybody() {
			continue
		}
		bodies, err := s.kernel.Sample(time.Since(started).Nanoseconds() + quirksEvery.Nanoseconds())
		if err != nil {
			continue // the radio is gone; it may come back
		}
		for _, b := range bodies {
			s.tell(b, n)
		}
	}
}

func (s *Server) anybody() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.readers) > 0
}

// tell publishes one sample, and first that frames were given up since the last.
func (s *Server) tell(b wire.Body, look int64) {
	wished := func(r *feedbackReader) bool {
		return r.turns > 0 && look%(tellEvery*r.turns) == 0
	}
	switch b := b.(type) {
	case *wire.Station:
		if b.TxFailed != nil {
			if last, known := s.failed[b.Peer]; known && *b.TxFailed > last {
				s.publish(wire.Feedback{TxFailed: &wire.TxFailed{Peer: b.Peer}}, every)
			}
			s.failed[b.Peer] = *b.TxFailed
		}
		s.publish(wire.Feedback{Station: b}, wished)
	case *wire.Survey:
		s.publish(wire.Feedback{Survey: b}, wished)
	}
}

func every(*feedbackReader) bool { return true }

// publish gives a line to every reader that is to have it and has room for it.
func (s *Server) publish(line wire.Feedback, to func(*feedbackReader) bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for r := range s.readers {
		if !to(r) {
			continue
		}
		line.Dropped = r.dropped
		select {
		case r.lines <- line:
		default:
			r.dropped++
		}
	}
}

// feed writes to one reader until it hangs up or ctx ends.
func (s *Server) feed(ctx context.Context, conn *net.UnixConn) {
	r := &feedbackReader{lines: make(chan wire.Feedback, queueLines), turns: 1}
	s.mu.Lock()
	s.readers[r] = true
	s.mu.Unlock()
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		wire.ReadWishes(conn, func(w wire.FeedbackWish) {
			s.mu.Lock()
			defer s.mu.Unlock()
			r.turns = w.Turns()
		})
	}()
	defer func() {
		s.mu.Lock()
		delete(s.readers, r)
		s.mu.Unlock()
		_ = conn.Close()
		<-gone
	}()
	encoder := json.NewEncoder(conn)
	if caps, err := s.kernel.Caps(); err == nil && caps != nil && encoder.Encode(wire.Feedback{Caps: caps}) != nil {
		return
	}
	for {
		select {
		case line := <-r.lines:
			if encoder.Encode(line) != nil {
				return
			}
		case <-gone:
			return
		case <-ctx.Done():
			return
		}
	}
}
