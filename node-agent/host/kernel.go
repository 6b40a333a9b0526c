package host

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"fieldmesh.dev/fieldmesh/node-agent/manager"
)

// kernel is the machine itself, in the network namespace of this process.
type kernel struct {
	dir       string            // where daemons' files go
	binaries  map[string]string // daemon → path, checked
	socketUID int               // who may read a daemon's own socket
	feedback  string            // the radio-feedback socket, for daemons; empty: none
	world     world
	log       *slog.Logger
	loaded    map[string]io.Closer // what hangs on this process in the kernel, by the changes' targets
	managers  manager.Managers     // of the machine's Wi-Fi
}

func newKernel(dir string, binaries map[string]string, socketUID int, feedback string, log *slog.Logger) (*kernel, error) {
	w, err := presentWorld()
	if err != nil {
		return nil, err
	}
	return &kernel{log: log, dir: dir, binaries: binaries, socketUID: socketUID, feedback: feedback, world: w, loaded: map[string]io.Closer{}, managers: manager.Here()}, nil
}

func (k *kernel) prepare(id uint64, c Change) (undo, error) {
	var u undo
	var err error
	switch {
	case c.Link != nil:
		u, err = prepareLink(*c.Link)
	case c.Address != nil:
		u, err = prepareAddress(*c.Address)
	case c.Route != nil:
		u, err = prepareRoute(*c.Route)
	case c.Sysctl != nil:
		u, err = prepareSysctl(*c.Sysctl)
	case c.Daemon != nil:
		u, err = k.prepareDaemon(id, *c.Daemon)
	case c.Offloads != nil:
		u, err = prepareOffloads(*c.Offloads)
	case c.BPFCongestion != nil, c.HeldRTO != nil, c.WindowClamp != nil, c.TCPEvents != nil:
		u, err = k.prepareBPF(c)
	case c.Radio != nil:
		u, err = k.prepareRadio(id, *c.Radio)
	case c.Aside != nil:
		u, err = k.prepareAside(*c.Aside)
	case c.Virtual != nil:
		u, err = k.prepareVirtual(*c.Virtual)
	default:
		err = errors.New("the change is empty")
	}
	if err != nil {
		return undo{}, explain(c, err)
	}
	u.World = k.world
	return u, nil
}

func (k *kernel) apply(c Change, u undo) error {
	switch {
	case c.Link != nil:
		return applyLink(*c.Link)
	case c.Address != nil:
		return applyAddress(*c.Address)
	case c.Route != nil:
		return applyRoute(*c.Route)
	case c.Sysctl != nil:
		return applySysctl(*c.Sysctl)
	case c.Daemon != nil:
		return k.applyDaemon(*c.Daemon, u)
	case c.Offloads != nil:
		return applyOffloads(*u.Offloads)
	case c.BPFCongestion != nil, c.HeldRTO != nil, c.WindowClamp != nil, c.TCPEvents != nil:
		return k.applyBPF(c, u)
	case c.Radio != nil:
		return k.applyRadio(*c.Radio, u)
	case c.Aside != nil:
		return k.applyAside(*c.Aside, u)
	case c.Virtual != nil:
		return k.applyVirtual(*c.Virtual, *u.Virtual)
	}
	return errors.New("the change is empty")
}

// explain turns what the kernel said while a change was prepared into a
// refusal: nothing has been changed yet.
func explain(c Change, err error) error {
	var refused *Refused
	if errors.As(err, &refused) {
		refused.Change = c.String()
		return refused
	}
	var missing netlink.LinkNotFoundError
	if errors.As(err, &missing) {
		return &Refused{Change: c.String(), Reason: err.Error(), Cure: "plug the radio in, or name another interface in agent.yaml"}
	}
	if absent(err) {
		return &Refused{Change: c.String(), Reason: err.Error(), Cure: "this kernel, or this namespace, has no such setting"}
	}
	return err
}

// revert undoes part by part in the reverse of the order in which changes
// build on each other. It goes on after an error.
func (k *kernel) revert(u undo) (string, error) {
	if u.Loaded != nil {
		return k.revertBPF(u)
	}
	var notes []string
	var errs []error
	if u.Daemon != nil {
		errs = append(errs, stopDaemon(*u.Daemon), k.unload(quickAckKey(u.Daemon.Name)))
	}
	if u.AccessPoint != nil {
		errs = append(errs, stopDaemon(*u.AccessPoint))
	}
	errs = append(errs, k.revertLasting(u))
	if u.World != k.world {
		how := u.World.lives(k.world)
		if how != "" {
			errs = append(errs, fmt.Errorf("it was made in another network namespace, which still exists: run `%s fieldmesh-agent restore`", how))
		}
		return "its namespace or boot is gone", errors.Join(errs...)
	}
	for _, part := range []func(undo) (string, error){revertMesh, revertDaemonRoutes, revertRoute, revertAddress, revertSysctls, revertOffloads, revertRadio, k.revertAside, revertInterface, revertMadeRoutes, k.revertVirtual} {
		note, err := part(u)
		if note != "" && !slices.Contains(notes, note) {
			notes = append(notes, note)
		}
		errs = append(errs, err)
	}
	for _, d := range []*daemonUndo{u.Daemon, u.AccessPoint} {
		if d != nil && errors.Join(errs...) == nil {
			errs = append(errs, removeDaemonDir(*d))
		}
	}
	return strings.Join(notes, ", "), errors.Join(errs...)
}

// void looks at the interface that an undo is about. What a manager of Wi-Fi was
// told for good is not void without it.
func (k *kernel) void(u undo) bool {
	if u.World != k.world || u.Aside != nil && slices.ContainsFunc(u.Aside.Held, func(h manager.Held) bool { return h.Lasting }) {
		return false
	}
	if u.AccessPoint != nil && len(findDaemon(*u.AccessPoint)) > 0 {
		return false
	}
	if u.Virtual != nil {
		there, err := k.made(*u.Virtual)
		return err == nil && there == nil
	}
	name, index := "", 0
	switch {
	case u.Aside != nil:
		name, index = u.Aside.Interface, u.Aside.Index
	case u.Interface != nil:
		name, index = u.Interface.Name, u.Interface.Index
	case u.Address != nil:
		name, index = u.Address.Interface, u.Address.Index
	case u.Route != nil:
		name, index = u.Route.Interface, u.Route.Index
	case len(u.Sysctls) > 0:
		name, index = u.Sysctls[0].Interface, u.Sysctls[0].Index
	}
	if name == "" {
		return false
	}
	link, err := sameLink(name, index)
	return err == nil && link == nil
}

// sameLink finds the very interface that an undo is about. It is nil when the
// interface vanished, or was made anew under its name: then it bears nothing
// of what was changed.
func sameLink(name string, index int) (netlink.Link, error) {
	link, err := netlink.LinkByName(name)
	var missing netlink.LinkNotFoundError
	if errors.As(err, &missing) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("find interface %q: %w", name, err)
	}
	if link.Attrs().Index != index {
		return nil, nil
	}
	return link, nil
}

func gone(name string) string { return fmt.Sprintf("interface %s is gone", name) }

func findLink(name string) (netlink.Link, error) {
	link, err := netlink.LinkByName(name)
	if err != nil {
		return nil, fmt.Errorf("find interface %q: %w", name, err)
	}
	return link, nil
}

func prepareLink(l Link) (undo, error) {
	link, err := findLink(l.Interface)
	if err != nil {
		return undo{}, err
	}
	state, err := readInterface(link)
	if err != nil {
		return undo{}, err
	}
	up, mtu := link.Attrs().Flags&net.FlagUp != 0, link.Attrs().MTU
	if l.Up != nil {
		state.Up = &up
	}
	if l.MTUBytes != nil {
		state.MTUBytes = &mtu
	}
	return undo{Interface: &state}, nil
}

func applyLink(l Link) error {
	link, err := findLink(l.Interface)
	if err != nil {
		return err
	}
	return setLink(link, l.Up, l.MTUBytes)
}

// setLink sets what is given and differs.
func setLink(link netlink.Link, up *bool, mtuBytes *int) error {
	name := link.Attrs().Name
	if mtuBytes != nil && *mtuBytes != link.Attrs().MTU {
		if err := netlink.LinkSetMTU(link, *mtuBytes); err != nil {
			return fmt.Errorf("set mtu of %q to %d: %w", name, *mtuBytes, err)
		}
	}
	if up == nil || *up == (link.Attrs().Flags&net.FlagUp != 0) {
		return nil
	}
	set, word := netlink.LinkSetDown, "down"
	if *up {
		set, word = netlink.LinkSetUp, "up"
	}
	if err := set(link); err != nil {
		return fmt.Errorf("set %q %s: %w", name, word, err)
	}
	return nil
}

func prepareAddress(a Address) (undo, error) {
	link, err := findLink(a.Interface)
	if err != nil {
		return undo{}, err
	}
	there, err := hasAddress(link, a)
	if err != nil || there {
		return undo{}, err
	}
	return undo{Address: &addressUndo{Address: a, Index: link.Attrs().Index}}, nil
}

func hasAddress(link netlink.Link, a Address) (bool, error) {
	addrs, err := redump(func() ([]netlink.Addr, error) { return netlink.AddrList(link, netlink.FAMILY_ALL) })
	if err != nil {
		return false, fmt.Errorf("list addresses of %q: %w", a.Interface, err)
	}
	want := ipNet(a.Prefix)
	for _, addr := range addrs {
		if addr.IP.Equal(want.IP) && addr.Mask.String() == want.Mask.String() {
			return true, nil
		}
	}
	return false, nil
}

func applyAddress(a Address) error {
	link, err := findLink(a.Interface)
	if err != nil {
		return err
	}
	address := &netlink.Addr{IPNet: ipNet(a.Prefix)}
	if a.Prefix.Addr().Is6() {
		// Detecting duplicates would hold the address back for seconds, and
		// the plan gives each node its own.
		address.Flags = unix.IFA_F_NODAD
	}
	if err := netlink.AddrAdd(link, address); err != nil && !errors.Is(err, unix.EEXIST) {
		return fmt.Errorf("add address %s to %q: %w", a.Prefix, a.Interface, err)
	}
	return nil
}

func revertAddress(u undo) (string, error) {
	if u.Address == nil {
		return "", nil
	}
	link, err := sameLink(u.Address.Interface, u.Address.Index)
	if err != nil || link == nil {
		return gone(u.Address.Interface), err
	}
	err = netlink.AddrDel(link, &netlink.Addr{IPNet: ipNet(u.Address.Prefix)})
	if err != nil && !errors.Is(err, unix.EADDRNOTAVAIL) {
		return "", fmt.Errorf("delete address %s of %q: %w", u.Address.Prefix, u.Address.Interface, err)
	}
	return "", nil
}

func prepareSysctl(s Sysctl) (undo, error) {
	key, err := parseKey(s.Key)
	if err != nil {
		return undo{}, err
	}
	var u undo
	also, err := sideEffects(key)
	if err != nil {
		return undo{}, err
	}
	if u.Sysctls, err = readSettings(append([][]string{key.parts}, also...)); err != nil {
		return undo{}, err
	}
	if len(key.parts) == 5 && key.parts[4] == "disable_ipv6" {
		// Off takes the interface's IPv6 addresses and routes with it.
		link, err := findLink(key.device)
		if err != nil {
			return undo{}, err
		}
		state, err := readInterface(link)
		if err != nil {
			return undo{}, err
		}
		u.Interface = &state
	}
	return u, nil
}

// readSettings reads the present values, the first of which must be there.
func readSettings(keys [][]string) ([]setting, error) {
	var out []setting
	for i, parts := range keys {
		s := setting{Parts: parts}
		value, err := readSysctl(s.path())
		if i > 0 && absent(err) {
			continue
		}
		if err != nil {
			return nil, err
		}
		s.Value = value
		if device := deviceOf(parts); device != "" {
			link, err := netlink.LinkByName(device)
			var missing netlink.LinkNotFoundError
			if errors.As(err, &missing) && i > 0 {
				continue // it vanished between the two calls
			}
			if err != nil {
				return nil, fmt.Errorf("find interface %q: %w", device, err)
			}
			s.Interface, s.Index = device, link.Attrs().Index
		}
		out = append(out, s)
	}
	return out, nil
}

// deviceOf is the interface that a sysctl's path belongs to, if any.
func deviceOf(parts []string) string {
	if len(parts) != 5 || parts[3] == "all" || parts[3] == "default" {
		return ""
	}
	return parts[3]
}

func applySysctl(s Sysctl) error {
	key, err := parseKey(s.Key)
	if err != nil {
		return err
	}
	err = writeSysctl(filepath.Join(append([]string{"/proc/sys"}, key.parts...)...), s.Value)
	if err == nil || key.parts[len(key.parts)-1] != "tcp_congestion_control" {
		return err
	}
	available, readErr := readSysctl("/proc/sys/net/ipv4/tcp_available_congestion_control")
	allowed, allowedErr := readSysctl("/proc/sys/net/ipv4/tcp_allowed_congestion_control")
	if readErr != nil || allowedErr != nil {
		return err
	}
	return fmt.Errorf("%w; this kernel has: %s; a namespace may choose: %s", err, available, allowed)
}

// noticedWithin bounds awaitNoticed; the kernel tells of a carrier once a second.
const noticedWithin = 3 * time.Second

// awaitNoticed waits until the kernel's protocols have noticed that a link has
// lost its carrier. IPv6 would give a link that it still takes for ready an
// address, which was not there before.
func awaitNoticed(name string) {
	for until := time.Now().Add(noticedWithin); time.Now().Before(until); time.Sleep(20 * time.Millisecond) {
		link, err := netlink.LinkByName(name)
		if err != nil {
			return
		}
		if f := link.Attrs().RawFlags; f&unix.IFF_RUNNING == 0 || f&unix.IFF_LOWER_UP != 0 {
			return
		}
	}
}

func revertSysctls(u undo) (string, error) {
	var note string
	var errs []error
	for _, s := range u.Sysctls {
		if s.Interface != "" {
			link, err := sameLink(s.Interface, s.Index)
			if err != nil {
				errs = append(errs, err)
				continue
			}
			if link == nil {
				note = gone(s.Interface)
				continue
			}
			if s.Parts[len(s.Parts)-1] == "disable_ipv6" {
				awaitNoticed(s.Interface)
			}
		}
		switch err := writeSysctl(s.path(), s.valueNow()); {
		case absent(err):
			note = "sysctl " + strings.Join(s.Parts, ".") + " is gone"
		case err != nil:
			errs = append(errs, fmt.Errorf("set %s to %q: %w", strings.Join(s.Parts, "."), s.Value, err))
		}
	}
	return note, errors.Join(errs...)
}
