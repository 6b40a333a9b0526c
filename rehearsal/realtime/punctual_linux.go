package realtime

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

const (
	eventPriority  = 2 // of SCHED_FIFO, whose least is 1
	helperPriority = 1

	// A thread under SCHED_FIFO that has not slept for so long is stuck, or has no
	// hope of being in time.
	awakeMost = 30 * time.Second

	// Most threads come in the first moments; looking costs 0.3 ms.
	raiseFirst = 100 * time.Millisecond
	raiseEvery = time.Second
)

// prepareThread makes the calling thread as punctual as the host allows and
// says what was refused.
func prepareThread(fifo bool) error {
	// Timers of an ordinary thread may be 50 µs late by default.
	err := unix.Prctl(unix.PR_SET_TIMERSLACK, 1, 0, 0, 0)
	if err != nil {
		err = fmt.Errorf("set timer slack: %w", err)
	}
	if !fifo {
		return err
	}
	if e := setFIFO(0, eventPriority, true); e != nil {
		err = errors.Join(err, fmt.Errorf("set SCHED_FIFO: %w", e))
	}
	return err
}

// stayAwake keeps the machine's processors from sleeping deeper than they wake
// at once, as long as the file is open (Linux, pm_qos_interface): an event that
// is due wakes one, which takes up to some ms where a virtual machine's host has
// others to serve, and some 100 µs from the deep states of a laptop's.
func stayAwake() (*os.File, error) {
	f, err := os.OpenFile("/dev/cpu_dma_latency", os.O_WRONLY, 0)
	if err != nil {
		return nil, fmt.Errorf("keep processors awake: %w", err)
	}
	if _, err := f.Write(make([]byte, 4)); err != nil { // µs, 32 bits
		return nil, errors.Join(fmt.Errorf("keep processors awake: %w", err), f.Close())
	}
	return f, nil
}

// boundWaking has the kernel kill the process when a thread of SCHED_FIFO does
// not sleep any more (RLIMIT_RTTIME), rather than leave the machine's processors
// to it for ever. It was seen once in ten hours: Go's runtime has threads wait
// for each other by sched_yield, which lets nobody run whose priority is lower,
// and the event thread waited so for a collector of garbage that it had itself
// put off its processor. One priority for all threads cures that and makes
// events twice as late, so collections are made rare instead (field.Serve).
func boundWaking() error {
	most := uint64(awakeMost.Microseconds())
	if err := unix.Setrlimit(unix.RLIMIT_RTTIME, &unix.Rlimit{Cur: most, Max: most + most/2}); err != nil {
		return fmt.Errorf("bound the time of threads that do not sleep: %w", err)
	}
	return nil
}

// raiseThreads keeps the process's other threads above ordinary programs until
// the context ends. The Go runtime preempts a locked goroutine every 10 ms, and
// it is another thread that gives it its place back; were that thread to wait
// for a busy machine, so would the medium (10 to 70 ms were seen, with three
// busy loops on two cores).
//
// Children are not raised: RESET_ON_FORK. It holds for new threads too, so the list
// is gone through again and again. With one processor that is too late: a thread
// that waits for a new one by yielding yields to nobody until the kernel gives
// ordinary threads their share, after 0.95 s. In virtual time new threads are
// therefore born as their parents are, and whoever starts programs does it on a
// thread that has RESET_ON_FORK of its own.
func raiseThreads(ctx context.Context, born bool) error {
	pause := raiseFirst
	for {
		// Refused or gone: prepareThread has said the former.
		_ = eachThread(func(tid int, a *unix.SchedAttr) {
			if a.Policy == unix.SCHED_NORMAL {
				_ = setFIFO(tid, helperPriority, !born || a.Flags&unix.SCHED_FLAG_RESET_ON_FORK != 0)
			}
		})
		select {
		case <-time.After(pause):
			pause = min(2*pause, raiseEvery)
		case <-ctx.Done():
			return eachThread(func(tid int, a *unix.SchedAttr) {
				if a.Policy == unix.SCHED_FIFO && a.Priority == helperPriority {
					_ = unix.SchedSetAttr(tid, &unix.SchedAttr{Size: unix.SizeofSchedAttr}, 0)
				}
			})
		}
	}
}

// OrdinaryChildren has what the calling thread starts begin under the ordinary
// scheduler, whatever it is under itself, now or later.
func OrdinaryChildren() error {
	a, err := unix.SchedGetAttr(0, 0)
	if err == nil && a.Flags&unix.SCHED_FLAG_RESET_ON_FORK == 0 {
		a.Flags |= unix.SCHED_FLAG_RESET_ON_FORK
		err = unix.SchedSetAttr(0, a, 0)
	}
	if err != nil {
		return fmt.Errorf("keep the scheduler of programs that are started ordinary: %w", err)
	}
	return nil
}

// eachThread visits the threads of this process; one that ends meanwhile is
// passed over.
func eachThread(visit func(tid int, a *unix.SchedAttr)) error {
	dir, err := os.Open("/proc/self/task")
	if err != nil {
		return fmt.Errorf("list own threads: %w", err)
	}
	names, err := dir.Readdirnames(-1)
	if err = errors.Join(err, dir.Close()); err != nil {
		return fmt.Errorf("list own threads: %w", err)
	}
	for _, name := range names {
		tid, err := strconv.Atoi(name)
		if err != nil {
			return fmt.Errorf("list own threads: %w", err)
		}
		if a, err := unix.SchedGetAttr(tid, 0); err == nil {
			visit(tid, a)
		}
	}
	return nil
}

// setFIFO puts a thread under SCHED_FIFO, and what it starts as well, unless that is to
// be ordinary.
func setFIFO(tid int, priority uint32, childrenOrdinary bool) error {
	a := unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_FIFO, Priority: priority}
	if childrenOrdinary {
		a.Flags = unix.SCHED_FLAG_RESET_ON_FORK
	}
	return unix.SchedSetAttr(tid, &a, 0)
}
