package realtime

import (
	"errors"
	"fmt"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// poller waits for TAP devices to have frames, for a wake-up, or for a time.
type poller struct {
	epoll  int
	wakeFD int
	// keepsPlace: the thread keeps its P in short waits. To give it away and to take
	// it back costs system calls of this and of another thread.
	keepsPlace bool
	limit      kernelTimespec // of wait; here so that waiting allocates nothing
	events     [64]unix.EpollEvent
}

// keepPlace is the length of a wait from which on the P is given away. While
// frames are on the air, waits are shorter. What needs all threads to stop, as a
// collection of garbage does, interrupts a wait by a signal.
const keepPlace = 20 * time.Millisecond

// wakeID is the wake-up's place among the ports' numbers.
const wakeID = -1

// airID is that of the nodes' own radios.
const airID = -2

func newPoller() (*poller, error) {
	ep, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("create epoll: %w", err)
	}
	wake, err := unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("create eventfd: %w", err), unix.Close(ep))
	}
	p := &poller{epoll: ep, wakeFD: wake}
	if err := p.control(unix.EPOLL_CTL_ADD, wake, wakeID, true); err != nil {
		return nil, errors.Join(err, p.close())
	}
	return p, nil
}

func (p *poller) close() error { return errors.Join(unix.Close(p.epoll), unix.Close(p.wakeFD)) }

func (p *poller) control(op, fd, id int, want bool) error {
	ev := unix.EpollEvent{Fd: int32(id)}
	if want {
		ev.Events = unix.EPOLLIN
	}
	if err := unix.EpollCtl(p.epoll, op, fd, &ev); err != nil {
		return fmt.Errorf("set epoll for fd %d: %w", fd, err)
	}
	return nil
}

// kernelTimespec is the 64-bit timespec that epoll_pwait2 takes on every
// architecture.
type kernelTimespec struct{ sec, nsec int64 }

// wait sleeps at most so long (for ever below 0) and returns what is ready.
func (p *poller) wait(timeout time.Duration) ([]unix.EpollEvent, error) {
	var at unsafe.Pointer
	if timeout >= 0 {
		p.limit = kernelTimespec{int64(timeout / time.Second), int64(timeout % time.Second)}
		at = unsafe.Pointer(&p.limit)
	}
	call := unix.Syscall6
	if p.keepsPlace && timeout >= 0 && timeout < keepPlace {
		call = unix.RawSyscall6
	}
	n, _, errno := call(unix.SYS_EPOLL_PWAIT2, uintptr(p.epoll),
		uintptr(unsafe.Pointer(&p.events[0])), uintptr(len(p.events)), uintptr(at), 0, 0)
	switch errno {
	case 0:
		return p.events[:n], nil
	case unix.EINTR:
		return nil, nil
	case unix.ENOSYS:
		return nil, fmt.Errorf("wait for frames: epoll_pwait2 needs Linux 5.11 or newer: %w", errno)
	}
	return nil, fmt.Errorf("wait for frames: %w", errno)
}

// wake ends a wait from another thread.
func (p *poller) wake() {
	one := [8]byte{1}
	// The counter is full only when a wake-up is already due.
	_, _ = unix.Write(p.wakeFD, one[:])
}

func (p *poller) clearWake() {
	var count [8]byte
	_, _ = unix.Read(p.wakeFD, count[:])
}

// readFD and writeFD skip the scheduler's hand-over: on a non-blocking TAP the
// call takes about a microsecond, less than the hand-over.
func readFD(fd int, buf []byte) (int, error) {
	n, _, errno := unix.RawSyscall(unix.SYS_READ, uintptr(fd), uintptr(unsafe.Pointer(&buf[0])), uintptr(len(buf)))
	if errno != 0 {
		return 0, errno
	}
	return int(n), nil
}

func writeFD(fd int, buf []byte) error {
	_, _, errno := unix.RawSyscall(unix.SYS_WRITE, uintptr(fd), uintptr(unsafe.Pointer(&buf[0])), uintptr(len(buf)))
	if errno != 0 {
		return errno
	}
	return nil
}
