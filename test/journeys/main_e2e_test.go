//go:build e2e

package journeys

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"fieldmesh.dev/fieldmesh/test/testnet"
)

// programs is the folder of the built programs. An ordinary user can enter it:
// agents start their unprivileged half from there.
var programs string

func TestMain(m *testing.M) { os.Exit(testnet.WithPrograms(m.Run, &programs)) }

// fieldmesh runs a command to its end, as a user types it, and returns what it
// printed.
func fieldmesh(t *testing.T, args ...string) string {
	t.Helper()
	out, err := exec.Command(filepath.Join(programs, "fieldmesh"), args...).CombinedOutput()
	if err != nil {
		t.Fatalf("fieldmesh %v: %v\n%s", args, err, out)
	}
	return string(out)
}

// session is a command that is left to run.
type session struct {
	cmd *exec.Cmd
	log string // file of stdout and stderr
	end chan error
}

// begin starts a command of ours. What still runs when the test ends is ended.
func begin(t *testing.T, program string, args ...string) *session {
	t.Helper()
	return launch(t, exec.Command(filepath.Join(programs, program), args...))
}

func launch(t *testing.T, cmd *exec.Cmd) *session {
	t.Helper()
	log, err := os.CreateTemp(t.TempDir(), "log")
	if err != nil {
		t.Fatal(err)
	}
	s := &session{cmd: cmd, log: log.Name(), end: make(chan error, 1)}
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() { s.end <- cmd.Wait() }()
	t.Cleanup(func() {
		s.stop(t, time.Minute)
		if t.Failed() {
			t.Logf("%v said:\n%s", cmd.Args, s.said())
		}
		_ = log.Close() // its reader has it by name
	})
	return s
}

func (s *session) said() string {
	text, err := os.ReadFile(s.log)
	if err != nil {
		return err.Error()
	}
	return string(text)
}

// wait waits for the command's own end.
func (s *session) wait(ctx context.Context) error {
	select {
	case err := <-s.end:
		s.end <- err // for whoever asks next
		return err
	case <-ctx.Done():
		return fmt.Errorf("%v: %w", s.cmd.Args, context.Cause(ctx))
	}
}

// over reports whether the command has ended.
func (s *session) over() bool {
	select {
	case err := <-s.end:
		s.end <- err
		return true
	default:
		return false
	}
}

// stop interrupts the command, and kills it when that does not help.
func (s *session) stop(t *testing.T, within time.Duration) {
	t.Helper()
	_ = s.cmd.Process.Signal(os.Interrupt) // it may have ended
	ctx, cancel := context.WithTimeout(context.Background(), within)
	defer cancel()
	if s.wait(ctx); ctx.Err() != nil {
		t.Errorf("%v does not end on an interrupt", s.cmd.Args)
		_ = s.cmd.Process.Kill()
		_ = s.wait(context.Background())
	}
}
