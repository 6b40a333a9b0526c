package drops

import (
	"encoding/binary"
	"testing"
	"time"

	"github.com/cilium/ebpf/btf"
)

const snmp = `Ip: Forwarding DefaultTTL OutDiscards OutNoRoutes ReasmTimeout
Ip: 1 64 0 17 0
Icmp: InMsgs OutNoRoutes
Icmp: 3 99
`

func TestCounterIsFoundByTableAndName(t *testing.T) {
	for _, c := range []struct {
		table, name string
		want        uint64
		ok          bool
	}{
		{"Ip", "OutNoRoutes", 17, true}, {"Icmp", "OutNoRoutes", 99, true}, {"Ip", "Forwarding", 1, true},
		{"Ip", "InNoRoutes", 0, false}, {"IpExt", "InNoRoutes", 0, false},
	} {
		got, err := find(snmp, c.table, c.name)
		if got != c.want || (err == nil) != c.ok {
			t.Errorf("%s %s: %d, %v", c.table, c.name, got, err)
		}
	}
	if v, err := find("Ip: OutNoRoutes\nIp: many\n", "Ip", "OutNoRoutes"); err == nil {
		t.Errorf("no number is read as %d", v)
	}
	if v, err := find("Ip: A OutNoRoutes\nIp: 1\n", "Ip", "OutNoRoutes"); err == nil {
		t.Errorf("a value that is not there is read as %d", v)
	}
}

func TestMembersAreFoundInsideNamelessOnes(t *testing.T) {
	u32 := &btf.Int{Name: "u32", Size: 4}
	inner := &btf.Struct{Members: []btf.Member{{Name: "a", Type: u32}, {Name: "b", Type: u32, Offset: 32}}, Size: 8}
	outer := &btf.Struct{Name: "outer", Size: 16, Members: []btf.Member{
		{Name: "first", Type: u32},
		{Type: &btf.Union{Size: 8, Members: []btf.Member{{Type: inner}}}, Offset: 64},
	}}
	m, found := member(outer, "b")
	if !found || m.Offset.Bytes() != 12 {
		t.Errorf("b at %d, found %v, want 12", m.Offset.Bytes(), found)
	}
	if _, found := member(outer, "c"); found {
		t.Error("a member is found that is not there")
	}
}

func TestAPacketWithoutHeaderGetsItsAddresses(t *testing.T) {
	l := layout{localNoRoute: 54}
	l.number([]btf.EnumValue{{Name: "SKB_DROP_REASON_IP_OUTNOROUTES", Value: 54}, {Name: "SKB_DROP_REASON_NEIGH_FAILED",
		Value: 58}, {Name: "SKB_DROP_REASON_TCP_CSUM", Value: 10}})
	e := event{BootNs: 5e9, Netns: 7, Reason: 54, Protocol: 6, Local: 1, Length: 532, Saddr: [4]byte{10, 0, 0, 1},
		Daddr: [4]byte{10, 0, 0, 2}}
	binary.BigEndian.PutUint32(e.Bytes[4:], 12345)
	d, known := l.drop(e)
	if !known || d.Reason != NoRoute || d.Netns != 7 || d.Boot != 5*time.Second {
		t.Fatalf("%+v, known %v", d, known)
	}
	if d.Packet[0] != 0x45 || d.Packet[9] != 6 || [4]byte(d.Packet[12:]) != e.Saddr || [4]byte(d.Packet[16:]) !=
		e.Daddr || binary.BigEndian.Uint32(d.Packet[24:]) != 12345 || binary.BigEndian.Uint16(d.Packet[2:]) != 552 {
		t.Errorf("packet % x", d.Packet)
	}
	e.Reason, e.Local = 58, 0
	if d, known := l.drop(e); !known || d.Reason != NoNeighbour || len(d.Packet) != packetBytes {
		t.Errorf("%+v, known %v", d, known)
	}
	e.Reason = 10
	if d, known := l.drop(e); known {
		t.Errorf("a drop that is not ours is told: %+v", d)
	}
}
