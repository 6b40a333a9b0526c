package medium

import "fieldmesh.dev/fieldmesh/protocols/wire"

// do runs a function where the core may be touched, and waits for it: on the
// event thread while Run runs, else here.
func (l *Live) do(f func()) {
	l.mu.Lock()
	if !l.running {
		defer l.mu.Unlock()
		f()
		return
	}
	done := make(chan struct{})
	l.orders = append(l.orders, func() { f(); close(done) })
	l.mu.Unlock()
	l.poll.wake()
	<-done
}

// post is do without the wait: the function runs with the next events. Before
// and after Run it is dropped: it is of no use to anybody then.
func (l *Live) post(f func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.running {
		return
	}
	l.orders = append(l.orders, f)
	if len(l.orders) == 1 {
		l.poll.wake()
	}
}

func (l *Live) runOrders() {
	l.mu.Lock()
	orders := l.orders
	l.orders = nil
	l.mu.Unlock()
	for _, f := range orders {
		f()
	}
}

// setRunning marks the event thread's life; orders that came at its very end
// are still run.
func (l *Live) setRunning(running bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.running = running
	for _, f := range l.orders {
		f()
	}
	l.orders = nil
}

// BeginWindow starts the account of lateness again.
func (l *Live) BeginWindow() {
	l.do(func() { l.late.begin(l.now()) })
}

// EndWindow is the lateness since BeginWindow. SumS is the wall time during
// which a frame was due for longer than Tolerance, counted once however many
// were; mean, p99 and worst are over all deliveries.
func (l *Live) EndWindow() wire.Lateness {
	var out wire.Lateness
	l.do(func() { out = l.late.end(l.now()) })
	return out
}

// SetDead switches the whole channel off or on: dead, nothing is delivered.
func (l *Live) SetDead(dead bool) { l.do(func() { l.core.SetDead(dead) }) }

// SetTxPower changes a node's transmit power from its next frame on.
func (l *Live) SetTxPower(node int, txPowerDbm float64) {
	l.do(func() { l.core.SetTxPower(node, txPowerDbm) })
}

// OnAir is what every node has put on the air so far.
func (l *Live) OnAir() []ClassCounts {
	var out []ClassCounts
	l.do(func() {
		for _, s := range l.core.stations {
			out = append(out, s.count.OnAir)
		}
	})
	return out
}

// Counters is a node's count so far.
func (l *Live) Counters(node int) Counters {
	var out Counters
	l.do(func() { out = l.core.Counters(node) })
	return out
}
