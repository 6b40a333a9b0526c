// Package descriptor reaches the sockets of a program that this process has started, by
// descriptors of its own of the same sockets (pidfd_getfd(2)). It takes no privileges, and
// neither netlink nor /proc/net, which Android keeps from apps; but Linux 5.6, and a system
// that lets a process look into its own children. What is done with a socket stays out.
package descriptor

import (
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"sync"

	"golang.org/x/sys/unix"
)

// Program is a program that runs, until it is closed.
type Program struct {
	fds string // its folder of descriptors

	mu sync.Mutex
	fd int // its pidfd; -1: closed
}

// needed is what has to be there.
const needed = "Linux 5.6 or newer is needed, on Android version 12, and a system that lets a process read its own " +
	"children (kernel.yama.ptrace_scope at most 1)"

// because is why a call failed, with what has to be there where it is not.
func because(err error) error {
	if errors.Is(err, unix.ENOSYS) || errors.Is(err, fs.ErrPermission) {
		return fmt.Errorf("%w: %s", err, needed)
	}
	return err
}

// Of opens a child of this process that was not yet waited for, so that its number is its own.
func Of(pid int) (*Program, error) {
	if old() { // on an Android as old, the call would end this process
		return nil, fmt.Errorf("reach the sockets of process %d: %w", pid, because(unix.ENOSYS))
	}
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return nil, fmt.Errorf("reach the sockets of process %d: %w", pid, because(err))
	}
	return &Program{fds: filepath.Join("/proc", strconv.Itoa(pid), "fd"), fd: fd}, nil
}

// old reports whether the kernel is one before Linux 5.6, which has no pidfd_getfd.
func old() bool {
	var u unix.Utsname
	var major, minor int
	if unix.Uname(&u) != nil {
		return true
	}
	_, err := fmt.Sscanf(unix.ByteSliceToString(u.Release[:]), "%d.%d", &major, &minor)
	return err != nil || major < 5 || major == 5 && minor < 6
}

// Close lets the program go.
func (p *Program) Close() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.fd < 0 {
		return nil
	}
	err := unix.Close(p.fd)
	p.fd = -1
	return err
}

// Socket is one of a program's.
type Socket struct {
	number int
	inode  uint64 // which no two have
}

// Sockets lists the program's open sockets; none once it has ended.
func (p *Program) Sockets() ([]Socket, error) {
	files, err := os.ReadDir(p.fds)
	if errors.Is(err, os.ErrNotExist) || errors.Is(err, unix.ESRCH) || errors.Is(err, fs.ErrPermission) && p.ends() {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("list a program's sockets: %w", because(err))
	}
	var out []Socket
	for _, f := range files {
		number, err := strconv.Atoi(f.Name())
		if err != nil {
			continue
		}
		if s := (Socket{number: number}); p.read(&s) {
			out = append(out, s)
		}
	}
	return out, nil
}

// ends reports whether the program has ended, or does at once: one that is about to cannot be looked into any more.
func (p *Program) ends() bool {
	const soonMs = 100
	p.mu.Lock()
	defer p.mu.Unlock()
	for {
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(p.fd), Events: unix.POLLIN}}, soonMs)
		if !errors.Is(err, unix.EINTR) {
			return p.fd < 0 || err == nil && n > 0
		}
	}
}

// read reads which socket has a number; false: none.
func (p *Program) read(s *Socket) bool {
	name, err := os.Readlink(filepath.Join(p.fds, strconv.Itoa(s.number)))
	if err != nil {
		return false
	}
	_, err = fmt.Sscanf(name, "socket:[%d]", &s.inode)
	return err == nil
}

// Has reports whether the program still has a socket open.
func (p *Program) Has(s Socket) bool {
	now := s
	return p.read(&now) && now == s
}

// Take gives a descriptor of the same socket, which the caller closes: until then the socket
// stays open, and its peer hears nothing of the program's closing it. ok is false where the
// program has closed it before.
func (p *Program) Take(s Socket) (fd int, ok bool, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.fd < 0 {
		return -1, false, nil
	}
	fd, err = unix.PidfdGetfd(p.fd, s.number, 0)
	switch {
	case errors.Is(err, unix.EBADF), errors.Is(err, unix.ESRCH):
		return -1, false, nil
	case err != nil:
		return -1, false, fmt.Errorf("reach a program's socket: %w", because(err))
	}
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil || st.Ino != s.inode { // another has the number now
		return -1, false, errors.Join(err, unix.Close(fd))
	}
	return fd, true, nil
}

// AddrPort is a socket's address of the internet's, the zero value for another. One of IPv4 that a socket of IPv6 has
// is that of IPv4.
func AddrPort(sa unix.Sockaddr) netip.AddrPort {
	switch a := sa.(type) {
	case *unix.SockaddrInet4:
		return netip.AddrPortFrom(netip.AddrFrom4(a.Addr), uint16(a.Port))
	case *unix.SockaddrInet6:
		return netip.AddrPortFrom(netip.AddrFrom16(a.Addr).Unmap(), uint16(a.Port))
	}
	return netip.AddrPort{}
}
