package fleet

import (
	"context"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"runtime"
	"time"

	"golang.org/x/sys/unix"

	"fieldmesh.dev/fieldmesh/internal/android"
)

// dialer makes connections, from inside a named namespace if there is a name.
func dialer(netns string) func(ctx context.Context, network, address string) (net.Conn, error) {
	plain := &net.Dialer{
		Timeout: dialTime,
		// A cut link is noticed on an idle connection, and not at the next call.
		KeepAliveConfig: net.KeepAliveConfig{Enable: true, Idle: 5 * time.Second, Interval: 2 * time.Second, Count: 3},
	}
	if netns == "" {
		return func(ctx context.Context, network, address string) (net.Conn, error) {
			conn, err := plain.DialContext(ctx, network, address)
			return conn, android.Explain(err)
		}
	}
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		return dialInside(ctx, plain, netns, network, address)
	}
}

// dialInside dials on a thread that is in the namespace while it dials. The
// address is numeric (see Node.check), so that the socket is made on this very
// thread, with no resolver and no second attempt beside it.
func dialInside(ctx context.Context, plain *net.Dialer, netns, network, address string) (net.Conn, error) {
	type result struct {
		conn net.Conn
		err  error
	}
	done := make(chan result, 1)
	go func() {
		runtime.LockOSThread()
		var r result
		back, err := enter(netns)
		if err != nil {
			r.err = err
		} else {
			r.conn, r.err = plain.DialContext(ctx, network, address)
			if err := back(); err != nil {
				// Ends still locked, so that the runtime throws away the thread
				// that is stuck in the wrong namespace.
				done <- r
				return
			}
		}
		runtime.UnlockOSThread()
		done <- r
	}()
	// DialContext ends with ctx or its own limit, so this wait does too.
	r := <-done
	return r.conn, r.err
}

// enter moves this thread into a named namespace and returns the way back.
func enter(netns string) (back func() error, err error) {
	home, err := unix.Open("/proc/thread-self/ns/net", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("open own namespace: %w", err)
	}
	there, err := unix.Open(filepath.Join("/run/netns", netns), unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("open namespace %q: %w", netns, err), unix.Close(home))
	}
	if err := unix.Setns(there, unix.CLONE_NEWNET); err != nil {
		if errors.Is(err, unix.EPERM) {
			err = fmt.Errorf("%w; entering a namespace needs root", err)
		}
		return nil, errors.Join(fmt.Errorf("enter namespace %q: %w", netns, err), unix.Close(there), unix.Close(home))
	}
	return func() error {
		return errors.Join(unix.Setns(home, unix.CLONE_NEWNET), unix.Close(there), unix.Close(home))
	}, nil
}
