package pairing

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"

	"fieldmesh.dev/fieldmesh/node-agent/link"
	"fieldmesh.dev/fieldmesh/protocols/pairing"
)

// dial connects and completes the handshake: whoever is there holds the key
// whose hash the code carries, or nothing has been said to him. Neighbours on the
// interface are called over it, where one is named.
func dial(ctx context.Context, iface, address string, config *tls.Config) (*tls.Conn, error) {
	dialer := net.Dialer{Control: link.BindToNeighbours(iface)}
	plain, err := dialer.DialContext(ctx, "tcp", address)
	if err != nil {
		hint := ""
		if iface != "" { // a phone may not let it bind a socket
			hint = " In a Wi-Fi without internet, switch a phone's mobile data off until it is paired."
		}
		return nil, fmt.Errorf("%w; is the code still shown, and does this node reach that address?%s", err, hint)
	}
	conn := tls.Client(plain, config)
	if deadline, ok := ctx.Deadline(); ok {
		err = conn.SetDeadline(deadline)
	}
	if err == nil {
		err = conn.HandshakeContext(ctx)
	}
	if err != nil {
		return nil, errors.Join(err, plain.Close())
	}
	return conn, nil
}

// exchange is one request and its answer on a connection.
func exchange(ctx context.Context, conn *tls.Conn, r *http.Request) (pairing.Reply, error) {
	stop := context.AfterFunc(ctx, func() { _ = conn.NetConn().Close() }) // wakes the reader below
	defer stop()
	if err := r.Write(conn); err != nil {
		return pairing.Reply{}, fmt.Errorf("send request: %w", err)
	}
	response, err := http.ReadResponse(bufio.NewReader(conn), r)
	if err != nil {
		return pairing.Reply{}, fmt.Errorf("read answer: %w", err)
	}
	data, err := io.ReadAll(io.LimitReader(response.Body, pairing.BodyLimit))
	if err := errors.Join(err, response.Body.Close()); err != nil {
		return pairing.Reply{}, fmt.Errorf("read answer: %w", err)
	}
	return decode(response.StatusCode, data)
}
