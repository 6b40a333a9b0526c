// Command suites runs the tests that need more than the compiler: a program,
// root, or a machine of their own. `make test` and `make test-all` call it.
// suites.txt lists the suites, what each needs, what it may take, and the
// tests that run in the long form only. Unit tests are `make check`'s.
//
//	suites         the suites, without the tests that suites.txt calls long
//	suites all     every test
//	suites soak    tests that read FIELDMESH_SOAK, with their long bounds
//	suites bench   benchmarks that read FIELDMESH_BENCH, printing as they go
//
// After the mode, names of suites select some.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "suites:", err)
		stop()
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	mode := short
	if len(args) > 0 {
		mode, args = Mode(args[0]), args[1:]
	}
	list, err := read("test/suites/suites.txt")
	if err != nil {
		return err
	}
	if list, err = choose(list, mode, args); err != nil {
		return err
	}
	r, err := newRunner(mode)
	if err != nil {
		return err
	}
	defer r.close()
	began := time.Now()
	if err := r.build(ctx, list); err != nil {
		return err
	}
	r.say("programs and %d suites compiled in %.0f s", len(list), time.Since(began).Seconds())
	if err := r.runAll(ctx, list); err != nil {
		return err
	}
	return r.conclude(time.Since(began))
}
