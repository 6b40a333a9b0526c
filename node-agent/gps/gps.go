// Package gps reads positions from gpsd over its JSON protocol. It neither
// talks to a receiver itself nor judges a fix.
package gps

import (
	"context"
	"errors"

	"fieldmesh.dev/fieldmesh/node-agent/clock"
	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// Client follows one gpsd.
type Client struct {
	addr string
	clk  clock.Clock
}

// New makes a client of the gpsd at addr, "host:port"; Run starts it.
func New(addr string, clk clock.Clock) *Client { return &Client{addr: addr, clk: clk} }

// Run follows gpsd until ctx ends, and reconnects for ever.
func (c *Client) Run(ctx context.Context) error { return errors.New("not built yet") }

// Tick is the receiver's state now; each fix is in one tick only.
func (c *Client) Tick() wire.GPS { return wire.GPS{} }

// Last is the newest fix with its present age, whatever ticks have shown it; false before the first.
func (c *Client) Last() (wire.GPS, bool) { return wire.GPS{}, false }

// RateHz is how many fixes a second arrive; absent until enough have come.
func (c *Client) RateHz() *float64 { return nil }

// Name names the client as a source of samples.
func (c *Client) Name() string { return "gps" }

// Sample is Tick as a source of samples.
func (c *Client) Sample(int64) ([]wire.Body, error) { t := c.Tick(); return []wire.Body{&t}, nil }
