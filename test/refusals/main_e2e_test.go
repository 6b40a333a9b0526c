//go:build e2e

package refusals

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"fieldmesh.dev/fieldmesh/test/testnet"
)

// programs is the folder of the built programs. Other users can enter it:
// agents start their unprivileged half from there.
var programs string

func TestMain(m *testing.M) { os.Exit(testnet.WithPrograms(m.Run, &programs)) }

func write(t *testing.T, dir, name, text string) string {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

// outcome is a command's end.
type outcome struct {
	status         int
	stdout, stderr string
}

// finish runs a command to its end, at most two minutes.
func finish(t *testing.T, c *exec.Cmd) outcome {
	t.Helper()
	var out, errs bytes.Buffer
	c.Stdout, c.Stderr = &out, &errs
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	hung := time.AfterFunc(2*time.Minute, func() { _ = c.Process.Kill() })
	defer hung.Stop()
	err := c.Wait()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return outcome{c.ProcessState.ExitCode(), out.String(), errs.String()}
}

// refused checks that a command ended with status 1 and said, on stderr, all
// of the words, and prints what it said.
func (o outcome) refused(t *testing.T, words ...string) {
	t.Helper()
	o.ended(t, 1, words...)
}

// ended checks the same of another status.
func (o outcome) ended(t *testing.T, status int, words ...string) {
	t.Helper()
	t.Logf("status %d\n%s%s", o.status, o.stdout, o.stderr)
	if o.status != status {
		t.Errorf("status %d, want %d", o.status, status)
	}
	for _, w := range words {
		if !strings.Contains(o.stderr, w) {
			t.Errorf("it does not say %q", w)
		}
	}
}

func program(name string, args ...string) *exec.Cmd {
	return exec.CommandContext(context.Background(), filepath.Join(programs, name), args...)
}
