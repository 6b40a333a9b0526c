// Package door lets connections in whose peer has a known key, and keeps who has
// none from keeping them out.
package door

import (
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"net"
	"net/netip"
	"sync"
	"time"

	"fieldmesh.dev/fieldmesh/internal/pause"
)

const (
	// perSource is how many connections of one address may be in their handshake
	// at a time; a controller has a few. More are reset at once.
	perSource = 16
	// strangers is how many there may be of all addresses from which no known
	// peer has come. Those that one has come from have room beside them.
	strangers = 64
	// sourcesMost bounds how many addresses are remembered.
	sourcesMost = 256
	// toldEvery is how often at most something refused is logged.
	toldEvery = time.Second
	// acceptAgain is how long after it could not be done.
	acceptAgain = 100 * time.Millisecond
)

// Listener is a net.Listener whose Accept returns connections of type *tls.Conn
// after their handshake.
type Listener struct {
	net.Listener
	config *tls.Config
	within time.Duration
	log    *slog.Logger
	let    chan net.Conn
	slots  chan struct{}
	ctx    context.Context
	close  context.CancelFunc
	work   sync.WaitGroup

	mu        sync.Mutex
	knocking  map[netip.Addr]int
	strangers int
	known     map[netip.Addr]bool
	told      time.Time
}

// Listen puts a door before l: who does not end the handshake of config within a
// time is let go, and at most so many connections are open after it.
func Listen(l net.Listener, config *tls.Config, within time.Duration, most int, log *slog.Logger) *Listener {
	ctx, cancel := context.WithCancel(context.Background())
	d := &Listener{Listener: l, config: config, within: within, log: log, let: make(chan net.Conn),
		slots: make(chan struct{}, most), ctx: ctx, close: cancel, knocking: map[netip.Addr]int{},
		known: map[netip.Addr]bool{}}
	d.work.Go(d.accept)
	return d
}

// Accept returns the next connection that is let in.
func (d *Listener) Accept() (net.Conn, error) {
	select {
	case c := <-d.let:
		return c, nil
	case <-d.ctx.Done():
		return nil, net.ErrClosed
	}
}

// Close ends Accept and whatever is in its handshake.
func (d *Listener) Close() error {
	d.close()
	err := d.Listener.Close()
	d.work.Wait()
	return err
}

func (d *Listener) accept() {
	for {
		conn, err := d.Listener.Accept()
		if d.ctx.Err() != nil || errors.Is(err, net.ErrClosed) {
			if conn != nil {
				_ = conn.Close()
			}
			d.close()
			return
		}
		if err != nil { // of the moment, as no free file descriptor: the door stays
			d.log.Error("accept", "error", err)
			_ = pause.For(d.ctx, acceptAgain)
			continue
		}
		from := addressOf(conn)
		end, ok := d.knock(from)
		if !ok {
			d.reset(conn, "too many connections without a known key")
			continue
		}
		d.work.Go(func() {
			defer end()
			d.letIn(conn, from)
		})
	}
}

func addressOf(conn net.Conn) netip.Addr {
	if a, ok := conn.RemoteAddr().(*net.TCPAddr); ok {
		return a.AddrPort().Addr().Unmap()
	}
	return netip.Addr{}
}

// knock counts a connection that begins its handshake; end is to be called after it.
func (d *Listener) knock(from netip.Addr) (end func(), ok bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	stranger := !d.known[from]
	if d.knocking[from] >= perSource || stranger && d.strangers >= strangers {
		return nil, false
	}
	d.knocking[from]++
	if stranger {
		d.strangers++
	}
	return func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		if d.knocking[from]--; d.knocking[from] == 0 {
			delete(d.knocking, from)
		}
		if stranger {
			d.strangers--
		}
	}, true
}

func (d *Listener) letIn(conn net.Conn, from netip.Addr) {
	ctx, cancel := context.WithTimeout(d.ctx, d.within)
	defer cancel()
	slot := &slotConn{Conn: conn, free: func() {}}
	secure := tls.Server(slot, d.config)
	if err := secure.HandshakeContext(ctx); err != nil {
		d.tell("TLS handshake error", conn, err.Error())
		_ = conn.Close() // after the alert, which says why
		return
	}
	select {
	case d.slots <- struct{}{}:
		slot.free = sync.OnceFunc(func() { <-d.slots })
	default:
		d.reset(conn, "too many connections")
		return
	}
	d.mu.Lock()
	if len(d.known) >= sourcesMost {
		clear(d.known)
	}
	d.known[from] = true
	d.mu.Unlock()
	select {
	case d.let <- secure:
	case <-d.ctx.Done():
		_ = secure.Close()
	}
}

// reset ends a connection so that nothing of it is left in the kernel.
func (d *Listener) reset(conn net.Conn, why string) {
	d.tell("connection refused", conn, why)
	if c, ok := conn.(*net.TCPConn); ok {
		_ = c.SetLinger(0)
	}
	_ = conn.Close()
}

// tell logs what was refused, seldom enough that a flood does not fill the disk.
func (d *Listener) tell(what string, conn net.Conn, why string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if time.Since(d.told) < toldEvery {
		return
	}
	d.told = time.Now()
	d.log.Warn(what, "from", conn.RemoteAddr().String(), "error", why)
}

// slotConn gives its slot back when it is closed.
type slotConn struct {
	net.Conn
	free func()
}

func (c *slotConn) Close() error {
	defer c.free()
	return c.Conn.Close()
}
