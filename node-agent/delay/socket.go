package delay

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"sync"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"fieldmesh.dev/fieldmesh/node-agent/clock"
	"fieldmesh.dev/fieldmesh/node-agent/descriptor"
	"fieldmesh.dev/fieldmesh/node-agent/link"
)

// stamp is when a datagram came, by whose clock reading.
type stamp struct {
	bootNs   int64
	byKernel bool
}

// socket is one end's, with the kernel's stamps.
type socket struct {
	conn    *net.UDPConn
	raw     syscall.RawConn
	clk     clock.Clock
	serving sync.WaitGroup
}

// listen opens an end's socket; with stamps of departures where they are wanted.
func listen(ctx context.Context, e End, departures bool) (*socket, error) {
	at := e.Own
	lc := net.ListenConfig{Control: func(network, address string, raw syscall.RawConn) error {
		return errors.Join(link.Bind(e.Bound)(network, address, raw),
			raw.Control(func(fd uintptr) { askStamps(fd, departures) }))
	}}
	packet, err := lc.ListenPacket(ctx, "udp", at.String())
	if err != nil {
		return nil, fmt.Errorf("open UDP port %d at %s: %w", at.Port(), at.Addr(), err)
	}
	s := &socket{conn: packet.(*net.UDPConn), clk: e.Clock}
	if s.raw, err = s.conn.SyscallConn(); err != nil {
		return nil, errors.Join(fmt.Errorf("open UDP port %d at %s: %w", at.Port(), at.Addr(), err), s.conn.Close())
	}
	return s, nil
}

// askStamps asks the kernel for the stamps that it has: of arrivals, and of
// departures as they come to the packet scheduler (Linux 3.17). A record says
// which it got.
func askStamps(fd uintptr, departures bool) {
	const arrivals = unix.SOF_TIMESTAMPING_SOFTWARE | unix.SOF_TIMESTAMPING_RX_SOFTWARE
	if !departures || unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_TIMESTAMPING,
		arrivals|unix.SOF_TIMESTAMPING_TX_SCHED) != nil {
		_ = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_TIMESTAMPING, arrivals)
	}
}

// send hands a datagram to the kernel without waiting for room: one that has to
// wait would keep those behind it from their times. It returns the name of the
// error by which the kernel refused it; empty: it took it.
func (s *socket) send(b []byte, to netip.AddrPort) string {
	var sent error
	err := s.raw.Write(func(fd uintptr) bool {
		sent = unix.Sendto(int(fd), b, unix.MSG_DONTWAIT, sockaddr(to))
		return true
	})
	var no unix.Errno
	switch {
	case err != nil:
		return "EBADF" // it is being closed
	case errors.As(sent, &no):
		return unix.ErrnoName(no)
	}
	return ""
}

func sockaddr(a netip.AddrPort) unix.Sockaddr {
	if addr := a.Addr().Unmap(); addr.Is4() {
		return &unix.SockaddrInet4{Port: int(a.Port()), Addr: addr.As4()}
	}
	return &unix.SockaddrInet6{Port: int(a.Port()), Addr: a.Addr().As16()}
}

// start gives what comes to arrived, and the stamps of what has left to queued,
// before the answer to it; until the socket is closed.
func (s *socket) start(arrived func(b []byte, from netip.AddrPort, at stamp), queued func(frame []byte, bootNs int64)) {
	s.serving.Go(func() { s.serve(arrived, queued) })
}

// close closes the socket. What has come to it is read before.
func (s *socket) close() error {
	err := s.conn.SetReadDeadline(time.Unix(1, 0)) // over
	if err == nil {
		s.serving.Wait()
	}
	err = errors.Join(err, s.conn.Close())
	s.serving.Wait()
	return err
}

func (s *socket) serve(arrived func(b []byte, from netip.AddrPort, at stamp), queued func(frame []byte, bootNs int64)) {
	r := reader{socket: s, arrived: arrived, queued: queued, data: make([]byte, 1<<11), frame: make([]byte, 1<<11),
		control: make([]byte, 1<<9)}
	for {
		err := s.raw.Read(r.some)
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if errors.Is(err, os.ErrDeadlineExceeded) {
			r.rest()
			return
		}
		if err == nil {
			continue
		}
		// While a stamp waits and there is no room to send, Go does not wait for arrivals (ErrNotPollable), until
		// something comes. So they are looked for.
		if s.raw.Control(func(fd uintptr) { r.some(fd) }) != nil {
			return // closed
		}
		time.Sleep(time.Millisecond)
	}
}

// reader reads what has come to a socket.
type reader struct {
	*socket
	arrived              func(b []byte, from netip.AddrPort, at stamp)
	queued               func(frame []byte, bootNs int64) // nil: nobody asks for it
	data, frame, control []byte
}

// atOnce bounds what is read before somebody who closes the socket gets on.
const atOnce = 64

// rest reads what waits when the socket is to be closed, but not for ever while more comes.
func (r *reader) rest() {
	const most = 100 // times atOnce is more than a socket's buffer holds
	more := true
	for n := 0; more && n < most; n++ {
		if r.raw.Control(func(fd uintptr) { more = r.some(fd) }) != nil {
			return // closed
		}
	}
}

// some reads some of what has come, and reports whether there was any.
func (r *reader) some(fd uintptr) (any bool) {
	for range atOnce {
		n, at, from, ok := r.take(int(fd), 0, r.data, r.control)
		// A datagram has left before its answer comes.
		any = r.departures(int(fd)) || any
		if !ok {
			return any
		}
		any = true
		r.arrived(r.data[:n], from, at)
	}
	return true
}

func (r *reader) departures(fd int) (any bool) {
	for {
		n, at, _, ok := r.take(fd, unix.MSG_ERRQUEUE, r.frame, r.control)
		if !ok {
			return any
		}
		if any = true; at.byKernel && r.queued != nil {
			r.queued(r.frame[:n], at.bootNs)
		}
	}
}

// take reads one message without waiting; false: there is none.
func (s *socket) take(fd, flags int, buf, control []byte) (n int, at stamp, from netip.AddrPort, ok bool) {
	const errorsAtOnce = 16
	for range errorsAtOnce {
		n, m, _, sender, err := unix.Recvmsg(fd, buf, control, flags|unix.MSG_DONTWAIT)
		switch {
		case errors.Is(err, unix.EAGAIN):
			return 0, stamp{}, netip.AddrPort{}, false
		case err != nil: // EINTR, or one of the network's errors, which reading has taken away
			continue
		}
		return n, s.stamped(control[:m]), descriptor.AddrPort(sender), true
	}
	return 0, stamp{}, netip.AddrPort{}, false
}

// stamped is the stamp in a message's control data, or that of now.
func (s *socket) stamped(control []byte) stamp {
	boot, wall := s.now()
	all, err := unix.ParseSocketControlMessage(control)
	if err != nil {
		return stamp{bootNs: boot}
	}
	for _, m := range all {
		if m.Header.Level != unix.SOL_SOCKET || m.Header.Type != unix.SCM_TIMESTAMPING {
			continue
		}
		if at := firstTime(m.Data); at != 0 && wall >= at && wall-at <= longestAgo {
			return stamp{bootNs: boot - (wall - at), byKernel: true}
		}
	}
	return stamp{bootNs: boot}
}

// longestAgo is how old a stamp can be when it is read; one that is older, or of
// the future, was made before the wall clock was set.
const longestAgo = 5_000_000_000

// firstTime is the software's stamp in a struct scm_timestamping; 0: none.
func firstTime(data []byte) int64 {
	const half = int(unsafe.Sizeof(unix.Timespec{})) / 2
	if len(data) < 2*half {
		return 0
	}
	part := func(b []byte) int64 {
		if half == 4 {
			return int64(int32(binary.NativeEndian.Uint32(b)))
		}
		return int64(binary.NativeEndian.Uint64(b))
	}
	return part(data)*1e9 + part(data[half:])
}

// now reads the boot clock and the wall clock at one moment: of a few readings the
// one is taken in which the least time passed.
func (s *socket) now() (bootNs, wallNs int64) {
	const tries, together = 3, 20_000
	least := int64(-1)
	for range tries {
		var ts unix.Timespec
		before := s.clk.BootNs()
		if err := unix.ClockGettime(unix.CLOCK_REALTIME, &ts); err != nil { // as for the boot clock: see clock.System
			return before, 0
		}
		after := s.clk.BootNs()
		if took := after - before; least < 0 || took < least {
			least, bootNs, wallNs = took, before+took/2, ts.Nano()
		}
		if least <= together {
			break
		}
	}
	return bootNs, wallNs
}
