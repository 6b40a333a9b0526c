package tcp

import (
	"errors"
	"fmt"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"

	"fieldmesh.dev/fieldmesh/protocols/tcpcc"
)

// Clamp bounds the windows of connections.
type Clamp struct {
	Of
	Segments int // at most so many are in the network
}

// ClampWindow bounds the windows of connections that begin from now on. It is
// in force until the result is closed, or the process ends; connections keep
// the bound for their lives.
func ClampWindow(c Clamp) (*ClampedWindow, error) {
	if c.Segments < 1 {
		return nil, errors.New("bound window: at least one segment is needed")
	}
	l, err := c.attach("window_packets", tcpcc.Clamp, "clamp", map[string]any{"segments": uint32(c.Segments)},
		ebpf.CollectionOptions{})
	if err != nil {
		return nil, err
	}
	return &ClampedWindow{l}, nil
}

// ClampedWindow is what ClampWindow attached.
type ClampedWindow struct{ link link.Link }

// Close leaves the windows of later connections to the kernel.
func (w *ClampedWindow) Close() error {
	if err := w.link.Close(); err != nil {
		return fmt.Errorf("detach bound of windows: %w", err)
	}
	return nil
}
