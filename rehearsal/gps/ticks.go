package gps

import (
	"errors"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// ticks come at multiples of a period of wall time.
type ticks struct {
	period time.Duration
	file   *os.File // of a timer (timerfd_create(2))
}

func newTicks(period time.Duration) (*ticks, error) {
	fd, err := unix.TimerfdCreate(unix.CLOCK_REALTIME, unix.TFD_NONBLOCK|unix.TFD_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("create timer: %w", err)
	}
	t := &ticks{period: period, file: os.NewFile(uintptr(fd), "timer")}
	if err := t.set(fd); err != nil {
		return nil, errors.Join(err, t.file.Close())
	}
	return t, nil
}

// set begins with the next multiple, until the wall clock is set to another time.
func (t *ticks) set(fd int) error {
	first := time.Now().Truncate(t.period).Add(t.period)
	spec := unix.ItimerSpec{Interval: unix.NsecToTimespec(t.period.Nanoseconds()),
		Value: unix.NsecToTimespec(first.UnixNano())}
	if err := unix.TimerfdSettime(fd, unix.TFD_TIMER_ABSTIME|unix.TFD_TIMER_CANCEL_ON_SET, &spec, nil); err != nil {
		return fmt.Errorf("set timer: %w", err)
	}
	return nil
}

// next waits for the next tick, and returns its time. Those that nobody waited for
// are left out.
func (t *ticks) next() (time.Time, error) {
	var count [8]byte
	for {
		_, err := t.file.Read(count[:])
		if err == nil {
			return time.Now().Truncate(t.period), nil
		}
		if !errors.Is(err, unix.ECANCELED) {
			return time.Time{}, fmt.Errorf("wait for timer: %w", err)
		}
		raw, err := t.file.SyscallConn()
		if err == nil {
			var serr error
			err = errors.Join(raw.Control(func(fd uintptr) { serr = t.set(int(fd)) }), serr)
		}
		if err != nil {
			return time.Time{}, err
		}
	}
}
