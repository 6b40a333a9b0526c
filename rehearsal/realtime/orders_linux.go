package realtime

import (
	"time"

	"fieldmesh.dev/fieldmesh/protocols/wire"
	"fieldmesh.dev/fieldmesh/rehearsal/medium"
)

// do runs a function where the core may be touched, and waits for it: on the
// event thread while Run runs, else here.
func (c *Channel) do(f func()) {
	c.mu.Lock()
	if !c.running {
		defer c.mu.Unlock()
		f()
		return
	}
	done := make(chan struct{})
	c.orders = append(c.orders, func() { f(); close(done) })
	c.mu.Unlock()
	c.poll.wake()
	<-done
}

// post is do without the wait: the function runs with the next events. Before
// and after Run it is dropped: it is of no use to anybody then.
func (c *Channel) post(f func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.running {
		return
	}
	c.orders = append(c.orders, f)
	if len(c.orders) == 1 {
		c.poll.wake()
	}
}

func (c *Channel) runOrders() {
	c.mu.Lock()
	orders := c.orders
	c.orders = nil
	c.mu.Unlock()
	for _, f := range orders {
		f()
	}
}

// setRunning marks the event thread's life; orders that came at its very end
// are still run.
func (c *Channel) setRunning(running bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.running = running
	for _, f := range c.orders {
		f()
	}
	c.orders = nil
}

// Lateness is that of an interval of model time that is over. SumS is the wall time
// during which a frame was due for longer than Tolerance, counted once however many
// were; mean, p99 and worst are over all deliveries, of which lateBins.over has more.
func (c *Channel) Lateness(open, closed time.Duration) (out wire.Lateness, err error) {
	c.do(func() {
		if c.running { // else there is nobody to deliver to
			c.core.Advance(c.now()) // what is due already is late, though it was not delivered yet
		}
		out, err = c.late.over(open, closed, c.now())
	})
	return out, err
}

// SetDead switches the whole channel off or on: dead, nothing is delivered.
func (c *Channel) SetDead(dead bool) { c.do(func() { c.core.SetDead(dead) }) }

// SetTxPower changes a node's transmit power from its next frame on.
func (c *Channel) SetTxPower(node int, txPowerDbm float64) {
	c.do(func() { c.core.SetTxPower(node, txPowerDbm) })
}

// OnAir is what every node has put on the air so far.
func (c *Channel) OnAir() []medium.ClassCounts {
	var out []medium.ClassCounts
	c.do(func() {
		for i := range c.names {
			out = append(out, c.core.Counters(i).OnAir)
		}
	})
	return out
}

// Counters is a node's count so far.
func (c *Channel) Counters(node int) medium.Counters {
	var out medium.Counters
	c.do(func() { out = c.core.Counters(node) })
	return out
}
