package manetd

import (
	"fmt"
	"net/netip"

	"golang.org/x/sys/unix"
)

// injector puts whole packets into the node's own kernel. A raw socket is used
// and not the TUN device, which would cost them one of their TTL and look like
// a packet from outside with an address of this node.
type injector struct {
	fd  int
	own netip.Addr
}

func openInjector(own netip.Addr) (*injector, error) {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_RAW|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, unix.IPPROTO_RAW)
	if err != nil {
		return nil, fmt.Errorf("open raw socket: %w", err)
	}
	return &injector{fd: fd, own: own}, nil
}

// Inject lets a packet go along the kernel's routes.
func (i *injector) Inject(packet []byte) error {
	_, destination, ok := endpoints(packet)
	if !ok {
		return fmt.Errorf("inject packet: no IPv4")
	}
	err := unix.Sendto(i.fd, packet, unix.MSG_DONTWAIT, &unix.SockaddrInet4{Addr: destination.As4()})
	if err != nil {
		return fmt.Errorf("inject packet to %s: %w", destination, err)
	}
	return nil
}

// Refuse tells a local sender that its packet's destination is unreachable.
func (i *injector) Refuse(packet []byte) error { return i.Inject(unreachable(packet, i.own)) }

func (i *injector) close() error { return unix.Close(i.fd) }
