package trial

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
	"time"

	"fieldmesh.dev/fieldmesh/internal/verdict"
	"fieldmesh.dev/fieldmesh/node-agent/host"
	"fieldmesh.dev/fieldmesh/node-agent/link"
	"fieldmesh.dev/fieldmesh/node-agent/trial/challenge"
	"fieldmesh.dev/fieldmesh/node-agent/trial/gate"
	"fieldmesh.dev/fieldmesh/protocols/wire"
)

const (
	goEvery = 50 * time.Millisecond
	// goApart is between the GOs to two peers: the answers of many who are asked
	// at once wait for each other, and how long they do makes GO uncertain. It is
	// what a GO of 300 bytes is on the air at 1 Mbit/s, the lowest rate of 802.11.
	goApart = 3 * time.Millisecond
	// goFine is a round trip that says well enough when a peer opens its window; a
	// peer whose answer took longer is asked again, goMost times in all.
	goFine = 10 * time.Millisecond
	goMost = 5
	// goQuiet is how long before the window GO falls silent, so that nothing of it is in the air when the window opens.
	goQuiet = 100 * time.Millisecond
	// lateArm is what a peer may take to arm itself when GO finds that nobody had it do so. Asked to before the gate
	// it has as long as who asks waits, up to lateJoin, which is what two calls to the host process may take: one may
	// have it join a network, or give one up.
	lateArm  = 2 * time.Second
	lateJoin = 90 * time.Second
	// meshAfter is how many unanswered GOs on the control link send the next ones over the mesh as well.
	meshAfter = 3
	// refusedEvery is how often at most a forged GO is logged.
	refusedEvery = time.Second
)

func (e *Engine) listenGo(ctx context.Context) (net.PacketConn, error) {
	c, err := link.ListenUDP(ctx, netip.AddrPortFrom(netip.IPv4Unspecified(), uint16(e.cfg.GoPort)), e.cfg.Bound)
	if err != nil {
		return nil, fmt.Errorf("listen for GO on UDP port %d: %w", e.cfg.GoPort, err)
	}
	return c, nil
}

// serveGo answers GO until the socket is closed.
func (e *Engine) serveGo(ctx context.Context, conn net.PacketConn) {
	buf := make([]byte, wire.MaxDatagram+1)
	var told time.Time
	for {
		n, from, err := conn.ReadFrom(buf)
		if ctx.Err() != nil || errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil { // of the moment: a node that hears no GO any more is of no use
			e.deps.Log.Error("receive GO", "error", err)
			time.Sleep(goEvery)
			continue
		}
		received := e.deps.Clock.BootNs()
		key, run := e.goKey()
		if key == nil {
			continue
		}
		var g wire.Go
		if err := wire.Open(key, buf[:n], &g); err != nil || g.Type != wire.GoStart && g.Type != wire.GoArm ||
			g.Run != run || g.To != e.cfg.Node {
			if time.Since(told) > refusedEvery { // who floods the port must not fill the disk
				told = time.Now()
				e.deps.Log.Warn("GO refused", "from", from.String(), "error", err)
			}
			continue
		}
		if ack := e.obey(ctx, g, received, from); ack != nil {
			// Of a trial that is over, or from who is not its initiator, among them: a replay.
			if !ack.Ready && time.Since(told) > refusedEvery {
				told = time.Now()
				e.deps.Log.Warn("GO not obeyed", "from", from.String(), "trial", g.Trial, "attempt", g.Attempt,
					"reason", ack.Reason)
			}
			answer, err := wire.Seal(key, ack)
			if err == nil {
				_, err = conn.WriteTo(answer, from)
			}
			if err != nil {
				e.deps.Log.Warn("answer GO", "to", from.String(), "error", err)
			}
		}
	}
}

func (e *Engine) goKey() ([]byte, string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.plan == nil {
		return nil, ""
	}
	return e.plan.Key, e.plan.Run
}

// obey does what a GO asks and returns the answer, nil for none yet.
func (e *Engine) obey(ctx context.Context, g wire.Go, receivedNs int64, from net.Addr) *wire.Ack {
	ack := &wire.Ack{Type: "ack", Run: g.Run, Trial: g.Trial, Attempt: g.Attempt, From: e.cfg.Node, Of: g.Type,
		Exchange: g.Exchange, Nonce: g.Nonce, Ready: true}
	k := wire.TrialKey{Trial: g.Trial, Attempt: g.Attempt}
	e.mu.Lock()
	a := e.current
	t, known := e.trial(g.Trial)
	fromInitiator := known && t.Initiator == g.From
	takesPart := known && slices.Contains(t.Nodes(), e.cfg.Node)
	ended := e.ended
	decided := false
	for _, v := range e.verdicts[g.Trial] {
		decided = decided || v.Attempt == g.Attempt
	}
	state := wire.State("")
	if a != nil {
		state = a.state
	}
	e.mu.Unlock()
	switch {
	case !fromInitiator:
		ack.Ready, ack.Reason = false, "this trial is not yours to start"
	case !takesPart:
		ack.Ready, ack.Reason = false, "this node takes no part in the trial"
	case ended:
		ack.Ready, ack.Ended, ack.Reason = false, true, "the run has ended here"
	case a != nil && a.key == k && state == wire.StateLoaded:
		return nil // still arming: the next repetition is answered
	case a != nil && a.key == k && state != wire.StateRestoring && g.Type == wire.GoArm:
		ack.Waiting = clip(a.waitsFor())
	case a != nil && a.key == k && state != wire.StateRestoring:
		a.order(goOrder{openBootNs: receivedNs + g.StartInUs*1000, path: e.pathOf(from)})
	case decided || a != nil && a.key == k:
		ack.Ready, ack.Reason = false, "this attempt has ended here"
	case !e.challenge.Met(g.Answer):
		ack.Challenge = e.challenge.Number()
	case a != nil:
		a.giveWay(k, state)
		return nil // answered once this node is free, if that is soon enough
	default:
		if err := e.armLate(ctx, k, mayTake(g)); err != nil {
			ack.Ready, ack.Ended, ack.Reason = false, e.hasEnded(), clip(err.Error())
			return ack
		}
		return nil
	}
	return ack
}

// clip keeps a reason short enough for a datagram.
func clip(reason string) string {
	const most = wire.MaxDatagram / 3
	if len(reason) <= most {
		return reason
	}
	return strings.ToValidUTF8(reason[:most], "") + "…"
}

// giveWay ends an attempt that its initiator gave up after this node had armed, or had answered GO. A running one gives
// way to a later one only, so that an old GO sent again cannot end it. One of this node's own gives way to an earlier
// trial of another's, and uses nothing up: where both go on alone they need not agree on which is next.
func (a *attempt) giveWay(k wire.TrialKey, state wire.State) {
	later := k.Trial > a.key.Trial || k.Trial == a.key.Trial && k.Attempt > a.key.Attempt
	why := faultf(wire.ReasonSuperseded, "GO of trial %d attempt %d came", k.Trial, k.Attempt)
	switch own := a.trial.Initiator == a.engine.cfg.Node; {
	case own && !later && (state == wire.StateArmed || state == wire.StateLoaded): // each may wait for the other
		a.interrupt(wire.ReasonSuperseded, why.err.Error())
	case !own && (state == wire.StateArmed || state == wire.StateRunning && later):
		a.cancel(why)
	}
}

// mayTake is how long arming on a GO may take.
func mayTake(g wire.Go) time.Duration {
	if g.Type != wire.GoArm {
		return lateArm
	}
	return max(lateArm, min(time.Duration(g.StartInUs)*time.Microsecond, lateJoin))
}

// armLate arms for an attempt that no controller has armed here. An error says at once that this node cannot take part.
func (e *Engine) armLate(ctx context.Context, k wire.TrialKey, within time.Duration) error {
	var a *attempt
	looking, enough := context.WithTimeout(ctx, lateArm)
	defer enough()
	err := e.endIfRestoredByHand(looking)
	if err == nil || errors.Is(err, host.ErrAway) { // an attempt without the host process is interrupted
		a, err = e.admit(looking, k)
	}
	if err != nil {
		e.deps.Log.Error("arm on GO", "trial", k.Trial, "attempt", k.Attempt, "error", err)
	}
	if err != nil || a == nil {
		return err
	}
	e.work.Add(1)
	go func() {
		defer e.work.Done()
		ctx, cancel := context.WithTimeout(ctx, within)
		defer cancel()
		if err := a.begin(ctx); err != nil {
			e.deps.Log.Error("arm on GO", "trial", k.Trial, "attempt", k.Attempt, "error", err)
		}
	}()
	return nil
}

// order sets the window's opening. Of several GOs the one with the earliest
// opening counts, which was delayed least; one that is sent again says a later.
func (a *attempt) order(o goOrder) {
	for {
		select {
		case a.start <- o:
			return
		case before := <-a.start: // which nobody has looked at yet
			if before.openBootNs < o.openBootNs {
				o = before
			}
		}
	}
}

// opensAt is called by the attempt's own goroutine, which alone reads what it sets without the lock.
func (a *attempt) opensAt(bootNs int64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.openNs, a.closeNs = bootNs, bootNs+a.trial.Duration().Nanoseconds()
}

// awaitOpening waits for the window to open, which a further GO may put earlier.
func (a *attempt) awaitOpening(o goOrder) (goOrder, error) {
	for {
		left := a.approach("open", o.openBootNs)
		if left <= 0 {
			return o, nil
		}
		timer := time.NewTimer(left)
		select {
		case <-timer.C:
		case further := <-a.start:
			if further.openBootNs < o.openBootNs {
				o = further
				a.opensAt(o.openBootNs)
			}
		case <-a.ctx.Done():
			timer.Stop()
			return o, context.Cause(a.ctx)
		}
		timer.Stop()
	}
}

// pathOf returns by which way a GO came: the sender's mesh address or another.
func (e *Engine) pathOf(from net.Addr) string {
	u, ok := from.(*net.UDPAddr)
	if !ok {
		return ""
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, n := range e.plan.Nodes {
		if p, err := netip.ParsePrefix(n.MeshPrefix); err == nil && p.Addr().String() == u.IP.String() {
			return "mesh"
		}
	}
	return "control"
}

// peer is one node that has to answer GO.
type peer struct {
	name    string
	paths   []*net.UDPAddr // control link first, where there is one
	asked   []int64        // when, boot clock: by each repetition, from the first
	answer  uint64         // to its last challenge
	acked   bool
	joins   bool // it arms: any answer is enough
	bestRTT time.Duration
	waiting string       // what it said that it still waits for
	heardBy *net.UDPAddr // the path of its last answer that was not yet its word
	heardAt uint64       // and the repetition
}

// sure reports whether the peer need not be asked again.
func (p *peer) sure(kind string) bool {
	return p.joins && p.waiting != "" || p.acked && (kind == wire.GoArm || p.bestRTT <= goFine ||
		len(p.asked) >= goMost)
}

// to is where a repetition goes: by the control link where there is one, by all paths when that stays silent, and by no
// other than the one that answered while the peer waits, so that its mesh is left alone.
func (p *peer) to(nonce uint64) []*net.UDPAddr {
	switch {
	case p.heardBy != nil && nonce-p.heardAt <= meshAfter:
		return []*net.UDPAddr{p.heardBy}
	case nonce > meshAfter:
		return p.paths
	}
	return p.paths[:1]
}

func (a *attempt) peers() ([]*peer, error) {
	e := a.engine
	var out []*peer
	for _, name := range a.trial.Nodes() {
		if name == e.cfg.Node {
			continue
		}
		n, ok := e.planNode(name)
		if !ok {
			return nil, faultf(wire.ReasonGoFailed, "the plan has no node %q", name)
		}
		mesh, err := e.meshAddr(name)
		if err != nil {
			return nil, err
		}
		p := &peer{name: name}
		if n.ControlAddr != "" {
			if ip, err := netip.ParseAddr(n.ControlAddr); err == nil {
				p.paths = append(p.paths, net.UDPAddrFromAddrPort(netip.AddrPortFrom(ip, uint16(n.GoPort))))
			}
		}
		p.paths = append(p.paths, net.UDPAddrFromAddrPort(netip.AddrPortFrom(mesh, uint16(n.GoPort))))
		out = append(out, p)
	}
	return out, nil
}

// readyPeers has every peer arm itself where no controller has done so, before the gate: what it takes would else come
// between the gate and the window.
func (a *attempt) readyPeers(peers []*peer, within time.Duration) error {
	if len(peers) == 0 || a.peersReady || a.engine.leaseHeld() {
		return nil
	}
	fix, _ := a.engine.deps.GPS.Last()
	detail, away := "waiting for the other nodes to be ready", gate.Away(a.trial, a.engine.deps.Clock.BootNs(), fix)
	if a.trial.Gate.AtStart && !away {
		detail = "stay at the start until the other nodes are ready"
	}
	a.tellWait(detail, away)
	err := a.askToArm(a.ctx, peers, within)
	for _, p := range peers {
		p.acked = false
	}
	return err
}

// askToArm asks the peers until they are ready. As long as none of them answers it goes on, or one attempt after the
// other would end so, and in the end the trial be given up. One of several that stays silent interrupts the attempt:
// nobody has driven for it, and none of the trial's attempts is used up.
func (a *attempt) askToArm(ctx context.Context, peers []*peer, within time.Duration) error {
	e := a.engine
	for {
		e.mu.Lock()
		last := a.heard || e.forsaken() // who answers late has its time from then on
		e.mu.Unlock()
		err := a.exchangeGo(ctx, wire.GoArm, peers, e.deps.Clock.BootNs()+within.Nanoseconds())
		if !errors.Is(err, errGoUnanswered) {
			return err
		}
		if last {
			return verdict.Interruption{Code: wire.ReasonGoUnanswered, Text: reasonOf(err).Text}
		}
	}
}

// sendGo sends GO to every peer until all have answered, and then sets this
// node's own start. The window does not open before everyone has.
func (a *attempt) sendGo(peers []*peer) error {
	e := a.engine
	lead := time.Duration(a.trial.Gate.LeadS * float64(time.Second))
	openNs := e.deps.Clock.BootNs() + lead.Nanoseconds()
	a.tellWait("GO", false)
	if len(peers) > 0 {
		if err := a.exchangeGo(a.ctx, wire.GoStart, peers, openNs); err != nil {
			return err
		}
	}
	var worst time.Duration
	for _, p := range peers {
		worst = max(worst, p.bestRTT)
	}
	// A peer opens its window later by GO's way to it, of which only the round trip is known.
	uncertainty := float64(worst.Microseconds())
	a.order(goOrder{openBootNs: openNs, path: "self", uncertaintyUs: &uncertainty})
	return nil
}

func (e *Engine) leaseHeld() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.leased()
}

func (e *Engine) hasEnded() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.ended
}

// errGoUnanswered says that an exchange's time has run out.
const errGoUnanswered = coded(wire.ReasonGoUnanswered)

// exchangeGo repeats a GO of one type until every peer has answered, or until it is time to fall silent before untilNs.
func (a *attempt) exchangeGo(ctx context.Context, kind string, peers []*peer, untilNs int64) error {
	e := a.engine
	conn, err := link.ListenUDP(ctx, netip.AddrPortFrom(netip.IPv4Unspecified(), 0), e.cfg.Bound)
	if err != nil {
		return fault{wire.ReasonGoFailed, err}
	}
	defer conn.Close()
	key, run := e.goKey()
	exchange := challenge.Random()
	for _, p := range peers {
		p.asked, p.answer = nil, 0
	}
	// Where they are many and the time is short, all can still be asked twice.
	within := time.Duration(untilNs-e.deps.Clock.BootNs()) - goQuiet
	apart := min(goApart, within/time.Duration(2*len(peers)+1))
	for nonce := uint64(1); ; nonce++ {
		for _, p := range peers {
			if p.sure(kind) {
				continue
			}
			now := e.deps.Clock.BootNs()
			left := time.Duration(untilNs - now)
			if left < goQuiet {
				if missing := unanswered(peers); missing != "" {
					return faultf(wire.ReasonGoUnanswered, "no answer from %s in time", missing)
				}
				return nil // some only slowly
			}
			if ctx.Err() != nil {
				return context.Canceled
			}
			g := wire.Go{Type: kind, Run: run, Trial: a.key.Trial, Attempt: a.key.Attempt, From: e.cfg.Node,
				To: p.name, Exchange: exchange, Nonce: nonce, StartInUs: left.Microseconds(), Answer: p.answer}
			if err := p.ask(conn, key, g, now); err != nil {
				return fault{wire.ReasonGoFailed, err}
			}
			if all, err := a.collectAcks(conn, key, kind, exchange, peers, apart); all || err != nil {
				return err
			}
		}
		every := goEvery
		if slices.ContainsFunc(peers, func(p *peer) bool { return p.waiting != "" }) {
			every = readyEvery
		}
		if all, err := a.collectAcks(conn, key, kind, exchange, peers, every); all || err != nil {
			return err
		}
	}
}

// ask sends the peer one repetition.
func (p *peer) ask(conn link.UDP, key []byte, g wire.Go, now int64) error {
	datagram, err := wire.Seal(key, g)
	if err != nil {
		return err
	}
	p.asked = append(p.asked, now)
	for _, path := range p.to(g.Nonce) {
		// A path that is down now may be up at the next repetition, and
		// the other path may work: a failed send is not yet a failure.
		_, _ = conn.WriteToUDP(datagram, path)
	}
	return nil
}

// collectAcks reads answers for a time; it reports whether no peer need be asked
// again, and fails when one says that it cannot take part.
func (a *attempt) collectAcks(conn link.UDP, key []byte, kind string, exchange uint64, peers []*peer,
	within time.Duration) (bool, error) {
	if err := conn.SetReadDeadline(time.Now().Add(within)); err != nil {
		return false, fault{wire.ReasonGoFailed, err}
	}
	allSure := func() bool {
		return !slices.ContainsFunc(peers, func(p *peer) bool { return !p.sure(kind) })
	}
	buf := make([]byte, wire.MaxDatagram+1)
	for {
		n, from, err := conn.ReadFromUDP(buf)
		var timeout net.Error
		if errors.As(err, &timeout) && timeout.Timeout() {
			return allSure(), nil
		}
		if err != nil {
			continue // an ICMP error of an earlier send; the deadline ends the loop
		}
		var ack wire.Ack
		if wire.Open(key, buf[:n], &ack) != nil || ack.Type != "ack" || ack.Of != kind || ack.Exchange != exchange {
			continue
		}
		a.engine.mu.Lock()
		if a.heard = a.heard || !ack.Ended; ack.Ended {
			a.engine.endedAt = ack.From
		}
		a.engine.mu.Unlock()
		if ack.Ended {
			return false, verdict.Interruption{Code: wire.ReasonHostRestored, Text: ack.From + ": " + ack.Reason}
		}
		if !ack.Ready {
			return false, faultf(wire.ReasonPeerNotReady, "%s: %s", ack.From, ack.Reason)
		}
		for _, p := range peers {
			if p.name != ack.From || ack.Nonce < 1 || ack.Nonce > uint64(len(p.asked)) {
				continue
			}
			if ack.Challenge != 0 {
				p.answer = ack.Challenge
				continue
			}
			if p.waiting = ack.Waiting; p.waiting != "" {
				p.heardBy, p.heardAt = from, ack.Nonce
				continue
			}
			rtt := time.Duration(a.engine.deps.Clock.BootNs() - p.asked[ack.Nonce-1])
			if !p.acked || rtt < p.bestRTT {
				p.acked, p.bestRTT = true, rtt
			}
		}
		if allSure() {
			return true, nil
		}
	}
}

func unanswered(peers []*peer) string {
	var out []string
	for _, p := range peers {
		if !p.acked {
			out = append(out, p.name)
		}
	}
	return strings.Join(out, ", ")
}
