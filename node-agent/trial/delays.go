package trial

import (
	"errors"
	"fmt"
	"net/netip"

	"fieldmesh.dev/fieldmesh/node-agent/delay"
	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// timedSender is the sending end of a timed flow.
type timedSender struct {
	*delay.Sender
	done chan error // nil until it runs
}

// openTimed opens this node's ends of the timed flows. Who receives does so from
// now on.
func (a *attempt) openTimed() error {
	for _, f := range a.flows {
		here := a.engine.cfg.Node
		if !f.Timed() || f.From != here && f.To != here {
			continue
		}
		e, err := a.timedEnd(f)
		if err == nil && f.To == here {
			var r *delay.Receiver
			if r, err = delay.Receive(a.ctx, e); err == nil {
				a.receivers = append(a.receivers, r)
			}
		} else if err == nil {
			var s *delay.Sender
			if s, err = delay.NewSender(a.ctx, e); err == nil {
				a.senders = append(a.senders, &timedSender{Sender: s})
			}
		}
		if err != nil {
			return fmt.Errorf("flow %s: %w", f.Name, err)
		}
	}
	return nil
}

// timedEnd is this node's end of a flow.
func (a *attempt) timedEnd(f wire.Flow) (delay.End, error) {
	e := a.engine
	from, err := e.meshAddr(f.From)
	to, toErr := e.meshAddr(f.To)
	if err := errors.Join(err, toErr); err != nil {
		return delay.End{}, err
	}
	key, run := e.goKey()
	end := delay.End{Flow: f, Key: delay.Key(key, run, a.key, f.Name), Clock: e.deps.Clock, Emit: a.emit,
		Own: netip.AddrPortFrom(from, uint16(f.ClientPort)), Peer: netip.AddrPortFrom(to, uint16(f.Port)),
		Bound: e.cfg.Bound}
	if f.To == e.cfg.Node {
		end.Own, end.Peer = end.Peer, end.Own
	}
	return end, nil
}

// startTimed has those senders begin whose flow is one of which.
func (a *attempt) startTimed(which func(wire.Flow) bool) {
	openNs := a.openNs // a further GO may move it while flows wait
	for _, s := range a.senders {
		if which(s.Flow) {
			s.done = make(chan error, 1)
			go func() { s.done <- s.Run(a.ctx, openNs) }()
		}
	}
}

// awaitOthers waits for the senders to end, and for as long as flows may need this node: it answers, it forwards,
// or packets wait in it for a neighbour's address. Else what is under way at the close would be lost.
func (a *attempt) awaitOthers() error {
	for _, s := range a.senders {
		if s.done == nil {
			continue
		}
		err := <-s.done
		s.done <- err
		if err != nil {
			return fmt.Errorf("flow %s: %w", s.Flow.Name, err)
		}
	}
	switch {
	case a.trial.Timed():
		return a.sleepUntil(a.closeNs + wire.DelayGrace.Nanoseconds())
	case len(a.trial.Relays) > 0:
		return a.sleepUntil(a.closeNs + flowGrace.Nanoseconds())
	}
	return nil
}

// closeTimed closes what ends are still open; the attempt's context has ended.
func (a *attempt) closeTimed() error {
	var err error
	for _, s := range a.senders {
		if s.done == nil {
			err = errors.Join(err, s.Close())
		} else {
			<-s.done // why it ended, the attempt knows
		}
	}
	for _, r := range a.receivers {
		err = errors.Join(err, r.Close())
	}
	a.senders, a.receivers = nil, nil
	return err
}
