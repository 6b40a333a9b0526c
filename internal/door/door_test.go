package door

import (
	"crypto/tls"
	"errors"
	"io"
	"log/slog"
	"net"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"fieldmesh.dev/fieldmesh/internal/keys"
	"fieldmesh.dev/fieldmesh/protocols/wire"
	"fieldmesh.dev/fieldmesh/test/testnet"
)

// gate is a door with one known peer; who is let in is sent a byte.
type gate struct {
	*Listener
	address string
	client  *tls.Config
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
	list, err := keys.NewAuthorized(keys.Peer{Name: "controller", Role: wire.RoleController, Pin: controller.Pin})
	if err != nil {
		t.Fatal(err)
	}
	g := &gate{address: l.Addr().String(), client: keys.ClientTLS(controller, node.Pin)}
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
//attack:and peer has come; more are reset, and take no place of who is let in
func TestWhoSaysNothingKeepsNobodyOut(t *testing.T) {
	g := newGate(t, time.Minute, 4)
	open := 0
	for range 300 {
		if g.stays(t, "127.0.0.2", 20*time.Millisecond) {
			open++
		}
		if open > perSource {
			t.Fatalf("%d connections of one address are kept", open)
		}
	}
	if open != perSource {
		t.Errorf("%d connections of one address are kept, want %d", open, perSource)
	}
	if _, err := g.enter(t, "127.0.0.3"); err != nil {
		t.Errorf("a known peer beside 300 silent connections: %v", err)
	}
	// As many addresses as it takes to use up what strangers have.
	for i := range byte(strangers / perSource) {
		for range perSource {
			_, _ = g.dial(t, net.IPv4(127, 0, 1, i+1).String())
		}
	}
	testnet.Await(t, 5*time.Second, "strangers are refused", func() bool {
		return !g.stays(t, "127.0.2.1", 100*time.Millisecond)
	})
	if _, err := g.enter(t, "127.0.0.3"); err != nil {
		t.Errorf("a known peer, from where it came before: %v", err)
	}
	if n := strings.Count(g.log.String(), "connection refused"); n == 0 || n > 20 {
		t.Errorf("refusals are logged %d times", n)
	}
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
		return g.strangers == 1
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
