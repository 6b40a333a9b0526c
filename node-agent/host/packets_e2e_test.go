//go:build e2e

package host

import (
	"errors"
	"net"
	"os"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"fieldmesh.dev/fieldmesh/node-agent/capture/ring"
	"fieldmesh.dev/fieldmesh/test/testnet"
)

// descriptor is what a caller gets for a capture, as a taken-over face would use it.
func (e ends) descriptor(t *testing.T) *os.File {
	t.Helper()
	a, err := e.host.call(t.Context(), request{Packets: &Packets{Interface: device, SnapBytes: 96, Ports: []int{5000}}})
	if err != nil || a.file == nil {
		t.Fatalf("%+v: %v", a, err)
	}
	t.Cleanup(func() { _ = a.file.Close() })
	return a.file
}

// heard listens for a frame from an address on the other end of the interface under test.
func (e ends) heard(t *testing.T, from net.HardwareAddr) (count func() int) {
	t.Helper()
	fd := -1
	e.client.ns.Do(t, func() error {
		i, err := net.InterfaceByName(device)
		if err == nil {
			fd, err = unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, 0)
		}
		if err == nil {
			err = unix.Bind(fd, &unix.SockaddrLinklayer{Protocol: allFrames, Ifindex: i.Index})
		}
		return err
	})
	t.Cleanup(func() { _ = unix.Close(fd) })
	return func() (n int) {
		for b := make([]byte, 2000); ; {
			size, _, err := unix.Recvfrom(fd, b, unix.MSG_DONTWAIT)
			if err != nil {
				return n
			}
			if size >= 12 && net.HardwareAddr(b[6:12]).String() == from.String() {
				n++
			}
		}
	}
}

const allFrames = unix.ETH_P_ALL<<8&0xff00 | unix.ETH_P_ALL>>8

// What a caller gets for a capture gives it frames, and no right: it can neither
// be bound to another interface nor send a frame.
//
//attack:face frames sent, or other interfaces heard, by a capture's socket | the host process keeps the socket; the
//attack:and face gets frames
func TestE2EACaptureGivesNoRight(t *testing.T) {
	e := newEnds(t)
	spoofed := net.HardwareAddr{0xde, 0xad, 0xbe, 0xef, 0, 1}
	count := e.heard(t, spoofed)
	var index, lo int
	e.server.ns.Do(t, func() error {
		i, err := net.InterfaceByName(device)
		l, lerr := net.InterfaceByName("lo")
		if err = errors.Join(err, lerr); err == nil {
			index, lo = i.Index, l.Index
		}
		return err
	})
	arp := append(net.HardwareAddr{255, 255, 255, 255, 255, 255}, spoofed...)
	arp = append(append(arp, 8, 6), make([]byte, 46)...)
	to := func(index int) unix.Sockaddr {
		return &unix.SockaddrLinklayer{Protocol: unix.ETH_P_ARP<<8&0xff00 | unix.ETH_P_ARP>>8, Ifindex: index,
			Halen: 6}
	}
	promiscuous := func(fd int) error {
		return unix.SetsockoptPacketMreq(fd, unix.SOL_PACKET, unix.PACKET_ADD_MEMBERSHIP,
			&unix.PacketMreq{Ifindex: int32(index), Type: unix.PACKET_MR_PROMISC})
	}
	for name, attack := range map[string]func(fd int) error{
		"bound to the loopback":      func(fd int) error { return unix.Bind(fd, to(lo)) },
		"bound to all interfaces":    func(fd int) error { return unix.Bind(fd, to(0)) },
		"bound to its own interface": func(fd int) error { return unix.Bind(fd, to(index)) },
		"made promiscuous":           promiscuous,
		"sent by":                    func(fd int) error { return unix.Sendto(fd, arp, 0, to(index)) },
		"sent by, on the loopback":   func(fd int) error { return unix.Sendto(fd, arp, 0, to(lo)) },
	} {
		raw, err := e.descriptor(t).SyscallConn()
		if err != nil {
			t.Fatal(err)
		}
		if err := raw.Control(func(fd uintptr) {
			if err := attack(int(fd)); err == nil {
				t.Errorf("a capture's descriptor was %s", name)
			}
		}); err != nil {
			t.Fatal(err)
		}
	}
	if n := count(); n > 0 {
		t.Errorf("%d made-up frames left the interface", n)
	}
}

// Frames of the interface arrive, and those of a flow alone.
func TestE2EACaptureHasItsInterfacesFrames(t *testing.T) {
	e := newEnds(t)
	frames, filter, err := e.host.Packets(t.Context(), Packets{Interface: device, SnapBytes: 96, Ports: []int{5000}})
	if err != nil || filter.Interface != device {
		t.Fatalf("%+v: %v", filter, err)
	}
	defer frames.Close()
	for _, port := range []string{"5000", "6000"} {
		if c, err := e.dial(t, "10.77.0.2:20000", "10.77.0.1:"+port); err == nil {
			t.Fatalf("something listens at %v", c.RemoteAddr())
		}
	}
	if err := frames.End(); err != nil {
		t.Fatal(err)
	}
	tcp := 0
	drops, err := frames.Frames(func(f ring.Frame) error {
		if len(f.Data) > 38 && f.Data[23] == unix.IPPROTO_TCP {
			tcp++
		}
		return nil
	})
	if err != nil || drops != 0 || tcp != 2 {
		t.Errorf("%d frames of TCP, %d drops, %v; want the SYN to port 5000 and its reset alone", tcp, drops, err)
	}
}

// A caller that begins captures without end fills no memory, and those that are
// given up make room.
//
//attack:face captures without end | eight at a time
func TestE2ECapturesAreBounded(t *testing.T) {
	e := newEnds(t)
	begin := func() (*ring.Reader, error) {
		r, _, err := e.host.Packets(t.Context(), Packets{Interface: device, SnapBytes: 96})
		return r, err
	}
	var begun []*ring.Reader
	for range mostCaptures {
		r, err := begin()
		if err != nil {
			t.Fatal(err)
		}
		begun = append(begun, r)
	}
	if r, err := begin(); err == nil {
		t.Error("one capture more than may be was begun", r.Close())
	}
	for _, r := range begun {
		if err := r.Close(); err != nil {
			t.Fatal(err)
		}
	}
	testnet.Await(t, time.Minute, "a capture can be begun again", func() bool {
		r, err := begin()
		return err == nil && r.Close() == nil
	})
}
