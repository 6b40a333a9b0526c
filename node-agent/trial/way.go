package trial

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"fieldmesh.dev/fieldmesh/node-agent/routing/batman"
	"fieldmesh.dev/fieldmesh/node-agent/routing/control"
	"fieldmesh.dev/fieldmesh/node-agent/trial/needs"
	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// checkWays reads back, with the run's changes in force, by which interface packets to the trial's other nodes in this
// node's own network leave. By another one the trial would measure another network, or nothing.
func (a *attempt) checkWays() error {
	if err := a.waysLeave(a.trial.Nodes(), false, false); err != nil {
		return fmt.Errorf("route: %w", err)
	}
	return nil
}

// checkFlowsWays is checkWays in the attempt, for packets to the other ends of this node's flows. A routing daemon may
// lead them into its own device, and may have none to a node that is out of reach. While the interface has no carrier
// there is none either: that is an outage, and what got through is the result.
func (a *attempt) checkFlowsWays() error {
	var ends []string
	for _, f := range a.flows {
		if own := a.engine.cfg.Node; f.From == own || f.To == own {
			ends = append(ends, f.From, f.To)
		}
	}
	slices.Sort(ends)
	if err := a.waysLeave(slices.Compact(ends), needs.HasDaemon(a.trial.Routing), true); err != nil {
		return fault{wire.ReasonMisrouted, err}
	}
	return nil
}

func (a *attempt) waysLeave(nodes []string, daemon, outages bool) error {
	e := a.engine
	self, ok := e.planNode(e.cfg.Node)
	if e.deps.Way == nil || !ok {
		return nil
	}
	own, err := netip.ParsePrefix(self.MeshPrefix)
	if err != nil {
		return fmt.Errorf("read address of node %q: %w", self.Name, err)
	}
	for _, name := range nodes {
		to, err := e.meshAddr(name)
		if err != nil {
			return err
		}
		if name == e.cfg.Node || !own.Masked().Contains(to) {
			continue
		}
		iface, err := e.deps.Way(to)
		if err != nil {
			none := errors.Is(err, unix.ENETUNREACH) || errors.Is(err, unix.EHOSTUNREACH)
			if none && (daemon || outages && !e.attached(own.Addr())) {
				continue
			}
			return fmt.Errorf("there is no way to %s at %s: %w; see the node's rules and routes: ip rule, ip "+
				"route get %s", name, to, err, to)
		}
		if iface != e.cfg.Interface && outages && a.trial.Radio.Mode == wire.ModeHotspot &&
			!e.attached(own.Addr()) {
			continue // Android takes the addresses of a station out of reach, and with them the way: an outage, too
		}
		if iface != e.cfg.Interface && !(daemon && ofDaemon(iface)) {
			return fmt.Errorf("packets to %s at %s leave by %s, not by %s; take that network away from %s, or "+
				"end what rules its routes, as a VPN", name, to, iface, e.cfg.Interface, iface)
		}
	}
	return nil
}

func (e *Engine) attached(own netip.Addr) bool {
	is, err := e.deps.Link(e.cfg.Interface, own)
	return err == nil && is.Attached()
}

// ofDaemon reports whether an interface is one that a routing daemon has made.
func ofDaemon(iface string) bool {
	return iface == batman.Device || strings.HasPrefix(iface, control.Device)
}

// wayWatch ends an attempt in which packets to an end of a flow come to leave by another interface: what the window
// measured was another network then, or nothing. The samplers' beat finds what is there for a moment only.
type wayWatch struct{ *attempt }

// Name names it as a source of samples, of which it gives none.
func (wayWatch) Name() string { return "ways" }

// Sample checks, until the window has closed.
func (w wayWatch) Sample(tBootNs int64) ([]wire.Body, error) {
	w.mu.Lock()
	over := w.closeNs != 0 && tBootNs > w.closeNs
	w.mu.Unlock()
	if over {
		return nil, nil
	}
	if err := w.checkFlowsWays(); err != nil {
		w.cancel(err)
	}
	return nil, nil
}
