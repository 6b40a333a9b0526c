package manetd

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"strings"
	"sync"
	"time"

	"fieldmesh.dev/fieldmesh/internal/unixsocket"
	"fieldmesh.dev/fieldmesh/node-agent/routing/control"
	"fieldmesh.dev/fieldmesh/protocols/manet"
)

// State is what the daemon says of itself.
type State struct {
	manet.State
	TBootNs     int64   `json:"t_boot_ns"` // of what was told before, all is in it, and of what is told after, nothing
	Interface   string  `json:"interface"`
	Address     string  `json:"address"`
	UptimeS     float64 `json:"uptime_s"`
	Feedback    bool    `json:"feedback"`     // the radio reports what it could not deliver
	RouteInUse  bool    `json:"route_in_use"` // the kernel tells which routes data uses
	HeldPackets int     `json:"held_packets"`
	Runner      Counts  `json:"runner"`
}

// Notice is one thing that happened. Exactly one of the pointers is set.
type Notice struct {
	TBootNs int64         `json:"t_boot_ns"`
	Route   *RouteNotice  `json:"route,omitempty"`
	Report  *ReportNotice `json:"report,omitempty"`
	Missed  int64         `json:"missed,omitempty"` // notices that this follower was too slow for, so far
}

// RouteNotice is a change of the kernel's routes.
type RouteNotice struct {
	Action      string   `json:"action"` // set | delete
	Destination string   `json:"destination"`
	NextHops    []string `json:"next_hops,omitempty"` // best first
	Hops        *int     `json:"hops,omitempty"`
	Metric      *float64 `json:"metric,omitempty"`
	Cause       string   `json:"cause,omitempty"`
}

// ReportNotice is something that the protocol found worth telling; Value has
// the unit that Kind ends in.
type ReportNotice struct {
	Kind  string  `json:"kind"`
	Addr  string  `json:"addr,omitempty"`
	Value float64 `json:"value"`
	Note  string  `json:"note,omitempty"`
}

const (
	followersMax   = 16
	followerQueue  = 4096 // notices; a large mesh's routes come all at once
	socketDeadline = 5 * time.Second
)

// feed serves the daemon's socket.
type feed struct {
	listener *net.UnixListener
	state    func(context.Context) (State, error)
	clients  sync.WaitGroup

	mu        sync.Mutex
	followers map[*follower]struct{}
}

type follower struct {
	notices chan Notice
	missed  int64 // the feed's mutex is held
}

// listenFeed makes the socket. The lock on the interface is held, so one that
// is there is a dead daemon's.
func listenFeed(path string, uid int, state func(context.Context) (State, error)) (*feed, error) {
	l, err := unixsocket.Listen(path, control.SocketMode, max(uid, 0))
	if err != nil {
		return nil, err
	}
	return &feed{listener: l, state: state, followers: map[*follower]struct{}{}}, nil
}

// tell hands a notice to every follower and never waits.
func (f *feed) tell(n Notice) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for w := range f.followers {
		n.Missed = w.missed
		select {
		case w.notices <- n:
		default:
			w.missed++
		}
	}
}

// serve answers until ctx ends, and returns when every client is gone.
func (f *feed) serve(ctx context.Context) error {
	defer f.clients.Wait()
	return unixsocket.Serve(ctx, f.listener, followersMax, func(c *net.UnixConn) { _ = c.Close() }, f.converse)
}

// converse serves one client. What goes wrong is the client's going.
func (f *feed) converse(ctx context.Context, conn *net.UnixConn) {
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	defer stop()
	defer func() { _ = conn.Close() }()
	if conn.SetReadDeadline(time.Now().Add(socketDeadline)) != nil {
		return
	}
	line, err := bufio.NewReaderSize(conn, 64).ReadSlice('\n')
	if err != nil {
		return
	}
	switch strings.TrimSpace(string(line)) {
	case control.CommandState:
		if s, err := f.state(ctx); err == nil {
			_ = write(conn, s)
		}
	case control.CommandFollow:
		f.follow(ctx, conn)
	default:
		known := control.CommandState + " and " + control.CommandFollow
		_ = write(conn, map[string]string{"error": fmt.Sprintf("no command %.40q; there are %s", line, known)})
	}
}

func write(conn *net.UnixConn, v any) error {
	text, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("encode answer: %w", err)
	}
	if err := conn.SetWriteDeadline(time.Now().Add(socketDeadline)); err != nil {
		return err
	}
	_, err = conn.Write(append(text, '\n'))
	return err
}

// follow writes notices to a client until it goes.
func (f *feed) follow(ctx context.Context, conn *net.UnixConn) {
	w := &follower{notices: make(chan Notice, followerQueue)}
	f.mu.Lock()
	f.followers[w] = struct{}{}
	f.mu.Unlock()
	defer func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		delete(f.followers, w)
	}()
	gone := make(chan struct{})
	if conn.SetReadDeadline(time.Time{}) != nil {
		return
	}
	f.clients.Go(func() { // a follower says nothing more: a read returns when it goes
		_, _ = conn.Read(make([]byte, 1))
		close(gone)
	})
	// The client knows by it that nothing after this escapes it.
	if write(conn, Notice{}) != nil {
		return
	}
	unixsocket.Relay(ctx, gone, w.notices, func(n Notice) error { return write(conn, n) })
}
