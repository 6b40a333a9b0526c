package testnet

import (
	"math/rand/v2"
	"net"
	"strconv"
	"sync"
	"testing"
)

// Ports that FreePort draws from: below those that the kernel gives to sockets
// that ask for none (32768 and up, ip(7)), so that none of these takes one before
// it is used.
const (
	portsFrom  = 20_000
	portsBelow = 32_000
)

// given are the ports that this process was given: a test that runs beside another
// may not have bound its port yet.
var given sync.Map

// FreePort returns a port that no TCP or UDP socket has, on any address, and that
// it has not returned before.
func FreePort(t testing.TB) int {
	t.Helper()
	var err error
	for range 100 {
		port := portsFrom + rand.IntN(portsBelow-portsFrom)
		at := ":" + strconv.Itoa(port)
		var l net.Listener
		if l, err = net.Listen("tcp", at); err != nil {
			continue
		}
		_ = l.Close()
		var c net.PacketConn
		if c, err = net.ListenPacket("udp", at); err != nil {
			continue
		}
		_ = c.Close()
		if _, taken := given.LoadOrStore(port, true); !taken {
			return port
		}
	}
	t.Fatalf("no port is free: %v", err)
	return 0
}
