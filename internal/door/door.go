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
	"slices"
	"sync"
	"time"

	"fieldmesh.dev/fieldmesh/internal/keys"
	"fieldmesh.dev/fieldmesh/internal/pause"
)

const (
	// perSource is how many connections of one address may be in their handshake
	// at a time; a controller has a few. More are reset at once.
	perSource = 16
	// perSecond is how many handshakes an address from which no known peer has come may
	// begin in a second. Each costs the node two operations on a curve and a signature,
	// and whoever hangs up has its place of perSource again at once.
	perSecond = 16
	// strangers is how many may be in their handshake of all addresses from which no
	// known peer has come. Those that one has come from have room beside them. One more
	// takes the place of the one that has been there longest, of the address that has
	// the most: who is silent on many addresses keeps nobody out who has a key.
	strangers = 64
	// perPeer is how many connections one key may have open: no peer takes what the
	// others need. A controller has some ten.
	perPeer = 32
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

	now func() time.Time // a test's clock

	mu       sync.Mutex
	knocking map[netip.Addr]int
	waiting  []*visitor // the strangers among them, in the order in which they came
	begun    map[netip.Addr]int
	since    time.Time // when begun was empty
	known    map[netip.Addr]bool
	open     map[string]int // by the peer's pin
	told     time.Time
}

// visitor is a connection in its handshake.
type visitor struct {
	net.Conn
	from     netip.Addr
	stranger bool
	gone     bool // it does not count any more
}

// Listen puts a door before l: who does not end the handshake of config within a
// time is let go, and at most so many connections are open after it.
func Listen(l net.Listener, config *tls.Config, within time.Duration, most int, log *slog.Logger) *Listener {
	ctx, cancel := context.WithCancel(context.Background())
	d := &Listener{Listener: l, config: config, within: within, log: log, let: make(chan net.Conn),
		slots: make(chan struct{}, most), ctx: ctx, close: cancel, now: time.Now, knocking: map[netip.Addr]int{},
		begun: map[netip.Addr]int{}, known: map[netip.Addr]bool{}, open: map[string]int{}}
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
		v := &visitor{Conn: conn, from: addressOf(conn)}
		out, ok := d.knock(v)
		if out != nil {
			d.reset(out.Conn, "a newer connection took its place before its handshake was over")
		}
		if !ok {
			d.reset(conn, "too many connections without a known key")
			continue
		}
		d.work.Go(func() {
			defer d.leave(v)
			d.letIn(v)
		})
	}
}

func addressOf(conn net.Conn) netip.Addr {
	if a, ok := conn.RemoteAddr().(*net.TCPAddr); ok {
		return a.AddrPort().Addr().Unmap()
	}
	return netip.Addr{}
}

// knock counts a connection that begins its handshake, which leave is to be called for
// after it. Out is another that has lost its place to it.
func (d *Listener) knock(v *visitor) (out *visitor, ok bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	v.stranger = !d.known[v.from]
	if d.knocking[v.from] >= perSource || v.stranger && !d.mayBegin(v.from) {
		return nil, false
	}
	if v.stranger {
		if len(d.waiting) >= strangers {
			out = oldest(d.waiting, func(v *visitor) int { return d.knocking[v.from] })
			d.forget(out)
		}
		d.waiting = append(d.waiting, v)
	}
	d.knocking[v.from]++
	return out, true
}

// mayBegin counts the handshakes that a stranger's address begins.
func (d *Listener) mayBegin(from netip.Addr) bool {
	if now := d.now(); now.Sub(d.since) >= time.Second || len(d.begun) >= sourcesMost {
		clear(d.begun)
		d.since = now
	}
	if d.begun[from] >= perSecond {
		return false
	}
	d.begun[from]++
	return true
}

// oldest is the first of those whose address has the most; all of them are in the order in which they came.
func oldest[T any](all []T, has func(T) int) (out T) {
	for i, v := range all {
		if i == 0 || has(v) > has(out) {
			out = v
		}
	}
	return out
}

// leave says that a connection's handshake is over.
func (d *Listener) leave(v *visitor) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.forget(v)
}

func (d *Listener) forget(v *visitor) {
	if v.gone {
		return
	}
	v.gone = true
	if d.knocking[v.from]--; d.knocking[v.from] == 0 {
		delete(d.knocking, v.from)
	}
	if v.stranger {
		d.waiting = slices.DeleteFunc(d.waiting, func(o *visitor) bool { return o == v })
	}
}

func (d *Listener) letIn(v *visitor) {
	ctx, cancel := context.WithTimeout(d.ctx, d.within)
	defer cancel()
	slot := &slotConn{Conn: v.Conn, free: func() {}}
	secure := tls.Server(slot, d.config)
	if err := secure.HandshakeContext(ctx); err != nil {
		d.tell("TLS handshake error", v.Conn, err.Error())
		_ = v.Conn.Close() // after the alert, which says why
		return
	}
	pin, err := keys.PeerPin(secure.ConnectionState())
	if err != nil { // a configuration that asks for no certificate
		d.tell("TLS handshake error", v.Conn, err.Error())
		_ = v.Conn.Close()
		return
	}
	if why := d.take(v.from, pin); why != "" {
		d.reset(v.Conn, why)
		return
	}
	slot.free = sync.OnceFunc(func() { d.giveBack(pin) })
	d.leave(v) // it is no stranger any more, and waits for whoever calls Accept
	select {
	case d.let <- secure:
	case <-d.ctx.Done():
		_ = secure.Close()
	}
}

// take gives a peer a slot, or says why not, and remembers whence it came.
func (d *Listener) take(from netip.Addr, pin string) (refused string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.open[pin] >= perPeer {
		return "too many connections with one key"
	}
	select {
	case d.slots <- struct{}{}:
	default:
		return "too many connections"
	}
	d.open[pin]++
	if len(d.known) >= sourcesMost {
		clear(d.known)
	}
	d.known[from] = true
	return ""
}

func (d *Listener) giveBack(pin string) {
	<-d.slots
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.open[pin]--; d.open[pin] == 0 {
		delete(d.open, pin)
	}
}

func (d *Listener) reset(conn net.Conn, why string) {
	d.tell("connection refused", conn, why)
	abort(conn)
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
