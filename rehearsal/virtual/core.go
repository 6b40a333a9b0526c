package virtual

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"runtime"

	"golang.org/x/sys/unix"
)

// core is a processor of this machine that a kernel has for itself, as far as
// other kernels of this package go.
type core struct {
	number int
	held   net.Listener // an abstract socket: its name is free again when the process ends, however it ends
}

// takeCore takes a processor that no other kernel has, of those that this
// process may use; when all are taken, one of them by chance. It begins with any
// and goes on in order: kernels in other containers hold names of their own, and
// processors that lie side by side are mostly cores of their own.
func takeCore() (core, error) {
	var set unix.CPUSet
	if err := unix.SchedGetaffinity(0, &set); err != nil {
		return core{}, fmt.Errorf("choose a processor: %w", err)
	}
	var may []int
	for n := range runtime.NumCPU() + 1024 {
		if set.IsSet(n) {
			may = append(may, n)
		}
	}
	if len(may) == 0 {
		return core{}, errors.New("choose a processor: this process may use none")
	}
	first := rand.IntN(len(may))
	for _, n := range append(may[first:len(may):len(may)], may[:first]...) {
		held, err := net.Listen("unix", fmt.Sprintf("@fieldmesh-virtual-core-%d", n))
		if err == nil {
			return core{n, held}, nil
		}
		if !errors.Is(err, unix.EADDRINUSE) {
			return core{}, fmt.Errorf("take processor %d: %w", n, err)
		}
	}
	return core{number: may[first]}, nil
}

func (c core) release() error {
	if c.held == nil {
		return nil
	}
	return c.held.Close()
}

// pin binds the calling thread, and what is started from it, to the core.
func (c core) pin() error {
	var only unix.CPUSet
	only.Set(c.number)
	if err := unix.SchedSetaffinity(0, &only); err != nil {
		return fmt.Errorf("bind to processor %d: %w", c.number, err)
	}
	return nil
}
