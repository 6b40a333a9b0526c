package host

import (
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
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
	// QuickAck has what comes over the daemon's routes acknowledged at once.
	QuickAck bool `json:"quick_ack,omitempty"`
}

func (d Daemon) target() string { return "daemon " + d.Name }

func (d Daemon) String() string {
	text := fmt.Sprintf("daemon %s on %s announcing %s", d.Name, d.Interface, d.Announce)
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

func (d Daemon) check(p policy) (reason, cure string) {
	kind, known := daemonKinds()[d.Name]
	if !known {
		return fmt.Sprintf("%q is not a daemon that the host process knows (%s)", d.Name,
			strings.Join(slices.Sorted(maps.Keys(daemonKinds())), ", ")), ""
	}
	if reason, cure = p.checkInterface(d.Interface); reason != "" {
		return reason, cure
	}
	if reason, cure = p.checkWithin("announced prefix", d.Announce); reason != "" {
		return reason, cure
	}
	if p.binaries[kind.binary] == "" {
		return "no installed binary is configured for " + d.Name, "install it, or set binaries." + d.Name +
			" in agent.yaml; then start the agent again"
	}
	if d.HelloS != nil && !(*d.HelloS >= 0.1 && *d.HelloS <= 60) {
		return fmt.Sprintf("hello interval %g s is outside 0.1 to 60 s", *d.HelloS), ""
	}
	return "", ""
}

func (d Daemon) prepare(k *kernel, id uint64) (*daemonUndo, error) {
	kind := daemonKinds()[d.Name]
	link, err := findLink(d.Interface)
	if err != nil {
		return nil, err
	}
	if pid := k.sameDaemonElsewhere(d.Name); pid != 0 {
		return nil, &Refused{
			Reason: fmt.Sprintf("a %s that is not ours runs already, as process %d", d.Name, pid),
			Cure:   "stop it: two would fight over the same routes",
		}
	}
	if _, err := readSysctl("/proc/sys/net/ipv6/conf/" + d.Interface + "/disable_ipv6"); err != nil && kind.linkLocal {
		return nil, &Refused{
			Reason: fmt.Sprintf("%s speaks over IPv6 link-local addresses, and %s cannot have any: %v", d.Name,
				d.Interface, err),
			Cure: "use a kernel with IPv6, or a plan with routing: static",
		}
	}
	u := &daemonUndo{Daemon: daemonProcess{
		Name: d.Name, Binary: k.binaries[kind.binary], Interface: d.Interface, Index: link.Attrs().Index,
		Dir:           filepath.Join(k.dir, "daemons", fmt.Sprintf("%d-%s", id, d.Name)),
		RouteProtocol: kind.routeProtocol,
	}}
	if u.Daemon.Former, err = u.Daemon.routes(); err != nil {
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

func (d Daemon) apply(k *kernel, u *daemonUndo) error {
	kind := daemonKinds()[d.Name]
	for _, s := range kind.sysctls(d.Interface) {
		if err := writeSysctl(s.path(), s.Value); err != nil {
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
		a, err := acknowledgeOver(kind.routeProtocol, d.Announce, k.log)
		if err != nil {
			return err
		}
		k.loaded[key] = a
	}
	if len(findDaemon(u.Daemon)) > 0 {
		return nil
	}
	text, err := kind.config(k, d, u.Daemon)
	if err != nil {
		return fmt.Errorf("make configuration of %s: %w", d.Name, err)
	}
	ended, err := u.Daemon.start(text, kind.args(u.Daemon))
	if err != nil {
		return err
	}
	return k.awaitDaemon(kind, u.Daemon, ended)
}

// daemonUndo stops the daemon and puts back what it, and the kernel's settings
// for it, have changed.
type daemonUndo struct {
	placed
	Daemon    daemonProcess   `json:"daemon"`
	Mesh      *meshState      `json:"mesh,omitempty"`
	Sysctls   settings        `json:"sysctls,omitempty"`
	Interface *interfaceState `json:"interface,omitempty"` // below the mesh
}

func (u *daemonUndo) void(*kernel) bool { return u.Interface.void() }

func (u *daemonUndo) revertLasting(k *kernel) error {
	return errors.Join(stopDaemon(u.Daemon), k.unload(quickAckKey(u.Daemon.Name)))
}

func (u *daemonUndo) revert(k *kernel) (string, error) {
	stopped := u.revertLasting(k)
	note, err := inTurn(u.Mesh.revert, u.Daemon.revertRoutes, u.Sysctls.revert, u.Interface.revert, u.Mesh.revertRoutes)
	if err = errors.Join(stopped, err); err == nil {
		err = removeDaemonDir(u.Daemon)
	}
	return note, err
}

// routes lists a daemon's routes: those over its interface, and those by which
// it holds a retracted destination unreachable for a while.
func (d daemonProcess) routes() ([][]byte, error) {
	if d.RouteProtocol == 0 { // it sets none
		return nil, nil
	}
	out, err := routesWhere(func(r routeMessage) bool {
		return int(r.head.Protocol) == d.RouteProtocol && r.table() == unix.RT_TABLE_MAIN &&
			(r.head.Type == unix.RTN_UNREACHABLE || r.through(d.Index))
	})
	if err != nil {
		return nil, fmt.Errorf("list %s's routes: %w", d.Name, err)
	}
	return out, nil
}

// revertRoutes takes out what a routing daemon left behind that could not
// clean up after itself.
func (d daemonProcess) revertRoutes() (string, error) {
	link, err := sameLink(d.Interface, d.Index)
	if err != nil {
		return "", err
	}
	var note string
	if link == nil {
		note = gone(d.Interface) // its routes too, but not those that say "unreachable"
	}
	left, err := d.routes()
	if err != nil {
		return "", err
	}
	var errs []error
	for _, m := range left {
		if slices.ContainsFunc(d.Former, func(f []byte) bool { return slices.Equal(f, m) }) {
			continue
		}
		if err := sendMessage(unix.RTM_DELROUTE, 0, m); err != nil && !errors.Is(err, unix.ESRCH) {
			errs = append(errs, fmt.Errorf("delete a route that %s left: %w", d.Name, err))
		}
	}
	return note, errors.Join(errs...)
}
