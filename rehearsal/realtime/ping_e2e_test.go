//go:build e2e

package realtime

import (
	"encoding/binary"
	"errors"
	"net/netip"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// ping sends echo requests from a node, one after the other, and counts what the
// other's kernel answers.
func (f *field) ping(t *testing.T, node int, to string, count int, wait time.Duration) (replies int) {
	t.Helper()
	f.nodes[node].Do(t, func() (err error) {
		replies, err = ping(netip.MustParseAddr(to), count, wait)
		return err
	})
	return replies
}

func ping(to netip.Addr, count int, wait time.Duration) (replies int, err error) {
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
