package host

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"slices"

	"github.com/google/nftables"
	"github.com/google/nftables/expr"
	"golang.org/x/sys/unix"

	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// Admission has the kernel drop, and count, what comes to the ports of a
// trial's flows on this node from any address but that of the flow's other end.
// Besides, it counts the flows' packets before and after the node's own packet
// filters.
type Admission struct {
	Own   netip.Addr `json:"own"` // this node's address on the mesh
	Flows []FlowEnd  `json:"flows"`
}

// FlowEnd is a flow as this node, at one of its ends, sees it.
type FlowEnd struct {
	Peer       netip.Addr `json:"peer"`                  // the other end's address
	Port       int        `json:"port"`                  // of the server
	ClientPort int        `json:"client_port,omitempty"` // first of Streams consecutive ones; absent: any
	Streams    int        `json:"streams"`
	Server     bool       `json:"server,omitempty"` // this node is the server
}

// admissionTable is this process's own.
const (
	admissionTable = "fieldmesh-admission"
	admissionChain = "in"
	severedChain   = "out"
)

func (a Admission) target() string                       { return "admission" }
func (a Admission) check(p policy) (reason, cure string) { return p.checkFlowEnds(a.Own, a.Flows) }

func (a Admission) String() string {
	return fmt.Sprintf("admission of %d flows at %s", len(a.Flows), a.Own)
}

func (p policy) checkFlowEnds(own netip.Addr, flows []FlowEnd) (reason, cure string) {
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

func (p policy) checkEnd(what string, a netip.Addr) (reason, cure string) {
	if !a.Is4() {
		return what + " is no IPv4 address", ""
	}
	return p.checkWithin(what, netip.PrefixFrom(a, a.BitLen()))
}

// prepare checks whether the kernel has nftables.
func (a Admission) prepare(*kernel, uint64) (*admissionUndo, error) {
	var tables nftables.Conn
	if _, err := tables.ListTablesOfFamily(nftables.TableFamilyIPv4); err != nil {
		return nil, &Refused{Reason: fmt.Sprintf("nftables: %v", err), Cure: "use a kernel with nftables (nf_tables)"}
	}
	u := &admissionUndo{}
	u.Admission.Table = admissionTable
	return u, nil
}

func ownTable() *nftables.Table {
	return &nftables.Table{Name: admissionTable, Family: nftables.TableFamilyIPv4}
}

// renewTable has the table taken out, when it is there, and made again.
func renewTable(c *nftables.Conn) *nftables.Table {
	c.DelTable(c.AddTable(ownTable()))
	return c.AddTable(ownTable())
}

// flowsAtOnce keeps a batch of rules, and what the kernel answers to it, within
// the buffers of a netlink socket.
const flowsAtOnce = 8

func (a Admission) apply(*kernel, *admissionUndo) error {
	var c nftables.Conn
	table := renewTable(&c)
	for flows := range slices.Chunk(a.Flows, flowsAtOnce) {
		a.refuseStrangers(&c, table, flows)
		a.countFiltered(&c, table, flows)
		if err := c.Flush(); err != nil {
			return fmt.Errorf("make nftables table %q: %w", admissionTable, err)
		}
	}
	return nil
}

func (a Admission) refuseStrangers(c *nftables.Conn, table *nftables.Table, flows []FlowEnd) {
	chain := addChain(c, table, admissionChain, nftables.ChainHookInput)
	for _, f := range flows {
		first, last := f.ownPorts()
		if first == 0 {
			continue // a client of any port
		}
		for _, protocol := range flowProtocols {
			c.AddRule(&nftables.Rule{Table: table, Chain: chain, Exprs: slices.Concat(
				protocolIs(protocol), addressIs(expr.CmpOpEq, offsetDestination, a.Own),
				addressIs(expr.CmpOpNeq, offsetSource, f.Peer),
				portWithin(offsetDestinationPort, first, last), countAndDrop(),
			)})
		}
	}
}

// ownPorts are this node's fixed ports of the flow; 0 when it has none.
func (f FlowEnd) ownPorts() (first, last int) {
	switch {
	case f.Server:
		return f.Port, f.Port
	case f.ClientPort != 0:
		return f.ClientPort, f.ClientPort + f.Streams - 1
	}
	return 0, 0
}

// refusedPackets is how many packets admission has dropped.
func refusedPackets(c *nftables.Conn) (uint64, error) {
	counts, err := countersOf(c, admissionChain)
	total := uint64(0)
	for _, n := range counts {
		total += n
	}
	return total, err
}

// hasAdmission reports whether admission is in force; without nftables it is not.
func hasAdmission(c *nftables.Conn) bool {
	tables, err := c.ListTablesOfFamily(nftables.TableFamilyIPv4)
	return err == nil && slices.ContainsFunc(tables, func(t *nftables.Table) bool { return t.Name == admissionTable })
}

// countersOf are the packets that a chain's rules have counted, in their order.
func countersOf(c *nftables.Conn, chain string) ([]uint64, error) {
	rules, err := c.GetRules(ownTable(), &nftables.Chain{Name: chain, Table: ownTable()})
	if err != nil {
		return nil, fmt.Errorf("read nftables table %q: %w", admissionTable, err)
	}
	var out []uint64
	for _, r := range rules {
		for _, e := range r.Exprs {
			if count, is := e.(*expr.Counter); is {
				out = append(out, count.Packets)
			}
		}
	}
	return out, nil
}

// silence has nothing more leave this node for the flows' other ends: what
// destroying a socket sends must not be in the air of the next window.
func silence(own netip.Addr, flows []FlowEnd) error {
	var c nftables.Conn
	table := ownTable()
	chain := addChain(&c, table, severedChain, nftables.ChainHookOutput)
	for _, f := range flows {
		offset := uint32(offsetDestinationPort)
		if f.Server {
			offset = offsetSourcePort
		}
		c.AddRule(&nftables.Rule{Table: table, Chain: chain, Exprs: slices.Concat(
			protocolIs(unix.IPPROTO_TCP), addressIs(expr.CmpOpEq, offsetSource, own),
			addressIs(expr.CmpOpEq, offsetDestination, f.Peer),
			portWithin(offset, f.Port, f.Port), countAndDrop(),
		)})
	}
	if err := c.Flush(); err != nil {
		return fmt.Errorf("extend nftables table %q: %w", admissionTable, err)
	}
	return nil
}

// Where the fields lie in headers of IPv4, and of TCP and UDP.
const (
	offsetSource, offsetDestination         = 12, 16
	offsetSourcePort, offsetDestinationPort = 0, 2
)

func addChain(c *nftables.Conn, t *nftables.Table, name string, hook *nftables.ChainHook) *nftables.Chain {
	return addChainAt(c, t, name, hook, *nftables.ChainPriorityFilter)
}

func protocolIs(number byte) []expr.Any {
	return []expr.Any{&expr.Meta{Key: expr.MetaKeyL4PROTO, Register: 1}, &expr.Cmp{Op: expr.CmpOpEq, Register: 1,
		Data: []byte{number}}}
}

func addressIs(op expr.CmpOp, offset uint32, a netip.Addr) []expr.Any {
	return []expr.Any{
		&expr.Payload{DestRegister: 1, Base: expr.PayloadBaseNetworkHeader, Offset: offset, Len: 4},
		&expr.Cmp{Op: op, Register: 1, Data: a.AsSlice()},
	}
}

func portWithin(offset uint32, first, last int) []expr.Any {
	return []expr.Any{
		&expr.Payload{DestRegister: 1, Base: expr.PayloadBaseTransportHeader, Offset: offset, Len: 2},
		&expr.Range{Op: expr.CmpOpEq, Register: 1, FromData: binary.BigEndian.AppendUint16(nil, uint16(first)),
			ToData: binary.BigEndian.AppendUint16(nil, uint16(last))},
	}
}

func countAndDrop() []expr.Any {
	return []expr.Any{&expr.Counter{}, &expr.Verdict{Kind: expr.VerdictDrop}}
}

// admissionUndo takes the table out.
type admissionUndo struct {
	placed
	Admission struct {
		Table string `json:"table"`
	} `json:"admission"`
}

func (*admissionUndo) void(*kernel) bool { return false }

func (u *admissionUndo) revert(*kernel) (string, error) {
	var c nftables.Conn
	c.DelTable(c.AddTable(&nftables.Table{Name: u.Admission.Table, Family: nftables.TableFamilyIPv4}))
	if err := c.Flush(); err != nil {
		return "", fmt.Errorf("delete nftables table %q: %w", u.Admission.Table, err)
	}
	return "", nil
}
