package pause

import (
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Alarm waits again and again, by a timer of the kernel (timerfd_create(2)) on the boot
// clock. A timer of Go's is up to a millisecond late, as its poller counts in those, and
// meanwhile the runtime looks every 20 µs whether it is due: 10 to 150 system calls for
// each wait. Only one caller at a time may wait.
type Alarm struct {
	timer *os.File
	raw   syscall.RawConn
}

// NewAlarm makes an alarm; the caller closes it.
func NewAlarm() (*Alarm, error) {
	fd, err := unix.TimerfdCreate(unix.CLOCK_BOOTTIME, unix.TFD_NONBLOCK|unix.TFD_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("create timer: %w", err)
	}
	a := &Alarm{timer: os.NewFile(uintptr(fd), "timer")}
	if a.raw, err = a.timer.SyscallConn(); err != nil {
		return nil, errors.Join(err, a.timer.Close())
	}
	return a, nil
}

// For waits for a while, and returns why the context ended where it does before.
func (a *Alarm) For(ctx context.Context, d time.Duration) error {
	if err := a.set(d); err != nil {
		return err
	}
	stop := context.AfterFunc(ctx, func() { _ = a.set(0) })
	defer stop()
	var count [8]byte
	if _, err := a.timer.Read(count[:]); err != nil {
		return fmt.Errorf("wait for timer: %w", err)
	}
	return context.Cause(ctx)
}

// set has the timer expire after a while, at least a nanosecond: 0 would stop it.
func (a *Alarm) set(d time.Duration) error {
	spec := unix.ItimerSpec{Value: unix.NsecToTimespec(max(d, 1).Nanoseconds())}
	var serr error
	err := a.raw.Control(func(fd uintptr) { serr = unix.TimerfdSettime(int(fd), 0, &spec, nil) })
	if err = errors.Join(err, serr); err != nil {
		return fmt.Errorf("set timer: %w", err)
	}
	return nil
}

// Close gives the timer back.
func (a *Alarm) Close() error { return a.timer.Close() }
