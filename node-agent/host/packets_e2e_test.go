//go:build e2e

package host

import (
	"errors"
	"net"
	"testing"

	"golang.org/x/sys/unix"
)

// The socket of a capture shows its interface, and cannot be bound to another.
func TestE2EACaptureStaysOnItsInterface(t *testing.T) {
	e := newEnds(t)
	file, _, err := e.host.Packets(t.Context(), Packets{Interface: device, SnapBytes: 96, Ports: []int{5000}})
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	var lo *net.Interface
	e.server.ns.Do(t, func() (err error) { lo, err = net.InterfaceByName("lo"); return err })
	raw, err := file.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	control := func(do func(fd int)) {
		t.Helper()
		if err := raw.Control(func(fd uintptr) { do(int(fd)) }); err != nil {
			t.Fatal(err)
		}
	}
	const all = unix.ETH_P_ALL<<8&0xff00 | unix.ETH_P_ALL>>8
	for name, index := range map[string]int{"the loopback": lo.Index, "all interfaces": 0} {
		control(func(fd int) {
			if err := unix.Bind(fd, &unix.SockaddrLinklayer{Protocol: all, Ifindex: index}); !errors.Is(err,
				unix.EINVAL) {
				t.Errorf("bound to %s: %v", name, err)
			}
		})
	}
	if c, err := e.dial(t, "10.77.0.2:20000", "10.77.0.1:5000"); err == nil {
		t.Fatalf("something listens at %v", c.RemoteAddr())
	}
	seen := 0
	control(func(fd int) {
		for {
			if _, _, err := unix.Recvfrom(fd, make([]byte, 200), unix.MSG_DONTWAIT); err != nil {
				return
			}
			seen++
		}
	})
	if seen < 2 {
		t.Errorf("%d frames of a connection that was refused were captured, want its SYN and the reset", seen)
	}
}
