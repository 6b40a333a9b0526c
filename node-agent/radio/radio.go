// Package radio reads the radio-feedback socket: what the radio under test,
// real or emulated, says of its peers and its channel. It sets nothing.
package radio

import (
	"context"
	"errors"

	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// Client follows one radio-feedback socket.
type Client struct{ socket string }

// New makes a client of the unix socket at that path; Run starts it.
func New(socket string) *Client { return &Client{socket: socket} }

// Run follows the socket until ctx ends, and reconnects for ever.
func (c *Client) Run(ctx context.Context) error { return errors.New("not built yet") }

// Name names the client as a source of samples.
func (c *Client) Name() string { return "radio" }

// Sample gives the newest station of each peer and the survey, each at most once.
func (c *Client) Sample(int64) ([]wire.Body, error) { return nil, nil }

// Caps is what the radio can do; false before it has told, or while it is not connected.
func (c *Client) Caps() (wire.Caps, bool) { return wire.Caps{}, false }

// Dropped counts the messages that were lost between the radio and this client.
func (c *Client) Dropped() uint64 { return 0 }
