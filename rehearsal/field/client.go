package field

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"fieldmesh.dev/fieldmesh/internal/keys"
	"fieldmesh.dev/fieldmesh/protocols/wire"
	"fieldmesh.dev/fieldmesh/rehearsal/field/ledger"
)

// Client steers a field in a process of its own. Its calls are made one after
// another, whoever makes them.
type Client struct {
	info    Info
	cmd     *exec.Cmd
	stdin   io.WriteCloser
	answers chan response // closed when the process's output ends
	ended   chan struct{} // closed then, too, for whoever does not wait for an answer
	runDir  string
	log     *tail

	mu     sync.Mutex
	id     uint64
	waited error
	once   sync.Once
}

// Start writes cfg to cfg.Dir/field.json and starts the owner process: command
// with "--dir", cfg.Dir appended, for example fieldmesh field. It returns when
// the field is ready. The process is in a process group of its own: a ^C on
// the terminal reaches the controller, which then ends the field in order.
// When ctx ends, the field is told to end.
func Start(ctx context.Context, command []string, cfg Config) (*Client, error) {
	if err := os.MkdirAll(cfg.Dir, 0o755); err != nil {
		return nil, fmt.Errorf("start field: %w", err)
	}
	data, err := json.MarshalIndent(cfg, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("encode field's configuration: %w", err)
	}
	if err := keys.WriteFile(filepath.Join(cfg.Dir, ConfigFile), data, 0o600); err != nil {
		return nil, err
	}
	// Room for an answer to a call that was given up, so that the end is read behind it.
	c := &Client{answers: make(chan response, 16), ended: make(chan struct{}), log: &tail{}, runDir: cfg.RunDir}
	c.cmd = exec.CommandContext(ctx, command[0], append(command[1:len(command):len(command)], "--dir", cfg.Dir)...)
	c.cmd.Cancel = func() error { return c.cmd.Process.Signal(syscall.SIGTERM) }
	c.cmd.WaitDelay = 2 * ledger.StopWithin
	c.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	c.cmd.Stderr = c.log
	if c.stdin, err = c.cmd.StdinPipe(); err != nil {
		return nil, fmt.Errorf("start field: %w", err)
	}
	stdout, err := c.cmd.StdoutPipe()
	if err != nil {
		return nil, fmt.Errorf("start field: %w", err)
	}
	if err := c.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start field: %w", err)
	}
	go c.read(stdout)
	first, err := c.await(ctx, 0)
	if err == nil && first.Field == nil {
		err = errors.New("the process does not describe its field")
	}
	if err != nil {
		closing := c.Close()
		if ctx.Err() == nil {
			closing = nil // the process has said already why it ended
		}
		return nil, errors.Join(fmt.Errorf("start field: %w", err), closing)
	}
	c.info = *first.Field
	return c, nil
}

// read ends when the process's output does; what comes when nobody waits for
// it is an answer to a call that was given up.
func (c *Client) read(stdout io.Reader) {
	defer close(c.ended)
	defer close(c.answers)
	lines := bufio.NewReader(stdout)
	for {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			return
		}
		var r response
		if err := json.Unmarshal(line, &r); err != nil {
			// An answer to whatever is asked: who waits must not wait on.
			r = response{ID: math.MaxUint64, Error: fmt.Sprintf("decode answer %.80q: %v", line, err)}
		}
		c.answers <- r
	}
}

func (c *Client) await(ctx context.Context, id uint64) (response, error) {
	for {
		select {
		case <-ctx.Done():
			return response{}, ctx.Err()
		case r, ok := <-c.answers:
			switch {
			case !ok:
				return r, fmt.Errorf("the field's process ended: %s", c.log)
			case r.ID < id:
				continue // of a call that was given up
			case !r.OK:
				return r, errors.New(r.Error)
			}
			return r, nil
		}
	}
}

func (c *Client) call(ctx context.Context, r request) ([]wire.Record, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.id++
	r.ID = c.id
	line, err := json.Marshal(r)
	if err != nil {
		return nil, fmt.Errorf("encode call %s of the field: %w", r.Call, err)
	}
	if _, err := c.stdin.Write(append(line, '\n')); err != nil {
		return nil, fmt.Errorf("call %s of the field: %w: %s", r.Call, err, c.log)
	}
	answer, err := c.await(ctx, r.ID)
	if err != nil {
		return nil, fmt.Errorf("call %s of the field: %w", r.Call, err)
	}
	return answer.Records, nil
}

// Info says where things are in the field.
func (c *Client) Info() Info { return c.info }

// Place: see Field.Place.
func (c *Client) Place(ctx context.Context, t wire.Trial, attempt int) error {
	_, err := c.call(ctx, request{Call: "place", Trial: &t, Attempt: attempt})
	return err
}

// Drive: see Field.Drive.
func (c *Client) Drive(ctx context.Context) error {
	_, err := c.call(ctx, request{Call: "drive"})
	return err
}

// Settle: see Field.Settle.
func (c *Client) Settle(ctx context.Context, openBootNs, closeBootNs int64) ([]wire.Record, error) {
	return c.call(ctx, request{Call: "settle", OpenBootNs: openBootNs, CloseBootNs: closeBootNs})
}

// Fault: see Field.Fault.
func (c *Client) Fault(ctx context.Context, f Fault) error {
	_, err := c.call(ctx, request{Call: "fault", Fault: &f})
	return err
}

// Ended is closed when the owner process has ended, or is about to: by Close,
// or because a part of the field broke down or somebody killed it.
func (c *Client) Ended() <-chan struct{} { return c.ended }

// Close destroys the field and waits for its process to end. What a process
// that was killed has left is cleaned up. It may be called twice.
func (c *Client) Close() error {
	c.once.Do(func() {
		closing := c.stdin.Close()
		// The process ends when it has destroyed the field; a hung one is killed.
		hung := time.AfterFunc(3*ledger.StopWithin, func() { _ = c.cmd.Process.Kill() })
		defer hung.Stop()
		for range c.answers { //nolint:revive // answers that nobody waits for any more
		}
		err := c.cmd.Wait()
		if err != nil {
			_, swept := ledger.Sweep(c.runDir)
			err = errors.Join(fmt.Errorf("end field: %w%s", err, c.lastWords()), swept)
		}
		c.waited = errors.Join(err, closing)
	})
	return c.waited
}

// lastWords is what the process, which has ended, said of its end; one that was
// killed could not say why.
func (c *Client) lastWords() string {
	if status, is := c.cmd.ProcessState.Sys().(syscall.WaitStatus); is && status.Signal() == syscall.SIGKILL {
		return "; the kernel kills it for lack of memory (its log tells) and when its radio stands still, Fieldmesh " +
			"when it does not end. " +
			"What was collected is kept, and --resume goes on. The process: " + c.log.String()
	}
	return ": " + c.log.String()
}

// tail keeps the end of what the process says on stderr, for messages.
type tail struct {
	mu  sync.Mutex
	end []byte
}

const tailBytes = 2000

func (t *tail) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.end = append(t.end, b...)
	if over := len(t.end) - tailBytes; over > 0 {
		t.end = t.end[over:]
	}
	return len(b), nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return cmp.Or(strings.TrimSpace(string(t.end)), "it said nothing on stderr")
}
