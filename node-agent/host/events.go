package host

import (
	"context"
	"errors"
	"os"

	"fieldmesh.dev/fieldmesh/node-agent/host/change"
	"fieldmesh.dev/fieldmesh/node-agent/tcp"
)

// TCPEvents gives the events of the connections that a TCPEvents change
// follows. The caller closes the reader.
func (c *Client) TCPEvents(ctx context.Context) (*tcp.EventReader, error) {
	a, err := c.call(ctx, request{TCPEvents: &struct{}{}})
	if err != nil {
		return nil, err
	}
	if a.file == nil {
		return nil, errors.New("events of TCP: the host process answered something else")
	}
	return tcp.NewEventReader(a.file)
}

// tcpEvents gives the ring buffer of what is followed.
func (k *keeper) tcpEvents() (*os.File, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	m, _ := k.system.(*change.Kernel) // nil on another machine
	return m.Ring()
}
