package host

import (
	"context"
	"errors"
	"net/netip"

	"fieldmesh.dev/fieldmesh/node-agent/host/change"
	"fieldmesh.dev/fieldmesh/node-agent/host/flows"
)

// Sever ends what an attempt's flows have left on this node: their TCP sockets
// are destroyed, those that no process has any more among them, and packets that
// wait for a neighbour's address are dropped.
type Sever struct {
	Interface string      `json:"interface"`
	Own       netip.Addr  `json:"own"`             // this node's address on the mesh
	Flows     []flows.End `json:"flows,omitempty"` // those that end here; a relay has none
}

// Sever destroys the sockets of flows. It needs a kernel that can
// (CONFIG_INET_DIAG_DESTROY); the answer says so where it cannot.
func (c *Client) Sever(ctx context.Context, s Sever) (flows.Severed, error) {
	a, err := c.call(ctx, request{Sever: &s})
	return answered(a.Severed, err)
}

func (k *keeper) sever(s Sever) (flows.Severed, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	reason, cure := k.policy.CheckInterface(s.Interface)
	if reason == "" && len(s.Flows) > 0 {
		reason, cure = k.policy.CheckFlowEnds(s.Own, s.Flows)
	}
	if reason != "" {
		return flows.Severed{}, &change.Refused{Change: "sever flows", Reason: reason, Cure: cure}
	}
	var out flows.Severed
	var errs []error
	if len(s.Flows) > 0 {
		out, errs = flows.Sever(s.Own, s.Flows)
	}
	if err := errors.Join(append(errs, flows.DropWaiting(s.Interface))...); err != nil {
		out.Error = err.Error()
	}
	return out, nil
}
