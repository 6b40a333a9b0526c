package medium

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"

	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// Port joins a node to its host: a TAP device (opened IFF_TAP|IFF_NO_PI,
// without IFF_VNET_HDR, so that it takes neither TSO nor checksum offload) and
// a radio-feedback socket. The caller keeps the descriptor and closes it after
// Run has returned.
type Port struct {
	FD             int
	FeedbackSocket string      // path; empty for none
	FeedbackMode   os.FileMode // 0 means 0600
	FeedbackUID    int         // owner of the socket; 0 leaves it to the caller's
}

// Options are what Live can do without.
type Options struct {
	// Epoch is model time 0; Locate is asked relative to it. Zero means the
	// time of NewLive.
	Epoch time.Time
	// NoFIFO leaves the process with the ordinary scheduler.
	NoFIFO bool
	// FrameLost sends a line to the feedback sockets for every lost data frame
	// of a flow: to the node that lost it and to the one that the flow starts
	// at. Off, it costs nothing.
	FrameLost bool
	// Log takes what Run has to say: SCHED_FIFO refused, a device gone.
	Log *slog.Logger
}

// Live drives a core by the monotonic clock between TAP devices. One thread
// runs all events. What is late is handed over at once, but what follows from
// it starts from its model time, so delays do not add up.
//
// While it runs, and unless Options.NoFIFO, every thread of the process is under
// SCHED_FIFO: see raiseThreads. A program that runs Live should therefore do no
// long computing beside it, and have GOMAXPROCS above the number of goroutines
// that compute at one time: the event thread needs a free one when it wakes.
type Live struct {
	core  *Core
	epoch time.Time
	opts  Options
	ports []livePort
	poll  *poller
	feeds []*feedbackServer // by node; nil for none
	late  lateness
	buf   []byte

	watchers atomic.Int32    // clients of all feedback sockets
	paused   int             // ports that wait for room
	homes    map[[4]byte]int // the node that each IPv4 address sent from first; for FrameLost
	stranded []stranded      // losses for lack of a route that no reroute has explained yet
	reroutes []reroute       // of late

	nextFeedback time.Duration

	mu      sync.Mutex
	running bool
	orders  []func() // to be run by the event thread
}

type livePort struct {
	fd     int
	paused bool // the queue is full: no wake-up for more frames
	gone   bool // the device is no more
}

const (
	// readBuffer holds the longest Ethernet frame of any MTU that fits 802.11,
	// and tells a longer one by its length.
	readBuffer = 4096
	// maxReads bounds how long one flooding node can hold the event thread.
	maxReads = 256
)

// NewLive makes a medium between ports, one for each node of the configuration
// and in its order, and opens the feedback sockets.
func NewLive(cfg Config, locate Locate, ports []Port, opts Options) (*Live, error) {
	if len(ports) != len(cfg.Nodes) {
		return nil, fmt.Errorf("start medium: %d ports for %d nodes", len(ports), len(cfg.Nodes))
	}
	epoch := time.Now()
	if !opts.Epoch.IsZero() {
		// Now carries the monotonic clock; a time read from elsewhere does not.
		epoch = epoch.Add(-time.Since(opts.Epoch))
	}
	if opts.Log == nil {
		opts.Log = slog.New(slog.DiscardHandler)
	}
	l := &Live{epoch: epoch, opts: opts, buf: make([]byte, readBuffer),
		feeds: make([]*feedbackServer, len(ports))}
	if opts.FrameLost {
		l.homes, cfg.FrameLost = map[[4]byte]int{}, l.tellLoss(cfg.FrameLost)
	}
	core, err := NewCore(cfg, locate, l)
	if err != nil {
		return nil, err
	}
	l.core = core
	if l.poll, err = newPoller(); err != nil {
		return nil, fmt.Errorf("start medium: %w", err)
	}
	if err := l.openPorts(ports); err != nil {
		return nil, errors.Join(err, l.close())
	}
	return l, nil
}

func (l *Live) openPorts(ports []Port) error {
	for i, p := range ports {
		if err := unix.SetNonblock(p.FD, true); err != nil {
			return fmt.Errorf("open port of %q: %w", l.core.cfg.Nodes[i].Name, err)
		}
		if err := l.poll.control(unix.EPOLL_CTL_ADD, p.FD, i, true); err != nil {
			return fmt.Errorf("open port of %q: %w", l.core.cfg.Nodes[i].Name, err)
		}
		l.ports = append(l.ports, livePort{fd: p.FD})
		if p.FeedbackSocket == "" {
			continue
		}
		feed, err := listenFeedback(p, func() (caps wire.Caps) {
			l.do(func() { caps = l.core.Caps(i) })
			return caps
		}, &l.watchers, l.poll.wake)
		if err != nil {
			return fmt.Errorf("open feedback of %q: %w", l.core.cfg.Nodes[i].Name, err)
		}
		l.feeds[i] = feed
	}
	return nil
}

func (l *Live) close() error {
	for _, f := range l.feeds {
		if f != nil {
			_ = f.listener.Close() // after Run it is closed already
		}
	}
	return l.poll.close()
}

// Run carries frames until the context ends. It returns nil then, and may be
// called once.
func (l *Live) Run(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	woken := make(chan struct{})
	context.AfterFunc(ctx, func() { l.poll.wake(); close(woken) })
	for _, f := range l.feeds {
		if f != nil {
			group.Go(func() error { return f.serve(ctx) })
		}
	}
	if !l.opts.NoFIFO {
		group.Go(func() error { return raiseThreads(ctx) })
		if err := boundWaking(); err != nil {
			l.opts.Log.Warn("a medium that is stuck would not be ended", "reason", err)
		}
		if awake, err := stayAwake(); err != nil {
			l.opts.Log.Warn("medium is less punctual than it could be", "reason", err)
		} else {
			defer awake.Close()
		}
	}
	group.Go(func() error {
		// Never unlocked: the thread has its own scheduling and ends with the
		// goroutine.
		runtime.LockOSThread()
		return l.loop(ctx)
	})
	err := group.Wait() // ends ctx, if it has not ended
	<-woken
	return errors.Join(err, l.close())
}

// loop is the event thread.
func (l *Live) loop(ctx context.Context) error {
	if err := prepareThread(!l.opts.NoFIFO); err != nil {
		l.opts.Log.Warn("medium is less punctual than it could be", "reason", err)
	}
	l.setRunning(true)
	defer l.setRunning(false)
	for ctx.Err() == nil {
		l.runOrders()
		l.core.Advance(l.now())
		if err := l.refill(); err != nil {
			return err
		}
		l.sendFeedback()
		ready, err := l.poll.wait(l.timeout())
		if err != nil {
			return err
		}
		if len(ready) == 0 {
			continue
		}
		l.core.Advance(l.now())
		for _, ev := range ready {
			if int(ev.Fd) == wakeID {
				l.poll.clearWake()
				continue
			}
			if err := l.drain(int(ev.Fd)); err != nil {
				return err
			}
		}
	}
	return nil
}

func (l *Live) now() time.Duration { return time.Since(l.epoch) }

// timeout is how long nothing will be due; below 0 for ever.
func (l *Live) timeout() time.Duration {
	next, any := l.core.NextEffect()
	if l.watched() && (!any || l.nextFeedback < next) {
		next, any = l.nextFeedback, true
	}
	if !any {
		return -1
	}
	return max(0, next-l.now())
}

// drain reads what a host has sent since the last look. A frame that finds the
// queue full is dropped and counted; when the first reads leave it full, the
// host's further frames wait in the device until there is room, when all but
// those that still fit are dropped: as if each had been dropped as it came, at
// one wake-up for all.
func (l *Live) drain(node int) error {
	p := &l.ports[node]
	for range maxReads {
		n, err := readFD(p.fd, l.buf)
		if errors.Is(err, unix.EAGAIN) {
			break
		}
		if err != nil || n == 0 {
			return l.portGone(node, err)
		}
		if l.homes != nil {
			l.learnHome(node, l.buf[:n])
		}
		l.core.Enqueue(node, l.buf[:n])
	}
	full := l.core.QueueRoom(node) == 0
	if full == p.paused {
		return nil
	}
	p.paused = full
	if full {
		l.paused++
	} else {
		l.paused--
	}
	return l.poll.control(unix.EPOLL_CTL_MOD, p.fd, node, !full)
}

// refill looks at the devices whose queue has room again.
func (l *Live) refill() error {
	if l.paused == 0 {
		return nil
	}
	for i := range l.ports {
		if p := &l.ports[i]; p.paused && !p.gone && l.core.QueueRoom(i) > 0 {
			if err := l.drain(i); err != nil {
				return err
			}
		}
	}
	return nil
}

// portGone leaves a device alone that cannot be read: deleted, or its namespace
// is. The others go on.
func (l *Live) portGone(node int, reason error) error {
	p := &l.ports[node]
	if p.gone {
		return nil
	}
	p.gone = true
	if p.paused {
		p.paused = false
		l.paused--
	}
	l.opts.Log.Warn("device gone", "node", l.core.cfg.Nodes[node].Name, "reason", reason)
	return l.poll.control(unix.EPOLL_CTL_DEL, p.fd, node, false)
}

// Deliver writes a frame to a node's device; the core calls it.
func (l *Live) Deliver(node int, at time.Duration, ethernet []byte) bool {
	l.late.add(at, l.now())
	p := &l.ports[node]
	return !p.gone && writeFD(p.fd, ethernet) == nil
}

// TxFailed tells a node's clients; the core calls it.
func (l *Live) TxFailed(node int, _ time.Duration, peer MAC) {
	if f := l.feeds[node]; f != nil && f.active.Load() > 0 {
		f.publish(wire.Feedback{TxFailed: &wire.TxFailed{Peer: peer.String()}})
	}
}

// watched reports whether any client wants feedback.
func (l *Live) watched() bool {
	return l.watchers.Load() > 0
}

// sendFeedback publishes stations and survey when they are due.
func (l *Live) sendFeedback() {
	now := l.core.Now()
	if now < l.nextFeedback || !l.watched() {
		return
	}
	// A grid of model time; turns that were slept through are not made up for.
	turn := int64(now / feedbackEvery)
	l.nextFeedback = time.Duration(turn+1) * feedbackEvery
	for i, f := range l.feeds {
		if f != nil && f.active.Load() > 0 {
			// by node, so that not all are told in one
			f.turn(turn+int64(i), func() []wire.Feedback { return l.report(i) })
		}
	}
}

// report is a node's view of its peers and its channel.
func (l *Live) report(node int) (lines []wire.Feedback) {
	for _, s := range l.core.Stations(node) {
		lines = append(lines, wire.Feedback{Station: &s})
	}
	survey := l.core.Survey(node)
	return append(lines, wire.Feedback{Survey: &survey})
}
