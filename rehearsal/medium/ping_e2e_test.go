//go:build e2e

package medium

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"runtime"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// ping sends echo requests from a node, one after the other, and counts what the
// other's kernel answers. The goroutine's thread enters the namespace and dies
// with it.
func (f *field) ping(t *testing.T, node int, to string, count int, wait time.Duration) int {
	t.Helper()
	type result struct {
		replies int
		err     error
	}
	out := make(chan result)
	go func() {
		runtime.LockOSThread()
		n, err := pingFrom("/run/netns/"+f.namespaces[node], netip.MustParseAddr(to), count, wait)
		out <- result{n, err}
	}()
	r := <-out
	if r.err != nil {
		t.Fatalf("ping %s from %s: %v", to, f.namespaces[node], r.err)
	}
	return r.replies
}

func pingFrom(netns string, to netip.Addr, count int, wait time.Duration) (replies int, err error) {
	ns, err := unix.Open(netns, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, unix.Close(ns)) }()
	if err := unix.Setns(ns, unix.CLONE_NEWNET); err != nil {
		return 0, fmt.Errorf("enter %s: %w", netns, err)
	}
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.IPPROTO_ICMP)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, unix.Close(fd)) }()
	for seq := range count {
		if err := unix.Sendto(fd, echoRequest(seq), 0, &unix.SockaddrInet4{Addr: to.As4()}); err != nil {
			return replies, err
		}
		if awaitReply(fd, seq, time.Now().Add(wait)) {
			replies++
		}
	}
	return replies, nil
}

func echoRequest(seq int) []byte {
	p := make([]byte, 64)
	p[0] = 8
	binary.BigEndian.PutUint16(p[4:], 0x4d44)
	binary.BigEndian.PutUint16(p[6:], uint16(seq))
	sum := uint32(0)
	for i := 0; i < len(p); i += 2 {
		sum += uint32(binary.BigEndian.Uint16(p[i:]))
	}
	sum = sum&0xffff + sum>>16
	binary.BigEndian.PutUint16(p[2:], ^uint16(sum+sum>>16))
	return p
}

func awaitReply(fd, seq int, until time.Time) bool {
	buf := make([]byte, 1500)
	for {
		left := time.Until(until)
		if left <= 0 {
			return false
		}
		tv := unix.NsecToTimeval(max(int64(left), int64(time.Millisecond)))
		if unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &tv) != nil {
			return false
		}
		n, _, err := unix.Recvfrom(fd, buf, 0)
		if err != nil || n < 28 {
			continue
		}
		icmp := buf[int(buf[0]&15)*4 : n]
		if icmp[0] == 0 && binary.BigEndian.Uint16(icmp[4:]) == 0x4d44 && int(binary.BigEndian.Uint16(icmp[6:])) ==
			seq {
			return true
		}
	}
}
