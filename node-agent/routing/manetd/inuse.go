package manetd

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"time"

	"github.com/google/nftables"
	"github.com/google/nftables/expr"
	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"
)

const (
	inUseEvery   = time.Second
	inUseTimeout = 2 * inUseEvery // of an entry in the kernel's sets
	inUseMax     = 4096           // entries
)

// Registers of nf_tables.h in which parts of a key follow on each other.
const (
	register0 = unix.NFT_REG32_00
	register2 = unix.NFT_REG32_02
)

// tableOwner is NFT_TABLE_F_OWNER: the table goes with the socket that made it.
const tableOwner = 2

// inUse has the kernel note which pairs of addresses data goes between over an
// interface: neither a route's age nor connection tracking tells. The table
// belongs to the socket, so that it goes however the process ends.
type inUse struct {
	conn     *nftables.Conn
	table    *nftables.Table
	out, in  *nftables.Set
	device   string
	port     uint16 // whose packets are the protocol's own
	lookupIP func(mac [6]byte) netip.Addr
}

// openInUse makes the table. The kernel may not have nftables: then routes in
// use are not known.
func openInUse(device string, port uint16, lookupIP func([6]byte) netip.Addr) (*inUse, error) {
	var socket *netlink.Conn
	conn, err := nftables.New(nftables.AsLasting(), nftables.WithSockOptions(func(c *netlink.Conn) error {
		socket = c
		return nil
	}))
	if err != nil {
		return nil, fmt.Errorf("open nftables: %w", err)
	}
	u := &inUse{conn: conn, table: &nftables.Table{Name: "fieldmesh-route-" + device, Family: nftables.TableFamilyIPv4},
		device: device, port: port, lookupIP: lookupIP}
	if err = ownTable(socket, u.table.Name); err == nil {
		err = u.fill()
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("make table %q: %w", u.table.Name, err), conn.CloseLasting())
	}
	return u, nil
}

// ownTable makes a table that belongs to a socket, which the library has no
// call for.
func ownTable(socket *netlink.Conn, name string) error {
	data, err := netlink.MarshalAttributes([]netlink.Attribute{
		{Type: unix.NFTA_TABLE_NAME, Data: append([]byte(name), 0)},
		{Type: unix.NFTA_TABLE_FLAGS, Data: []byte{0, 0, 0, tableOwner}},
	})
	if err != nil {
		return err
	}
	head := func(family byte, resource byte) []byte { return []byte{family, unix.NFNETLINK_V0, 0, resource} }
	_, err = socket.SendMessages([]netlink.Message{
		{Header: netlink.Header{Type: unix.NFNL_MSG_BATCH_BEGIN, Flags: netlink.Request},
			Data: head(unix.AF_UNSPEC, unix.NFNL_SUBSYS_NFTABLES)},
		{Header: netlink.Header{Type: unix.NFNL_SUBSYS_NFTABLES<<8 | unix.NFT_MSG_NEWTABLE,
			Flags: netlink.Request | netlink.Acknowledge | netlink.Create | netlink.Excl},
			Data: append(head(unix.NFPROTO_IPV4, 0), data...)},
		{Header: netlink.Header{Type: unix.NFNL_MSG_BATCH_END, Flags: netlink.Request},
			Data: head(unix.AF_UNSPEC, unix.NFNL_SUBSYS_NFTABLES)},
	})
	if err != nil {
		return err
	}
	_, err = socket.Receive() // the acknowledgement, or why not
	return err
}

// fill makes the sets and the rules that fill them.
func (u *inUse) fill() error {
	pair, err := nftables.ConcatSetType(nftables.TypeIPAddr, nftables.TypeIPAddr)
	if err != nil {
		return err
	}
	triple, err := nftables.ConcatSetType(nftables.TypeEtherAddr, nftables.TypeIPAddr, nftables.TypeIPAddr)
	if err != nil {
		return err
	}
	u.out = u.set("out", pair)
	u.in = u.set("in", triple)
	if err := errors.Join(u.conn.AddSet(u.out, nil), u.conn.AddSet(u.in, nil)); err != nil {
		return err
	}
	addresses := func(first uint32) []expr.Any {
		return []expr.Any{
			&expr.Payload{DestRegister: first, Base: expr.PayloadBaseNetworkHeader, Offset: 12, Len: 4},
			&expr.Payload{DestRegister: first + 1, Base: expr.PayloadBaseNetworkHeader, Offset: 16, Len: 4},
		}
	}
	after := u.chain("postrouting", nftables.ChainHookPostrouting)
	u.passOwn(after)
	u.rule(after, on(expr.MetaKeyOIFNAME, u.device), addresses(register0), update(u.out))
	before := u.chain("prerouting", nftables.ChainHookPrerouting)
	u.passOwn(before)
	// The frame's sender takes two registers; what is beyond its six bytes is 0.
	u.rule(before, on(expr.MetaKeyIIFNAME, u.device), []expr.Any{
		&expr.Meta{Key: expr.MetaKeyIIFTYPE, Register: 1},
		&expr.Cmp{Op: expr.CmpOpEq, Register: 1, Data: binary.NativeEndian.AppendUint16(nil, unix.ARPHRD_ETHER)},
		&expr.Payload{DestRegister: register0, Base: expr.PayloadBaseLLHeader, Offset: 6, Len: 6},
	}, addresses(register2), update(u.in))
	return u.conn.Flush()
}

func (u *inUse) set(name string, key nftables.SetDatatype) *nftables.Set {
	return &nftables.Set{Table: u.table, Name: name, KeyType: key, Concatenation: true, Dynamic: true, HasTimeout: true,
		Timeout: inUseTimeout, Size: inUseMax}
}

func (u *inUse) chain(name string, hook *nftables.ChainHook) *nftables.Chain {
	accept := nftables.ChainPolicyAccept
	return u.conn.AddChain(&nftables.Chain{Name: name, Table: u.table, Type: nftables.ChainTypeFilter,
		Hooknum: hook, Priority: nftables.ChainPriorityMangle, Policy: &accept})
}

func (u *inUse) rule(c *nftables.Chain, parts ...[]expr.Any) {
	u.conn.AddRule(&nftables.Rule{Table: u.table, Chain: c, Exprs: slices.Concat(parts...)})
}

// passOwn lets the protocol's own packets go by uncounted.
func (u *inUse) passOwn(c *nftables.Chain) {
	u.rule(c, []expr.Any{
		&expr.Meta{Key: expr.MetaKeyL4PROTO, Register: 1},
		&expr.Cmp{Op: expr.CmpOpEq, Register: 1, Data: []byte{unix.IPPROTO_UDP}},
		&expr.Payload{DestRegister: 1, Base: expr.PayloadBaseTransportHeader, Offset: 2, Len: 2},
		&expr.Cmp{Op: expr.CmpOpEq, Register: 1, Data: binary.BigEndian.AppendUint16(nil, u.port)},
		&expr.Verdict{Kind: expr.VerdictAccept},
	})
}

// on is a match of the interface that a packet comes in or goes out by.
func on(key expr.MetaKey, device string) []expr.Any {
	name := make([]byte, unix.IFNAMSIZ)
	copy(name, device)
	return []expr.Any{&expr.Meta{Key: key, Register: 1}, &expr.Cmp{Op: expr.CmpOpEq, Register: 1, Data: name}}
}

func update(s *nftables.Set) []expr.Any {
	return []expr.Any{&expr.Dynset{SrcRegKey: register0, SetName: s.Name, SetID: s.ID,
		Operation: unix.NFT_DYNSET_OP_UPDATE, Timeout: inUseTimeout}}
}

// read gives what data passed since the last inUseEvery: first what left, with
// the neighbour that it came from, then what came to its end here.
func (u *inUse) read(own netip.Addr) ([]use, error) {
	in, err := u.conn.GetSetElements(u.in)
	if err != nil {
		return nil, fmt.Errorf("read table %q: %w", u.table.Name, err)
	}
	out, err := u.conn.GetSetElements(u.out)
	if err != nil {
		return nil, fmt.Errorf("read table %q: %w", u.table.Name, err)
	}
	from := map[use]netip.Addr{} // by the pair
	var arrived []use
	for _, e := range in {
		if len(e.Key) != 16 {
			continue
		}
		pair := use{source: netip.AddrFrom4([4]byte(e.Key[8:12])), destination: netip.AddrFrom4([4]byte(e.Key[12:16]))}
		previous := u.lookupIP([6]byte(e.Key[:6]))
		from[pair] = previous
		if pair.destination == own && recent(e) {
			arrived = append(arrived, use{source: pair.source, destination: own, previous: previous})
		}
	}
	var uses []use
	for _, e := range out {
		if len(e.Key) != 8 || !recent(e) {
			continue
		}
		pair := use{source: netip.AddrFrom4([4]byte(e.Key[:4])), destination: netip.AddrFrom4([4]byte(e.Key[4:8]))}
		uses = append(uses, use{source: pair.source, destination: pair.destination, previous: from[pair]})
	}
	return append(uses, arrived...), nil
}

// recent reports whether an entry was renewed since the last reading.
func recent(e nftables.SetElement) bool { return inUseTimeout-e.Expires <= inUseEvery }

func (u *inUse) close() error { return u.conn.CloseLasting() }
