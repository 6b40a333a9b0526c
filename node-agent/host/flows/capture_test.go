package flows

import (
	"encoding/binary"
	"fmt"
	"slices"
	"testing"

	"golang.org/x/net/bpf"
)

// frame is an Ethernet frame of an IP packet with two ports behind its header.
func frame(version, protocol, options, source, destination int, fragment uint16) []byte {
	f := make([]byte, 12, 200)
	if version == 6 {
		f = append(f, 0x86, 0xdd)
		ip := make([]byte, 40)
		ip[0], ip[6] = 0x60, byte(protocol)
		f = append(f, ip...)
	} else {
		f = append(f, 0x08, 0)
		ip := make([]byte, 20+options)
		ip[0], ip[9] = 0x40|byte(5+options/4), byte(protocol)
		binary.BigEndian.PutUint16(ip[6:], fragment)
		f = append(f, ip...)
	}
	f = binary.BigEndian.AppendUint16(f, uint16(source))
	f = binary.BigEndian.AppendUint16(f, uint16(destination))
	return append(f, make([]byte, 60)...)
}

func upTo(n int) (out []int) {
	for i := range n {
		out = append(out, i)
	}
	return out
}

// filter is a packet filter that can be run, and its text.
func filter(t *testing.T, ports []int, bareIP bool) (*bpf.VM, string) {
	t.Helper()
	raw, text, err := packetFilter(ports, 96, bareIP)
	if err != nil {
		t.Fatal(err)
	}
	program := make([]bpf.Instruction, len(raw))
	for i := range raw {
		program[i] = raw[i].Disassemble()
	}
	vm, err := bpf.NewVM(program)
	if err != nil {
		t.Fatal(err)
	}
	return vm, text
}

func TestFilterTakesFlowsAndRouting(t *testing.T) {
	const tcp, udp, icmp = 6, 17, 1
	ether := func(kind uint16) []byte {
		return append(binary.BigEndian.AppendUint16(make([]byte, 12), kind), make([]byte, 60)...)
	}
	many := make([]int, 64)
	for i := range many {
		many[i] = 5000 + 7*i
	}
	for _, ports := range [][]int{nil, {5000}, {5000, 5007, 5000}, many} {
		vm, text := filter(t, ports, false)
		check := func(what string, f []byte, want bool) {
			n, err := vm.Run(f)
			if err != nil || (n == 96) != want || n != 0 && n != 96 {
				t.Errorf("ports %v (%.60s): %s: %d bytes, %v; wanted: %v", ports, text, what, n, err, want)
			}
		}
		wanted := map[int]bool{269: true, 654: true, 698: true, 6696: true, 49654: true, 49655: true}
		for _, p := range ports {
			wanted[p] = true
		}
		for _, port := range slices.Concat(upTo(8000), []int{49653, 49654, 49655, 49656}) {
			for _, version := range []int{4, 6} {
				check(fmt.Sprint("to port ", port, " by IPv", version), frame(version, tcp, 0, 40000, port, 0),
					wanted[port])
				check(fmt.Sprint("from port ", port, " by IPv", version), frame(version, udp, 0, port, 40000, 0),
					wanted[port])
			}
		}
		check("a header with options", frame(4, tcp, 12, 698, 1, 0), true)
		check("the last port of all", frame(4, tcp, 0, 1, 49655, 0x4000), true)
		check("a later fragment", frame(4, udp, 0, 698, 698, 100), false)
		check("ICMP", frame(4, icmp, 0, 698, 698, 0), false)
		check("ICMPv6", frame(6, 58, 0, 698, 698, 0), false)
		check("DSR", frame(4, 48, 0, 0, 0, 0), true)
		check("MANET over IPv6", frame(6, 138, 0, 0, 0, 0), true)
		check("ARP", ether(0x0806), true)
		check("batman-adv", ether(0x4305), true)
		check("LLDP", ether(0x88cc), false)
	}
}

// What a TUN device gives begins with the IP header.
func TestFilterTakesFlowsOfBareIP(t *testing.T) {
	vm, _ := filter(t, []int{5000}, true)
	for name, c := range map[string]struct {
		packet []byte
		want   int
	}{
		"a flow's":        {frame(4, 6, 0, 40000, 5000, 0)[14:], 96},
		"a server's":      {frame(4, 17, 12, 5000, 40000, 0)[14:], 96},
		"another's":       {frame(4, 6, 0, 40000, 5001, 0)[14:], 0},
		"of IPv6":         {frame(6, 6, 0, 40000, 5000, 0)[14:], 0},
		"a late fragment": {frame(4, 17, 0, 5000, 5000, 100)[14:], 0},
		"of ICMP":         {frame(4, 1, 0, 5000, 5000, 0)[14:], 0},
	} {
		if n, err := vm.Run(c.packet); err != nil || n != c.want {
			t.Errorf("%s: %d bytes, %v, want %d", name, n, err, c.want)
		}
	}
}
