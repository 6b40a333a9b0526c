package realtime

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"

	"fieldmesh.dev/fieldmesh/protocols/wire"
	"fieldmesh.dev/fieldmesh/rehearsal/hwsim"
	"fieldmesh.dev/fieldmesh/rehearsal/medium"
)

// Port joins a node to its host: a TAP device (opened IFF_TAP|IFF_NO_PI,
// without IFF_VNET_HDR, so that it takes neither TSO nor checksum offload) and
// a radio-feedback socket. The caller keeps the descriptor and closes it after
// Run has returned.
type Port struct {
	FD             int
	FeedbackSocket string // path; empty for none
	FeedbackUID    int    // owner of the socket; 0 leaves it to the caller's
}

// Options are what a Channel can do without.
type Options struct {
	// Epoch is model time 0; Locate is asked relative to it. Zero means the
	// time of New.
	Epoch time.Time
	// NoFIFO leaves the process with the ordinary scheduler.
	NoFIFO bool
	// VirtualTime says that the clock stands still while anything runs: there is no
	// sleep of processors to be kept from, and no other processor: GOMAXPROCS must be
	// above 1, because the event thread keeps its P in short waits. Threads that start
	// programs must have OrdinaryChildren then.
	VirtualTime bool
	// Air is the end of the nodes' own 802.11 radios, which stand in the place of TAP
	// devices: ports are nil then, and there is no feedback. The caller closes it
	// after Run has returned.
	Air *hwsim.Air
	// FrameLost sends a line to the feedback sockets for every lost data frame
	// of a flow: to the node that lost it and to the one that the flow starts
	// at. Off, it costs nothing.
	FrameLost bool
	// Log takes what Run has to say: SCHED_FIFO refused, a device gone.
	Log *slog.Logger
}

// Channel drives a core by the monotonic clock between TAP devices. One thread
// runs all events. What is late is handed over at once, but what follows from
// it starts from its model time, so delays do not add up.
//
// While it runs, and unless Options.NoFIFO, every thread of the process is under
// SCHED_FIFO: see raiseThreads. A program that runs one should therefore do no
// long computing beside it, and have GOMAXPROCS above the number of goroutines
// that compute at one time: the event thread needs a free one when it wakes.
type Channel struct {
	core  *medium.Core
	names []string // of the nodes
	epoch time.Time
	opts  Options
	ports []livePort
	air   *airPort // in the place of ports; nil: there are ports
	poll  *poller
	feeds []*feedbackServer // by node; nil for none
	late  lateBins
	buf   []byte

	watchers atomic.Int32       // clients of all feedback sockets
	wishes   atomic.Int64       // of those clients so far: what they are told next changes with each
	paused   int                // ports that wait for room
	homes    map[[4]byte]int    // the node that each IPv4 address sent from first; for FrameLost
	ways     map[[8]byte]string // the last source route of DSR between two addresses, as their flow's home sent
	stranded []stranded         // losses for lack of a route that no reroute has explained yet
	reroutes []reroute          // of late

	nextFeedback time.Duration // never: nobody wishes for any
	minded       int64         // wishes that it minds

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

// New makes a channel between ports, one for each node of the configuration
// and in its order, and opens the feedback sockets.
func New(cfg medium.Config, locate medium.Locate, ports []Port, opts Options) (*Channel, error) {
	if opts.Air != nil {
		cfg.MPDUs, ports = true, nil
	} else if len(ports) != len(cfg.Nodes) {
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
	var err error
	c := &Channel{epoch: epoch, opts: opts, buf: make([]byte, readBuffer),
		feeds: make([]*feedbackServer, len(cfg.Nodes))}
	for _, n := range cfg.Nodes {
		c.names = append(c.names, n.Name)
	}
	if opts.FrameLost {
		c.homes, c.ways, cfg.FrameLost = map[[4]byte]int{}, map[[8]byte]string{}, c.tellLoss(cfg.FrameLost)
	}
	if opts.Air != nil {
		if c.air, err = newAirPort(opts.Air, cfg); err != nil {
			return nil, err
		}
	}
	core, err := medium.NewCore(cfg, locate, c)
	if err != nil {
		return nil, err
	}
	c.core = core
	if c.poll, err = newPoller(); err != nil {
		return nil, fmt.Errorf("start medium: %w", err)
	}
	if opts.VirtualTime {
		c.poll.parking, err = newParking()
	}
	if err == nil {
		err = c.openPorts(ports)
	}
	if err != nil {
		return nil, errors.Join(err, c.close())
	}
	return c, nil
}

func (c *Channel) openPorts(ports []Port) error {
	if c.air != nil {
		return c.poll.control(unix.EPOLL_CTL_ADD, c.air.FD(), airID, true)
	}
	for i, p := range ports {
		if err := unix.SetNonblock(p.FD, true); err != nil {
			return fmt.Errorf("open port of %q: %w", c.names[i], err)
		}
		if err := c.poll.control(unix.EPOLL_CTL_ADD, p.FD, i, true); err != nil {
			return fmt.Errorf("open port of %q: %w", c.names[i], err)
		}
		c.ports = append(c.ports, livePort{fd: p.FD})
		if p.FeedbackSocket == "" {
			continue
		}
		feed, err := listenFeedback(p, func() (caps wire.Caps) {
			c.do(func() { caps = c.core.Caps(i) })
			return caps
		}, &c.watchers, func() { c.wishes.Add(1); c.poll.wake() })
		if err != nil {
			return fmt.Errorf("open feedback of %q: %w", c.names[i], err)
		}
		c.feeds[i] = feed
	}
	return nil
}

func (c *Channel) close() error {
	for _, f := range c.feeds {
		if f != nil {
			_ = f.listener.Close() // after Run it is closed already
		}
	}
	return c.poll.close()
}

// Run carries frames until the context ends. It returns nil then, and may be
// called once.
func (c *Channel) Run(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	woken := make(chan struct{})
	context.AfterFunc(ctx, func() { c.poll.wake(); close(woken) })
	for _, f := range c.feeds {
		if f != nil {
			group.Go(func() error { return f.serve(ctx) })
		}
	}
	if !c.opts.NoFIFO {
		group.Go(func() error { return raiseThreads(ctx, c.opts.VirtualTime) })
		if err := boundWaking(); err != nil {
			c.opts.Log.Warn("a medium that is stuck would not be ended", "reason", err)
		}
		if !c.opts.VirtualTime {
			awake, err := stayAwake()
			if err != nil {
				c.opts.Log.Warn("medium is less punctual than it could be", "reason", err)
			} else {
				defer awake.Close()
			}
		}
	}
	group.Go(func() error {
		// Never unlocked: the thread has its own scheduling and ends with the
		// goroutine.
		runtime.LockOSThread()
		return c.loop(ctx)
	})
	err := group.Wait() // ends ctx, if it has not ended
	<-woken
	if c.air != nil {
		c.do(c.core.Abandon) // somebody may still ask for what was late
		err = errors.Join(err, c.air.broken)
		if n := c.air.Refused - c.air.before; n > 0 { // as those for a radio that was down
			c.opts.Log.Info("messages that the nodes' radios did not take", "number", n)
		}
	}
	return errors.Join(err, c.close())
}

// loop is the event thread.
func (c *Channel) loop(ctx context.Context) error {
	if err := prepareThread(!c.opts.NoFIFO); err != nil {
		c.opts.Log.Warn("medium is less punctual than it could be", "reason", err)
	}
	c.setRunning(true)
	defer c.setRunning(false)
	for ctx.Err() == nil {
		c.runOrders()
		c.core.Advance(c.now())
		if err := c.refill(); err != nil {
			return err
		}
		c.sendFeedback()
		ready, err := c.poll.wait(c.timeout())
		if err != nil {
			return err
		}
		if len(ready) == 0 {
			continue
		}
		c.core.Advance(c.now())
		for _, ev := range ready {
			var err error
			switch ev.Fd {
			case wakeID:
				c.poll.clearWake()
			case airID:
				err = c.drainAir()
			default:
				err = c.drain(int(ev.Fd))
			}
			if err != nil {
				return err
			}
		}
	}
	return nil
}

func (c *Channel) now() time.Duration { return time.Since(c.epoch) }

// timeout is how long nothing will be due; below 0 for ever.
func (c *Channel) timeout() time.Duration {
	next, any := c.core.NextEffect()
	if c.watched() && c.nextFeedback != never && (!any || c.nextFeedback < next) {
		next, any = c.nextFeedback, true
	}
	if !any {
		return -1
	}
	return max(0, next-c.now())
}

// drain reads what a host has sent since the last look. A frame that finds the
// queue full is dropped and counted; when the first reads leave it full, the
// host's further frames wait in the device until there is room, when all but
// those that still fit are dropped: as if each had been dropped as it came, at
// one wake-up for all.
func (c *Channel) drain(node int) error {
	p := &c.ports[node]
	for range maxReads {
		n, err := readFD(p.fd, c.buf)
		if errors.Is(err, unix.EAGAIN) {
			break
		}
		if err != nil || n == 0 {
			return c.portGone(node, err)
		}
		if c.homes != nil {
			c.learnHome(node, c.buf[:n])
			c.learnWay(node, c.buf[:n])
		}
		c.core.Enqueue(node, c.buf[:n])
	}
	full := c.core.Full(node)
	if full == p.paused {
		return nil
	}
	p.paused = full
	if full {
		c.paused++
	} else {
		c.paused--
	}
	return c.poll.control(unix.EPOLL_CTL_MOD, p.fd, node, !full)
}

// refill looks at the devices whose queue has room again.
func (c *Channel) refill() error {
	if c.paused == 0 {
		return nil
	}
	for i := range c.ports {
		if p := &c.ports[i]; p.paused && !p.gone && !c.core.Full(i) {
			if err := c.drain(i); err != nil {
				return err
			}
		}
	}
	return nil
}

// portGone leaves a device alone that cannot be read: deleted, or its namespace
// is. The others go on.
func (c *Channel) portGone(node int, reason error) error {
	p := &c.ports[node]
	if p.gone {
		return nil
	}
	p.gone = true
	if p.paused {
		p.paused = false
		c.paused--
	}
	c.opts.Log.Warn("device gone", "node", c.names[node], "reason", reason)
	return c.poll.control(unix.EPOLL_CTL_DEL, p.fd, node, false)
}

// Deliver writes a frame to a node's device; the core calls it.
func (c *Channel) Deliver(node int, at time.Duration, ethernet []byte) bool {
	c.late.add(at, c.now())
	p := &c.ports[node]
	return !p.gone && writeFD(p.fd, ethernet) == nil
}

// TxFailed tells a node's clients; the core calls it.
func (c *Channel) TxFailed(node int, _ time.Duration, peer medium.MAC, ethernet []byte) {
	if f := c.feeds[node]; f != nil && f.active.Load() > 0 {
		f.publish(wire.Feedback{TxFailed: &wire.TxFailed{Peer: peer.String(), Frame: bytes.Clone(ethernet)}})
	}
}

// watched reports whether any client wants feedback.
func (c *Channel) watched() bool {
	return c.watchers.Load() > 0
}

// never is later than any moment of model time.
const never = time.Duration(math.MaxInt64)

// sendFeedback publishes stations and survey when they are due.
func (c *Channel) sendFeedback() {
	if !c.watched() {
		return
	}
	now := c.core.Now()
	turn := int64(now / feedbackEvery)
	if wishes := c.wishes.Load(); wishes != c.minded {
		c.minded = wishes
		c.nextFeedback = min(c.nextFeedback, c.feedbackAfter(turn))
	}
	if now < c.nextFeedback {
		return
	}
	// A grid of model time; turns that were slept through are not made up for.
	c.nextFeedback = c.feedbackAfter(turn)
	for i, f := range c.feeds {
		if f != nil && f.active.Load() > 0 {
			// by node, so that not all are told in one
			f.turn(turn+int64(i), func() []wire.Feedback { return c.report(i) })
		}
	}
}

// feedbackAfter returns when the next turn after this one is in which somebody
// wishes to be told something.
func (c *Channel) feedbackAfter(turn int64) time.Duration {
	next := never
	for i, f := range c.feeds {
		if f == nil || f.active.Load() == 0 {
			continue
		}
		if due, any := f.next(turn + int64(i)); any {
			next = min(next, time.Duration(due-int64(i))*feedbackEvery)
		}
	}
	return next
}

// report is a node's view of its peers and its channel.
func (c *Channel) report(node int) (lines []wire.Feedback) {
	for _, s := range c.core.Stations(node) {
		lines = append(lines, wire.Feedback{Station: &s})
	}
	survey := c.core.Survey(node)
	return append(lines, wire.Feedback{Survey: &survey})
}
