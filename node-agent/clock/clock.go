// Package clock is how the agent tells time: the monotonic boot clock, by
// which every record is placed, and the wall clock, which is only ever data.
// The alignment of two nodes' clocks is not here.
package clock

import (
	"bytes"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// Clock tells time. BootNs counts on while the machine sleeps and never steps.
type Clock interface {
	BootNs() int64 // nanoseconds since boot, CLOCK_BOOTTIME
	Wall() time.Time
}

// System is the machine's own clock.
type System struct{}

// BootNs is CLOCK_BOOTTIME in nanoseconds.
func (System) BootNs() int64 {
	if v := inVirtualTime(); v != nil {
		return v.bootNs + time.Since(v.at).Nanoseconds()
	}
	return readBootNs()
}

func readBootNs() int64 {
	var ts unix.Timespec
	// clock_gettime(2) fails only for a clock that the kernel does not have
	// (CLOCK_BOOTTIME: since 2.6.39) or a bad pointer; neither can be here.
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &ts); err != nil {
		return 0
	}
	return ts.Nano()
}

// virtualTime is a moment by both clocks of a kernel in virtual time.
type virtualTime struct {
	bootNs int64
	at     time.Time
}

// inVirtualTime is set in a kernel in virtual time, which is never suspended: its boot
// clock is the monotonic one. Go reads that without a system call, which is dear there.
var inVirtualTime = sync.OnceValue(func() *virtualTime {
	line, err := os.ReadFile("/proc/cmdline")
	if err != nil || !bytes.Contains(line, []byte("time-travel=")) {
		return nil
	}
	return &virtualTime{bootNs: readBootNs(), at: time.Now()}
})

// AsleepNs is for how long the machine has been suspended since it was started:
// its monotonic clock stands still meanwhile, and its boot clock does not.
func AsleepNs() int64 {
	const together = int64(time.Millisecond) // unless the thread lost its processor in between
	asleep := int64(0)
	for range 3 {
		boot, monotonic := readBootNs(), unix.Timespec{}
		if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &monotonic); err != nil { // as for the boot clock
			return 0
		}
		asleep = boot - monotonic.Nano()
		if readBootNs()-boot < together {
			break
		}
	}
	return asleep
}

// SlewedNs is by how much adjusting has put the machine's boot clock forward since it
// was started: what keeps the wall clock adjusts the rate of both. It is false when the
// clocks could not be read together.
func SlewedNs() (ns int64, ok bool) {
	const together = int64(100 * time.Microsecond) // unless the thread lost its processor in between
	for range 3 {
		var times [3]unix.Timespec // all stand still while the machine sleeps
		for i, id := range []int32{unix.CLOCK_MONOTONIC, unix.CLOCK_MONOTONIC_RAW, unix.CLOCK_MONOTONIC} {
			if unix.ClockGettime(id, &times[i]) != nil {
				return 0, false
			}
		}
		before, raw, after := times[0].Nano(), times[1].Nano(), times[2].Nano()
		if after-before < together {
			return before + (after-before)/2 - raw, true
		}
	}
	return 0, false
}

// BootID is the kernel's random name of the present boot.
func BootID() (string, error) {
	id, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return "", fmt.Errorf("read boot id: %w", err)
	}
	return strings.TrimSpace(string(id)), nil
}

// Wall is the wall clock, in UTC.
func (System) Wall() time.Time { return time.Now().UTC() }

// buildSlack allows for a builder whose clock was ahead.
const buildSlack = 24 * time.Hour

// IsUnset says that a wall clock cannot have been set since its machine was
// started: it is before the program was built. A zero build date is unknown.
func IsUnset(wall, built time.Time) bool {
	return !built.IsZero() && wall.Before(built.Add(-buildSlack))
}
