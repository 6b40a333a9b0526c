package flows

import (
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"strings"
	"unsafe"

	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"

	"fieldmesh.dev/fieldmesh/protocols/manet/signalling"
	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// OpenCapture opens a socket that gives a device's frames of the flows with
// some ports, and of routing, and says its filter in tcpdump's words. bareIP:
// the device gives packets that begin with their IP header.
func OpenCapture(device *net.Interface, ports []int, snapBytes int, bareIP bool) (*os.File, string, error) {
	program, text, err := packetFilter(ports, snapBytes, bareIP)
	if err != nil {
		return nil, "", err
	}
	// Without a protocol it gets nothing until it is bound, and then only what the filter lets through.
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, "", fmt.Errorf("open packet socket: %w", err)
	}
	file := os.NewFile(uintptr(fd), "packets of "+device.Name)
	fprog := unix.SockFprog{Len: uint16(len(program)), Filter: (*unix.SockFilter)(unsafe.Pointer(&program[0]))}
	err = unix.SetsockoptSockFprog(fd, unix.SOL_SOCKET, unix.SO_ATTACH_FILTER, &fprog)
	if err == nil {
		err = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_LOCK_FILTER, 1)
	}
	if err == nil {
		err = unix.Bind(fd, &unix.SockaddrLinklayer{Protocol: networkOrder(unix.ETH_P_ALL), Ifindex: device.Index})
	}
	if err != nil {
		return nil, "", errors.Join(fmt.Errorf("make packet socket of %q: %w", device.Name, err),
			file.Close())
	}
	return file, text, nil
}

// mostPorts keeps each jump of the filter within its 8 bits.
const mostPorts = wire.MaxFlows + 16

func networkOrder(v uint16) uint16 { return v<<8 | v>>8 }

// packetFilter composes the classic BPF program of a capture, for frames with
// an Ethernet header or bare packets of IPv4, and says it in tcpdump's words.
func packetFilter(ports []int, snapBytes int, bareIP bool) ([]bpf.RawInstruction, string, error) {
	ports = slices.Clone(ports)
	for _, p := range signalling.Ports() {
		ports = append(ports, int(p))
	}
	slices.Sort(ports)
	ports = slices.Compact(ports)
	if len(ports) > mostPorts {
		return nil, "", fmt.Errorf("compose filter: %d ports, at most %d", len(ports), mostPorts)
	}
	if bareIP {
		raw, err := bpf.Assemble(append([]bpf.Instruction{
			bpf.LoadAbsolute{Off: 0, Size: 1},
			bpf.ALUOpConstant{Op: bpf.ALUOpShiftRight, Val: 4},
			bpf.JumpIf{Cond: bpf.JumpEqual, Val: 4, SkipTrue: 1},
			bpf.RetConstant{},
		}, filterIPv4(0, ports, snapBytes)...))
		if err != nil {
			return nil, "", fmt.Errorf("compose filter: %w", err)
		}
		return raw, filterText(ports), nil
	}
	v4, v6 := filterIPv4(etherBytes, ports, snapBytes), filterIPv6(ports, snapBytes)
	accept := bpf.RetConstant{Val: uint32(snapBytes)}
	program := []bpf.Instruction{
		bpf.LoadAbsolute{Off: 12, Size: 2},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: unix.ETH_P_ARP, SkipTrue: 5},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: signalling.EtherBatman, SkipTrue: 4},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: unix.ETH_P_IP, SkipTrue: 4},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: unix.ETH_P_IPV6, SkipTrue: 1},
		bpf.RetConstant{},
		bpf.Jump{Skip: uint32(1 + len(v4))},
		accept,
	}
	program = append(append(program, v4...), v6...)
	raw, err := bpf.Assemble(program)
	if err != nil {
		return nil, "", fmt.Errorf("compose filter: %w", err)
	}
	return raw, filterText(ports), nil
}

func filterText(ports []int) string {
	words := []string{"arp", fmt.Sprintf("ether proto %#x", signalling.EtherBatman)}
	for _, p := range signalling.Protocols() {
		words = append(words, fmt.Sprintf("ip proto %d", p), fmt.Sprintf("ip6 proto %d", p))
	}
	for _, p := range ports {
		words = append(words, fmt.Sprintf("tcp port %d", p), fmt.Sprintf("udp port %d", p))
	}
	return strings.Join(words, " or ")
}

const (
	etherBytes = 14
	ipv6Bytes  = 40
)

// filterIPv4 judges a packet of IPv4 that begins at a byte; it ends the program.
func filterIPv4(at uint32, ports []int, snapBytes int) []bpf.Instruction {
	judge := filterPorts(ports, snapBytes, bpf.LoadIndirect{Off: at, Size: 2}, bpf.LoadIndirect{Off: at + 2, Size: 2})
	out := append([]bpf.Instruction{bpf.LoadAbsolute{Off: at + 9, Size: 1}},
		filterProtocols(snapBytes, len(judge)+3)...)
	out = append(out,
		bpf.LoadAbsolute{Off: at + 6, Size: 2},
		// a later fragment has no ports
		bpf.JumpIf{Cond: bpf.JumpBitsSet, Val: 0x1fff, SkipTrue: uint8(len(judge) + 1)},
		bpf.LoadMemShift{Off: at})
	return append(append(out, judge...), bpf.RetConstant{})
}

// filterIPv6 judges a packet of IPv6 without extension headers, which is what
// flows and routing send; it ends the program.
func filterIPv6(ports []int, snapBytes int) []bpf.Instruction {
	judge := filterPorts(ports, snapBytes,
		bpf.LoadAbsolute{Off: etherBytes + ipv6Bytes, Size: 2}, bpf.LoadAbsolute{Off: etherBytes + ipv6Bytes + 2,
			Size: 2})
	out := append([]bpf.Instruction{bpf.LoadAbsolute{Off: etherBytes + 6, Size: 1}},
		filterProtocols(snapBytes, len(judge))...)
	return append(append(out, judge...), bpf.RetConstant{})
}

// filterProtocols looks at the protocol's number: routing is accepted at once,
// TCP and UDP go on behind it, everything else is skipped over what follows.
func filterProtocols(snapBytes, follows int) []bpf.Instruction {
	routing := signalling.Protocols()
	n := uint8(len(routing))
	out := []bpf.Instruction{
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: unix.IPPROTO_TCP, SkipTrue: n + 3},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: unix.IPPROTO_UDP, SkipTrue: n + 2},
	}
	for i, protocol := range routing {
		out = append(out, bpf.JumpIf{Cond: bpf.JumpEqual, Val: uint32(protocol), SkipTrue: n - uint8(i)})
	}
	return append(out, bpf.Jump{Skip: uint32(1 + follows)}, bpf.RetConstant{Val: uint32(snapBytes)})
}

// filterPorts accepts either port's being among those wanted, and else goes on
// behind it.
func filterPorts(ports []int, snapBytes int, source, destination bpf.Instruction) []bpf.Instruction {
	n := len(ports)
	var out []bpf.Instruction
	for i, load := range []bpf.Instruction{source, destination} {
		out = append(out, load)
		for j, p := range ports {
			last := i == 1 && j == n-1
			skip := bpf.JumpIf{Cond: bpf.JumpEqual, Val: uint32(p), SkipTrue: uint8((1-i)*(n+1) + n - 1 - j)}
			if last {
				skip.SkipFalse = 1
			}
			out = append(out, skip)
		}
	}
	return append(out, bpf.RetConstant{Val: uint32(snapBytes)})
}
