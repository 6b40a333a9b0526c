package realtime

import (
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// poller waits for TAP devices to have frames, for a wake-up, or for a time.
type poller struct {
	epoll   int
	wakeFD  int
	parking *parking       // nil: the thread sleeps in each wait
	limit   kernelTimespec // of wait; here so that waiting allocates nothing
	events  [64]unix.EpollEvent
}

// parking saves system calls where they are dear. In a short wait the thread keeps
// its P: to give it away and to take it back costs calls of this and of another
// thread. In a long wait Go's own poller waits. If the thread slept in a system call
// of its own, the runtime would look sixty times whether to take its P away.
type parking struct {
	// gate is what Go's poller waits for: an epoll with the timer in it, and in long
	// waits the poller's too. In short ones Go's poller would be woken for nothing.
	gate  *os.File
	raw   syscall.RawConn
	fd    int // of gate
	timer int // ends a long wait: one of Go's would come up to a millisecond late
}

// longWait is the length from which on a wait is long. While frames are on the air,
// waits are shorter. What needs all threads to stop, as a collection of garbage
// does, interrupts a short wait by a signal.
const longWait = 20 * time.Millisecond

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

func newParking() (*parking, error) {
	fd, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("create epoll: %w", err)
	}
	if err := unix.SetNonblock(fd, true); err != nil { // or the runtime would not wait for it
		return nil, errors.Join(fmt.Errorf("create epoll: %w", err), unix.Close(fd))
	}
	timer, err := unix.TimerfdCreate(unix.CLOCK_MONOTONIC, unix.TFD_CLOEXEC|unix.TFD_NONBLOCK)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("create timer: %w", err), unix.Close(fd))
	}
	p := &parking{gate: os.NewFile(uintptr(fd), "epoll"), fd: fd, timer: timer}
	if p.raw, err = p.gate.SyscallConn(); err == nil {
		err = watch(fd, unix.EPOLL_CTL_ADD, timer, 0, true)
	}
	if err != nil {
		return nil, errors.Join(err, p.close())
	}
	return p, nil
}

func (p *parking) close() error { return errors.Join(p.gate.Close(), unix.Close(p.timer)) }

// wait waits until an epoll has something, at most so long (for ever below 0).
func (p *parking) wait(epoll int, timeout time.Duration) error {
	spec := unix.ItimerSpec{Value: unix.NsecToTimespec(max(timeout, 0).Nanoseconds())} // 0 stops it
	if err := unix.TimerfdSettime(p.timer, 0, &spec, nil); err != nil {
		return fmt.Errorf("set timer: %w", err)
	}
	if err := watch(p.fd, unix.EPOLL_CTL_ADD, epoll, 0, true); err != nil {
		return err
	}
	var events [1]unix.EpollEvent
	var n int
	var failed error
	err := p.raw.Read(func(uintptr) bool {
		n, failed = unix.EpollWait(p.fd, events[:], 0)
		return n > 0 || failed != nil && !errors.Is(failed, unix.EINTR)
	})
	return errors.Join(err, failed, watch(p.fd, unix.EPOLL_CTL_DEL, epoll, 0, false))
}

// watch adds, changes or removes what an epoll waits for.
func watch(epoll, op, fd, id int, want bool) error {
	ev := unix.EpollEvent{Fd: int32(id)}
	if want {
		ev.Events = unix.EPOLLIN
	}
	if err := unix.EpollCtl(epoll, op, fd, &ev); err != nil {
		return fmt.Errorf("set epoll for fd %d: %w", fd, err)
	}
	return nil
}

func (p *poller) close() error {
	err := errors.Join(unix.Close(p.epoll), unix.Close(p.wakeFD))
	if p.parking != nil {
		err = errors.Join(err, p.parking.close())
	}
	return err
}

func (p *poller) control(op, fd, id int, want bool) error { return watch(p.epoll, op, fd, id, want) }

// kernelTimespec is the 64-bit timespec that epoll_pwait2 takes on every
// architecture.
type kernelTimespec struct{ sec, nsec int64 }

// wait sleeps at most so long (for ever below 0) and returns what is ready.
func (p *poller) wait(timeout time.Duration) ([]unix.EpollEvent, error) {
	if p.parking == nil {
		return p.look(unix.Syscall6, timeout)
	}
	if timeout >= 0 && timeout < longWait {
		return p.look(unix.RawSyscall6, timeout)
	}
	if err := p.parking.wait(p.epoll, timeout); err != nil {
		return nil, fmt.Errorf("wait for frames: %w", err)
	}
	return p.look(unix.RawSyscall6, 0)
}

type systemCall = func(trap, a1, a2, a3, a4, a5, a6 uintptr) (r1, r2 uintptr, errno syscall.Errno)

// look is one call of epoll_pwait2(2).
func (p *poller) look(call systemCall, timeout time.Duration) ([]unix.EpollEvent, error) {
	var at unsafe.Pointer
	if timeout >= 0 {
		p.limit = kernelTimespec{int64(timeout / time.Second), int64(timeout % time.Second)}
		at = unsafe.Pointer(&p.limit)
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
