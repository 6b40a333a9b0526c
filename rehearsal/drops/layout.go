package drops

import (
	"fmt"
	"math"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/btf"
)

// layout is where the running kernel keeps what the program reads: offsets in
// bytes, and its numbers for the reasons. Both differ from kernel to kernel;
// the kernel's own type information (BTF) tells.
type layout struct {
	skbDev, skbSock, skbHead, skbData, skbLen, skbNetworkHeader int16
	skbRoute, routeError                                        int16
	devNet, sockNet, netInode                                   int16
	sockDaddr, sockSaddr, sockProtocol                          int16
	reason                                                      map[Reason][]int32
	localNoRoute                                                int32
}

// kernelReasons are the kernel's names for ours (include/net/dropreason-core.h).
var kernelReasons = map[Reason][]string{
	NoRoute:     {"SKB_DROP_REASON_IP_OUTNOROUTES", "SKB_DROP_REASON_IP_INNOROUTES"},
	Unreachable: {"SKB_DROP_REASON_NOT_SPECIFIED"}, // and the packet's route has an error: see layout.unreachable
	NoNeighbour: {"SKB_DROP_REASON_NEIGH_FAILED", "SKB_DROP_REASON_NEIGH_QUEUEFULL"},
}

// localNoRoute is the reason of a packet that has no IP header yet.
const localNoRoute = "SKB_DROP_REASON_IP_OUTNOROUTES"

func kernelLayout() (layout, error) {
	spec, err := btf.LoadKernelSpec()
	if err != nil {
		return layout{}, fmt.Errorf("read the kernel's types: %w", err)
	}
	var l layout
	for _, want := range []struct {
		to   *int16
		in   string
		path []string
	}{
		{&l.skbDev, "sk_buff", []string{"dev"}},
		{&l.skbSock, "sk_buff", []string{"sk"}},
		{&l.skbHead, "sk_buff", []string{"head"}},
		{&l.skbData, "sk_buff", []string{"data"}},
		{&l.skbLen, "sk_buff", []string{"len"}},
		{&l.skbNetworkHeader, "sk_buff", []string{"network_header"}},
		{&l.skbRoute, "sk_buff", []string{"_skb_refdst"}},
		{&l.routeError, "dst_entry", []string{"error"}},
		{&l.devNet, "net_device", []string{"nd_net", "net"}},
		{&l.sockNet, "sock", []string{"__sk_common", "skc_net", "net"}},
		{&l.sockDaddr, "sock", []string{"__sk_common", "skc_daddr"}},
		{&l.sockSaddr, "sock", []string{"__sk_common", "skc_rcv_saddr"}},
		{&l.sockProtocol, "sock", []string{"sk_protocol"}},
		{&l.netInode, "net", []string{"ns", "inum"}},
	} {
		if *want.to, err = offset(spec, want.in, want.path); err != nil {
			return layout{}, err
		}
	}
	var enum *btf.Enum
	if err := spec.TypeByName("skb_drop_reason", &enum); err != nil {
		return layout{}, fmt.Errorf("find the kernel's reasons of drops: %w", err)
	}
	l.number(enum.Values)
	if l.localNoRoute == 0 || len(l.reason[NoRoute]) == 0 {
		return layout{}, fmt.Errorf("find the kernel's reasons of drops: this kernel has none for a missing route: %w",
			ebpf.ErrNotSupported)
	}
	return l, nil
}

// number takes those of the reasons that the kernel has.
func (l *layout) number(values []btf.EnumValue) {
	l.reason = map[Reason][]int32{}
	for _, v := range values {
		if v.Name == localNoRoute {
			l.localNoRoute = int32(v.Value)
		}
		for reason, names := range kernelReasons {
			for _, name := range names {
				if v.Name == name {
					l.reason[reason] = append(l.reason[reason], int32(v.Value))
				}
			}
		}
	}
}

func offset(spec *btf.Spec, in string, path []string) (int16, error) {
	var s *btf.Struct
	if err := spec.TypeByName(in, &s); err != nil {
		return 0, fmt.Errorf("find the kernel's struct %q: %w", in, err)
	}
	var bits btf.Bits
	var at btf.Type = s
	for _, name := range path {
		m, found := member(at, name)
		if !found {
			return 0, fmt.Errorf("find member %q of the kernel's struct %q: it is not there", name, in)
		}
		bits += m.Offset
		at = m.Type
	}
	bytes := bits.Bytes()
	if bytes > math.MaxInt16 {
		return 0, fmt.Errorf("find member %q of the kernel's struct %q: %d bytes in is too far", path, in, bytes)
	}
	return int16(bytes), nil
}

// member finds a member by name, also inside members that have none.
func member(of btf.Type, name string) (btf.Member, bool) {
	var members []btf.Member
	switch t := btf.UnderlyingType(of).(type) {
	case *btf.Struct:
		members = t.Members
	case *btf.Union:
		members = t.Members
	}
	for _, m := range members {
		if m.Name == name {
			return m, true
		}
		if m.Name != "" {
			continue
		}
		if inner, found := member(m.Type, name); found {
			inner.Offset += m.Offset
			return inner, true
		}
	}
	return btf.Member{}, false
}
