package testnet

import (
	"math/rand/v2"
	"net"
	"strconv"
	"testing"
)

// Ports that FreePort draws from: below those that the kernel gives to sockets
// that ask for none (32768 and up, ip(7)), so that none of these takes one before
// it is used.
const (
	portsFrom  = 20_000
	portsBelow = 32_000
)

// FreePort returns a port that no TCP or UDP socket has, on any address.
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
		return port
	}
	t.Fatalf("no port is free: %v", err)
	return 0
}
