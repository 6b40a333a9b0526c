package field

import (
	"fmt"
	"time"

	"golang.org/x/sys/unix"
)

// bootNow is CLOCK_BOOTTIME, the clock of every record's t_boot_ns.
// All nodes of a rehearsal are on one machine and so share it.
func bootNow() (time.Duration, error) {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &ts); err != nil {
		return 0, fmt.Errorf("read boot clock: %w", err)
	}
	return time.Duration(ts.Nano()), nil
}
