package flows

import (
	"fmt"
	"net/netip"

	"github.com/google/nftables"
	"github.com/google/nftables/expr"
	"golang.org/x/sys/unix"
)

// ControlTable keeps the port of the node's controller.
const ControlTable = "fieldmesh-control" // of nftables

// CloseControl has the kernel drop, and count, what comes to a TCP port by an
// interface, or to an own address by any.
func CloseControl(iface string, own netip.Addr, port int) error {
	var c nftables.Conn
	table := renewTable(&c, &nftables.Table{Name: ControlTable, Family: nftables.TableFamilyINet})
	chain := addChain(&c, table, admissionChain, nftables.ChainHookInput)
	name := make([]byte, unix.IFNAMSIZ)
	copy(name, iface)
	for _, where := range [][]expr.Any{
		{&expr.Meta{Key: expr.MetaKeyIIFNAME, Register: 1}, &expr.Cmp{Op: expr.CmpOpEq, Register: 1, Data: name}},
		append([]expr.Any{&expr.Meta{Key: expr.MetaKeyNFPROTO, Register: 1},
			&expr.Cmp{Op: expr.CmpOpEq, Register: 1, Data: []byte{unix.NFPROTO_IPV4}}},
			addressIs(expr.CmpOpEq, offsetDestination, own)...),
	} {
		where = append(where, protocolIs(unix.IPPROTO_TCP)...)
		where = append(where, portWithin(offsetDestinationPort, port, port)...)
		c.AddRule(&nftables.Rule{Table: table, Chain: chain, Exprs: append(where, countAndDrop()...)})
	}
	if err := c.Flush(); err != nil {
		return fmt.Errorf("make nftables table %q: %w", ControlTable, err)
	}
	return nil
}
