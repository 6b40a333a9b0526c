package field

import (
	"errors"
	"fmt"
	"os"
	"runtime"

	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"

	"fieldmesh.dev/fieldmesh/rehearsal/realtime"
)

// thread is one OS thread of the field's own, on which everything is done that
// must happen inside a namespace. It also is the parent, in the kernel's eyes,
// of the processes started on it: their parent-death signal comes when it
// ends, so it lives as long as the field.
type thread struct {
	calls chan func()
	ended chan struct{}
}

func newThread() *thread {
	t := &thread{calls: make(chan func()), ended: make(chan struct{})}
	go func() {
		defer close(t.ended)
		runtime.LockOSThread() // and never unlocked: the thread ends with this goroutine
		for f := range t.calls {
			f()
		}
	}()
	return t
}

// close ends the thread, and with it every process that was started on it.
func (t *thread) close() {
	close(t.calls)
	<-t.ended
}

// in calls f inside a named namespace.
func (t *thread) in(name string, f func() error) error {
	return t.away(func() error {
		ns, err := netns.GetFromName(name)
		if err != nil {
			return fmt.Errorf("open namespace %q: %w", name, err)
		}
		defer ns.Close()
		if err := netns.Set(ns); err != nil {
			return fmt.Errorf("enter namespace %q: %w", name, err)
		}
		return f()
	})
}

// namesDir is where named namespaces are bound, as iproute2 does it.
const namesDir = "/run/netns"

// shareNames makes the folder of names a shared mount, exactly as the first
// "ip netns add" of a machine does. Without it that first one, run while a
// field is up, would hide the field's names under a second mount, and they
// could not be deleted.
func shareNames() error {
	if err := os.MkdirAll(namesDir, 0o755); err != nil {
		return fmt.Errorf("create %s: %w", namesDir, err)
	}
	err := unix.Mount("", namesDir, "none", unix.MS_SHARED|unix.MS_REC, "")
	if errors.Is(err, unix.EINVAL) { // no mount point yet
		if err = unix.Mount(namesDir, namesDir, "none", unix.MS_BIND|unix.MS_REC, ""); err == nil {
			err = unix.Mount("", namesDir, "none", unix.MS_SHARED|unix.MS_REC, "")
		}
	}
	if err != nil {
		return fmt.Errorf("share %s: %w", namesDir, err)
	}
	return nil
}

// create makes a named namespace and calls f inside it. shareNames comes first.
func (t *thread) create(name string, f func() error) error {
	return t.away(func() error {
		ns, err := netns.NewNamed(name) // the thread is inside now
		if err != nil {
			return fmt.Errorf("create namespace %q: %w", name, err)
		}
		defer ns.Close()
		return f()
	})
}

// away calls f, which may go to another namespace, and comes back.
func (t *thread) away(f func() error) error {
	done := make(chan error, 1)
	t.calls <- func() {
		home, err := netns.Get()
		if err = errors.Join(err, realtime.OrdinaryChildren()); err != nil {
			done <- fmt.Errorf("prepare the field's thread: %w", err)
			return
		}
		defer home.Close()
		err = f()
		if back := netns.Set(home); back != nil {
			err = errors.Join(err, fmt.Errorf("leave namespace: %w", back))
		}
		done <- err
	}
	return <-done
}
