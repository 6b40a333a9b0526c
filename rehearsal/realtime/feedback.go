package realtime

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"fieldmesh.dev/fieldmesh/internal/unixsocket"
	"fieldmesh.dev/fieldmesh/protocols/wire"
)

const (
	feedbackEvery = time.Second / wire.FeedbackHz
	// clientQueue is about two seconds of a node with a dozen peers; what a
	// reader that is slower than that misses is counted in Dropped.
	clientQueue      = 256
	feedbackClients  = 16       // at a time
	writtenAtOnce    = 16 << 10 // bytes, and the rest of a line
	feedbackDeadline = 5 * time.Second
)

// feedbackServer is one node's radio-feedback socket. The event thread hands
// lines over with publish, which never waits.
type feedbackServer struct {
	listener *net.UnixListener
	caps     func() wire.Caps
	active   atomic.Int32
	all      *atomic.Int32 // clients of all the medium's sockets
	onWish   func()        // a client came, or wishes for more or less: the event thread may be asleep

	mu      sync.Mutex
	clients map[*feedbackClient]struct{}
	readers sync.WaitGroup
}

type feedbackClient struct {
	conn    *net.UnixConn
	lines   chan wire.Feedback
	turns   atomic.Int64 // between two with stations and survey; 0: none has them
	dropped atomic.Uint64
}

// listenFeedback opens the socket that a port names; a stale one is replaced.
func listenFeedback(p Port, caps func() wire.Caps, all *atomic.Int32, onWish func()) (*feedbackServer, error) {
	ln, err := unixsocket.Listen(p.FeedbackSocket, 0o600, p.FeedbackUID)
	if err != nil {
		return nil, err
	}
	return &feedbackServer{listener: ln, caps: caps, all: all, onWish: onWish,
		clients: map[*feedbackClient]struct{}{}}, nil
}

// serve accepts clients until the context ends, and then waits for theirs to.
func (s *feedbackServer) serve(ctx context.Context) error {
	defer s.readers.Wait()
	return unixsocket.Serve(ctx, s.listener, feedbackClients, func(c *net.UnixConn) { _ = c.Close() }, s.serveClient)
}

// serveClient writes lines to one client until it goes. A client that takes no
// line for feedbackDeadline is let go.
func (s *feedbackServer) serveClient(ctx context.Context, conn *net.UnixConn) {
	c := &feedbackClient{conn: conn, lines: make(chan wire.Feedback, clientQueue)}
	c.turns.Store(1)
	caps := s.caps()
	c.lines <- wire.Feedback{Caps: &caps}
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	defer stop()
	gone := make(chan struct{})
	s.readers.Go(func() {
		wire.ReadWishes(conn, func(w wire.FeedbackWish) {
			c.turns.Store(w.Turns())
			s.onWish()
		})
		close(gone)
	})
	s.add(c)
	defer s.remove(c)
	s.onWish()
	unixsocket.Relay(ctx, gone, c.lines, c.write) // the counts go with a client that is gone or stuck
}

// write sends a line and those that wait behind it at once: each write wakes the
// reader, and a tick of the feedback has a line for every peer.
func (c *feedbackClient) write(line wire.Feedback) error {
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	for {
		line.Dropped = c.dropped.Load()
		if err := encoder.Encode(line); err != nil {
			return fmt.Errorf("encode feedback: %w", err)
		}
		if len(c.lines) == 0 || text.Len() >= writtenAtOnce {
			break
		}
		line = <-c.lines // there is one: nobody else takes them
	}
	if err := c.conn.SetWriteDeadline(time.Now().Add(feedbackDeadline)); err != nil {
		return err
	}
	_, err := c.conn.Write(text.Bytes())
	return err
}

func (s *feedbackServer) add(c *feedbackClient) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.clients[c] = struct{}{}
	s.active.Add(1)
	s.all.Add(1)
}

func (s *feedbackServer) remove(c *feedbackClient) {
	_ = c.conn.Close()
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.clients, c)
	s.active.Add(-1)
	s.all.Add(-1)
}

// publish hands an event to every client.
func (s *feedbackServer) publish(line wire.Feedback) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for c := range s.clients {
		c.take(line)
	}
}

// turn hands the lines of a turn, which are made when there is a need, to the
// clients that wish to be told in it.
func (s *feedbackServer) turn(number int64, lines func() []wire.Feedback) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var made []wire.Feedback
	for c := range s.clients {
		if every := c.turns.Load(); every == 0 || number%every != 0 {
			continue
		}
		if made == nil {
			made = lines()
		}
		for _, line := range made {
			c.take(line)
		}
	}
}

// next returns the first turn after this one in which a client wishes to be told
// something; false: none does.
func (s *feedbackServer) next(number int64) (first int64, any bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for c := range s.clients {
		every := c.turns.Load()
		if every == 0 {
			continue
		}
		if due := (number/every + 1) * every; !any || due < first {
			first, any = due, true
		}
	}
	return first, any
}

// take keeps a line to be written when there is room. Lost frames come in
// floods, such as thousands a second from a full queue: they take half of the
// room at most, and the other lines keep theirs.
func (c *feedbackClient) take(line wire.Feedback) {
	if line.FrameLost != nil && len(c.lines) >= clientQueue/2 {
		c.dropped.Add(1)
		return
	}
	select {
	case c.lines <- line:
	default:
		c.dropped.Add(1)
	}
}
