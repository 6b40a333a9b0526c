package gps

import (
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// Line is the cable, a pty, between a receiver (the master) and gpsd, which
// opens Path. The owner keeps the slave open too: otherwise a gpsd that restarts
// would hang the line up.
type Line struct {
	Path   string
	master *os.File
	raw    syscall.RawConn // of the master
	slave  *os.File
}

// OpenLine makes a raw line without echo that uid may open.
func OpenLine(uid, gid int) (*Line, error) {
	master, err := openUnwatched("/dev/ptmx")
	if err != nil {
		return nil, fmt.Errorf("open pty: %w", err)
	}
	l := &Line{master: master}
	fd := int(master.Fd())
	if l.raw, err = l.master.SyscallConn(); err == nil {
		err = l.openSlave(fd, uid, gid)
	}
	if err == nil {
		err = unix.SetNonblock(fd, true)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("open pty: %w", err), l.Close())
	}
	return l, nil
}

// openUnwatched opens an end of a line that nobody here waits for. Go's runtime watches
// what os.OpenFile opens, and would be woken by each epoch at both ends.
func openUnwatched(path string) (*os.File, error) {
	fd, err := unix.Open(path, unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: path, Err: err}
	}
	return os.NewFile(uintptr(fd), path), nil
}

func (l *Line) openSlave(master, uid, gid int) error {
	if err := unix.IoctlSetPointerInt(master, unix.TIOCSPTLCK, 0); err != nil {
		return fmt.Errorf("unlock: %w", err)
	}
	n, err := unix.IoctlGetInt(master, unix.TIOCGPTN)
	if err != nil {
		return fmt.Errorf("find slave: %w", err)
	}
	l.Path = fmt.Sprintf("/dev/pts/%d", n)
	if l.slave, err = openUnwatched(l.Path); err != nil {
		return err
	}
	tio, err := unix.IoctlGetTermios(int(l.slave.Fd()), unix.TCGETS)
	if err != nil {
		return fmt.Errorf("read line settings: %w", err)
	}
	// What cfmakeraw(3) clears and sets.
	tio.Iflag &^= unix.IGNBRK | unix.BRKINT | unix.PARMRK | unix.ISTRIP | unix.INLCR | unix.IGNCR | unix.ICRNL | unix.
		IXON
	tio.Oflag &^= unix.OPOST
	tio.Lflag &^= unix.ECHO | unix.ECHONL | unix.ICANON | unix.ISIG | unix.IEXTEN
	tio.Cflag = tio.Cflag&^(unix.CSIZE|unix.PARENB) | unix.CS8
	if err := unix.IoctlSetTermios(int(l.slave.Fd()), unix.TCSETS, tio); err != nil {
		return fmt.Errorf("make line raw: %w", err)
	}
	return os.Chown(l.Path, uid, gid)
}

// Write tries once and gives up when the line is full: a receiver does not wait
// for its reader.
func (l *Line) Write(b []byte) (n int, err error) {
	outer := l.raw.Write(func(fd uintptr) bool {
		n, err = unix.Write(int(fd), b)
		return true
	})
	if err == nil && n < len(b) {
		err = io.ErrShortWrite
	}
	return max(n, 0), errors.Join(outer, err)
}

// Close hangs the line up.
func (l *Line) Close() error {
	err := l.master.Close()
	if l.slave != nil {
		err = errors.Join(err, l.slave.Close())
	}
	return err
}
