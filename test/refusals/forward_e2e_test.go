//go:build e2e

package refusals

import (
	"io"
	"net"
	"sync"
	"testing"
)

// forward lets a program outside reach an address inside a node: it listens on
// the machine's loopback and returns the address there.
func (d *desk) forward(t *testing.T, node, to string) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var pipes sync.WaitGroup
	pipes.Go(func() {
		for {
			outside, err := listener.Accept()
			if err != nil {
				return
			}
			var inside net.Conn
			d.spaces[node].Do(t, func() (err error) { inside, err = net.Dial("tcp", to); return err })
			pipes.Go(func() { pipe(outside, inside) })
		}
	})
	t.Cleanup(func() {
		_ = listener.Close()
		pipes.Wait()
	})
	return listener.Addr().String()
}

// pipe carries bytes both ways until both directions have ended.
func pipe(a, b net.Conn) {
	var ways sync.WaitGroup
	for _, way := range [][2]net.Conn{{a, b}, {b, a}} {
		ways.Go(func() {
			_, _ = io.Copy(way[0], way[1])
			// Half-closed, so that the other direction comes to its own end.
			if half, ok := way[0].(*net.TCPConn); ok {
				_ = half.CloseWrite()
			}
		})
	}
	ways.Wait()
	_, _ = a.Close(), b.Close()
}
