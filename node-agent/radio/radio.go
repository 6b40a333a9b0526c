// Package radio reads the radio-feedback socket: what the radio under test,
// real or emulated, says of its peers and its channel. It sets nothing.
package radio

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"slices"
	"sync"
	"time"

	"fieldmesh.dev/fieldmesh/internal/pause"
	"fieldmesh.dev/fieldmesh/protocols/wire"
)

const (
	maxLineBytes = 64 << 10
	maxPeers     = 1024 // bounds what a faulty server can make the agent hold
	firstRetry   = 100 * time.Millisecond
	lastRetry    = 2 * time.Second
	wishWithin   = time.Second // a server that reads nothing has room for thousands
)

// Client follows one radio-feedback socket. Its methods may be called from
// any goroutine.
type Client struct {
	socket string

	mu          sync.Mutex
	conn        net.Conn // nil while there is none
	sampleHz    int      // how often the server is asked to tell stations and survey
	caps        *wire.Caps
	stations    map[string][]byte // the newest line of each peer that Sample has not given yet
	survey      *wire.Survey      // the newest, the same
	dropped     uint64            // in connections that are over, and unreadable lines
	droppedHere uint64            // by the server, in this connection
}

// New makes a client of the unix socket at that path; Run starts it, and until
// Pace it wants neither stations nor survey.
func New(socket string) *Client {
	return &Client{socket: socket, stations: map[string][]byte{}}
}

// Run follows the socket until ctx ends, whose error it returns; it reconnects
// for ever, for the radio may come up long after the agent.
func (c *Client) Run(ctx context.Context) error {
	return reconnect(ctx, c.socket, func(conn net.Conn) {
		c.connected(conn)
		c.read(conn)
		c.forget()
	})
}

func (c *Client) connected(conn net.Conn) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.conn = conn
	wish(conn, c.sampleHz)
}

// perSample is how many times a station is told between two samples, so that each
// sample finds one that is not old.
const perSample = 2

// Pace says how often Sample will be called; 0: it will not be. What came before
// is not given any more: it may be old.
func (c *Client) Pace(interval time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.survey = nil
	clear(c.stations)
	c.sampleHz = 0
	if interval > 0 {
		c.sampleHz = int(min(wire.FeedbackHz, max(1, perSample*time.Second/interval)))
	}
	if c.conn != nil {
		wish(c.conn, c.sampleHz)
	}
}

// wish asks the server for stations and survey so often. One that takes no wishes
// sends as it does, and one that is gone is found out by who reads.
func wish(conn net.Conn, hz int) {
	line, err := json.Marshal(wire.FeedbackWish{SampleHz: hz})
	if err != nil { // cannot be: it is a number
		return
	}
	_ = conn.SetWriteDeadline(time.Now().Add(wishWithin))
	_, _ = conn.Write(append(line, '\n'))
}

// reconnect reads one connection after the other until ctx ends.
func reconnect(ctx context.Context, socket string, read func(net.Conn)) error {
	return pause.Reconnect(ctx, firstRetry, lastRetry, func(ctx context.Context) bool {
		return follow(ctx, socket, read)
	})
}

// follow reads one connection to its end and reports whether there was one. Why
// it ended does not matter: Caps then says that the radio is not known.
func follow(ctx context.Context, socket string, read func(net.Conn)) (connected bool) {
	var d net.Dialer
	conn, err := d.DialContext(ctx, "unix", socket)
	if err != nil {
		return false
	}
	unhook := context.AfterFunc(ctx, func() { _ = conn.Close() })
	defer func() {
		unhook()
		_ = conn.Close()
	}()
	read(conn)
	return true
}

// read takes lines until the connection ends or a line is longer than any
// server would send.
func (c *Client) read(r io.Reader) {
	lines := bufio.NewScanner(r)
	lines.Buffer(make([]byte, 4096), maxLineBytes)
	for lines.Scan() {
		c.mu.Lock()
		if peer, ok := stationLine(lines.Bytes()); ok {
			c.keep(string(peer), lines.Bytes())
		} else if f, err := parse(lines.Bytes()); err != nil {
			c.dropped++
		} else {
			c.take(f, lines.Bytes())
		}
		c.mu.Unlock()
	}
}

// stationLine is the peer of a station's line as servers write it. Almost all
// lines are such, far more than are sampled: they are not decoded before.
func stationLine(line []byte) (peer []byte, ok bool) {
	rest, ok := bytes.CutPrefix(line, []byte(`{"station":{"peer":"`))
	if !ok {
		return nil, false
	}
	peer, _, ok = bytes.Cut(rest, []byte(`"`))
	return peer, ok && len(peer) > 0
}

// keep holds a peer's newest line. mu is held.
func (c *Client) keep(peer string, line []byte) {
	if c.stations[peer] == nil && len(c.stations) >= maxPeers {
		c.dropped++
		return
	}
	c.stations[peer] = append(c.stations[peer][:0], line...)
}

// parse reads one line of feedback.
func parse(line []byte) (wire.Feedback, error) {
	var f wire.Feedback
	if err := json.Unmarshal(line, &f); err != nil {
		return f, fmt.Errorf("decode radio feedback: %w", err)
	}
	if f.Station != nil && f.Station.Peer == "" {
		return f, fmt.Errorf("decode radio feedback: a station without a peer in %.80q", line)
	}
	return f, nil
}

// take keeps what is newest of what a line says. mu is held.
func (c *Client) take(f wire.Feedback, line []byte) {
	c.droppedHere = max(c.droppedHere, f.Dropped)
	if f.Caps != nil {
		c.caps = f.Caps
	}
	if f.Survey != nil {
		c.survey = f.Survey
	}
	if f.Station != nil {
		c.keep(f.Station.Peer, line)
	}
}

// forget drops what a connection that is over has told: it holds no longer.
func (c *Client) forget() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.conn, c.caps, c.survey = nil, nil, nil
	clear(c.stations)
	c.dropped += c.droppedHere
	c.droppedHere = 0
}

// Name names the client as a source of samples.
func (c *Client) Name() string { return "radio" }

// Sample gives the newest *wire.Station of each peer, by address, and the
// newest *wire.Survey; only what has come since the last Sample.
func (c *Client) Sample(int64) ([]wire.Body, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.stations) == 0 && c.survey == nil {
		return nil, nil
	}
	peers := make([]string, 0, len(c.stations))
	for peer := range c.stations {
		peers = append(peers, peer)
	}
	slices.Sort(peers)
	out := make([]wire.Body, 0, len(peers)+1)
	for _, peer := range peers {
		f, err := parse(c.stations[peer])
		if err != nil || f.Station == nil {
			c.dropped++
			continue
		}
		c.droppedHere = max(c.droppedHere, f.Dropped)
		out = append(out, f.Station)
	}
	if c.survey != nil {
		out = append(out, c.survey)
	}
	clear(c.stations)
	c.survey = nil
	return out, nil
}

// Caps is what the radio can do and is set to; an error before it has told and
// while it is not connected.
func (c *Client) Caps() (*wire.Caps, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.caps == nil {
		return nil, fmt.Errorf("nothing answers on the radio feedback socket %s", c.socket)
	}
	return new(*c.caps), nil
}

// Dropped counts the messages that were lost between the radio and Sample:
// those that the server dropped, and those that could not be read or held.
func (c *Client) Dropped() uint64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.dropped + c.droppedHere
}
