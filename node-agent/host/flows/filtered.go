package flows

import (
	"net/netip"
	"slices"

	"github.com/google/nftables"
	"github.com/google/nftables/expr"
	"golang.org/x/sys/unix"
)

// A node's own firewall is no network: what it stops looks like a peer that is out
// of reach. So the flows' packets are counted where they come in and where they
// go out, before and after all other chains there, those of iptables among them.

// Filtered is what of a flow this node's own packet filters stopped.
type Filtered struct {
	Packets uint64 `json:"packets"`
	// Wholly: nothing came through in a direction, of one of the flow's protocols.
	Wholly bool `json:"wholly,omitempty"`
}

// gates are the chains between which filters are, by direction.
var gates = [...]struct {
	before, after         string
	beforeHook, afterHook *nftables.ChainHook
	remote                uint32 // where the header has the peer's address
}{
	{"arrived", "reached", nftables.ChainHookPrerouting, nftables.ChainHookInput, offsetSource},
	{"sent", "left", nftables.ChainHookOutput, nftables.ChainHookOutput, offsetDestination},
}

const (
	// before every chain that filters, that of raw tables (-300) among them, but
	// after connection tracking has put fragments together (-400).
	priorityBefore = -310
	// after those of firewalls, which are at 0 or little above.
	priorityAfter = 1000
)

var flowProtocols = [...]byte{unix.IPPROTO_TCP, unix.IPPROTO_UDP}

// countFiltered makes a rule for each flow and protocol, in this order, in each chain.
func countFiltered(c *nftables.Conn, table *nftables.Table, own netip.Addr, flows []End) {
	for _, g := range gates {
		before := addChainAt(c, table, g.before, g.beforeHook, priorityBefore)
		after := addChainAt(c, table, g.after, g.afterHook, priorityAfter)
		for _, f := range flows {
			for _, protocol := range flowProtocols {
				of := f.packets(protocol, own, g.remote)
				of = append(of, &expr.Counter{})
				c.AddRule(&nftables.Rule{Table: table, Chain: before, Exprs: append(isWhole(), of...)})
				c.AddRule(&nftables.Rule{Table: table, Chain: after, Exprs: of})
			}
		}
	}
}

// packets are the flow's of a protocol, in the direction in which the peer's
// address lies at remote.
func (f End) packets(protocol byte, own netip.Addr, remote uint32) []expr.Any {
	ownAt, port := uint32(offsetDestination), uint32(offsetDestinationPort)
	outward := remote == offsetDestination
	if outward {
		ownAt = offsetSource
	}
	if f.Server == outward {
		port = offsetSourcePort
	}
	return slices.Concat(protocolIs(protocol),
		addressIs(expr.CmpOpEq, ownAt, own), addressIs(expr.CmpOpEq, remote, f.Peer),
		portWithin(port, f.Port, f.Port))
}

// filteredPackets reports of each flow of admission what was stopped. What comes in
// between the two looks is taken for nothing.
func filteredPackets(c *nftables.Conn, flows int) ([]Filtered, error) {
	out := make([]Filtered, flows)
	for _, g := range gates {
		before, err := countersOf(c, g.before)
		if err != nil {
			return nil, err
		}
		after, err := countersOf(c, g.after)
		if err != nil {
			return nil, err
		}
		for i := range min(len(before), len(after), flows*len(flowProtocols)) {
			if before[i] > after[i] {
				f := &out[i/len(flowProtocols)]
				f.Packets += before[i] - after[i]
				f.Wholly = f.Wholly || after[i] == 0
			}
		}
	}
	return out, nil
}

// isWhole leaves out fragments: where a packet arrives each counts, and where it
// is delivered they are one, or none when one of them was lost on its way.
func isWhole() []expr.Any {
	const offsetFragment, moreOrOffset = 6, 0x3fff
	return []expr.Any{
		&expr.Payload{DestRegister: 1, Base: expr.PayloadBaseNetworkHeader, Offset: offsetFragment, Len: 2},
		&expr.Bitwise{SourceRegister: 1, DestRegister: 1, Len: 2,
			Mask: []byte{moreOrOffset >> 8, moreOrOffset & 0xff}, Xor: []byte{0, 0}},
		&expr.Cmp{Op: expr.CmpOpEq, Register: 1, Data: []byte{0, 0}},
	}
}

func addChainAt(c *nftables.Conn, t *nftables.Table, name string, hook *nftables.ChainHook,
	priority nftables.ChainPriority) *nftables.Chain {
	accept := nftables.ChainPolicyAccept
	return c.AddChain(&nftables.Chain{Name: name, Table: t, Type: nftables.ChainTypeFilter, Hooknum: hook,
		Priority: &priority, Policy: &accept})
}
