package host

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"strings"

	"github.com/vishvananda/netlink"

	"fieldmesh.dev/fieldmesh/node-agent/capture/ring"
	"fieldmesh.dev/fieldmesh/node-agent/host/change"
	"fieldmesh.dev/fieldmesh/node-agent/host/flows"
	"fieldmesh.dev/fieldmesh/node-agent/routing/batman"
	"fieldmesh.dev/fieldmesh/node-agent/routing/control"
	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// Packets asks for an interface's frames of some flows, and of routing. Which they
// may be is composed here, and the socket stays here: the half that faces the network
// gets the frames, and no right to listen to anything else or to send.
type Packets struct {
	Interface string `json:"interface"`
	SnapBytes int    `json:"snap_bytes"`      // most that is given of a frame
	Ports     []int  `json:"ports,omitempty"` // TCP or UDP, on either side of a flow
	// Above asks for the device above the interface instead, through which the
	// routing daemon that runs gets and gives data: our own's TUN, or batman-adv's.
	Above bool `json:"above,omitempty"`
}

// PacketFilter is the filter in force, in tcpdump's words, and on what.
type PacketFilter struct {
	Text      string `json:"text"`
	Interface string `json:"interface"`
	BareIP    bool   `json:"bare_ip,omitempty"` // packets begin with their IP header
}

func checkPackets(p change.Policy, want Packets) *change.Refused {
	reason, cure := p.CheckInterface(want.Interface)
	switch {
	case reason != "":
	case want.SnapBytes < wire.SnapBytesMin || want.SnapBytes > wire.SnapBytesMax:
		reason = fmt.Sprintf("%d bytes of each frame are outside %d to %d", want.SnapBytes, wire.SnapBytesMin,
			wire.SnapBytesMax)
	case len(want.Ports) > wire.MaxFlows:
		reason = fmt.Sprintf("%d ports, at most %d", len(want.Ports), wire.MaxFlows)
	case slices.ContainsFunc(want.Ports, func(port int) bool { return port < 1024 || port > 65535 }):
		reason = "a port outside 1024 to 65535"
	default:
		return nil
	}
	return &change.Refused{Change: "a capture on " + want.Interface, Reason: reason, Cure: cure}
}

// mostCaptures at a time: an attempt has two, and each takes a ring's memory.
const mostCaptures = 8

// capture begins a capture that lasts until its reader ends it, or ctx ends.
func (s *server) capture(ctx context.Context, want Packets) (*os.File, PacketFilter, error) {
	if refused := checkPackets(s.keeper.policy, want); refused != nil {
		return nil, PacketFilter{}, refused
	}
	device, bareIP, refused := packetDevice(want)
	if refused != nil {
		return nil, PacketFilter{}, refused
	}
	if s.captures.Add(1) > mostCaptures {
		s.captures.Add(-1)
		return nil, PacketFilter{}, &change.Refused{Change: "a capture on " + want.Interface,
			Reason: fmt.Sprintf("%d are under way", mostCaptures), Cure: "end one of them first"}
	}
	file, text, err := s.beginCapture(ctx, device, want, bareIP)
	if err != nil {
		s.captures.Add(-1)
	}
	return file, PacketFilter{Text: text, Interface: device.Name, BareIP: bareIP}, err
}

func (s *server) beginCapture(ctx context.Context, device *net.Interface, want Packets, bareIP bool) (*os.File, string,
	error) {
	sock, text, err := flows.OpenCapture(device, want.Ports, want.SnapBytes, bareIP)
	if err != nil {
		return nil, "", err
	}
	frames, err := ring.Open(sock)
	if err != nil {
		return nil, "", err
	}
	feed, read, err := ring.Pair()
	if err != nil {
		return nil, "", errors.Join(err, frames.Close())
	}
	s.feeds.Go(func() {
		defer s.captures.Add(-1)
		if err := errors.Join(frames.Feed(ctx, feed), frames.Close()); err != nil {
			s.keeper.log.Warn("a capture ended early", "interface", device.Name, "error", err)
		}
	})
	return read, text, nil
}

// packetDevice finds what to listen on.
func packetDevice(want Packets) (device *net.Interface, bareIP bool, refused *change.Refused) {
	name := want.Interface
	if want.Above {
		var err error
		if name, bareIP, err = above(); err != nil {
			return nil, false, &change.Refused{Change: "a capture above " + want.Interface, Reason: err.Error(),
				Cure: "run the capture while the trial's routing daemon runs"}
		}
	}
	device, err := net.InterfaceByName(name)
	if err != nil {
		return nil, false, &change.Refused{Change: "a capture on " + name, Reason: err.Error(),
			Cure: "plug the radio in, or correct `interface` in agent.yaml"}
	}
	return device, bareIP, nil
}

// above finds the device of the routing daemon that runs.
func above() (name string, bareIP bool, err error) {
	links, err := netlink.LinkList()
	if err != nil {
		return "", false, fmt.Errorf("list devices: %w", err)
	}
	var found []string
	for _, l := range links {
		tun := l.Type() == "tuntap" && strings.HasPrefix(l.Attrs().Name, control.Device)
		if tun || l.Attrs().Name == batman.Device {
			found, bareIP = append(found, l.Attrs().Name), tun
		}
	}
	if len(found) != 1 {
		return "", false, fmt.Errorf("%d devices of routing daemons are there %q, wanted: 1", len(found), found)
	}
	return found[0], bareIP, nil
}
