package manetd

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"

	"github.com/vishvananda/netlink"
	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"

	"fieldmesh.dev/fieldmesh/node-agent/clock"
	"fieldmesh.dev/fieldmesh/node-agent/radio"
	"fieldmesh.dev/fieldmesh/protocols/manet"
)

// start starts the goroutines: the one that reads packets and the clock, and
// those that hand it what else comes. All end with ctx.
func (d *daemon) start(ctx context.Context, group *errgroup.Group) {
	// Not by a function that the context calls itself: it can be stopped before it
	// began.
	group.Go(func() error {
		<-ctx.Done()
		return errors.Join(ctx.Err(), d.poller.stop())
	})
	group.Go(func() error { return d.serve(ctx) })
	group.Go(func() error { return d.feed.serve(ctx) })
	group.Go(func() error { return d.watchInterface(ctx) })
	group.Go(func() error { return d.watchAddress(ctx) })
	group.Go(func() error { return d.neighbors.watch(ctx, d.resolved(ctx), d.unreached(ctx)) })
	if d.reported() {
		group.Go(func() error {
			return radio.Failures(ctx, d.cfg.Feedback, d.gaveUp(ctx))
		})
	}
}

// post gives the loop something, between two other events; false once ctx has
// ended. A queue to a goroutine of the loop's own would cost a packet of a
// carrier more than all else.
func (d *daemon) post(ctx context.Context, do func(now manet.Time)) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if ctx.Err() != nil {
		return false
	}
	do(d.now())
	d.settle()
	return true
}

// settle does what the time has come for, sends what was gathered, and sets the
// clock to what is next.
func (d *daemon) settle() {
	now := d.now()
	d.lookInTime(now)
	d.loop.fire(now)
	if d.framer != nil {
		d.loop.failed("transmit", d.framer.flush())
	}
	at := d.loop.timers.next()
	if d.lookAt > 0 {
		at = min(at, d.lookAt)
	}
	d.loop.failed("set_clock", d.poller.set(now, at))
}

// begin starts the protocol, before anything else can reach it.
func (d *daemon) begin() error {
	if err := catch(d.tun.link, d.network, d.iface.Address); err != nil {
		return err
	}
	if d.link.Attrs().Flags&net.FlagUp == 0 {
		d.loop.handle(0, manet.InterfaceDown{})
	}
	d.loop.handle(d.now(), manet.Start{})
	d.settle()
	d.cfg.Log.Info("routing daemon is ready", "protocol", d.protocol.Name, "interface", d.cfg.Interface,
		"address", d.iface.Address.String(), "network", d.network.String(), "feedback", d.reported())
	return nil
}

// openPoller joins what is read from to those who read.
func (d *daemon) openPoller() (err error) {
	if d.poller, err = openPoller(); err != nil {
		return err
	}
	if err := d.poller.add(d.tun.fd, d.readTUN); err != nil {
		return err
	}
	if d.framer != nil {
		return d.poller.add(d.framer.fd, d.readFrames)
	}
	return d.poller.add(d.port.fd, d.readPort)
}

// serve reads packets and the clock.
func (d *daemon) serve(ctx context.Context) error {
	for {
		ready, err := d.poller.wait()
		if err != nil {
			return ended(ctx, err)
		}
		if !d.post(ctx, func(now manet.Time) { err = d.poller.read(ready, now) }) {
			return ctx.Err()
		}
		if err != nil {
			return err
		}
	}
}

// reported reports whether the radio reports lost frames, and they break links.
func (d *daemon) reported() bool { return d.cfg.Feedback != "" && !d.cfg.NoLinkFeedback }

// probes reports whether the kernel asks neighbours, because no radio reports them.
func (d *daemon) probes() bool { return d.cfg.Feedback == "" && !d.cfg.NoLinkFeedback }

// lookInTime looks once every inUseEvery while there is anything to see: a
// route that may be in use, or a neighbour that data went to.
func (d *daemon) lookInTime(now manet.Time) {
	if (d.inUse == nil || len(d.loop.routes) == 0) && (!d.probes() || len(d.peers) == 0) {
		d.lookAt = 0
		return
	}
	if d.lookAt > 0 && d.lookAt <= now {
		d.look(now)
		d.lookAt = 0
	}
	if d.lookAt == 0 {
		d.lookAt = now + inUseEvery
	}
}

// look sees which routes data uses. Where no radio reports neighbours that are
// gone, the kernel asks those that data goes to.
func (d *daemon) look(now manet.Time) {
	d.lookAtUse(now)
	if d.probes() {
		for peer := range d.peers {
			d.loop.failed("probe_neighbor", d.neighbors.probe(peer))
		}
	}
	clear(d.peers)
}

// lookAtUse sees which routes data uses.
func (d *daemon) lookAtUse(now manet.Time) {
	if d.inUse == nil {
		return
	}
	uses, err := d.inUse.read(d.iface.Address)
	d.loop.failed("read_routes_in_use", err)
	for _, u := range uses {
		if r, ok := d.loop.lookup(u.destination); ok {
			d.peers[r.Next[0].Addr] = true
		}
	}
	d.loop.used(now, uses)
}

func (d *daemon) readTUN(now manet.Time) error {
	for range batchPackets {
		packet, err := d.tun.read()
		if errors.Is(err, unix.EAGAIN) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("read %q: %w", d.tun.link.Attrs().Name, err)
		}
		d.loop.caught(now, packet)
	}
	return nil
}

func (d *daemon) readPort(now manet.Time) error {
	packet, some, err := d.port.receive()
	if errors.Is(err, unix.ENETDOWN) {
		return nil // reported once; the interface may come up again
	}
	if some { // where there is another, the poller says so again
		d.loop.handle(now, packet)
	}
	return err
}

func (d *daemon) readFrames(now manet.Time) error {
	return d.framer.receive(func(r manet.Received) { d.loop.handle(now, r) })
}

// ended tells a reader's end that was asked for from any other.
func ended(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return err
}

func (d *daemon) resolved(ctx context.Context) func(netip.Addr) {
	return func(ip netip.Addr) {
		if d.framer != nil {
			d.post(ctx, func(manet.Time) { d.loop.failed("transmit", d.framer.resolved(ip)) })
		}
	}
}

// gaveUp says that the radio gave a frame up: to a protocol that takes such
// packets back, what was in it.
func (d *daemon) gaveUp(ctx context.Context) func(net.HardwareAddr, []byte) {
	return func(mac net.HardwareAddr, frame []byte) {
		if len(mac) != 6 {
			return
		}
		ip := d.neighbors.ip([6]byte(mac))
		packet := d.protocol.carriedIn(frame)
		if packet == nil && d.protocol.TakesBack && len(frame) > 0 {
			return // it is not of this protocol, as an answer of ARP: ns-2 tells DSR of its own packets only
		}
		if packet == nil || !ip.IsValid() {
			d.failed(ctx, ip, d.protocol.lostIn(frame))
			return
		}
		d.post(ctx, func(now manet.Time) { d.loop.handle(now, manet.Undelivered{Neighbor: ip, Packet: packet}) })
	}
}

// unreached says that the kernel could not reach a neighbour.
func (d *daemon) unreached(ctx context.Context) func(netip.Addr) {
	return func(ip netip.Addr) { d.failed(ctx, ip, lost{}) }
}

// failed says that a neighbour did not take a frame.
func (d *daemon) failed(ctx context.Context, ip netip.Addr, frame lost) {
	if !ip.IsValid() {
		return
	}
	d.post(ctx, func(now manet.Time) {
		waiting := d.waitingFor(ip)
		for _, packet := range waiting {
			d.loop.handle(now, manet.Undelivered{Neighbor: ip, Packet: packet})
		}
		if len(waiting) == 0 && !d.cfg.NoLinkFeedback {
			d.loop.linkFailed(now, ip, frame, d.lookAtUse)
		}
	})
}

// waitingFor takes a carrier's packets back that waited for a neighbour.
func (d *daemon) waitingFor(ip netip.Addr) [][]byte {
	if d.framer == nil {
		return nil
	}
	return d.framer.take(ip)
}

// watchInterface follows the interface's going up and down. One that vanishes
// ends the daemon: another of its name would be another.
func (d *daemon) watchInterface(ctx context.Context) error {
	updates := make(chan netlink.LinkUpdate, 64)
	err := netlink.LinkSubscribeWithOptions(updates, ctx.Done(), netlink.LinkSubscribeOptions{ListExisting: true,
		ErrorCallback: func(error) {}})
	if err != nil {
		return fmt.Errorf("follow interfaces: %w", err)
	}
	up := d.link.Attrs().Flags&net.FlagUp != 0
	var gone error
	for u := range updates { // drained to its end: the library would wait for us otherwise
		if int(u.Index) != d.link.Attrs().Index || ctx.Err() != nil {
			continue
		}
		if u.Header.Type == unix.RTM_DELLINK {
			return fmt.Errorf("interface %q is gone", d.cfg.Interface)
		}
		if now := u.IfInfomsg.Flags&unix.IFF_UP != 0; now != up {
			up = now
			d.post(ctx, d.upOrDown(up))
		}
	}
	return ended(ctx, errors.Join(errors.New("the kernel's messages of interfaces ended"), gone))
}

func (d *daemon) upOrDown(up bool) func(manet.Time) {
	return func(now manet.Time) {
		d.cfg.Log.Info("interface changed", "interface", d.cfg.Interface, "up", up)
		if !up {
			d.loop.handle(now, manet.InterfaceDown{})
			return
		}
		d.loop.reinstall()
		d.loop.handle(now, manet.InterfaceUp{})
	}
}

// watchAddress ends the daemon when its address goes: everything that others
// know of this node goes by it.
func (d *daemon) watchAddress(ctx context.Context) error {
	updates := make(chan netlink.AddrUpdate, 64)
	err := netlink.AddrSubscribeWithOptions(updates, ctx.Done(),
		netlink.AddrSubscribeOptions{ErrorCallback: func(error) {}})
	if err != nil {
		return fmt.Errorf("follow addresses: %w", err)
	}
	for u := range updates {
		ip, ok := netip.AddrFromSlice(u.LinkAddress.IP)
		if ctx.Err() == nil && !u.NewAddr && ok && u.LinkIndex == d.link.Attrs().Index && ip.Unmap() ==
			d.iface.Address {
			return fmt.Errorf("interface %q has lost its address %s", d.cfg.Interface, d.iface.Address)
		}
	}
	return ended(ctx, errors.New("the kernel's messages of addresses ended"))
}

// ask has the loop describe itself, for the daemon's socket.
func (d *daemon) ask(ctx context.Context) (State, error) {
	answer := make(chan State, 1)
	if !d.post(ctx, func(now manet.Time) { answer <- d.state(now) }) {
		return State{}, ctx.Err()
	}
	select {
	case s := <-answer:
		return s, nil
	case <-ctx.Done():
		return State{}, ctx.Err()
	}
}

func (d *daemon) state(now manet.Time) State {
	s := d.loop.node.State(now)
	return State{State: s, TBootNs: clock.System{}.BootNs(), Interface: d.cfg.Interface,
		Address: d.iface.Address.String(), UptimeS: now.Seconds(),
		Feedback: d.reported(), RouteInUse: d.inUse != nil, HeldPackets: d.loop.waiting(s),
		Runner: d.loop.counts.copied()}
}
