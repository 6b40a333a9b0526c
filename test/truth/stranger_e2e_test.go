//go:build e2e

package truth

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os/exec"
	"syscall"
	"testing"
	"time"

	"fieldmesh.dev/fieldmesh/test/testnet"
	"golang.org/x/sys/unix"
)

// strangerAddress is in the mesh's network and in no plan.
const strangerAddress = "10.77.0.99"

// stranger sends some 4 Mbit/s over TCP connections that have the ports of the
// flow's data: from a third radio to the receiver's server, or beside it, within
// the receiver's own loopback.
func (r *run) stranger(f *fault, at attempt) error {
	flow := at.trial.Traffic[0]
	local := flow.ClientPort + (at.Attempt-1)*flow.Streams
	from, space := strangerAddress, r.netns("elk")
	to := netip.MustParsePrefix(map[string]string{"fox": "10.77.0.1/24", "owl": "10.77.0.2/24"}[at.trial.Receiver]).
		Addr().String()
	if f.how == "beside" {
		from, to, space = "127.0.0.1", "127.0.0.1", r.netns(at.trial.Receiver)
	}
	if space == "" {
		return errors.New("there is no field")
	}
	server := net.JoinHostPort(to, fmt.Sprint(flow.Port))
	if f.how == "beside" {
		l, err := listen(r.t, space, server)
		if err != nil {
			return err
		}
		defer l.Close()
		go swallow(l)
	} else if out, err := exec.Command("ip", "-n", space, "address", "replace", from+"/24", "dev",
		"wlan0").CombinedOutput(); err != nil {
		return fmt.Errorf("give the stranger its address: %w: %s", err, out)
	}
	connections, sent, tries := 0, 0, 0
	for until := time.Now().Add(f.lasts); time.Now().Before(until) &&
		!r.controller.Over(); time.Sleep(20 * time.Millisecond) {
		tries++
		c, err := dial(r.t, space, net.JoinHostPort(from, fmt.Sprint(local+tries%flow.Streams)), server,
			300*time.Millisecond)
		if err != nil {
			continue // refused, denied, or still closing: it tries again
		}
		connections++
		sent += pump(c, until)
	}
	r.t.Logf("the stranger had %d connections and sent %d kB from %s to %s", connections, sent/1000, from, server)
	return nil
}

// pump writes to a connection until a moment or an error, and resets it.
func pump(c *net.TCPConn, until time.Time) (sent int) {
	defer c.Close()
	_ = c.SetLinger(0)
	_ = c.SetWriteDeadline(until)
	for time.Now().Before(until) {
		n, err := c.Write(make([]byte, 5000))
		if sent += n; err != nil {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	return sent
}

func listen(t testing.TB, space, at string) (l net.Listener, err error) {
	(&testnet.NS{Name: space}).Do(t, func() error { l, err = net.Listen("tcp4", at); return nil })
	return l, err
}

func swallow(l net.Listener) {
	for {
		c, err := l.Accept()
		if err != nil {
			return // it was closed
		}
		go func() { _, _ = io.Copy(io.Discard, c); _ = c.Close() }()
	}
}

// dial connects from inside a namespace and from a port that may have been in
// use a moment ago.
func dial(t testing.TB, space, from, to string, within time.Duration) (c *net.TCPConn, err error) {
	local, err := net.ResolveTCPAddr("tcp4", from)
	if err != nil {
		return nil, err
	}
	d := net.Dialer{LocalAddr: local, Timeout: within, Control: func(_, _ string, raw syscall.RawConn) error {
		var set error
		err := raw.Control(func(fd uintptr) {
			set = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_REUSEADDR, 1)
		})
		return errors.Join(err, set)
	}}
	(&testnet.NS{Name: space}).Do(t, func() error {
		var any net.Conn
		if any, err = d.Dial("tcp4", to); err == nil {
			c = any.(*net.TCPConn)
		}
		return nil
	})
	return c, err
}
