package flows

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"

	"github.com/google/nftables"
	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"

	"fieldmesh.dev/fieldmesh/node-agent/host/netstack"
	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// Severed is what came of ending flows.
type Severed struct {
	Destroyed int     `json:"destroyed"`         // sockets
	Refused   *uint64 `json:"refused,omitempty"` // packets that admission has dropped; absent without admission
	// Filtered is of each flow, in the request's order; absent without admission.
	Filtered []Filtered `json:"filtered,omitempty"`
	Error    string     `json:"error,omitempty"` // why sockets are left
}

// Sever destroys the flows' sockets at an own address. With admission it
// tells what that has counted.
func Sever(own netip.Addr, ends []End) (out Severed, errs []error) {
	var c nftables.Conn
	if hasAdmission(&c) {
		refused, refusedErr := refusedPackets(&c)
		filtered, filteredErr := filteredPackets(&c, len(ends))
		if refusedErr == nil && filteredErr == nil {
			out.Refused, out.Filtered = &refused, filtered
		}
		errs = append(errs, refusedErr, filteredErr, silence(own, ends))
	}
	var destroyErr error
	out.Destroyed, destroyErr = destroySockets(own, ends)
	return out, append(errs, destroyErr)
}

// Destroying reports whether the kernel destroys sockets when it is asked to: of one
// that is not there it then says that it is not.
func Destroying() wire.Ability {
	err := destroySocket(netlink.SocketID{SourcePort: 9, DestinationPort: 9, Source: net.IPv4zero,
		Destination: net.IPv4zero})
	if errors.Is(err, unix.ENOENT) {
		return wire.Ability{Feature: wire.DestroySockets, How: "native"}
	}
	return wire.Ability{Feature: wire.DestroySockets, How: "none", Reason: fmt.Sprint(err),
		Needs: "a kernel with CONFIG_INET_DIAG_DESTROY"}
}

// TellingRoutes reports whether the kernel can tell which routes data uses, which takes
// nftables.
func TellingRoutes() wire.Ability {
	if err := Available(); err != nil {
		return wire.Ability{Feature: wire.RoutesInUse, How: "none", Reason: err.Error(), Needs: NeedsTables}
	}
	return wire.Ability{Feature: wire.RoutesInUse, How: "native"}
}

// DropWaiting drops the packets that wait for the addresses of neighbours on an
// interface: the kernel keeps them with the neighbours that it looks for, and
// would send them as soon as one answers, be it seconds later.
func DropWaiting(device string) error {
	link, err := netstack.FindLink(device)
	if err != nil {
		return err
	}
	neighbours, err := netstack.Redump(func() ([]netlink.Neigh, error) {
		return netlink.NeighList(link.Attrs().Index, netlink.FAMILY_V4)
	})
	if err != nil {
		return fmt.Errorf("list neighbours on %q: %w", device, err)
	}
	var errs []error
	for _, n := range neighbours {
		if n.State&netlink.NUD_INCOMPLETE == 0 {
			continue
		}
		if err := netlink.NeighDel(&n); err != nil && !errors.Is(err, unix.ENOENT) {
			errs = append(errs, fmt.Errorf("forget neighbour %s: %w", n.IP, err))
		}
	}
	return errors.Join(errs...)
}

// connected lists the connected sockets of the flows. At the server's port those of
// other addresses are among them.
func connected(own netip.Addr, ends []End) ([]*netlink.Socket, error) {
	sockets, err := netstack.Redump(func() ([]*netlink.Socket, error) { return netlink.SocketDiagTCP(unix.AF_INET) })
	if err != nil {
		return nil, fmt.Errorf("list sockets: %w", err)
	}
	return slices.DeleteFunc(sockets, func(s *netlink.Socket) bool {
		return !slices.ContainsFunc(ends, func(f End) bool { return f.has(own, s.ID) })
	}), nil
}

// Left counts the flows' sockets that no process has any more and that still send: more
// than the last words of iperf3's control connection. It changes nothing, and takes no
// privileges.
func Left(own netip.Addr, ends []End) (n int, err error) {
	const lastWords = 1000 // bytes
	sockets, err := connected(own, ends)
	for _, s := range sockets {
		if s.INode == 0 && s.WQueue > lastWords {
			n++
		}
	}
	return n, err
}

// destroySockets destroys the connected sockets of the flows.
func destroySockets(own netip.Addr, ends []End) (int, error) {
	sockets, err := connected(own, ends)
	if err != nil {
		return 0, err
	}
	n := 0
	var errs []error
	for _, socket := range sockets {
		switch err := destroySocket(socket.ID); {
		case errors.Is(err, unix.ENOENT): // it has ended by itself
		case errors.Is(err, unix.EOPNOTSUPP) && socket.State == netlink.TCP_TIME_WAIT:
			// as kernels before 6.4 say; it sends nothing by itself
		case err != nil:
			errs = append(errs, fmt.Errorf("destroy socket of port %d: %w", socket.ID.SourcePort, err))
		default:
			n++
		}
	}
	return n, errors.Join(errs...)
}

// has reports whether a socket is the flow's.
func (f End) has(own netip.Addr, id netlink.SocketID) bool {
	local, _ := netip.AddrFromSlice(id.Source)
	remote, _ := netip.AddrFromSlice(id.Destination)
	if local.Unmap() != own || id.DestinationPort == 0 { // one that listens has no other end
		return false
	}
	if f.Server {
		return int(id.SourcePort) == f.Port
	}
	return int(id.DestinationPort) == f.Port && remote.Unmap() == f.Peer
}

// destroySocket names a socket by its addresses and its cookie
// (struct inet_diag_req_v2).
func destroySocket(id netlink.SocketID) error {
	message := make([]byte, 8, 8+48)
	message[0], message[1] = unix.AF_INET, unix.IPPROTO_TCP
	native := nl.NativeEndian()
	native.PutUint32(message[4:], 0xffff_ffff)
	message = append(message, byte(id.SourcePort>>8), byte(id.SourcePort), byte(id.DestinationPort>>8),
		byte(id.DestinationPort))
	for _, ip := range [][]byte{id.Source.To4(), id.Destination.To4()} {
		message = append(append(message, ip...), make([]byte, 16-len(ip))...)
	}
	rest := make([]byte, 12)
	native.PutUint32(rest[0:], id.Interface)
	native.PutUint32(rest[4:], id.Cookie[0])
	native.PutUint32(rest[8:], id.Cookie[1])
	request := nl.NewNetlinkRequest(nl.SOCK_DESTROY, unix.NLM_F_ACK)
	request.AddRawData(append(message, rest...))
	_, err := request.Execute(unix.NETLINK_INET_DIAG, 0)
	return err
}
