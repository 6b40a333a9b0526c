package face

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"slices"
	"strings"

	"fieldmesh.dev/fieldmesh/node-agent/host/change"
	"fieldmesh.dev/fieldmesh/node-agent/link"
	"fieldmesh.dev/fieldmesh/node-agent/measure"
	"fieldmesh.dev/fieldmesh/node-agent/provenance"
	"fieldmesh.dev/fieldmesh/node-agent/standing"
	"fieldmesh.dev/fieldmesh/node-agent/tcp"
	"fieldmesh.dev/fieldmesh/node-agent/trial/needs"
	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// withoutRoot settles by what the node measures. With root every source is there; without,
// those that the system lets be read: what would come of the others is absent.
func (f *Face) withoutRoot() {
	f.transport, f.sockets = tcp.Here, measure.BySockDiag
	f.sources = []measure.Source{measure.NewInterface(f.cfg.Interface), f.radio, f.machine, f.wall}
	if !f.cfg.Unprivileged() {
		return
	}
	f.host, f.transport, f.generator.Descriptors = standing.New(), standing.Machine, true
	f.bind()
	if f.sockets = measure.ByDescriptors; !measure.Lists() {
		f.absent = append(f.absent, "connections from other machines that wait at the port of iperf3")
	}
	f.sources = slices.DeleteFunc(f.sources, func(s measure.Source) bool {
		_, err := s.Sample(f.clk.BootNs())
		if errors.Is(err, fs.ErrPermission) {
			f.absent = append(f.absent, s.Name())
			return true
		}
		return false
	})
	if f.cfg.AppKey != "" {
		f.sources = append(f.sources, f.told)
	}
	if _, err := f.radio.Caps(); errors.Is(err, fs.ErrPermission) && !slices.Contains(f.absent, f.radio.Name()) {
		f.absent = append(f.absent, f.radio.Name())
	}
	f.log.Info("runs without root: it changes nothing", "absent", strings.Join(f.absent, "; "), "bound", f.bound)
}

// bind has the trials' sockets keep to the interface where the phone app keeps the agent, if that can be had: there is
// no rule of ours then that leads packets to it. Without, the way is that of the system's rules. Elsewhere it always
// is: what iperf3's server accepts of a flow with -w or -M is not bound, as it opens another listener without
// --bind-dev (iperf_tcp_listen), and only Android marks it with the network by which it came (tcp_fwmark_accept).
func (f *Face) bind() {
	switch err := link.MayBind(); {
	case f.cfg.AppKey == "":
	case err != nil:
		f.unbound = wire.Problem{Found: "to which this system lets the agent bind no socket: " + err.Error()}
	case f.generator.Before310():
		f.unbound = wire.Problem{Found: "to which an iperf3 before 3.10 can bind no socket",
			Cure: "; or install iperf3 3.10 or newer, and restart the agent"}
	default:
		f.bound, f.generator.Bound = f.cfg.Interface, f.cfg.Interface
	}
}

func (f *Face) way(to netip.Addr) (iface string, err error) { return provenance.Way(f.bound, to) }

// provenance is what is in force on the node, and how it is read.
func (f *Face) provenance(ctx context.Context) wire.Provenance {
	p := f.reader.Read(ctx)
	if p.SocketsBy, p.BoundTo = f.sockets, f.bound; f.cfg.Unprivileged() {
		p.Privileges, p.Congestion = f.cfg.Privileges, standing.Offered()
	}
	return p
}

// notStanding tells what of the network is not there as the plan has it, on a node that
// cannot make it so.
func (f *Face) notStanding(own netip.Prefix, peers []netip.Addr) []wire.Problem {
	for _, c := range []change.Change{change.Link{Interface: f.cfg.Interface, Up: new(true)},
		change.Address{Interface: f.cfg.Interface, Prefix: own}} {
		if refused := standing.Stands(c); refused != nil {
			return []wire.Problem{{Need: "address", Found: refused.Change + ": " + refused.Reason,
				Cure: refused.Cure}}
		}
	}
	for _, peer := range peers {
		if !own.Masked().Contains(peer) {
			continue
		}
		iface, err := f.way(peer)
		if err == nil && iface == f.cfg.Interface {
			continue
		}
		found := fmt.Sprintf("packets to %s leave by %s and not by %s", peer, iface, f.cfg.Interface)
		if err != nil {
			found = fmt.Sprintf("there is no way to %s: %v", peer, err)
		}
		if f.unbound.Found != "" && err == nil {
			found += ", " + f.unbound.Found
		}
		return []wire.Problem{{Need: "route", Found: found, Cure: "take that network away from other interfaces (on " +
			"a phone: switch mobile data off), and end what rules the routes, as a VPN" + f.unbound.Cure}}
	}
	return nil
}

// possible refuses a plan that needs changed what this node cannot change. Every need is told once.
func (f *Face) possible(plan wire.RunPlan) error {
	if !f.cfg.Unprivileged() {
		return nil
	}
	var all []string
	add := func(r *change.Refused) {
		if text := fmt.Sprintf("%s: %s; %s", r.Change, r.Reason, r.Cure); !slices.Contains(all, text) {
			all = append(all, text)
		}
	}
	for _, t := range plan.Trials {
		if !slices.Contains(t.Nodes(), f.cfg.Node) {
			continue
		}
		changes, err := f.changesOf(plan, t)
		if err != nil {
			return err
		}
		for _, c := range changes {
			if refused := standing.Stands(c); refused != nil {
				add(refused)
			}
		}
		if t.Capture != nil {
			add(standing.Refuse("a capture"))
		}
	}
	if len(all) == 0 {
		return nil
	}
	return &wire.Error{Code: wire.CodeConflict, Cure: "see `fieldmesh preflight`",
		Message: fmt.Sprintf("node %s runs without root and cannot do what the plan needs: %s", f.cfg.Node,
			strings.Join(all, "; "))}
}

// changesOf are the changes that a trial would make here.
func (f *Face) changesOf(plan wire.RunPlan, t wire.Trial) ([]change.Change, error) {
	var profile tcp.Profile
	if t.EndsTCP(f.cfg.Node) {
		m, err := f.transport()
		if err == nil {
			profile, err = tcp.Resolve(t.TCP, m)
		}
		if err != nil {
			return nil, err
		}
	}
	run, trial, err := needs.Changes(plan, t, profile, f.cfg.Node, f.cfg.Interface)
	if mode := t.Radio.ModeAt(f.cfg.Node); mode != "" && mode != "none" {
		trial = append(trial, change.Radio{Interface: f.cfg.Interface, Mode: mode, SSID: t.Radio.SSID,
			Channel: t.Radio.Channel})
	}
	return slices.Concat(run, trial), err
}
