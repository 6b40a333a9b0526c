package host

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"fieldmesh.dev/fieldmesh/node-agent/capture/ring"
	"fieldmesh.dev/fieldmesh/node-agent/host/change"
	"fieldmesh.dev/fieldmesh/node-agent/host/reach"
	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// callTimeout bounds a call whose context does not. Leaving a phone's hotspot takes the longest: up to 10 s each to
// forget it, to switch Wi-Fi and to be in the network of before, and 3 s until Android has written that.
const callTimeout = 45 * time.Second

// ErrAway is in the error of a call that had no answer because the host process
// is not there, or went meanwhile.
var ErrAway = errors.New("the host process is away")

// Client calls a host process. It connects again for each call, so it outlives
// the host process's restarts. It may be used by several goroutines.
type Client struct{ socket string }

// Dial returns a client of the host process that listens, now or later, on a
// socket. It does not connect yet.
func Dial(socket string) *Client { return &Client{socket: socket} }

// Apply makes changes in a scope, all or none, and lists those that it made.
// Those in force already are not listed: their first undo stands. A *Refused
// error says that nothing was tried, and what to do; a reach.Error, that a
// network may be out of reach.
func (c *Client) Apply(ctx context.Context, scope string, changes []change.Change) ([]wire.HostChange, error) {
	call := &applyCall{Scope: scope, Changes: []change.Boxed{}}
	for _, one := range changes {
		call.Changes = append(call.Changes, change.Boxed{Change: one})
	}
	a, err := c.call(ctx, request{Apply: call})
	return a.Applied, err
}

// Restore undoes a scope: ScopeTrial, or ScopeRun and "" for everything. What
// could not be undone is in the report, and tried again by the next restore.
func (c *Client) Restore(ctx context.Context, scope string) (wire.RestoreReport, error) {
	a, err := c.call(ctx, request{Restore: &restoreCall{Scope: scope}})
	return answered(a.Restored, err)
}

// Status says what is in force. It only looks: it does not wind the dead
// man's timer up. With an error the status says that the host process is not
// reached.
func (c *Client) Status(ctx context.Context) (wire.HostStatus, error) {
	a, err := c.call(ctx, request{Status: &struct{}{}})
	status, err := answered(a.Status, err)
	if err != nil {
		status.Pending = []string{}
	}
	return status, err
}

// Keepalive winds the dead man's timer up: what is in force is still wanted.
func (c *Client) Keepalive(ctx context.Context) error {
	_, err := c.call(ctx, request{Keepalive: &struct{}{}})
	return err
}

// Scan has a radio listen on a channel; what it heard is among its caps then.
func (c *Client) Scan(ctx context.Context, device string, channel int) error {
	_, err := c.call(ctx, request{Scan: &scanCall{Interface: device, Channel: channel}})
	return err
}

// Packets begins a capture and returns what to read its frames from, which the
// caller closes.
func (c *Client) Packets(ctx context.Context, p Packets) (*ring.Reader, PacketFilter, error) {
	a, err := c.call(ctx, request{Packets: &p})
	if err != nil {
		return nil, PacketFilter{}, err
	}
	if a.Packets == nil || a.file == nil {
		return nil, PacketFilter{}, errors.New("packets: the host process answered something else")
	}
	r, err := ring.NewReader(a.file)
	return r, *a.Packets, err
}

// answered is the part of an answer that was asked for.
func answered[T any](part *T, err error) (out T, _ error) {
	if err == nil && part == nil {
		err = errors.New("call host process: it answered something else")
	}
	if err != nil {
		return out, err
	}
	return *part, nil
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
		return answer{}, fmt.Errorf("call host process: a request of %d bytes, at most %d are taken", len(line),
			maxRequestBytes)
	}
	var d net.Dialer
	conn, err := d.DialContext(ctx, "unix", c.socket)
	if err != nil {
		return answer{}, fmt.Errorf("%w: %w", ErrAway, err)
	}
	stop := context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) }) // fails only when closed
	defer stop()
	a, err := exchange(conn, append(line, '\n'))
	if err = errors.Join(err, conn.Close()); err != nil {
		if ctx.Err() != nil {
			return answer{}, fmt.Errorf("call host process: %w", ctx.Err())
		}
		return answer{}, fmt.Errorf("%w: %w", ErrAway, err)
	}
	switch {
	case a.Refused != nil:
		return answer{}, a.Refused
	case a.Error != "":
		err := fmt.Errorf("host process: %s", a.Error)
		if a.Reach {
			err = reach.Error{Err: err}
		}
		return answer{}, err
	}
	return a, nil
}

func exchange(conn net.Conn, line []byte) (a answer, err error) {
	// A refused caller is answered before it has said anything, and its
	// writing then fails; the answer tells more than that error.
	_, writeErr := conn.Write(line)
	in := &receiver{conn: conn.(*net.UnixConn)} // what dialling a unix socket gives
	defer func() { err = errors.Join(err, in.closeBut(a.file)) }()
	lines := bufio.NewScanner(in)
	lines.Buffer(make([]byte, 4096), maxAnswerBytes)
	if !lines.Scan() {
		err := errors.Join(writeErr, lines.Err())
		if err == nil {
			err = errors.New("it hung up without an answer")
		}
		return answer{}, err
	}
	if err := json.Unmarshal(lines.Bytes(), &a); err != nil {
		return answer{}, fmt.Errorf("decode answer: %w", err)
	}
	if (a.Packets != nil || a.Ring != nil) && len(in.files) > 0 {
		a.file = in.files[0]
	}
	return a, nil
}

// receiver reads a connection and keeps the descriptors that come with it.
type receiver struct {
	conn  *net.UnixConn
	files []*os.File
}

func (r *receiver) Read(p []byte) (int, error) {
	rights := make([]byte, unix.CmsgSpace(4))
	n, have, _, _, err := r.conn.ReadMsgUnix(p, rights)
	if have > 0 {
		r.keep(rights[:have])
	}
	if n == 0 && err == nil && len(p) > 0 {
		err = io.EOF
	}
	return max(n, 0), err // of a connection that was reset it says -1
}

// keep takes descriptors; what cannot be read as such is none.
func (r *receiver) keep(rights []byte) {
	messages, err := unix.ParseSocketControlMessage(rights)
	if err != nil {
		return
	}
	for _, m := range messages {
		fds, err := unix.ParseUnixRights(&m)
		if err != nil {
			continue
		}
		for _, fd := range fds {
			unix.CloseOnExec(fd)
			r.files = append(r.files, os.NewFile(uintptr(fd), "descriptor from the host process"))
		}
	}
}

// closeBut closes every descriptor that came but one.
func (r *receiver) closeBut(kept *os.File) error {
	var err error
	for _, f := range r.files {
		if f != kept {
			err = errors.Join(err, f.Close())
		}
	}
	return err
}
