package host

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"time"

	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// callTimeout bounds a call whose context does not. Stopping a daemon that
// does not listen takes the longest.
const callTimeout = 30 * time.Second

// Client calls a host process. It connects anew for each call, so it outlives
// the host process's restarts. It may be used by several goroutines.
type Client struct{ socket string }

// Dial returns a client of the host process that listens, now or later, on a
// socket. It does not connect yet.
func Dial(socket string) *Client { return &Client{socket: socket} }

// Apply makes changes in a scope, all or none, and lists those that it made.
// Those in force already are not listed: their first undo stands. A *Refused
// error says that nothing was tried, and what to do.
func (c *Client) Apply(ctx context.Context, scope string, changes []Change) ([]wire.HostChange, error) {
	a, err := c.call(ctx, request{Apply: &applyCall{Scope: scope, Changes: changes}})
	return a.Applied, err
}

// Restore undoes a scope: ScopeTrial, or ScopeRun and "" for everything. What
// could not be undone is in the report, and tried again by the next restore.
func (c *Client) Restore(ctx context.Context, scope string) (wire.RestoreReport, error) {
	a, err := c.call(ctx, request{Restore: &restoreCall{Scope: scope}})
	if err != nil {
		return wire.RestoreReport{}, err
	}
	if a.Restored == nil {
		return wire.RestoreReport{}, errors.New("restore: the host process answered something else")
	}
	return *a.Restored, nil
}

// Status says what is in force. It only looks: it does not wind the dead
// man's timer up. With an error the status says that the host process is not
// reached.
func (c *Client) Status(ctx context.Context) (wire.HostStatus, error) {
	a, err := c.call(ctx, request{Status: &struct{}{}})
	if err != nil {
		return wire.HostStatus{Pending: []string{}}, err
	}
	if a.Status == nil {
		return wire.HostStatus{Pending: []string{}}, errors.New("status: the host process answered something else")
	}
	return *a.Status, nil
}

// Keepalive winds the dead man's timer up: what is in force is still wanted.
func (c *Client) Keepalive(ctx context.Context) error {
	_, err := c.call(ctx, request{Keepalive: &struct{}{}})
	return err
}

// Readback reads what is in force on an interface, and the sysctls that are
// asked for.
func (c *Client) Readback(ctx context.Context, device string, sysctls []string) (Readback, error) {
	a, err := c.call(ctx, request{Readback: &readbackCall{Interface: device, Sysctls: sysctls}})
	if err != nil {
		return Readback{}, err
	}
	if a.Readback == nil {
		return Readback{}, errors.New("readback: the host process answered something else")
	}
	return *a.Readback, nil
}

// call sends one request and reads its answer.
func (c *Client) call(ctx context.Context, r request) (answer, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	line, err := json.Marshal(r)
	if err != nil {
		return answer{}, fmt.Errorf("encode call: %w", err)
	}
	if len(line) >= maxRequestBytes {
		return answer{}, fmt.Errorf("call host process: a request of %d bytes, at most %d are taken", len(line), maxRequestBytes)
	}
	var d net.Dialer
	conn, err := d.DialContext(ctx, "unix", c.socket)
	if err != nil {
		return answer{}, fmt.Errorf("reach host process: %w", err)
	}
	stop := context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) }) // fails only when closed
	defer stop()
	a, err := exchange(conn, append(line, '\n'))
	if err = errors.Join(err, conn.Close()); err != nil {
		if ctx.Err() != nil {
			err = ctx.Err()
		}
		return answer{}, fmt.Errorf("call host process: %w", err)
	}
	switch {
	case a.Refused != nil:
		return answer{}, a.Refused
	case a.Error != "":
		return answer{}, fmt.Errorf("host process: %s", a.Error)
	}
	return a, nil
}

func exchange(conn net.Conn, line []byte) (answer, error) {
	// A refused caller is answered before it has said anything, and its
	// writing then fails; the answer tells more than that error.
	_, writeErr := conn.Write(line)
	lines := bufio.NewScanner(conn)
	lines.Buffer(make([]byte, 4096), maxAnswerBytes)
	if !lines.Scan() {
		err := errors.Join(writeErr, lines.Err())
		if err == nil {
			err = errors.New("it hung up without an answer")
		}
		return answer{}, err
	}
	var a answer
	if err := json.Unmarshal(lines.Bytes(), &a); err != nil {
		return answer{}, fmt.Errorf("decode answer: %w", err)
	}
	return a, nil
}
