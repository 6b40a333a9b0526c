package trial

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/netip"
	"sync"
	"time"

	"fieldmesh.dev/fieldmesh/node-agent/link"
	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// probePatience is how long an answer is waited for: packets that a routing
// daemon holds while it looks for a route come late, and show how late.
const probePatience = 30 * time.Second

// probe is the datagram: sealed with the run's key, so that nobody else is
// answered. The other end sends it back as it came.
type probe struct {
	Run string `json:"run"`
	wire.TrialKey
	Probe uint64 `json:"probe"`
}

// echo sends probes back until it is closed.
type echo struct {
	conn link.UDP
	done sync.WaitGroup
}

// startEcho serves probes on the measured flow's receiver, if the trial has any.
func (a *attempt) startEcho() error {
	e := a.engine
	if a.trial.Routing.ProbeHz == nil || e.cfg.Node != a.trial.Receiver {
		return nil
	}
	at, err := e.probeAddr(e.cfg.Node)
	if err != nil {
		return err
	}
	conn, err := link.ListenUDP(a.ctx, at, e.cfg.Bound)
	if err != nil {
		return fmt.Errorf("answer probes: %w", err)
	}
	a.echo = &echo{conn: conn}
	key, run := e.goKey()
	a.echo.done.Go(func() { a.echo.serve(key, run) })
	return nil
}

// probeAddr is where a node answers probes.
func (e *Engine) probeAddr(node string) (netip.AddrPort, error) {
	addr, err := e.meshAddr(node)
	return netip.AddrPortFrom(addr, wire.ProbePort), err
}

func (o *echo) serve(key []byte, run string) {
	buf := make([]byte, wire.MaxDatagram)
	for {
		n, from, err := o.conn.ReadFromUDPAddrPort(buf)
		if errors.Is(err, net.ErrClosed) {
			return
		}
		var p probe
		if err != nil || wire.Open(key, buf[:n], &p) != nil || p.Run != run {
			continue
		}
		_, _ = o.conn.WriteToUDPAddrPort(buf[:n], from) // one without a way back is lost, as on any other link
	}
}

func (o *echo) close() error {
	err := o.conn.Close()
	o.done.Wait()
	return err
}

// prober sends probes and keeps what comes back until it is sampled.
type prober struct {
	conn link.UDP
	done sync.WaitGroup

	mu    sync.Mutex
	sent  map[uint64]int64 // boot time of those without an answer yet
	count uint64           // of all that were sent
}

// startProbes sends probes from the measured flow's sender from the window's
// opening to its close. What comes back is recorded as it comes.
func (a *attempt) startProbes() error {
	e := a.engine
	hz := a.trial.Routing.ProbeHz
	if hz == nil || e.cfg.Node != a.trial.Sender {
		return nil
	}
	from, err := e.meshAddr(e.cfg.Node)
	if err != nil {
		return err
	}
	to, err := e.probeAddr(a.trial.Receiver)
	if err != nil {
		return err
	}
	conn, err := link.ListenUDP(a.ctx, netip.AddrPortFrom(from, 0), e.cfg.Bound)
	if err != nil {
		return fmt.Errorf("send probes: %w", err)
	}
	p := &prober{conn: conn, sent: map[uint64]int64{}}
	a.prober = p
	key, run := e.goKey()
	p.done.Go(func() { a.sendProbes(a.ctx, p, key, probe{Run: run, TrialKey: a.key}, to, *hz) })
	p.done.Go(func() {
		if err := a.takeAnswers(p, key); err != nil {
			a.cancel(err)
		}
	})
	return nil
}

// sendProbes keeps to the beat: a probe is as late as this loop, and a beat that
// was missed is a probe that was not sent.
func (a *attempt) sendProbes(ctx context.Context, p *prober, key []byte, next probe, to netip.AddrPort,
	hz float64) {
	for beat := int64(0); ; beat++ {
		at := a.openNs + int64(float64(beat)*1e9/hz)
		if at >= a.closeNs || a.sleepUntil(at) != nil || ctx.Err() != nil {
			return
		}
		now := a.engine.deps.Clock.BootNs()
		beat = max(beat, int64(float64(now-a.openNs)*hz/1e9))
		next.Probe = uint64(beat + 1)
		datagram, err := wire.Seal(key, next)
		if err != nil {
			return // it is made of numbers
		}
		p.remember(next.Probe, now)
		_, _ = p.conn.WriteToUDPAddrPort(datagram, to) // without a route it is lost, which is what it is to tell
	}
}

func (p *prober) remember(number uint64, nowNs int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	maps.DeleteFunc(p.sent, func(_ uint64, at int64) bool { return nowNs-at > probePatience.Nanoseconds() })
	p.sent[number] = nowNs
	p.count++
}

// answered is when a probe was sent whose first answer has come.
func (p *prober) answered(number uint64) (sentNs int64, first bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	sentNs, first = p.sent[number]
	delete(p.sent, number)
	return sentNs, first
}

// takeAnswers records what comes back until the socket is closed.
func (a *attempt) takeAnswers(p *prober, key []byte) error {
	buf := make([]byte, wire.MaxDatagram)
	for {
		n, _, err := p.conn.ReadFromUDPAddrPort(buf)
		if errors.Is(err, net.ErrClosed) {
			return nil
		}
		var got probe
		if err != nil || wire.Open(key, buf[:n], &got) != nil || got.TrialKey != a.key {
			continue
		}
		now := a.engine.deps.Clock.BootNs()
		sent, first := p.answered(got.Probe)
		if !first {
			continue
		}
		b := &wire.Probe{Peer: a.trial.Receiver, ProbeSeq: got.Probe, SentBootNs: sent, RTTUs: float64(now-sent) / 1e3}
		if err := a.engine.recordAt(now, a.key, b); err != nil {
			return err
		}
	}
}

// endProbes closes both ends, and records how many were sent.
func (a *attempt) endProbes() error {
	var err error
	if a.prober != nil {
		err = a.prober.conn.Close()
		a.prober.done.Wait()
		err = errors.Join(err, a.engine.record(a.key, &wire.ProbeEnd{Peer: a.trial.Receiver, Sent: a.prober.count}))
	}
	if a.echo != nil {
		err = errors.Join(err, a.echo.close())
	}
	return err
}
