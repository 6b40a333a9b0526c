package change

import (
	"fmt"
	"net/netip"

	"fieldmesh.dev/fieldmesh/node-agent/host/flows"
	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// Admission has the kernel drop, and count, what comes to the ports of a
// trial's flows on this node from any address but that of the flow's other end.
// Besides, it counts the flows' packets before and after the node's own packet
// filters.
type Admission struct {
	Own   netip.Addr  `json:"own"` // this node's address on the mesh
	Flows []flows.End `json:"flows"`
}

func (a Admission) Target() string                       { return "admission" }
func (a Admission) check(p Policy) (reason, cure string) { return p.CheckFlowEnds(a.Own, a.Flows) }

func (a Admission) String() string {
	return fmt.Sprintf("admission of %d flows at %s", len(a.Flows), a.Own)
}

// CheckFlowEnds says why flows at an own address are not allowed; no reason: they
// are.
func (p Policy) CheckFlowEnds(own netip.Addr, flows []flows.End) (reason, cure string) {
	if len(flows) == 0 || len(flows) > wire.MaxFlows {
		return fmt.Sprintf("%d flows, 1 to %d are allowed", len(flows), wire.MaxFlows), ""
	}
	if reason, cure = p.checkEnd("own address", own); reason != "" {
		return reason, cure
	}
	for _, f := range flows {
		if reason, cure = p.checkEnd("peer", f.Peer); reason != "" {
			return reason, cure
		}
		switch {
		case f.Peer == own:
			return "a flow's two ends have one address", ""
		case f.Port < 1024 || f.Port > 65535 || f.ClientPort != 0 && (f.ClientPort < 1024 || f.ClientPort+f.Streams-1 >
			65535):
			return "a port outside 1024 to 65535", ""
		case f.Streams < 1 || f.Streams > wire.MaxStreams:
			return fmt.Sprintf("%d streams of a flow, 1 to %d are allowed", f.Streams, wire.MaxStreams), ""
		}
	}
	return "", ""
}

func (p Policy) checkEnd(what string, a netip.Addr) (reason, cure string) {
	if !a.Is4() {
		return what + " is no IPv4 address", ""
	}
	return p.checkWithin(what, netip.PrefixFrom(a, a.BitLen()))
}

// prepare checks whether the kernel has nftables.
func (a Admission) prepare(*Kernel, uint64) (*admissionUndo, error) {
	if err := flows.Available(); err != nil {
		return nil, noTables(err)
	}
	u := &admissionUndo{}
	u.Admission.Table = flows.Table
	return u, nil
}

func noTables(err error) *Refused {
	return &Refused{Reason: fmt.Sprintf("nftables: %v", err), Cure: "use a kernel with nftables (nf_tables)"}
}

func (a Admission) apply(*Kernel, *admissionUndo) error { return flows.Admit(a.Own, a.Flows) }

// admissionUndo takes the table out.
type admissionUndo struct {
	placed
	Admission struct {
		Table string `json:"table"`
	} `json:"admission"`
}

func (*admissionUndo) void(*Kernel) bool { return false }

func (u *admissionUndo) revert(*Kernel) (string, error) {
	return "", flows.TakeOut(u.Admission.Table)
}
