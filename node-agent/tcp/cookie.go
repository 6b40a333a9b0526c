package tcp

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
)

// Cookie is the number of this thread's network namespace, unique within a
// boot (SO_NETNS_COOKIE, from Linux 5.14).
func Cookie() (uint64, error) {
	s, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return 0, fmt.Errorf("open socket: %w", err)
	}
	cookie, err := unix.GetsockoptUint64(s, unix.SOL_SOCKET, unix.SO_NETNS_COOKIE)
	if err := errors.Join(err, unix.Close(s)); err != nil {
		return 0, fmt.Errorf("read namespace cookie: %w", err)
	}
	return cookie, nil
}
