package realtime

import (
	"context"
	"os/exec"
	"runtime"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// raised starts what raises this process's threads, and waits until all are. Where
// SCHED_FIFO is refused the test is skipped.
func raised(t *testing.T, born bool) {
	t.Helper()
	ctx, end := context.WithCancel(t.Context())
	lowered := make(chan struct{})
	go func() { defer close(lowered); _ = raiseThreads(ctx, born) }()
	t.Cleanup(func() { end(); <-lowered })
	for until := time.Now().Add(5 * time.Second); time.Now().Before(until); time.Sleep(time.Millisecond) {
		ordinary := 0
		err := eachThread(func(_ int, a *unix.SchedAttr) {
			if a.Policy != unix.SCHED_FIFO {
				ordinary++
			}
		})
		if err == nil && ordinary == 0 {
			return
		}
	}
	t.Skip("SCHED_FIFO is refused, or did not come within 5 s")
}

// policies are those of new threads, before anything can have raised them.
func policies(t *testing.T) map[uint32]int {
	t.Helper()
	const threads = 20
	found, told, end := map[uint32]int{}, make(chan uint32), make(chan struct{})
	var running sync.WaitGroup
	for range threads {
		running.Go(func() {
			runtime.LockOSThread() // never unlocked: the next gets another
			a, err := unix.SchedGetAttr(0, 0)
			if err != nil {
				t.Error(err)
				a = &unix.SchedAttr{}
			}
			told <- a.Policy
			<-end
		})
		found[<-told]++
	}
	close(end)
	running.Wait()
	return found
}

// In virtual time no thread of the process is ever below another that waits for it by
// yielding; a program that it starts is ordinary.
func TestInVirtualTimeThreadsAreBornRaised(t *testing.T) {
	runtime.LockOSThread()
	if err := OrdinaryChildren(); err != nil {
		t.Fatal(err)
	}
	raised(t, true)
	if found := policies(t); found[unix.SCHED_NORMAL] > 0 {
		t.Errorf("new threads are under these policies: %v", found)
	}
	c := exec.Command("sleep", "60")
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Process.Kill(); _ = c.Wait() }()
	if a, err := unix.SchedGetAttr(c.Process.Pid, 0); err != nil || a.Policy != unix.SCHED_NORMAL {
		t.Errorf("a program that it starts: %+v, %v", a, err)
	}
}
