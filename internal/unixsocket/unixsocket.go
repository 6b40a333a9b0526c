// Package unixsocket serves the sockets by which programs of one machine talk.
package unixsocket

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"sync"

	"golang.org/x/sys/unix"
)

// Listen makes a socket in the place of one that a former process left there.
// Only its owner may connect where mode is 0600: connecting needs the right to
// write. Its owner is uid, or this process's user where uid is 0.
func Listen(path string, mode os.FileMode, uid int) (*net.UnixListener, error) {
	if info, err := os.Lstat(path); err == nil {
		if info.Mode()&os.ModeSocket == 0 {
			return nil, fmt.Errorf("listen on %q: something that is not a socket is there", path)
		}
		if err := os.Remove(path); err != nil {
			return nil, fmt.Errorf("remove old socket: %w", err)
		}
	}
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		return nil, fmt.Errorf("listen: %w", err)
	}
	err = os.Chmod(path, mode)
	if err == nil && uid != 0 && uid != os.Geteuid() {
		err = os.Chown(path, uid, -1)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("give socket to its user: %w", err), l.Close())
	}
	return l, nil
}

// Serve calls serve with each connection, in a goroutine of its own, until ctx
// ends or the socket fails. It returns when every call has returned; serve's
// context ends first. Of more connections than most at a time it tells refuse,
// which closes them. A quarter of them is for other users than the one who has
// three quarters: none keeps root out.
func Serve(ctx context.Context, l *net.UnixListener, most int, refuse func(*net.UnixConn),
	serve func(context.Context, *net.UnixConn)) error {
	ctx, cancel := context.WithCancel(ctx)
	var calls sync.WaitGroup
	defer calls.Wait()
	defer cancel()
	stop := context.AfterFunc(ctx, func() { _ = l.Close() })
	defer stop()
	var mu sync.Mutex
	all, of := 0, map[int]int{} // connections of each user
	for {
		conn, err := l.AcceptUnix()
		if ctx.Err() != nil {
			if conn != nil {
				_ = conn.Close()
			}
			return nil
		}
		if err != nil {
			return errors.Join(fmt.Errorf("accept on %q: %w", l.Addr(), err), l.Close())
		}
		uid, err := Peer(conn)
		mu.Lock()
		taken := err != nil || all == most || of[uid] == most-most/4
		if !taken {
			all++
			of[uid]++
		}
		mu.Unlock()
		if taken {
			refuse(conn)
			continue
		}
		calls.Go(func() {
			defer func() {
				mu.Lock()
				all--
				if of[uid]--; of[uid] == 0 {
					delete(of, uid)
				}
				mu.Unlock()
			}()
			serve(ctx, conn)
		})
	}
}

// Peer returns the user at the other end; of a client's connection, the one that
// listens.
func Peer(conn *net.UnixConn) (int, error) {
	raw, err := conn.SyscallConn()
	if err != nil {
		return 0, fmt.Errorf("read peer's credentials: %w", err)
	}
	var cred *unix.Ucred
	var credErr error
	if err := raw.Control(func(fd uintptr) {
		cred, credErr = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED)
	}); err != nil {
		return 0, fmt.Errorf("read peer's credentials: %w", err)
	}
	if credErr != nil {
		return 0, fmt.Errorf("read peer's credentials: %w", credErr)
	}
	return int(cred.Uid), nil
}

// Relay hands on what comes for a client, until the context ends, the client is gone or it
// takes no more.
func Relay[T any](ctx context.Context, gone <-chan struct{}, from <-chan T, write func(T) error) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-gone:
			return
		case v := <-from:
			if write(v) != nil {
				return
			}
		}
	}
}

// Owner returns the user who listens at an address.
func Owner(address *net.UnixAddr) (uid int, err error) {
	conn, err := net.DialUnix("unix", nil, address)
	if err != nil {
		return 0, err
	}
	defer conn.Close()
	return Peer(conn)
}
