// Package flows sees to the flows of a trial in this machine's kernel: it lets
// their peers alone reach their ports, closes the port of the node's controller
// to the network under test, counts what packet filters stop of them,
// destroys the sockets that they leave, and opens a socket that shows their
// packets. What may be asked of it, node-agent/host decides.
package flows

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"slices"

	"github.com/google/nftables"
	"github.com/google/nftables/expr"
	"golang.org/x/sys/unix"
)

// End is a flow as this node, at one of its ends, sees it.
type End struct {
	Peer       netip.Addr `json:"peer"`                  // the other end's address
	Port       int        `json:"port"`                  // of the server
	ClientPort int        `json:"client_port,omitempty"` // first of Streams consecutive ones; absent: any
	Streams    int        `json:"streams"`
	Server     bool       `json:"server,omitempty"` // this node is the server
}

// Table is this process's own.
const (
	Table          = "fieldmesh-admission" // of nftables
	admissionChain = "in"
	severedChain   = "out"
)

func ownTable() *nftables.Table {
	return &nftables.Table{Name: Table, Family: nftables.TableFamilyIPv4}
}

// renewTable has a table taken out, when it is there, and made again.
func renewTable(c *nftables.Conn, t *nftables.Table) *nftables.Table {
	c.DelTable(c.AddTable(t))
	return c.AddTable(t)
}

// NeedsTables is what does where the kernel has no nftables. Tables that go with their
// socket came with Linux 5.12 (NFT_TABLE_F_OWNER).
const NeedsTables = "a kernel with nftables (CONFIG_NF_TABLES, CONFIG_NF_TABLES_IPV4) of Linux 5.12 or newer"

// Available says why the kernel has no nftables.
func Available() error {
	var tables nftables.Conn
	_, err := tables.ListTablesOfFamily(nftables.TableFamilyIPv4)
	return err
}

// TakeOut deletes a table, if it is there.
func TakeOut(table string) error {
	var c nftables.Conn
	family := nftables.TableFamilyIPv4
	if table == ControlTable {
		family = nftables.TableFamilyINet
	}
	c.DelTable(c.AddTable(&nftables.Table{Name: table, Family: family}))
	if err := c.Flush(); err != nil {
		return fmt.Errorf("delete nftables table %q: %w", table, err)
	}
	return nil
}

// flowsAtOnce keeps a batch of rules, and what the kernel answers to it, within
// the buffers of a netlink socket.
const flowsAtOnce = 8

// Admit has the flows' peers alone reach their ports at an own address, and
// counts what packet filters stop.
func Admit(own netip.Addr, ends []End) error {
	var c nftables.Conn
	table := renewTable(&c, ownTable())
	for flows := range slices.Chunk(ends, flowsAtOnce) {
		refuseStrangers(&c, table, own, flows)
		countFiltered(&c, table, own, flows)
		if err := c.Flush(); err != nil {
			return fmt.Errorf("make nftables table %q: %w", Table, err)
		}
	}
	return nil
}

func refuseStrangers(c *nftables.Conn, table *nftables.Table, own netip.Addr, flows []End) {
	chain := addChain(c, table, admissionChain, nftables.ChainHookInput)
	for _, f := range flows {
		first, last := f.ownPorts()
		if first == 0 {
			continue // a client of any port
		}
		for _, protocol := range flowProtocols {
			c.AddRule(&nftables.Rule{Table: table, Chain: chain, Exprs: slices.Concat(
				protocolIs(protocol), addressIs(expr.CmpOpEq, offsetDestination, own),
				addressIs(expr.CmpOpNeq, offsetSource, f.Peer),
				portWithin(offsetDestinationPort, first, last), countAndDrop(),
			)})
		}
	}
}

// ownPorts are this node's fixed ports of the flow; 0 when it has none.
func (f End) ownPorts() (first, last int) {
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
	return err == nil && slices.ContainsFunc(tables, func(t *nftables.Table) bool { return t.Name == Table })
}

// countersOf are the packets that a chain's rules have counted, in their order.
func countersOf(c *nftables.Conn, chain string) ([]uint64, error) {
	rules, err := c.GetRules(ownTable(), &nftables.Chain{Name: chain, Table: ownTable()})
	if err != nil {
		return nil, fmt.Errorf("read nftables table %q: %w", Table, err)
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
func silence(own netip.Addr, flows []End) error {
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
		return fmt.Errorf("extend nftables table %q: %w", Table, err)
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
