package door

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"fieldmesh.dev/fieldmesh/internal/keys"
	"fieldmesh.dev/fieldmesh/protocols/wire"
	"fieldmesh.dev/fieldmesh/test/testnet"
)

// gate is a door with two known peers; who is let in is sent a byte.
type gate struct {
	*Listener
	address string
	client  *tls.Config
	second  *tls.Config // of another known peer
	log     testnet.Output
}

func newGate(t *testing.T, within time.Duration, most int) *gate {
	t.Helper()
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return gateAt(t, l, within, most)
}

func gateAt(t *testing.T, l net.Listener, within time.Duration, most int) *gate {
	t.Helper()
	node, controller := testnet.Identity(t, "node"), testnet.Identity(t, "controller")
	phone := testnet.Identity(t, "phone")
	list, err := keys.NewAuthorized(keys.Peer{Name: "controller", Role: wire.RoleController, Pin: controller.Pin},
		keys.Peer{Name: "phone", Role: wire.RoleApp, Pin: phone.Pin})
	if err != nil {
		t.Fatal(err)
	}
	g := &gate{address: l.Addr().String(), client: keys.ClientTLS(controller, node.Pin),
		second: keys.ClientTLS(phone, node.Pin)}
	g.Listener = Listen(l, keys.ServerTLS(node, list), within, most, slog.New(slog.NewTextHandler(&g.log, nil)))
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			conn, err := g.Accept()
			if err != nil {
				return
			}
			if _, ok := conn.(*tls.Conn); !ok {
				t.Errorf("let in as %T", conn)
			}
			go func() {
				_, _ = conn.Write([]byte{1})
				_, _ = io.Copy(io.Discard, conn) // until the peer hangs up
				_ = conn.Close()
			}()
		}
	}()
	t.Cleanup(func() { _ = g.Close(); <-done })
	return g
}

// dial opens a connection from an address of the loopback; an error is that it was reset.
func (g *gate) dial(t *testing.T, from string) (net.Conn, error) {
	t.Helper()
	d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}, Timeout: 5 * time.Second}
	conn, err := d.Dial("tcp4", g.address)
	if errors.Is(err, syscall.ECONNRESET) {
		return nil, err
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn, nil
}

// enter is the known peer's coming.
func (g *gate) enter(t *testing.T, from string) (*tls.Conn, error) {
	t.Helper()
	plain, err := g.dial(t, from)
	if err != nil {
		return nil, err
	}
	conn := tls.Client(plain, g.client)
	_ = conn.SetDeadline(time.Now().Add(5 * time.Second))
	_, err = io.ReadFull(conn, make([]byte, 1))
	return conn, err
}

// stays reports whether a connection that says nothing stays open for a time.
func (g *gate) stays(t *testing.T, from string, within time.Duration) bool {
	t.Helper()
	conn, err := g.dial(t, from)
	return err == nil && !ended(conn, within)
}

// ended reports whether the other side has hung up.
func ended(conn net.Conn, within time.Duration) bool {
	_ = conn.SetReadDeadline(time.Now().Add(within))
	_, err := conn.Read(make([]byte, 1))
	var timeout net.Error
	return err != nil && (!errors.As(err, &timeout) || !timeout.Timeout())
}

//attack:network many connections without a known key | 16 of one address at a time, 64 of all from which no known
//attack:and peer has come; more are reset, or take the place of the oldest of them, and none of who is let in
func TestWhoSaysNothingKeepsNobodyOut(t *testing.T) {
	g := newGate(t, time.Minute, 4)
	for i := range 300 { // they are accepted in the order in which they come
		conn, err := g.dial(t, "127.0.0.2")
		if i < perSource && err != nil {
			t.Errorf("connection %d of one address: %v", i, err)
		}
		if i >= perSource && err == nil && !ended(conn, 5*time.Second) {
			t.Fatalf("%d connections of one address are kept, want %d", i+1, perSource)
		}
	}
	if n := g.waits(); n != perSource {
		t.Errorf("%d connections of one address are kept, want %d", n, perSource)
	}
	if _, err := g.enter(t, "127.0.0.3"); err != nil {
		t.Errorf("a known peer beside silent connections: %v", err)
	}
	if n := strings.Count(g.log.String(), "connection refused"); n == 0 || n > 20 {
		t.Errorf("refusals are logged %d times", n)
	}
}

//attack:network many connections without a known key, of many addresses, before the controller has come from its own |
//attack:and one more takes the place of the oldest, of the address that has the most
func TestWhoIsSilentOnManyAddressesKeepsNobodyOut(t *testing.T) {
	g := newGate(t, time.Minute, 4)
	for i := range byte(strangers / perSource) {
		for range perSource {
			_, _ = g.dial(t, net.IPv4(127, 0, 1, i+1).String())
		}
	}
	testnet.Await(t, 5*time.Second, "no place is left", func() bool { return g.waits() == strangers })
	if _, err := g.enter(t, "127.0.0.3"); err != nil {
		t.Errorf("a known peer, from where none has come: %v", err)
	}
	for i := range byte(2 * strangers) {
		_, _ = g.dial(t, net.IPv4(127, 0, 2, i+1).String())
	}
	if _, err := g.enter(t, "127.0.0.4"); err != nil {
		t.Errorf("a known peer beside strangers of %d addresses: %v", 2*strangers, err)
	}
	if n := g.waits(); n > strangers {
		t.Errorf("%d strangers wait, more than %d", n, strangers)
	}
}

// waits is how many strangers are in their handshake.
func (g *gate) waits() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return len(g.waiting)
}

// Whose place a stranger takes, and that it never is one of where a known peer has come from.
func TestTheOldestOfTheFullestAddressGoes(t *testing.T) {
	g := newGate(t, time.Minute, 4)
	come := func(from string) (v, out *visitor) {
		t.Helper()
		v = &visitor{from: netip.MustParseAddr(from)}
		out, ok := g.knock(v)
		if !ok {
			t.Fatalf("%s is refused", from)
		}
		return v, out
	}
	g.known[netip.MustParseAddr("10.0.0.1")] = true
	var known, first []*visitor
	for range perSource { // as many as one address may have
		v, _ := come("10.0.0.1")
		known = append(known, v)
	}
	single, _ := come("10.0.0.2")
	for i := range strangers - 1 {
		v, out := come(fmt.Sprintf("10.0.1.%d", i/8))
		if out != nil {
			t.Fatalf("stranger %d takes a place although there is room", i)
		}
		first = append(first, v)
	}
	for i, want := range []*visitor{first[0], first[8], first[16]} { // one of each address that has 8
		if _, out := come(fmt.Sprintf("10.0.2.%d", i)); out != want {
			t.Errorf("stranger %d takes the place of %v, want %v", i, out, want)
		}
	}
	for i := range 10 * strangers {
		_, out := come(fmt.Sprintf("10.1.%d.%d", i/256, i%256))
		if out == nil || out.stranger == false || slices.Contains(known, out) {
			t.Fatalf("stranger %d takes the place of %v", i, out)
		}
	}
	if !single.gone || g.waits() != strangers || g.knocking[netip.MustParseAddr("10.0.0.1")] != perSource {
		t.Errorf("%d strangers, %d of the known address", g.waits(), g.knocking[netip.MustParseAddr("10.0.0.1")])
	}
	for _, v := range append(known, first...) {
		g.leave(v)
		g.leave(v) // counts once
	}
	if n := g.knocking[netip.MustParseAddr("10.0.0.1")]; n != 0 {
		t.Errorf("%d of the known address are left", n)
	}
}

//attack:network handshakes that are begun and left, one after the other, to use up the processor | 16 a second of
//attack:and an address from which no known peer has come
func TestHandshakesOfAStrangerAreBounded(t *testing.T) {
	g := newGate(t, time.Minute, 4)
	now := time.Unix(0, 0)
	g.now = func() time.Time { return now }
	begin := func(from string) (n int) {
		for range 100 {
			v := &visitor{from: netip.MustParseAddr(from)}
			if _, ok := g.knock(v); ok {
				n++
				g.leave(v) // it has hung up
			}
		}
		return n
	}
	g.known[netip.MustParseAddr("10.0.0.1")] = true
	for _, c := range []struct {
		after time.Duration
		from  string
		want  int
	}{
		{0, "10.0.0.2", perSecond},
		{0, "10.0.0.2", 0},
		{0, "10.0.0.3", perSecond},
		{0, "10.0.0.1", 100},
		{999 * time.Millisecond, "10.0.0.2", 0},
		{time.Millisecond, "10.0.0.2", perSecond},
	} {
		now = now.Add(c.after)
		if n := begin(c.from); n != c.want {
			t.Errorf("%v later, %s begins %d handshakes of 100, want %d", c.after, c.from, n, c.want)
		}
	}
}

//attack:phone a paired phone that keeps connections open, until the controller has none | 32 of one key
func TestNoPeerTakesThePlacesOfOthers(t *testing.T) {
	g := newGate(t, 5*time.Second, perPeer+1)
	controller := g.client
	g.client = g.second
	for i := range perPeer {
		if _, err := g.enter(t, "127.0.0.2"); err != nil {
			t.Fatalf("connection %d: %v", i, err)
		}
	}
	if _, err := g.enter(t, "127.0.0.2"); err == nil {
		t.Errorf("one key has more than %d connections", perPeer)
	}
	g.client = controller
	first, err := g.enter(t, "127.0.0.3")
	if err != nil {
		t.Fatalf("the other peer: %v", err)
	}
	_ = first.Close()
	testnet.Await(t, 5*time.Second, "its place is free again", func() bool {
		g.mu.Lock()
		defer g.mu.Unlock()
		return len(g.open) == 1
	})
}

func TestAHandshakeThatDoesNotEndIsEnded(t *testing.T) {
	g := newGate(t, 50*time.Millisecond, 4)
	if g.stays(t, "127.0.0.2", 5*time.Second) {
		t.Error("a connection without a handshake stays open")
	}
}

//attack:network many connections with one | 128
func TestOpenConnectionsAreBounded(t *testing.T) {
	g := newGate(t, 5*time.Second, 1)
	first, err := g.enter(t, "127.0.0.1")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := g.enter(t, "127.0.0.1"); err == nil {
		t.Error("a second connection is let in beside the first")
	}
	_ = first.Close()
	testnet.Await(t, 5*time.Second, "the slot is free again", func() bool {
		_, err := g.enter(t, "127.0.0.1")
		return err == nil
	})
}

func TestCloseEndsWhatIsInItsHandshake(t *testing.T) {
	g := newGate(t, time.Hour, 4)
	silent, err := g.dial(t, "127.0.0.2")
	if err != nil {
		t.Fatal(err)
	}
	testnet.Await(t, 5*time.Second, "it knocks", func() bool {
		g.mu.Lock()
		defer g.mu.Unlock()
		return len(g.waiting) == 1
	})
	if err := g.Close(); err != nil {
		t.Error(err)
	}
	if !ended(silent, 5*time.Second) {
		t.Error("a connection outlives the door")
	}
	if _, err := g.Accept(); !errors.Is(err, net.ErrClosed) {
		t.Errorf("Accept after Close: %v", err)
	}
}

// short is a listener of a process that has no file descriptor left for a while.
type short struct {
	net.Listener
	left atomic.Int32
}

func (s *short) Accept() (net.Conn, error) {
	if s.left.Add(-1) >= 0 {
		return nil, syscall.EMFILE
	}
	return s.Listener.Accept()
}

func TestTheDoorOutlivesALackOfFileDescriptors(t *testing.T) {
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	without := &short{Listener: l}
	without.left.Store(2)
	g := gateAt(t, without, 5*time.Second, 4)
	if _, err := g.enter(t, "127.0.0.1"); err != nil {
		t.Errorf("a known peer, a moment later: %v", err)
	}
	if !strings.Contains(g.log.String(), "too many open files") {
		t.Errorf("the lack is not logged: %s", g.log.String())
	}
}
