package gps

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"time"

	"fieldmesh.dev/fieldmesh/internal/pause"
)

const (
	watch   = `?WATCH={"enable":true,"json":true};` + "\n"
	version = "?VERSION;\n"

	// silence is how long gpsd may say nothing before it is asked whether it
	// is there, and again until it is given up. With a receiver it speaks at
	// least once a second; without one it only answers.
	silence = 2 * time.Second

	dialTimeout  = 3 * time.Second
	writeTimeout = 2 * time.Second
	maxLineBytes = 64 << 10
	firstRetry   = 100 * time.Millisecond
	lastRetry    = 5 * time.Second
)

func (c *Client) follow(ctx context.Context) error {
	return pause.Reconnect(ctx, firstRetry, lastRetry, c.connect)
}

// connect follows one connection to its end, and reports whether gpsd answered
// in it. Why it ended does not matter: Connected tells that it has.
func (c *Client) connect(ctx context.Context) (answered bool) {
	d := net.Dialer{Timeout: dialTimeout}
	conn, err := d.DialContext(ctx, "tcp", c.addr)
	if err != nil {
		return false
	}
	unhook := context.AfterFunc(ctx, func() { _ = conn.Close() })
	defer func() {
		unhook()
		c.disconnect() // first, so that whoever sees the end finds it told
		_ = conn.Close()
	}()
	if ask(conn, watch) != nil {
		return false
	}
	return c.listen(conn) > 0
}

func ask(conn net.Conn, request string) error {
	if err := conn.SetWriteDeadline(time.Now().Add(writeTimeout)); err != nil {
		return err
	}
	_, err := io.WriteString(conn, request)
	return err
}

// listen takes lines until gpsd is gone or silent, and counts them.
func (c *Client) listen(conn net.Conn) (lines int) {
	var in splitter
	buf := make([]byte, 4096)
	asked := false
	for {
		if conn.SetReadDeadline(time.Now().Add(silence)) != nil {
			return lines
		}
		n, err := conn.Read(buf)
		arrived := c.clk.BootNs()
		tooLong := in.add(buf[:n], func(line []byte) {
			lines++
			asked = false
			c.take(line, arrived)
		})
		switch {
		case errors.Is(err, os.ErrDeadlineExceeded) && !asked:
			asked = true
			if ask(conn, version) != nil {
				return lines
			}
		case err != nil || tooLong != nil:
			return lines
		}
	}
}

// splitter cuts a stream into lines.
type splitter struct{ partial []byte }

// add calls visit for each line that b completes, without its end. A line
// longer than any of gpsd's is an error: the stream is not gpsd's.
func (s *splitter) add(b []byte, visit func(line []byte)) error {
	for _, ch := range b {
		if ch != '\n' {
			s.partial = append(s.partial, ch)
			continue
		}
		visit(s.partial)
		s.partial = s.partial[:0]
	}
	if len(s.partial) > maxLineBytes {
		return fmt.Errorf("a line of more than %d bytes", maxLineBytes)
	}
	return nil
}
