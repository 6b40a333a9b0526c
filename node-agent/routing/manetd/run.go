package manetd

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net"
	"net/netip"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"

	"fieldmesh.dev/fieldmesh/node-agent/radio"
	"fieldmesh.dev/fieldmesh/protocols/manet"
)

// readBytes is room for any packet of an interface.
const readBytes = 1 << 16

// start starts the goroutines: readers that hand what comes to the loop, and
// its clock. All end with ctx.
func (d *daemon) start(ctx context.Context, group *errgroup.Group) {
	// run ends with ctx, and then what the readers wait in must end. By a function
	// that the context calls itself it might not: it can be stopped before it began.
	group.Go(func() error {
		defer d.shut()
		return d.run(ctx)
	})
	group.Go(func() error { return d.feed.serve(ctx) })
	group.Go(func() error { return d.readTUN(ctx) })
	if d.port != nil {
		group.Go(func() error { return d.readPort(ctx) })
	}
	if d.framer != nil {
		group.Go(func() error { return d.readFrames(ctx) })
	}
	group.Go(func() error { return d.watchInterface(ctx) })
	group.Go(func() error { return d.watchAddress(ctx) })
	group.Go(func() error { return d.neighbors.watch(ctx, d.resolved(ctx), d.unreached(ctx)) })
	if d.cfg.Feedback != "" {
		group.Go(func() error {
			return radio.Failures(ctx, d.cfg.Feedback, func(mac net.HardwareAddr) {
				if len(mac) == 6 {
					d.unreached(ctx)(d.neighbors.ip([6]byte(mac)))
				}
			})
		})
	}
}

// shut ends what readers wait in.
func (d *daemon) shut() {
	_ = d.tun.file.Close()
	if d.port != nil {
		_ = d.port.conn.Close()
	}
	if d.framer != nil {
		_ = d.framer.file.Close()
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

// settle gives the protocol its due timers and sets the clock to the next.
func (d *daemon) settle() {
	d.loop.fire(d.now())
	at, ok := d.loop.timers.next()
	if !ok {
		at = never
	}
	if at != d.wakeAt {
		d.wakeAt = at
		d.wake.Reset(max(at-d.now(), 0))
	}
}

// never is later than any daemon runs.
const never = manet.Time(math.MaxInt64 / 2)

// begin starts the protocol, before anything else can reach it.
func (d *daemon) begin() error {
	if err := catch(d.tun.link, d.network, d.iface.Address); err != nil {
		return err
	}
	d.wake = time.NewTimer(never)
	if d.link.Attrs().Flags&net.FlagUp == 0 {
		d.loop.handle(0, manet.InterfaceDown{})
	}
	d.loop.handle(d.now(), manet.Start{})
	d.settle()
	d.cfg.Log.Info("routing daemon is ready", "protocol", d.protocol.Name, "interface", d.cfg.Interface,
		"address", d.iface.Address.String(), "network", d.network.String(), "feedback", d.cfg.Feedback != "")
	return nil
}

// run is the goroutine of what goes by the clock.
func (d *daemon) run(ctx context.Context) error {
	defer d.wake.Stop()
	look := time.NewTicker(inUseEvery)
	defer look.Stop()
	if d.inUse == nil && !d.protocol.carrier() {
		look.Stop()
	}
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-d.wake.C:
			d.post(ctx, func(manet.Time) { d.wakeAt = 0 }) // so that it is set anew
		case <-look.C:
			d.post(ctx, func(manet.Time) { d.look() })
		}
	}
}

// look sees which routes data uses. Where no radio tells of neighbours that
// are gone, the kernel asks those that data goes to.
func (d *daemon) look() {
	if d.inUse != nil && len(d.loop.routes) > 0 { // without one none is in use
		uses, err := d.inUse.read(d.iface.Address)
		d.loop.failed("read_routes_in_use", err)
		for _, u := range uses {
			if r, ok := d.loop.lookup(u.destination); ok {
				d.peers[r.Next[0].Addr] = true
			}
		}
		d.loop.used(d.now(), uses)
	}
	if d.cfg.Feedback == "" {
		for peer := range d.peers {
			d.loop.failed("probe_neighbor", d.neighbors.probe(peer))
		}
	}
	clear(d.peers)
}

func (d *daemon) readTUN(ctx context.Context) error {
	memory := newSlab(d.iface.MTU)
	for {
		packets, err := d.tun.read(memory)
		if err != nil {
			return ended(ctx, err)
		}
		if !d.post(ctx, func(now manet.Time) {
			for _, packet := range packets {
				d.loop.caught(now, packet)
			}
		}) {
			return ctx.Err()
		}
	}
}

func (d *daemon) readPort(ctx context.Context) error {
	scratch, oob := make([]byte, readBytes), make([]byte, 256)
	for {
		packet, err := d.port.receive(scratch, oob)
		if errors.Is(err, unix.ENETDOWN) {
			continue // told of once; the interface may come up again
		}
		if err != nil {
			return ended(ctx, err)
		}
		if !d.post(ctx, func(now manet.Time) { d.loop.handle(now, packet) }) {
			return ctx.Err()
		}
	}
}

func (d *daemon) readFrames(ctx context.Context) error {
	memory := newSlab(d.iface.MTU)
	for {
		packets, err := d.framer.receive(memory)
		if err != nil {
			return ended(ctx, err)
		}
		if !d.post(ctx, func(now manet.Time) {
			for _, packet := range packets {
				d.loop.handle(now, packet)
			}
		}) {
			return ctx.Err()
		}
	}
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

// unreached says that a neighbour did not take a frame.
func (d *daemon) unreached(ctx context.Context) func(netip.Addr) {
	return func(ip netip.Addr) {
		if !ip.IsValid() {
			return
		}
		d.post(ctx, func(now manet.Time) {
			waiting := d.waitingFor(ip)
			for _, packet := range waiting {
				d.loop.handle(now, manet.Undelivered{Neighbor: ip, Packet: packet})
			}
			if len(waiting) == 0 {
				d.loop.linkFailed(now, ip)
			}
		})
	}
}

// waitingFor takes a carrier's packets back that waited for a neighbour.
func (d *daemon) waitingFor(ip netip.Addr) [][]byte {
	if d.framer == nil {
		return nil
	}
	var out [][]byte
	for _, w := range d.framer.take(ip) {
		out = append(out, w.packet)
	}
	return out
}

// watchInterface follows the interface's going up and down. One that vanishes
// ends the daemon: another of its name would be another.
func (d *daemon) watchInterface(ctx context.Context) error {
	updates := make(chan netlink.LinkUpdate, 64)
	err := netlink.LinkSubscribeWithOptions(updates, ctx.Done(), netlink.LinkSubscribeOptions{ListExisting: true, ErrorCallback: func(error) {}})
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
	err := netlink.AddrSubscribeWithOptions(updates, ctx.Done(), netlink.AddrSubscribeOptions{ErrorCallback: func(error) {}})
	if err != nil {
		return fmt.Errorf("follow addresses: %w", err)
	}
	for u := range updates {
		ip, ok := netip.AddrFromSlice(u.LinkAddress.IP)
		if ctx.Err() == nil && !u.NewAddr && ok && u.LinkIndex == d.link.Attrs().Index && ip.Unmap() == d.iface.Address {
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
	return State{State: d.loop.node.State(now), Interface: d.cfg.Interface, Address: d.iface.Address.String(), UptimeS: now.Seconds(),
		Feedback: d.cfg.Feedback != "", RouteInUse: d.inUse != nil, HeldPackets: d.loop.held.Len(), Runner: d.loop.counts.copied()}
}
