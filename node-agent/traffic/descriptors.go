package traffic

import (
	"errors"
	"net/netip"
	"time"

	"golang.org/x/sys/unix"

	"fieldmesh.dev/fieldmesh/node-agent/descriptor"
	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// What iperf3 leaves goes on sending: the kernel keeps what was not acknowledged for minutes
// after the program has ended. Only root may destroy such sockets. So on an agent without
// root they are told beforehand to end with iperf3 (SO_LINGER with no time, socket(7)), which
// changes nothing as long as they are open.

// lookForStreams is how often a process's new sockets are looked at.
const lookForStreams = 100 * time.Millisecond

// leaveNothing has the process's data sockets end with it. The sender's at a server are left
// out: its client reads on until iperf3 closes them, and would take their reset for an error.
func (p *Process) leaveNothing(f wire.Flow) {
	if p.result.Side == "server" && f.Reverse || f.Kind != "iperf3_tcp" {
		return
	}
	ticker := time.NewTicker(lookForStreams)
	defer ticker.Stop()
	done := map[descriptor.Socket]bool{}
	for len(done) < f.Streams {
		select {
		case <-p.done:
			return
		case <-ticker.C:
		}
		sockets, err := p.program.Sockets()
		if err != nil {
			return // the server has waited for its own to be read
		}
		for _, s := range sockets {
			if done[s] {
				continue
			}
			if is, err := endsWithProgram(p.program, s, f, p.result.Side); is && err == nil {
				done[s] = true
			}
		}
	}
}

// endsWithProgram has a socket end with its program if it is one of the flow's data sockets.
func endsWithProgram(p *descriptor.Program, s descriptor.Socket, f wire.Flow, side string) (is bool, err error) {
	fd, ok, err := p.Take(s)
	if !ok || err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, unix.Close(fd)) }()
	client, err := unix.Getpeername(fd)
	if err == nil && side == "client" {
		client, err = unix.Getsockname(fd)
	}
	port := int(descriptor.AddrPort(client).Port())
	if err != nil || port < f.ClientPort || port >= f.ClientPort+f.Streams {
		return false, nil //nolint:nilerr // one without a peer listens, or is about to be connected
	}
	return true, unix.SetsockoptLinger(fd, unix.SOL_SOCKET, unix.SO_LINGER, &unix.Linger{Onoff: 1})
}

// listensAt reports whether a program has a socket that listens at an address.
func listensAt(p *descriptor.Program, at netip.AddrPort) (bool, error) {
	sockets, err := p.Sockets()
	if err != nil {
		return false, err
	}
	for _, s := range sockets {
		fd, ok, err := p.Take(s)
		if err != nil {
			return false, err
		}
		if !ok {
			continue
		}
		listens, _ := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_ACCEPTCONN) // 0 where it is not a socket
		own, _ := unix.Getsockname(fd)
		if err := unix.Close(fd); err != nil {
			return false, err
		}
		if listens != 0 && descriptor.AddrPort(own) == netip.AddrPortFrom(at.Addr().Unmap(), at.Port()) {
			return true, nil
		}
	}
	return false, nil
}
