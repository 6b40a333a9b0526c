package field

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// pty is the cable between an emulated receiver (Master) and gpsd, which opens
// SlavePath. The owner keeps the slave open too: otherwise a gpsd that restarts
// would hang the line up.
type pty struct {
	Master    *os.File
	slave     *os.File
	SlavePath string
}

// openPTY makes a raw line without echo that uid may open.
func openPTY(uid, gid int) (*pty, error) {
	fd, err := unix.Open("/dev/ptmx", unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, fmt.Errorf("open pty: %w", err)
	}
	p := &pty{Master: os.NewFile(uintptr(fd), "ptmx")}
	if err := p.openSlave(fd, uid, gid); err != nil {
		return nil, errors.Join(fmt.Errorf("open pty: %w", err), p.Close())
	}
	return p, nil
}

func (p *pty) openSlave(master, uid, gid int) error {
	if err := unix.IoctlSetPointerInt(master, unix.TIOCSPTLCK, 0); err != nil {
		return fmt.Errorf("unlock: %w", err)
	}
	n, err := unix.IoctlGetInt(master, unix.TIOCGPTN)
	if err != nil {
		return fmt.Errorf("find slave: %w", err)
	}
	p.SlavePath = fmt.Sprintf("/dev/pts/%d", n)
	if p.slave, err = os.OpenFile(p.SlavePath, os.O_RDWR|unix.O_NOCTTY, 0); err != nil {
		return err
	}
	tio, err := unix.IoctlGetTermios(int(p.slave.Fd()), unix.TCGETS)
	if err != nil {
		return fmt.Errorf("read line settings: %w", err)
	}
	// What cfmakeraw(3) clears and sets.
	tio.Iflag &^= unix.IGNBRK | unix.BRKINT | unix.PARMRK | unix.ISTRIP | unix.INLCR | unix.IGNCR | unix.ICRNL | unix.
		IXON
	tio.Oflag &^= unix.OPOST
	tio.Lflag &^= unix.ECHO | unix.ECHONL | unix.ICANON | unix.ISIG | unix.IEXTEN
	tio.Cflag = tio.Cflag&^(unix.CSIZE|unix.PARENB) | unix.CS8
	if err := unix.IoctlSetTermios(int(p.slave.Fd()), unix.TCSETS, tio); err != nil {
		return fmt.Errorf("make line raw: %w", err)
	}
	return os.Chown(p.SlavePath, uid, gid)
}

// Close hangs the line up.
func (p *pty) Close() error {
	err := p.Master.Close()
	if p.slave != nil {
		err = errors.Join(err, p.slave.Close())
	}
	return err
}
