package manetd

import (
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"fieldmesh.dev/fieldmesh/protocols/manet"
)

// poller waits for the sockets that the daemon reads and for its clock, all at
// once. It is an epoll instance of its own, for which in turn Go's runtime waits:
// so a packet wakes one thread once, and having sent one, which would make a
// socket that the runtime knows "writable" again, wakes none. The clock is the
// kernel's, as Go's timers are for whole milliseconds and wake for each twice.
type poller struct {
	file   *os.File
	raw    syscall.RawConn
	epoll  int
	clock  int
	setTo  manet.Time // what the clock is set to; 0: it is to be set again
	ready  [8]unix.EpollEvent
	reader map[int32]func(manet.Time) error
}

func openPoller() (*poller, error) {
	fd, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("open epoll: %w", err)
	}
	if err := unix.SetNonblock(fd, true); err != nil { // or the runtime would not wait for it
		return nil, errors.Join(fmt.Errorf("open epoll: %w", err), unix.Close(fd))
	}
	p := &poller{file: os.NewFile(uintptr(fd), "epoll"), epoll: fd, clock: -1,
		reader: map[int32]func(manet.Time) error{}}
	if p.raw, err = p.file.SyscallConn(); err != nil {
		return nil, errors.Join(fmt.Errorf("open epoll: %w", err), p.close())
	}
	if p.clock, err = unix.TimerfdCreate(unix.CLOCK_MONOTONIC, unix.TFD_CLOEXEC|unix.TFD_NONBLOCK); err != nil {
		return nil, errors.Join(fmt.Errorf("open clock: %w", err), p.close())
	}
	if err := p.add(p.clock, func(manet.Time) error {
		p.setTo = 0 // setting it silences it
		return nil
	}); err != nil {
		return nil, errors.Join(err, p.close())
	}
	return p, nil
}

// add has a function called when there is something to read.
func (p *poller) add(fd int, read func(now manet.Time) error) error {
	err := unix.EpollCtl(p.epoll, unix.EPOLL_CTL_ADD, fd, &unix.EpollEvent{Events: unix.EPOLLIN, Fd: int32(fd)})
	if err != nil {
		return fmt.Errorf("wait for packets: %w", err)
	}
	p.reader[int32(fd)] = read
	return nil
}

// wait waits until there is something to read, or the poller is closed.
func (p *poller) wait() (n int, err error) {
	var polling error
	err = p.raw.Read(func(fd uintptr) bool {
		n, polling = pollNow(int(fd), p.ready[:])
		return n > 0 || polling != nil
	})
	if err := errors.Join(err, polling); err != nil {
		return 0, fmt.Errorf("wait for packets: %w", err)
	}
	return n, nil
}

// read reads what wait has found.
func (p *poller) read(n int, now manet.Time) error {
	for _, e := range p.ready[:n] {
		if err := p.reader[e.Fd](now); err != nil {
			return err
		}
	}
	return nil
}

// set has wait return at a time; one that never comes is far away.
func (p *poller) set(now, at manet.Time) error {
	if at == p.setTo {
		return nil
	}
	p.setTo = at
	in := max(at-now, 1) // none at all would stop it
	if err := setTimerNow(p.clock, &unix.ItimerSpec{Value: unix.NsecToTimespec(int64(min(in, 1000*time.Hour)))}); err !=
		nil {
		return fmt.Errorf("set clock: %w", err)
	}
	return nil
}

// stop ends wait, now and for ever.
func (p *poller) stop() error { return p.file.Close() }

// close lets go of everything.
func (p *poller) close() error {
	err := ignoreClosed(p.file.Close())
	if p.clock >= 0 {
		err = errors.Join(err, unix.Close(p.clock))
	}
	return err
}
