package change

import (
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"fieldmesh.dev/fieldmesh/node-agent/host/flows"
	"fieldmesh.dev/fieldmesh/node-agent/host/netstack"
	"fieldmesh.dev/fieldmesh/node-agent/host/process"
	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// Daemon starts a routing daemon on an interface, with a configuration that
// the host process writes, and what it needs of the kernel set: forwarding on
// (off for a protocol that carries data itself), redirects and reverse-path
// filters off; for babeld IPv6 on the interface, for its link-local address.
type Daemon struct {
	Name      string       `json:"name"` // babeld, olsrd, or one of our own protocols
	Interface string       `json:"interface"`
	Announce  netip.Prefix `json:"announce"`          // own addresses in it are announced, routes into it accepted
	HelloS    *float64     `json:"hello_s,omitempty"` // interval of hellos; absent: the daemon's own
	// NoLinkFeedback has routes break by the protocol's own packets only, not by lost frames.
	NoLinkFeedback bool `json:"no_link_feedback,omitempty"`
	// HostUnreachable is whether a local sender hears of it where no route is found; nil: the protocol's own choice.
	HostUnreachable *bool `json:"host_unreachable,omitempty"`
	// QuickAck has what comes over the daemon's routes acknowledged at once.
	QuickAck bool `json:"quick_ack,omitempty"`
}

func (d Daemon) Target() string { return "daemon " + d.Name }

func (d Daemon) String() string {
	text := fmt.Sprintf("daemon %s on %s announcing %s", d.Name, d.Interface, d.Announce)
	if d.NoLinkFeedback {
		text += " without link feedback"
	}
	if d.HostUnreachable != nil {
		text += fmt.Sprintf(" with host_unreachable %t", *d.HostUnreachable)
	}
	if d.QuickAck {
		text += " quickack 1"
	}
	return text
}

// DaemonSocket is where the daemon of a name that a host process with a state
// directory started can be asked, by root and the first of its AllowUIDs. What
// it speaks is the daemon's own.
func DaemonSocket(stateDir, name string) string {
	return filepath.Join(stateDir, "daemons", name+".sock")
}

func (d Daemon) check(p Policy) (reason, cure string) {
	kind, known := daemonKinds()[d.Name]
	if !known {
		return fmt.Sprintf("%q is not a daemon that the host process knows (%s)", d.Name,
			strings.Join(slices.Sorted(maps.Keys(daemonKinds())), ", ")), ""
	}
	if reason, cure = p.CheckInterface(d.Interface); reason != "" {
		return reason, cure
	}
	if reason, cure = p.checkWithin("announced prefix", d.Announce); reason != "" {
		return reason, cure
	}
	if p.Binaries[kind.binary] == "" {
		return "no installed binary is configured for " + d.Name, "install it, or set binaries." + d.Name +
			" in agent.yaml; then start the agent again"
	}
	if d.HelloS != nil && !(*d.HelloS >= 0.1 && *d.HelloS <= 60) {
		return fmt.Sprintf("hello interval %g s is outside 0.1 to 60 s", *d.HelloS), ""
	}
	return "", ""
}

func (d Daemon) prepare(k *Kernel, id uint64) (*daemonUndo, error) {
	kind := daemonKinds()[d.Name]
	link, err := netstack.FindLink(d.Interface)
	if err != nil {
		return nil, err
	}
	if pid := process.Named(d.Name); pid != 0 {
		return nil, &Refused{
			Reason: fmt.Sprintf("a %s that is not ours runs already, as process %d", d.Name, pid),
			Cure:   "stop it: two would fight over the same routes",
		}
	}
	_, err = netstack.ReadSysctl("/proc/sys/net/ipv6/conf/" + d.Interface + "/disable_ipv6")
	if err != nil && kind.linkLocal {
		return nil, &Refused{
			Reason: fmt.Sprintf("%s speaks over IPv6 link-local addresses, and %s cannot have any: %v", d.Name,
				d.Interface, err),
			Cure: "use a kernel with IPv6, or a plan with routing: static",
		}
	}
	if refused := routesUnknown(d.Name, flows.Available()); refused != nil {
		return nil, refused
	}
	if kind.first {
		if err := d.checkFirst(link); err != nil {
			return nil, err
		}
	}
	u := &daemonUndo{Daemon: process.Daemon{
		Name: d.Name, Binary: k.binaries[kind.binary], Interface: d.Interface, Index: link.Attrs().Index,
		Dir:           filepath.Join(k.dir, "daemons", fmt.Sprintf("%d-%s", id, d.Name)),
		RouteProtocol: kind.routeProtocol,
	}}
	if u.Daemon.Former, err = u.routes(); err != nil {
		return nil, err
	}
	if kind.mesh {
		if err := u.prepareMesh(link); err != nil {
			return nil, err
		}
	}
	u.Sysctls, err = kind.settings(d.Interface)
	return u, err
}

// routesUnknown refuses a daemon that has to be told which routes data uses, where the
// kernel has no nftables to tell it: its routes would go under the data.
func routesUnknown(daemon string, noTables error) *Refused {
	if noTables == nil || !(wire.Routing{Protocol: daemon}).WantsRoutesInUse() {
		return nil
	}
	return &Refused{Reason: fmt.Sprintf("%s must be told which routes data uses, by nftables: %v", daemon, noTables),
		Cure: "use " + flows.NeedsTables + "; or a plan with olsr, dsdv or dsr, which do without"}
}

// checkFirst refuses a daemon that would know this node by an address outside the mesh.
func (d Daemon) checkFirst(link netlink.Link) error {
	has, err := netstack.Redump(func() ([]netlink.Addr, error) { return netlink.AddrList(link, netlink.FAMILY_V4) })
	if err != nil {
		return fmt.Errorf("list addresses of %q: %w", d.Interface, err)
	}
	if len(has) == 0 {
		return nil // it waits for one
	}
	if first, _ := netip.AddrFromSlice(has[0].IP.To4()); !d.Announce.Contains(first) {
		return &Refused{
			Reason: fmt.Sprintf("%s takes the first address of %s for its own, and that is %s, not one in %s", d.Name,
				d.Interface, first, d.Announce.Masked()),
			Cure: fmt.Sprintf("plan another protocol; or take it off, unless Android gave it, which would leave the "+
				"network: ip address del %s dev %s", has[0].IPNet, d.Interface),
		}
	}
	return nil
}

func (d Daemon) apply(k *Kernel, u *daemonUndo) error {
	kind := daemonKinds()[d.Name]
	for _, s := range kind.sysctls(d.Interface) {
		if err := netstack.WriteSysctl(s.Path(), s.Value); err != nil {
			return err
		}
	}
	if kind.mesh {
		if err := makeMesh(d, u); err != nil {
			return err
		}
	}
	// A mesh of layer 2 has no routes of its own; those that were given move to it.
	if key := quickAckKey(d.Name); d.QuickAck && !kind.mesh && k.loaded[key] == nil {
		a, err := netstack.AcknowledgeOver(kind.routeProtocol, d.Announce, k.log)
		if err != nil {
			return err
		}
		k.loaded[key] = a
	}
	if u.Daemon.Runs() {
		return nil
	}
	text, err := kind.config(k, d, u.Daemon)
	if err != nil {
		return fmt.Errorf("make configuration of %s: %w", d.Name, err)
	}
	program := u.Daemon.Binary
	if kind.binary == AgentBinary {
		program = process.OwnProgram
	}
	ended, err := u.Daemon.Start(program, text, kind.args(u.Daemon))
	if err != nil {
		return err
	}
	if err := u.Daemon.Await(func() error { return kind.answers(u.Daemon) }, ended); err != nil {
		return err
	}
	return k.share(u.Daemon)
}

// daemonUndo stops the daemon and puts back what it, and the kernel's settings
// for it, have changed.
type daemonUndo struct {
	placed
	Daemon    process.Daemon           `json:"daemon"`
	Mesh      *meshState               `json:"mesh,omitempty"`
	Sysctls   netstack.Settings        `json:"sysctls,omitempty"`
	Interface *netstack.InterfaceState `json:"interface,omitempty"` // below the mesh
}

func (u *daemonUndo) void(*Kernel) bool { return u.Interface.Void() }

func (u *daemonUndo) revertLasting(k *Kernel) error {
	return errors.Join(u.Daemon.Stop(), k.unload(quickAckKey(u.Daemon.Name)))
}

func (u *daemonUndo) revert(k *Kernel) (string, error) {
	stopped := u.revertLasting(k)
	note, err := inTurn(u.Mesh.revert, u.revertRoutes, u.Sysctls.Revert, u.Interface.Revert,
		func() (string, error) { return u.Mesh.revertRoutes(u.Interface) })
	if err = errors.Join(stopped, err); err == nil {
		err = removeDaemonDir(u.Daemon)
	}
	return note, err
}

// routes lists a daemon's routes: those over its interface, and those by which
// it holds a retracted destination unreachable for a while.
func (u *daemonUndo) routes() ([][]byte, error) {
	if u.Daemon.RouteProtocol == 0 { // it sets none
		return nil, nil
	}
	out, err := netstack.RoutesWhere(func(r netstack.RouteMessage) bool {
		return int(r.Head.Protocol) == u.Daemon.RouteProtocol && r.Table() == unix.RT_TABLE_MAIN &&
			(r.Head.Type == unix.RTN_UNREACHABLE || r.Through(u.Daemon.Index))
	})
	if err != nil {
		return nil, fmt.Errorf("list %s's routes: %w", u.Daemon.Name, err)
	}
	return out, nil
}

// revertRoutes takes out what a routing daemon left behind that could not
// clean up after itself.
func (u *daemonUndo) revertRoutes() (string, error) {
	link, err := netstack.SameLink(u.Daemon.Index)
	if err != nil {
		return "", err
	}
	var note string
	if link == nil {
		note = netstack.Gone(u.Daemon.Interface) // its routes too, but not those that say "unreachable"
	}
	left, err := u.routes()
	if err != nil {
		return "", err
	}
	var errs []error
	for _, m := range left {
		if slices.ContainsFunc(u.Daemon.Former, func(f []byte) bool { return slices.Equal(f, m) }) {
			continue
		}
		if err := netstack.SendMessage(unix.RTM_DELROUTE, 0, m); err != nil && !errors.Is(err, unix.ESRCH) {
			errs = append(errs, fmt.Errorf("delete a route that %s left: %w", u.Daemon.Name, err))
		}
	}
	return note, errors.Join(errs...)
}

// quickAckKey is where a daemon's acknowledging is kept among what is loaded.
func quickAckKey(daemon string) string { return "immediate acknowledgements over routes of " + daemon }

// socketPath is where a daemon can be asked.
func socketPath(d process.Daemon) string {
	return DaemonSocket(filepath.Dir(filepath.Dir(d.Dir)), d.Name)
}

// share makes a daemon's socket readable for the network face; no daemon is
// configured to take changes over it.
func (k *Kernel) share(u process.Daemon) error {
	err := os.Chown(socketPath(u), k.socketUID, -1)
	if errors.Is(err, os.ErrNotExist) { // it answers elsewhere
		return nil
	}
	return err
}

// removeDaemonDir is the end of a daemon's undo.
func removeDaemonDir(u process.Daemon) error {
	err := os.Remove(socketPath(u))
	if errors.Is(err, os.ErrNotExist) {
		err = nil
	}
	if err := errors.Join(err, os.RemoveAll(u.Dir)); err != nil && !errors.Is(err, unix.EROFS) { // they stay then
		return fmt.Errorf("remove files of %s: %w", u.Name, err)
	}
	return nil
}

func (u *daemonUndo) on() (string, int) { return u.Daemon.Interface, u.Daemon.Index }
