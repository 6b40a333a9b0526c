package realtime

import (
	"errors"
	"fmt"
	"math"
	"time"

	"golang.org/x/sys/unix"

	"fieldmesh.dev/fieldmesh/rehearsal/hwsim"
	"fieldmesh.dev/fieldmesh/rehearsal/medium"
)

// airPort is where the nodes' own 802.11 radios meet the core.
type airPort struct {
	*hwsim.Air
	nodes     map[[6]byte]int
	addresses [][6]byte // by node
	mhz       int
	waiting   map[uint64]hwsim.Frame // handed to the core, by its number
	last      uint64
	before    uint64          // messages that were refused before
	told      map[string]bool // faults that were logged
	broken    error           // the first message that could not be sent
}

func newAirPort(air *hwsim.Air, cfg medium.Config) (*airPort, error) {
	mhz, err := medium.FrequencyMHz(cfg.Standard, cfg.Channel)
	if err != nil {
		return nil, err
	}
	p := &airPort{Air: air, nodes: map[[6]byte]int{}, mhz: mhz, waiting: map[uint64]hwsim.Frame{},
		before: air.Refused, told: map[string]bool{}}
	for i, n := range cfg.Nodes {
		mac, err := medium.ParseMAC(n.MAC)
		if err != nil {
			return nil, fmt.Errorf("find radio of %q: %w", n.Name, err)
		}
		p.nodes[mac], p.addresses = i, append(p.addresses, mac)
	}
	return p, nil
}

// drainAir takes what the radios have sent since the last look.
func (c *Channel) drainAir() error {
	for range maxReads {
		f, ok, err := c.air.Receive()
		switch {
		case errors.Is(err, unix.EAGAIN):
			return c.air.broken
		case errors.Is(err, unix.ENOBUFS):
			c.tellOnce("frames of the radios came faster than they could be taken")
			continue
		case err != nil:
			return fmt.Errorf("take frames of the radios: %w", err)
		}
		if ok {
			c.transmit(f)
		}
	}
	return c.air.broken
}

// transmit hands a frame to the core. One that the core has no channel for reaches
// nobody, as by a radio that is scanning elsewhere.
func (c *Channel) transmit(f hwsim.Frame) {
	node, known := c.air.nodes[f.From]
	if !known || f.MHz != c.air.mhz {
		c.settle(f, hwsim.Outcome{Tried: 1})
		return
	}
	m := medium.MPDU{Frame: f.Bytes, NoACK: f.NoACK}
	for _, r := range f.Rates {
		if r.Foreign {
			c.tellOnce("a frame wants 802.11n or CTS to self, which the emulated radio lacks: not sent")
			c.settle(f, hwsim.Outcome{Refused: true})
			return
		}
		m.Tries = append(m.Tries, medium.Try{RateMbps: hwsim.RateMbps(f.MHz, r.Index), Times: r.Times, RTS: r.RTS})
	}
	c.air.last++
	m.ID = c.air.last
	c.air.waiting[m.ID] = f
	c.core.Transmit(node, m)
}

// Heard hands a frame to a node's radio; the core calls it.
func (c *Channel) Heard(node int, at time.Duration, r medium.Reception) bool {
	c.late.add(at, c.now())
	err := c.air.Deliver(c.air.addresses[node], r.Frame, hwsim.RateIndex(c.air.mhz, r.RateMbps), c.air.mhz,
		int(math.Round(r.SignalDbm)))
	c.failed(err)
	return err == nil
}

// Sent gives a node's radio the outcome of a frame; the core calls it.
func (c *Channel) Sent(_ int, at time.Duration, o medium.Outcome) {
	c.late.add(at, c.now())
	f, known := c.air.waiting[o.ID]
	if !known {
		return
	}
	delete(c.air.waiting, o.ID)
	c.settle(f, hwsim.Outcome{Tried: o.Tried, ACK: o.ACK, Refused: o.Refused, SignalDbm: int(math.Round(o.SignalDbm))})
}

func (c *Channel) settle(f hwsim.Frame, o hwsim.Outcome) { c.failed(c.air.Report(f, o)) }

func (c *Channel) failed(err error) {
	if c.air.broken == nil {
		c.air.broken = err
	}
}

func (c *Channel) tellOnce(what string) {
	if !c.air.told[what] {
		c.air.told[what] = true
		c.opts.Log.Warn(what)
	}
}
