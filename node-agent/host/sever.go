package host

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"

	"github.com/google/nftables"
	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"

	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// Sever ends what an attempt's flows have left on this node: their TCP sockets
// are destroyed, those that no process has any more among them, and packets that
// wait for a neighbour's address are dropped.
type Sever struct {
	Interface string     `json:"interface"`
	Own       netip.Addr `json:"own"`             // this node's address on the mesh
	Flows     []FlowEnd  `json:"flows,omitempty"` // those that end here; a relay has none
}

// Severed is what came of it.
type Severed struct {
	Destroyed int     `json:"destroyed"`         // sockets
	Refused   *uint64 `json:"refused,omitempty"` // packets that admission has dropped; absent without admission
	// Filtered is of each flow, in the request's order; absent without admission.
	Filtered []Filtered `json:"filtered,omitempty"`
	Error    string     `json:"error,omitempty"` // why sockets are left
}

// Sever destroys the sockets of flows. It needs a kernel that can
// (CONFIG_INET_DIAG_DESTROY); the answer says so where it cannot.
func (c *Client) Sever(ctx context.Context, s Sever) (Severed, error) {
	a, err := c.call(ctx, request{Sever: &s})
	return answered(a.Severed, err)
}

func (k *keeper) sever(s Sever) (Severed, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	reason, cure := k.policy.checkInterface(s.Interface)
	if reason == "" && len(s.Flows) > 0 {
		reason, cure = k.policy.checkFlowEnds(s.Own, s.Flows)
	}
	if reason != "" {
		return Severed{}, &Refused{Change: "sever flows", Reason: reason, Cure: cure}
	}
	var out Severed
	var errs []error
	if len(s.Flows) > 0 {
		out, errs = severFlows(s)
	}
	if err := errors.Join(append(errs, dropWaiting(s.Interface))...); err != nil {
		out.Error = err.Error()
	}
	return out, nil
}

func severFlows(s Sever) (out Severed, errs []error) {
	var c nftables.Conn
	if hasAdmission(&c) {
		refused, refusedErr := refusedPackets(&c)
		filtered, filteredErr := filteredPackets(&c, len(s.Flows))
		if refusedErr == nil && filteredErr == nil {
			out.Refused, out.Filtered = &refused, filtered
		}
		errs = append(errs, refusedErr, filteredErr, silence(s.Own, s.Flows))
	}
	var destroyErr error
	out.Destroyed, destroyErr = destroySockets(s)
	return out, append(errs, destroyErr)
}

// destroying reports whether the kernel destroys sockets when it is asked to: of one
// that is not there it then says that it is not.
func destroying() wire.Ability {
	err := destroySocket(netlink.SocketID{SourcePort: 9, DestinationPort: 9, Source: net.IPv4zero,
		Destination: net.IPv4zero})
	if errors.Is(err, unix.ENOENT) {
		return wire.Ability{Feature: wire.DestroySockets, How: "native"}
	}
	return wire.Ability{Feature: wire.DestroySockets, How: "none", Reason: fmt.Sprint(err),
		Needs: "a kernel with CONFIG_INET_DIAG_DESTROY"}
}

// dropWaiting drops the packets that wait for the addresses of neighbours on an
// interface: the kernel keeps them with the neighbours that it looks for, and
// would send them as soon as one answers, be it seconds later.
func dropWaiting(device string) error {
	link, err := findLink(device)
	if err != nil {
		return err
	}
	neighbours, err := redump(func() ([]netlink.Neigh, error) {
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

// destroySockets destroys the connected sockets of the flows. At the server's
// port those of other addresses are among them.
func destroySockets(s Sever) (int, error) {
	sockets, err := redump(func() ([]*netlink.Socket, error) { return netlink.SocketDiagTCP(unix.AF_INET) })
	if err != nil {
		return 0, fmt.Errorf("list sockets: %w", err)
	}
	n := 0
	var errs []error
	for _, socket := range sockets {
		if !slices.ContainsFunc(s.Flows, func(f FlowEnd) bool { return f.has(s.Own, socket.ID) }) {
			continue
		}
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
func (f FlowEnd) has(own netip.Addr, id netlink.SocketID) bool {
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
