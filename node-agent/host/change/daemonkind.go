package change

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"fieldmesh.dev/fieldmesh/node-agent/host/netstack"
	"fieldmesh.dev/fieldmesh/node-agent/host/process"
	"fieldmesh.dev/fieldmesh/node-agent/routing/control"
	"fieldmesh.dev/fieldmesh/protocols/manet/signalling"
	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// babeld is the daemon that Debian has.
const babeld = "babeld"

// AgentBinary names this program among the binaries: our own protocols are
// run by it.
const AgentBinary = "fieldmesh-agent"

// daemonKind is how one routing daemon is configured, started and asked.
type daemonKind struct {
	binary        string // name among the binaries
	routeProtocol int    // that its routes have in the kernel
	linkLocal     bool   // it speaks over IPv6 link-local addresses
	first         bool   // it takes an interface's first address for its own
	forward       bool   // the kernel forwards for it
	mesh          bool   // of layer 2: the kernel's own, with a device of its own; the process only reads it
	args          func(u process.Daemon) []string
	config        func(k *Kernel, d Daemon, u process.Daemon) (string, error)
	answers       func(u process.Daemon) error // nil once it is ready
}

// daemonKinds are all that are known, by the names that a plan has for them.
func daemonKinds() map[string]daemonKind {
	out := map[string]daemonKind{
		babeld: {binary: babeld, routeProtocol: protocolBabel, linkLocal: true, forward: true,
			args:   func(u process.Daemon) []string { return []string{"-I", "", "-c", u.ConfigPath()} },
			config: babeldConfig, answers: connects},
		olsrd: {binary: olsrd, routeProtocol: protocolOlsrd, forward: true, first: true,
			args:   func(u process.Daemon) []string { return []string{"-f", u.ConfigPath(), "-nofork", "-d", "0"} },
			config: olsrdConfig, answers: olsrdAnswers},
	}
	for _, name := range wire.RoutingProtocols() {
		packets, sends := signalling.Of(name)
		if _, other := out[name]; other || !sends {
			continue // not ours, or no daemon
		}
		kind := daemonKind{binary: AgentBinary, mesh: packets.EtherType != 0, forward: packets.Port != 0,
			args:   func(u process.Daemon) []string { return []string{"route", "--config", u.ConfigPath()} },
			config: ownConfig, answers: ownAnswers}
		if !kind.mesh {
			kind.routeProtocol = control.RouteProtocol
		}
		out[name] = kind
	}
	return out
}

// Forwards reports whether the kernel forwards data by the routes of a daemon.
func Forwards(daemon string) bool { return daemonKinds()[daemon].forward }

// sysctls are what the daemon's kind needs of the kernel. IPv6 is for a
// link-local address alone: without duplicate detection, which would hold it
// back, and without soliciting routers. Forwarding of IPv6 stays as it is: the
// mesh carries IPv4, and a forwarding host stops listening to router
// advertisements on its other interfaces.
func (kind daemonKind) sysctls(device string) []netstack.Setting {
	if kind.mesh { // it forwards frames, below all that these are about
		return nil
	}
	var out []netstack.Setting
	for _, c := range RouterSysctls(device, kind.forward) {
		s := c.(Sysctl)
		key, err := parseKey(s.Key)
		if err != nil {
			continue // none of ours is outside the allow-list
		}
		out = append(out, netstack.Setting{Parts: key.parts, Value: s.Value})
	}
	if !kind.linkLocal {
		return out
	}
	for _, key := range []string{"accept_dad", "router_solicitations", "disable_ipv6"} {
		out = append(out, netstack.Setting{Parts: []string{"net", "ipv6", "conf", device, key}, Value: "0"})
	}
	return out
}

// settings are the present values of what starting the daemon sets, and of
// what changes with them.
func (kind daemonKind) settings(device string) ([]netstack.Setting, error) {
	if kind.mesh {
		return nil, nil
	}
	wanted := kind.sysctls(device)
	for _, s := range wanted {
		also, err := netstack.SideEffects(s.Parts, s.Value)
		if err != nil {
			return nil, err
		}
		for _, a := range also { // what it sets itself besides is as it sets it
			if !slices.ContainsFunc(wanted, func(w netstack.Setting) bool { return slices.Equal(w.Parts, a.Parts) }) {
				wanted = append(wanted, a)
			}
		}
	}
	return netstack.ReadSettings(wanted)
}

// babeldConfig is babeld's whole configuration (babeld(8)).
func babeldConfig(_ *Kernel, d Daemon, u process.Daemon) (string, error) {
	var b strings.Builder
	b.WriteString("skip-kernel-setup true\n") // the host process does it, with an undo
	// A trial's babeld starts afresh. With its old name it would be ignored by
	// those who remember a newer sequence number.
	b.WriteString("random-id true\n")
	fmt.Fprintf(&b, "state-file %q\n", filepath.Join(u.Dir, "state"))
	fmt.Fprintf(&b, "local-path %q\n", socketPath(u))
	fmt.Fprintf(&b, "interface %s type wireless", d.Interface)
	if d.HelloS != nil {
		fmt.Fprintf(&b, " hello-interval %s", strconv.FormatFloat(*d.HelloS, 'f', 2, 64))
	}
	announce := d.Announce.Masked()
	fmt.Fprintf(&b, "\nredistribute local ip %s allow\n", announce)
	b.WriteString("redistribute local deny\n")
	fmt.Fprintf(&b, "in ip %s allow\n", announce)
	b.WriteString("in deny\n")
	return b.String(), nil
}

// connects is the readiness of a daemon that listens once it is ready.
func connects(u process.Daemon) error {
	conn, err := net.Dial("unix", socketPath(u))
	if err != nil {
		return err
	}
	return conn.Close()
}

// ownConfig is what `fieldmesh-agent route --config` reads.
func ownConfig(k *Kernel, d Daemon, u process.Daemon) (string, error) {
	c := control.Config{Protocol: d.Name, Interface: d.Interface, Socket: socketPath(u), SocketUID: k.socketUID,
		Feedback: k.feedback, NoLinkFeedback: d.NoLinkFeedback, HostUnreachable: d.HostUnreachable,
		Catch: d.Announce.Masked(),
		// All nodes of a trial start theirs again, once all have stopped the last
		// one's.
		Fresh: true, Strict: true}
	if d.HelloS != nil {
		c.Hello = new(time.Duration(*d.HelloS * float64(time.Second)))
	}
	text, err := json.Marshal(c)
	return string(text), err
}

// ownAnswers asks for the daemon's state: it is told once the loop runs.
func ownAnswers(u process.Daemon) error {
	conn, err := net.Dial("unix", socketPath(u))
	if err != nil {
		return err
	}
	if err = conn.SetDeadline(time.Now().Add(time.Second)); err == nil {
		_, err = fmt.Fprintln(conn, control.CommandState)
	}
	if err == nil {
		_, err = bufio.NewReader(conn).ReadByte()
	}
	return errors.Join(err, conn.Close())
}

// protocolBabel is the mark of babeld's routes in the kernel (babeld's
// kernel_netlink.c; RTPROT_BABEL in rtnetlink.h).
const protocolBabel = 42

// RouterSysctls are what a node of a mesh of IPv4 needs of the kernel on an
// interface. A protocol that carries data itself needs a kernel that does not
// forward.
func RouterSysctls(device string, forward bool) []Change {
	value := map[bool]string{true: "1", false: "0"}[forward]
	out := []Change{Sysctl{Key: "net.ipv4.ip_forward", Value: value}}
	for _, d := range []string{"all", device} {
		for _, key := range []string{"accept_redirects", "rp_filter", "send_redirects"} {
			out = append(out, Sysctl{Key: "net.ipv4.conf." + d + "." + key, Value: "0"})
		}
	}
	return out
}
