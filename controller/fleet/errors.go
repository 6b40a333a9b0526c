package fleet

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"syscall"
	"time"

	"fieldmesh.dev/fieldmesh/internal/keys"
	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// NodeError says which node, at which address, failed at what, and what to do.
// It wraps the cause: a *wire.Error when the node itself refused.
type NodeError struct {
	Node    string
	Address string
	Doing   string
	Cure    string
	// Stranger: one of the two does not know the other's key. Asking again does
	// not help.
	Stranger bool
	Err      error
}

func (e *NodeError) Error() string {
	text := fmt.Sprintf("node %q at %s: %s: %s", e.Node, e.Address, e.Doing, e.Err)
	if e.Cure != "" {
		text += "; " + e.Cure
	}
	return text
}

func (e *NodeError) Unwrap() error { return e.Err }

// Unreached reports whether an error means that the node could not be talked to
// at all, in contrast to an answer that it gave.
func Unreached(err error) bool {
	var refused *wire.Error
	return err != nil && !errors.As(err, &refused)
}

// silentCure is of a node from which nothing comes: nobody can tell a packet that was lost from one that a firewall
// has dropped.
const silentCure = "check that the control link is up, that the address is right, and that no firewall there stops " +
	"the agent's TCP port"

// explain puts a cause into words with its cure. took is how long the call lasted.
func (c *Client) explain(k call, err error, took time.Duration) error {
	e := &NodeError{Node: c.node.Name, Address: c.node.Address, Doing: k.doing, Err: err}
	var (
		refused *wire.Error
		pin     *keys.PinError
		network *net.OpError
		strange tls.RecordHeaderError
		lookup  *net.DNSError
	)
	timedOut := errors.As(err, &network) && network.Timeout() || errors.Is(err, os.ErrDeadlineExceeded) ||
		errors.Is(err, context.DeadlineExceeded)
	switch {
	case errors.As(err, &refused): // it brings its own cure
	case errors.As(err, &pin):
		e.Stranger = true
		e.Err = &explained{fmt.Sprintf("it answered with key %s, the fleet file pins %s", pin.Got, pin.Want), err}
		e.Cure = "if it was paired again, start its agent again; if its keys were copied there by hand, correct its " +
			"pin; otherwise this is another machine"
	case errors.As(err, &network) && network.Op == "remote error":
		e.Stranger = true
		e.Err = &explained{fmt.Sprintf("it does not know our key %s (%s)", c.pin, network.Err), err}
		e.Cure = "copy the bundle that `fieldmesh keys issue` made to the node"
	case errors.Is(err, syscall.ECONNREFUSED):
		e.Err = &explained{"connection refused", err}
		e.Cure = "is the agent running there? start it with `fieldmesh-agent up`"
	case errors.As(err, &strange), errors.Is(err, http.ErrSchemeMismatch):
		e.Err = &explained{"what answers there is not a fieldmesh-agent: it does not speak TLS", err}
		e.Cure = "correct the node's address in the fleet file"
	case errors.As(err, &lookup) && lookup.IsNotFound:
		e.Err = &explained{fmt.Sprintf("nobody knows the name %s", lookup.Name), err}
		e.Cure = "correct the node's address in the fleet file, or write the numeric one"
	case errors.Is(err, context.Canceled):
	case timedOut:
		e.Err = &explained{fmt.Sprintf("no answer within %s", took.Round(10*time.Millisecond)), err}
		e.Cure = silentCure
	case errors.Is(err, syscall.EHOSTUNREACH), errors.Is(err, syscall.ENETUNREACH):
		e.Cure = silentCure
	case errors.Is(err, io.EOF), errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE):
		e.Err = &explained{fmt.Sprintf("it closed the connection (%s)", err), err}
		e.Cure = "it may not know our key, or be restarting: look at the agent's log there"
	}
	return e
}

// explained is a cause in better words.
type explained struct {
	text  string
	cause error
}

func (e *explained) Error() string { return e.text }
func (e *explained) Unwrap() error { return e.cause }
