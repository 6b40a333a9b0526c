// Package routing watches the routing daemon of a trial: it asks the daemon in
// its own language what it knows and has done, follows its routes, and says
// when it has gone. It starts and stops none (node-agent/host does), and runs
// none itself (manetd does).
package routing

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"fieldmesh.dev/fieldmesh/node-agent/routing/batman"
	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// countEvery is how often a daemon's counts are recorded. A beat of one a second
// may come a little less than a second after the one before.
const (
	countEvery = time.Second
	earlyBeat  = 50 * time.Millisecond
)

// askTimeout bounds one question to a daemon: it is on this machine.
const askTimeout = 2 * time.Second

// answerWithin is how long a sample waits for a daemon's answer. One that stands
// still must not keep the node from sampling all the rest.
const answerWithin = 20 * time.Millisecond

// pendingMax bounds what is kept between two samples; a mesh of hundreds may
// change all its routes at once.
const pendingMax = 20_000

// Target names the daemon to watch.
type Target struct {
	Protocol  string // as the plan names it
	Socket    string // the daemon's own (host.DaemonSocket)
	Interface string
	BootNs    func() int64 // the clock of records
}

// driver speaks one daemon's language.
type driver interface {
	// follow reports what happens until ctx ends, or returns why it cannot any
	// more: the daemon has gone. It says when it has begun, so that no change after
	// that escapes it, and what the state was then, or nil where that is to be asked
	// for.
	follow(ctx context.Context, begun func(*state), told func(wire.Body)) error
	// ask reads the present state.
	ask(ctx context.Context) (state, error)
}

// state is what a daemon knows: its counts, and the routes that it has in the
// kernel.
type state struct {
	at     int64 // boot time, no later than the state; what had happened before is in it
	counts wire.RoutingCount
	routes []wire.RouteChange
}

// Watch is a daemon under watch; it is a measure.Source.
type Watch struct {
	driver driver
	run    context.Context // until Close
	stop   context.CancelFunc
	ended  sync.WaitGroup
	answer chan answer // to the question under way; nil without one

	mu      sync.Mutex
	since   int64                       // what happened before is in the state that it began with
	known   map[string]wire.RouteChange // what was told last, by destination; nil before the state
	pending []wire.Body
	lost    int
	counted int64 // boot time of the last counts
}

// Begin watches a daemon that is ready. gone is called, once, when it goes
// before Close. The routes that are there are the first bodies.
func Begin(ctx context.Context, t Target, gone func(error)) (*Watch, error) {
	d, err := newDriver(t)
	if err != nil {
		return nil, err
	}
	return begin(ctx, t, d, gone)
}

// begin follows the daemon first and then asks for its state, so that no change
// falls between the two.
func begin(ctx context.Context, t Target, d driver, gone func(error)) (*Watch, error) {
	run, stop := context.WithCancel(context.Background())
	w := &Watch{driver: d, run: run, stop: stop}
	begun, ended := make(chan *state, 1), make(chan error, 1)
	w.ended.Go(func() {
		ended <- d.follow(run, func(s *state) { begun <- s }, w.tell)
		close(begun)
	})
	first, err := w.first(ctx, begun, ended)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("read state of routing daemon %s: %w", t.Protocol, err), w.Close())
	}
	w.present(first)
	w.ended.Go(func() {
		err := <-ended
		switch {
		case run.Err() != nil:
		case errors.Is(err, errRoutes):
			gone(fmt.Errorf("the routes of routing daemon %s are not followed any more: %w", t.Protocol, err))
		default:
			gone(fmt.Errorf("routing daemon %s has gone: %w", t.Protocol, errors.Join(err)))
		}
	})
	return w, nil
}

// first is the daemon's state once its changes are followed.
func (w *Watch) first(ctx context.Context, begun <-chan *state, ended <-chan error) (state, error) {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	select {
	case s, ok := <-begun:
		if !ok {
			return state{}, <-ended
		}
		if s != nil {
			return *s, nil
		}
	case <-ctx.Done():
		return state{}, ctx.Err()
	}
	return w.driver.ask(ctx)
}

// present tells the routes that are there, as of the state's moment, and then what
// was told since and is not among them.
func (w *Watch) present(first state) {
	w.mu.Lock()
	defer w.mu.Unlock()
	meanwhile := w.pending
	w.pending, w.since, w.known = nil, first.at, map[string]wire.RouteChange{}
	for _, r := range first.routes {
		r.Action, r.AtBootNs = "present", first.at
		w.known[r.Destination] = r
		w.put(&r)
	}
	for _, b := range meanwhile {
		w.take(b)
	}
}

// newDriver knows which language a protocol's daemon speaks.
func newDriver(t Target) (driver, error) {
	switch t.Protocol {
	case "none", "static":
		return nil, fmt.Errorf("routing %s has no daemon", t.Protocol)
	case "babeld":
		return &babeld{Target: t}, nil
	case batman.Protocol:
		return &batmanAdv{Target: t}, nil
	case "olsrd":
		return &olsrd{Target: t}, nil
	}
	return &own{Target: t}, nil
}

func (w *Watch) tell(b wire.Body) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.take(b)
}

// take keeps a body unless it says again what was told.
func (w *Watch) take(b wire.Body) {
	if c, ok := b.(*wire.RouteChange); ok && w.known != nil && !w.news(c) {
		return
	}
	w.put(b)
}

// news reports whether a change of routes is one beside what was told last, and
// remembers it.
func (w *Watch) news(c *wire.RouteChange) bool {
	was, there := w.known[c.Destination]
	switch {
	case c.AtBootNs < w.since:
		return false
	case c.Action == "delete":
		delete(w.known, c.Destination)
		return there
	case there && slices.Equal(was.NextHops, c.NextHops) && equal(was.Hops, c.Hops) && equal(was.Metric, c.Metric):
		return false
	}
	w.known[c.Destination] = *c
	return true
}

func equal[T comparable](a, b *T) bool { return a == b || a != nil && b != nil && *a == *b }

func (w *Watch) put(b wire.Body) {
	if len(w.pending) >= pendingMax {
		w.lost++
		return
	}
	w.pending = append(w.pending, b)
}

// Name names the watch as a source of samples.
func (w *Watch) Name() string { return "routing" }

// Sample gives what happened since the last one, and once a second the
// daemon's counts, as soon as it has told them.
func (w *Watch) Sample(tBootNs int64) ([]wire.Body, error) {
	w.mu.Lock()
	out := w.pending
	lost := w.lost
	w.pending, w.lost = nil, 0
	w.mu.Unlock()
	if lost > 0 {
		out = append(out, &wire.Event{Level: "warning", Text: fmt.Sprintf("%d changes of routes came too fast to be "+
			"recorded", lost)})
	}
	if w.answer == nil && w.counted != 0 && tBootNs-w.counted < (countEvery-earlyBeat).Nanoseconds() {
		return out, nil
	}
	if w.answer == nil {
		w.counted = tBootNs
		w.ask()
	}
	select {
	case a := <-w.answer:
		w.answer = nil
		if a.err != nil {
			return out, fmt.Errorf("read state of the routing daemon: %w", a.err)
		}
		return append(out, &a.state.counts), nil
	case <-time.After(answerWithin):
		return out, nil // the next sample has it
	}
}

// answer is what a daemon said, or why it did not.
type answer struct {
	state state
	err   error
}

// ask puts a question to the daemon.
func (w *Watch) ask() {
	to := make(chan answer, 1)
	w.answer = to
	w.ended.Go(func() {
		ctx, cancel := context.WithTimeout(w.run, askTimeout)
		defer cancel()
		s, err := w.driver.ask(ctx)
		to <- answer{s, err}
	})
}

// Close ends the watch; the daemon goes on.
func (w *Watch) Close() error {
	w.stop()
	w.ended.Wait()
	return nil
}
