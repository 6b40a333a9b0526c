package trial

import (
	"fmt"
	"net/netip"
)

// checkWays reads back, with the run's changes in force, by which interface packets
// to the trial's other nodes in this node's own network leave. By another one the
// trial would measure another network, or nothing.
func (a *attempt) checkWays() error {
	e := a.engine
	self, ok := e.planNode(e.cfg.Node)
	if e.deps.Way == nil || !ok {
		return nil
	}
	own, err := netip.ParsePrefix(self.MeshPrefix)
	if err != nil {
		return fmt.Errorf("read address of node %q: %w", self.Name, err)
	}
	for _, name := range a.trial.Nodes() {
		to, err := e.meshAddr(name)
		if err != nil {
			return err
		}
		if name == e.cfg.Node || !own.Masked().Contains(to) {
			continue
		}
		iface, err := e.deps.Way(to)
		if err != nil {
			return fmt.Errorf("route: there is no way to %s at %s: %w; see the node's rules and routes: ip rule, ip "+
				"route get %s", name, to, err, to)
		}
		if iface != e.cfg.Interface {
			return fmt.Errorf("route: packets to %s at %s leave by %s, not by %s; take that network away from %s, or "+
				"end what rules its routes, as a VPN", name, to, iface, e.cfg.Interface, iface)
		}
	}
	return nil
}
