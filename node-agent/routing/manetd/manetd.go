// Package manetd runs a routing protocol of ours as a daemon: it gives the
// pure state machine (protocols/manet) sockets, timers and kernel routes on
// one interface, catches data packets that have no route in a TUN device and
// lets them go once there is one, and tells the protocol which routes data
// uses and which neighbours the link layer could not reach. The protocols
// themselves stay out, and so do the kernel's settings that a router needs:
// who starts the daemon makes them, with their undo.
package manetd

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"

	"fieldmesh.dev/fieldmesh/internal/unixsocket"
	"fieldmesh.dev/fieldmesh/node-agent/clock"
	"fieldmesh.dev/fieldmesh/node-agent/routing/control"
	"fieldmesh.dev/fieldmesh/protocols/manet"
)

// daemon is one life of it.
type daemon struct {
	cfg       control.Config
	protocol  Protocol
	link      netlink.Link
	iface     manet.Interface
	network   netip.Prefix
	began     time.Time
	lock      *net.UnixListener
	routes    *kernelRoutes
	neighbors *neighbors
	tun       *tun
	port      *port   // nil for a carrier
	framer    *framer // nil but for a carrier
	injector  *injector
	inUse     *inUse // nil where the kernel cannot tell
	feed      *feed
	poller    *poller
	mu        sync.Mutex // of the loop, of what it does, and of all that follows
	loop      *loop
	lookAt    manet.Time          // when to see which routes data uses; 0: there is nothing to see
	peers     map[netip.Addr]bool // next hops that data went to since the last look
}

// Run runs the daemon until ctx ends, and takes what it set in the kernel out
// again. An error before that says what is missing.
func Run(ctx context.Context, cfg control.Config) (err error) {
	d := &daemon{cfg: cfg, began: time.Now(), peers: map[netip.Addr]bool{}}
	defer func() { err = errors.Join(err, d.close()) }()
	if err := d.open(); err != nil {
		return err
	}
	if err := d.begin(); err != nil {
		return err
	}
	keepSmall(d.protocol.carrier())
	group, gctx := errgroup.WithContext(ctx)
	d.start(gctx, group)
	err = group.Wait()
	if ctx.Err() != nil { // asked to end: what the readers then said is no news
		return nil
	}
	return err
}

// keepSmall gives back what only the start needed, and says how far the heap
// may grow between two looks for garbage. A carrier's packets are garbage at
// once: by the usual measure its heap would be swept dozens of times a second.
// Where the kernel forwards, a megabyte is made in minutes.
func keepSmall(carrier bool) {
	if carrier {
		debug.SetGCPercent(400)
		return
	}
	debug.SetGCPercent(25)
	debug.FreeOSMemory()
}

// open gets everything that the daemon needs, the cheapest to refuse first.
func (d *daemon) open() (err error) {
	if os.Geteuid() != 0 {
		return errors.New("a routing daemon must run as root: it sets routes and opens raw sockets")
	}
	if d.protocol, err = find(d.cfg.Protocol); err != nil {
		return err
	}
	if err := d.findInterface(); err != nil {
		return err
	}
	if d.lock, err = lock(d.cfg.Interface); err != nil {
		return err
	}
	if d.lock == nil {
		d.cfg.Log.Warn("another user has taken the name of the lock; a second daemon would not be kept off",
			"interface", d.cfg.Interface)
	}
	if err := checkKernel(d.cfg.Interface, d.protocol.carrier()); err != nil {
		return err
	}
	d.routes = &kernelRoutes{links: []netlink.Link{d.link}, own: []netip.Addr{d.iface.Address}}
	swept, err := d.routes.sweep()
	if err != nil {
		return err
	}
	if swept > 0 {
		d.cfg.Log.Info("removed routes that an earlier daemon had left", "routes", swept)
	}
	if err := d.openSockets(); err != nil {
		return err
	}
	return d.makeLoop()
}

// findInterface reads what the protocol must know of the interface.
func (d *daemon) findInterface() error {
	link, err := netlink.LinkByName(d.cfg.Interface)
	var missing netlink.LinkNotFoundError
	if errors.As(err, &missing) {
		return fmt.Errorf("there is no interface %q", d.cfg.Interface)
	}
	if err != nil {
		return fmt.Errorf("find interface %q: %w", d.cfg.Interface, err)
	}
	addrs, err := netlink.AddrList(link, netlink.FAMILY_V4)
	if err != nil {
		return fmt.Errorf("read addresses of %q: %w", d.cfg.Interface, err)
	}
	var has []netip.Prefix
	for _, a := range addrs {
		ip, _ := netip.AddrFromSlice(a.IP.To4())
		bits, _ := a.Mask.Size()
		has = append(has, netip.PrefixFrom(ip, bits))
	}
	own, network, err := ownAddress(d.cfg.Interface, has, d.cfg.Catch)
	if err != nil {
		return err
	}
	d.network = network
	d.link = link
	d.iface = manet.Interface{Name: d.cfg.Interface, Address: own, MTU: link.Attrs().MTU}
	return nil
}

// ownAddress picks the address by which the node is known in the mesh. An interface may have had others before, as by
// DHCP: the first is only taken where no network is named.
func ownAddress(iface string, has []netip.Prefix, network netip.Prefix) (own netip.Addr, of netip.Prefix, err error) {
	of = network.Masked()
	at := slices.IndexFunc(has, func(p netip.Prefix) bool { return !of.IsValid() || of.Contains(p.Addr()) })
	switch {
	case at < 0 && of.IsValid():
		return own, of, fmt.Errorf("interface %q has no IPv4 address in %s, the mesh's network: give it one", iface, of)
	case at < 0:
		return own, of, fmt.Errorf("interface %q has no IPv4 address: give it one, for example `ip address add "+
			"10.77.0.1/24 dev %s`", iface, iface)
	case !of.IsValid():
		of = has[at].Masked()
	}
	if !of.Addr().Is4() || of.IsSingleIP() {
		return own, of, fmt.Errorf("%s is no network of a mesh: give the interface's address a prefix length below "+
			"32, or name the network", of)
	}
	return has[at].Addr(), of, nil
}

// lock keeps a second daemon off the interface. The name is abstract: it
// belongs to the network namespace and ends with the process. Anybody may take it;
// one who could not change a route is no daemon, and there is no lock then.
func lock(device string) (*net.UnixListener, error) {
	name := &net.UnixAddr{Name: "@fieldmesh-route-" + device, Net: "unix"}
	l, err := net.ListenUnix("unix", name)
	if errors.Is(err, unix.EADDRINUSE) {
		if uid, err := unixsocket.Owner(name); err != nil || uid != 0 && uid != os.Geteuid() {
			return nil, nil
		}
		return nil, fmt.Errorf("another fieldmesh-agent route runs on %q: two would fight over the same routes", device)
	}
	if err != nil {
		return nil, fmt.Errorf("lock interface %q: %w", device, err)
	}
	return l, nil
}

// checkKernel reads what must have been set before.
func checkKernel(device string, carrier bool) error {
	want := map[string]string{"conf/all/rp_filter": "0", "conf/" + device + "/rp_filter": "0",
		"conf/all/send_redirects": "0", "conf/" + device + "/send_redirects": "0", "ip_forward": "1"}
	if carrier {
		want["ip_forward"] = "0" // the protocol forwards; the kernel must not
	}
	for key, value := range want {
		data, err := os.ReadFile("/proc/sys/net/ipv4/" + key)
		if err != nil {
			return fmt.Errorf("read sysctl: %w", err)
		}
		if got := strings.TrimSpace(string(data)); got != value {
			return fmt.Errorf("net.ipv4.%s is %s, and routing needs %s", strings.ReplaceAll(key, "/", "."), got, value)
		}
	}
	return nil
}

func (d *daemon) openSockets() (err error) {
	d.neighbors = newNeighbors(d.link.Attrs().Index)
	memory := newSlab(d.iface.MTU)
	if d.protocol.carrier() {
		d.framer, err = openFramer(0, d.link.Attrs().Index, d.protocol.IPProtocol, d.neighbors, memory, d.now,
			func(packets int) { d.loop.counts.dropped("no hardware address", packets) })
	} else {
		d.port, err = openPort(0, d.link.Attrs().Index, d.iface, d.protocol.Port)
	}
	if err != nil {
		return err
	}
	if d.injector, err = openInjector(d.iface.Address); err != nil {
		return err
	}
	if d.tun, err = openTUN(control.Device+"%d", d.iface.MTU-d.protocol.OverheadBytes, memory); err != nil {
		return err
	}
	if d.protocol.OnDemand {
		d.inUse, err = openInUse(d.cfg.Interface, d.protocol.Port, d.neighbors.ip)
		if err != nil && d.cfg.Strict {
			return fmt.Errorf("%s must be told which routes data uses: %w", d.protocol.Name, err)
		}
		if err != nil {
			d.cfg.Log.Warn("routes in use are not known: they will expire and be looked for again", "error", err)
		}
	}
	if d.feed, err = listenFeed(d.cfg.Socket, d.cfg.SocketUID, d.ask); err != nil {
		return err
	}
	return d.openPoller()
}

func (d *daemon) makeLoop() error {
	var seed [8]byte
	if _, err := rand.Read(seed[:]); err != nil {
		return fmt.Errorf("draw seed: %w", err)
	}
	node, err := d.protocol.Make(Setup{Interfaces: []manet.Interface{d.iface},
		Seed:     binary.NativeEndian.Uint64(seed[:]),
		FirstSeq: uint32(time.Now().UnixMilli() * 16 / 1000), Feedback: d.reported(), Fresh: d.cfg.Fresh,
		Hello: d.cfg.Hello})
	if err != nil {
		return err
	}
	d.loop = newLoop(node, []netip.Addr{d.iface.Address}, d.protocol, outbound{d}, d.routes,
		inbound{d.injector, d.tun, d.framer}, d.tell)
	d.loop.silent = d.silent()
	return nil
}

// silent reports whether no local sender hears that there is no route.
func (d *daemon) silent() bool {
	if d.cfg.HostUnreachable != nil {
		return !*d.cfg.HostUnreachable
	}
	return d.protocol.Silent
}

// outbound sends by the daemon's socket.
type outbound struct{ *daemon }

func (o outbound) Send(s manet.Send) error {
	if o.port == nil {
		return errors.New("a carrier sent without its header")
	}
	return o.port.send(s)
}

func (o outbound) Transmit(t manet.Transmit) error {
	if o.framer == nil {
		return errors.New("the protocol is no carrier")
	}
	if t.To.IsValid() && o.probes() {
		o.peers[t.To] = true
	}
	return o.framer.transmit(t)
}

// inbound puts packets into the node's own kernel: those that are to go on as
// if it had sent them, and those that have come to their end.
type inbound struct {
	*injector
	tun    *tun
	framer *framer // of a carrier
}

func (i inbound) Deliver(packet []byte) error {
	if i.framer != nil {
		i.framer.delivered = packet
	}
	if err := writeNow(i.tun.fd, packet); err != nil {
		return fmt.Errorf("deliver packet: %w", err)
	}
	return nil
}

func (d *daemon) tell(_ manet.Time, n Notice) {
	n.TBootNs = clock.System{}.BootNs()
	d.feed.tell(n)
}

func (d *daemon) now() manet.Time { return time.Since(d.began) }

// close takes everything out of the kernel again. The TUN's routes, the table
// of routes in use and the lock go with their sockets.
func (d *daemon) close() error {
	var errs []error
	if d.routes != nil {
		_, err := d.routes.sweep()
		errs = append(errs, err)
	}
	if d.inUse != nil {
		errs = append(errs, d.inUse.close())
	}
	if d.injector != nil {
		errs = append(errs, d.injector.close())
	}
	if d.framer != nil {
		errs = append(errs, d.framer.close())
	}
	if d.port != nil {
		errs = append(errs, d.port.close())
	}
	if d.tun != nil {
		errs = append(errs, unix.Close(d.tun.fd))
	}
	if d.poller != nil {
		errs = append(errs, d.poller.close())
	}
	if d.feed != nil {
		errs = append(errs, ignoreClosed(d.feed.listener.Close()))
	}
	if d.lock != nil {
		errs = append(errs, d.lock.Close())
	}
	return errors.Join(errs...)
}

func ignoreClosed(err error) error {
	if errors.Is(err, net.ErrClosed) || errors.Is(err, os.ErrClosed) {
		return nil
	}
	return err
}
