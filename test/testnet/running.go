package testnet

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"
)

// Running is a program that runs beside its test.
type Running struct {
	Cmd   *exec.Cmd
	log   string // a file: a pipe would stay open until the program's children end, too
	ended chan struct{}
	err   error // once it has ended
}

// Start starts a program. If it still runs when the test ends, it is told to
// end. When the test has failed, the end of what the program wrote is shown.
func Start(t testing.TB, cmd *exec.Cmd) *Running {
	t.Helper()
	log, err := os.CreateTemp(t.TempDir(), "log")
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close() // the program has it open itself
	r := &Running{Cmd: cmd, log: log.Name(), ended: make(chan struct{})}
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() { defer close(r.ended); r.err = cmd.Wait() }()
	t.Cleanup(func() {
		_ = r.Stop(t, syscall.SIGTERM)
		if said := r.Said(); t.Failed() {
			t.Logf("%v said:\n%s", cmd.Args, said[max(0, len(said)-20000):])
		}
	})
	return r
}

// Said is what the program has written so far, on stdout and stderr.
func (r *Running) Said() string {
	text, err := os.ReadFile(r.log)
	if err != nil {
		return err.Error()
	}
	return string(text)
}

// Says waits until the program has written the words.
func (r *Running) Says(t testing.TB, words string) {
	t.Helper()
	for until := time.Now().Add(2 * time.Minute); ; time.Sleep(10 * time.Millisecond) {
		over := r.Over() // it may end just after it has said them
		if strings.Contains(r.Said(), words) {
			return
		}
		if over || time.Now().After(until) {
			t.Fatalf("%v does not say %q", r.Cmd.Args, words)
		}
	}
}

// Ended is closed when the program has ended.
func (r *Running) Ended() <-chan struct{} { return r.ended }

// Over reports whether the program has ended.
func (r *Running) Over() bool {
	select {
	case <-r.ended:
		return true
	default:
		return false
	}
}

// Wait waits for the program to end by itself, and returns how it ended. How
// long says only when to give up.
func (r *Running) Wait(t testing.TB, within time.Duration) error {
	t.Helper()
	select {
	case <-r.ended:
		return r.err
	case <-time.After(within):
		t.Fatalf("%v still runs after %s", r.Cmd.Args, within)
		return nil
	}
}

// Stop sends the program a signal, unless it has ended already, waits for its
// end, and returns how it ended.
func (r *Running) Stop(t testing.TB, s os.Signal) error {
	t.Helper()
	if err := r.Cmd.Process.Signal(s); err != nil && !errors.Is(err, os.ErrProcessDone) {
		t.Errorf("end %v: %v", r.Cmd.Args, err)
	}
	select {
	case <-r.ended:
	case <-time.After(time.Minute):
		t.Errorf("%v had to be killed", r.Cmd.Args)
		_ = r.Cmd.Process.Kill()
		<-r.ended
	}
	return r.err
}

// Live starts `fieldmesh live` of a run on loopback, and returns the page's address.
func Live(t testing.TB, fieldmesh, run string) (r *Running, address string) {
	t.Helper()
	r = Start(t, exec.Command(fieldmesh, "live", run, "--listen", "127.0.0.1:0"))
	r.Says(t, "\n")
	if _, err := fmt.Sscanf(r.Said(), "live: %s\n", &address); err != nil {
		t.Fatalf("%v: it said %q", err, r.Said())
	}
	return r, address
}
