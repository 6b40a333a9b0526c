package manetd

import (
	"net/netip"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// The calls in this file never wait, and so are made without telling Go's
// scheduler of them. Telling it has a thread of the runtime wake that watches
// over calls which take long: for a daemon at rest, that thread would cost more
// than all else.

// again reports whether a call is to be made again.
func again(e syscall.Errno) bool { return e == unix.EINTR }

func result(e syscall.Errno) error {
	if e == 0 {
		return nil
	}
	return e
}

// readNow reads what is there; EAGAIN says that nothing is.
func readNow(fd int, b []byte) (int, error) {
	for {
		n, _, e := syscall.RawSyscall(unix.SYS_READ, uintptr(fd), uintptr(unsafe.Pointer(unsafe.SliceData(b))),
			uintptr(len(b)))
		if !again(e) {
			return int(n), result(e)
		}
	}
}

func writeNow(fd int, b []byte) error {
	for {
		_, _, e := syscall.RawSyscall(unix.SYS_WRITE, uintptr(fd), uintptr(unsafe.Pointer(unsafe.SliceData(b))),
			uintptr(len(b)))
		if !again(e) {
			return result(e)
		}
	}
}

func receiveNow(fd int, m *unix.Msghdr) (int, error) {
	for {
		n, _, e := syscall.RawSyscall(unix.SYS_RECVMSG, uintptr(fd), uintptr(unsafe.Pointer(m)), unix.MSG_DONTWAIT)
		if !again(e) {
			return int(n), result(e)
		}
	}
}

func sendNow(fd int, m *unix.Msghdr) error {
	for {
		_, _, e := syscall.RawSyscall(unix.SYS_SENDMSG, uintptr(fd), uintptr(unsafe.Pointer(m)), unix.MSG_DONTWAIT)
		if !again(e) {
			return result(e)
		}
	}
}

// message is struct mmsghdr: one of several to be sent or received at once.
type message struct {
	header unix.Msghdr
	bytes  uint32 // that were sent or received
}

// receiveAllNow fills messages from the first on and says how many.
func receiveAllNow(fd int, m []message) (int, error) {
	for {
		n, _, e := syscall.RawSyscall6(unix.SYS_RECVMMSG, uintptr(fd), uintptr(unsafe.Pointer(unsafe.SliceData(m))),
			uintptr(len(m)), unix.MSG_DONTWAIT, 0, 0)
		if !again(e) {
			return int(n), result(e)
		}
	}
}

// sendAllNow sends messages from the first on and says how many; where that is
// not all, the error is that of the first that remains.
func sendAllNow(fd int, m []message) (sent int, err error) {
	for sent < len(m) {
		rest := m[sent:]
		n, _, e := syscall.RawSyscall6(unix.SYS_SENDMMSG, uintptr(fd), uintptr(unsafe.Pointer(unsafe.SliceData(rest))),
			uintptr(len(rest)), unix.MSG_DONTWAIT, 0, 0)
		switch {
		case again(e):
		case e != 0:
			return sent, e
		default:
			sent += int(n)
		}
	}
	return sent, nil
}

// pollNow gives what an epoll instance has ready.
func pollNow(fd int, events []unix.EpollEvent) (int, error) {
	for {
		n, _, e := syscall.RawSyscall6(unix.SYS_EPOLL_PWAIT, uintptr(fd),
			uintptr(unsafe.Pointer(unsafe.SliceData(events))), uintptr(len(events)), 0, 0, 0)
		if !again(e) {
			return int(n), result(e)
		}
	}
}

func setTimerNow(fd int, t *unix.ItimerSpec) error {
	_, _, e := syscall.RawSyscall6(unix.SYS_TIMERFD_SETTIME, uintptr(fd), 0, uintptr(unsafe.Pointer(t)), 0, 0, 0)
	return result(e)
}

// inet4 is an address as the kernel has it.
func inet4(a netip.Addr, port uint16) unix.RawSockaddrInet4 {
	return unix.RawSockaddrInet4{Family: unix.AF_INET, Port: networkOrder(port), Addr: a.As4()}
}
