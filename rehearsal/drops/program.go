package drops

import (
	"fmt"

	"github.com/cilium/ebpf/asm"
	"golang.org/x/sys/unix"
)

// event is what the program sends for a packet; the bytes are in the order of
// the machine but for those of addresses and packet, which are the network's.
type event struct {
	BootNs   uint64
	Netns    uint32
	Reason   uint32
	Protocol uint16 // of the socket, when Local
	Local    uint16 // 1: Bytes begins with the transport's header
	Saddr    [4]byte
	Daddr    [4]byte
	Length   uint32 // of the transport's header and payload, when Local
	Bytes    [packetBytes]byte
}

const (
	packetBytes = 64 // an IPv4 header is at most 60 long, without options TCP's is 20
	eventBytes  = 32 + packetBytes

	// The event and what else the program keeps on its stack, from its top.
	atEvent    = -eventBytes
	atBoot     = atEvent
	atNetns    = atEvent + 8
	atReason   = atEvent + 12
	atProtocol = atEvent + 16
	atLocal    = atEvent + 18
	atSaddr    = atEvent + 20
	atDaddr    = atEvent + 24
	atLength   = atEvent + 28
	atBytes    = atEvent + 32
	atPointer  = atEvent - 8
)

// The program's registers that calls leave alone.
const (
	regPacket  = asm.R6 // struct sk_buff *
	regReason  = asm.R7 // the kernel's
	regPointer = asm.R8 // whatever was followed last
	regCounts  = asm.R9 // of this namespace, by Reason
)

// program follows raw tracepoint kfree_skb, whose arguments are the packet, the
// place in the kernel, and the reason. It passes over all but our reasons in a
// few instructions, and over all namespaces but those in the map.
func (l layout) program(namespaces, events int) asm.Instructions {
	p := asm.Instructions{
		asm.LoadMem(regPacket, asm.R1, 0, asm.DWord),
		asm.LoadMem(regReason, asm.R1, 16, asm.DWord),
	}
	for reason := range reasons {
		for _, number := range l.reason[reason] {
			p = append(p, asm.JEq.Imm32(regReason, number, "ours"))
		}
	}
	p = append(p, asm.Ja.Label("exit"))
	p = append(p, l.findNamespace(namespaces)...)
	p = append(p, l.unreachable()...)
	p = append(p, l.count()...)
	p = append(p, l.fill()...)
	p = append(p,
		asm.LoadMapPtr(asm.R1, events),
		asm.Mov.Reg(asm.R2, asm.RFP), asm.Add.Imm(asm.R2, atEvent),
		asm.Mov.Imm(asm.R3, eventBytes),
		asm.Mov.Imm(asm.R4, 0),
		asm.FnRingbufOutput.Call(), // a full buffer loses the event; the count has it
		asm.Mov.Imm(asm.R0, 0).WithSymbol("exit"),
		asm.Return(),
	)
	return p
}

// follow reads the pointer at an offset of regPointer's into regPointer.
func follow(offset int16) asm.Instructions {
	return append(fetch(atPointer, 8, offset), asm.LoadMem(regPointer, asm.RFP, atPointer, asm.DWord))
}

// fetch copies bytes at an offset of regPointer's onto the stack; what cannot
// be read becomes zero.
func fetch(to int16, bytes int32, offset int16) asm.Instructions {
	return asm.Instructions{
		asm.Mov.Reg(asm.R1, asm.RFP), asm.Add.Imm(asm.R1, int32(to)),
		asm.Mov.Imm(asm.R2, bytes),
		asm.Mov.Reg(asm.R3, regPointer), asm.Add.Imm(asm.R3, int32(offset)),
		asm.FnProbeReadKernel.Call(),
	}
}

// findNamespace leaves the counts of the packet's namespace in regCounts: that
// of its device or, before it has one, of its socket.
func (l layout) findNamespace(namespaces int) asm.Instructions {
	p := asm.Instructions{asm.Mov.Reg(regPointer, regPacket).WithSymbol("ours")}
	p = append(p, follow(l.skbDev)...)
	p = append(p, asm.JEq.Imm(regPointer, 0, "no device"))
	p = append(p, follow(l.devNet)...)
	p = append(p, asm.Ja.Label("namespace"))
	p = append(p, asm.Mov.Reg(regPointer, regPacket).WithSymbol("no device"))
	p = append(p, follow(l.skbSock)...)
	p = append(p, asm.JEq.Imm(regPointer, 0, "exit"))
	p = append(p, follow(l.sockNet)...)
	read := fetch(atNetns, 4, l.netInode)
	read[0] = read[0].WithSymbol("namespace")
	p = append(p, read...)
	return append(p,
		asm.LoadMapPtr(asm.R1, namespaces),
		asm.Mov.Reg(asm.R2, asm.RFP), asm.Add.Imm(asm.R2, atNetns),
		asm.FnMapLookupElem.Call(),
		asm.JEq.Imm(asm.R0, 0, "exit"),
		asm.Mov.Reg(regCounts, asm.R0),
	)
}

// count adds one to the namespace's count of the reason.
func (l layout) count() asm.Instructions {
	var p asm.Instructions
	for reason := range reasons {
		for _, number := range l.reason[reason] {
			other := fmt.Sprintf("not %d", number)
			p = append(p,
				asm.JNE.Imm32(regReason, number, other),
				asm.Add.Imm(regCounts, 8*int32(reason)),
				asm.Mov.Imm(asm.R1, 1).WithSymbol(other))
		}
	}
	return append(p, asm.StoreXAdd(regCounts, asm.R1, asm.DWord))
}

// unreachable continues with a drop for which the kernel gives no reason only
// when the packet's route is one that says "unreachable". It uses the event's
// place on the stack, which is written later.
func (l layout) unreachable() asm.Instructions {
	const sure = "sure"
	var p asm.Instructions
	for _, number := range l.reason[Unreachable] {
		p = append(p, asm.JNE.Imm32(regReason, number, sure))
	}
	p = append(p, asm.Mov.Reg(regPointer, regPacket))
	p = append(p, follow(l.skbRoute)...)
	p = append(p, asm.And.Imm(regPointer, ^1)) // SKB_DST_NOREF
	p = append(p, asm.JEq.Imm(regPointer, 0, "exit"))
	p = append(p, asm.StoreImm(asm.RFP, atBytes, 0, asm.Word))
	p = append(p, fetch(atBytes, 2, l.routeError)...)
	return append(p,
		asm.LoadMem(asm.R1, asm.RFP, atBytes, asm.Half),
		asm.JNE.Imm(asm.R1, int32(unix.EHOSTUNREACH), "exit"), // positive in a route of input
		asm.Mov.Imm(asm.R1, 0).WithSymbol(sure),
	)
}

// fill writes the event: from the socket where there is no IP header yet, else
// from the packet.
func (l layout) fill() asm.Instructions {
	p := asm.Instructions{
		asm.FnKtimeGetBootNs.Call(),
		asm.StoreMem(asm.RFP, atBoot, asm.R0, asm.DWord),
		asm.StoreMem(asm.RFP, atReason, regReason, asm.Word),
	}
	for at := int16(atProtocol); at < atBytes; at += 4 {
		p = append(p, asm.StoreImm(asm.RFP, at, 0, asm.Word))
	}
	p = append(p, asm.JNE.Imm32(regReason, l.localNoRoute, "has header"))
	p = append(p, asm.Mov.Reg(regPointer, regPacket))
	p = append(p, follow(l.skbSock)...)
	p = append(p, asm.JEq.Imm(regPointer, 0, "exit"))
	p = append(p, asm.StoreImm(asm.RFP, atLocal, 1, asm.Half))
	p = append(p, fetch(atProtocol, 2, l.sockProtocol)...)
	p = append(p, fetch(atSaddr, 4, l.sockSaddr)...)
	p = append(p, fetch(atDaddr, 4, l.sockDaddr)...)
	p = append(p, asm.Mov.Reg(regPointer, regPacket))
	p = append(p, fetch(atLength, 4, l.skbLen)...)
	p = append(p, follow(l.skbData)...)
	p = append(p, fetch(atBytes, packetBytes, 0)...)
	p = append(p, asm.Ja.Label("send"))

	p = append(p, asm.Mov.Reg(regPointer, regPacket).WithSymbol("has header"))
	p = append(p, asm.StoreImm(asm.RFP, atPointer, 0, asm.Word), asm.StoreImm(asm.RFP, atPointer+4, 0, asm.Word))
	p = append(p, fetch(atPointer, 2, l.skbNetworkHeader)...)
	p = append(p, asm.LoadMem(regCounts, asm.RFP, atPointer, asm.Half)) // counted: the register is free
	p = append(p, follow(l.skbHead)...)
	p = append(p, asm.Add.Reg(regPointer, regCounts))
	p = append(p, fetch(atBytes, packetBytes, 0)...)
	return append(p, asm.Mov.Imm(asm.R0, 0).WithSymbol("send"))
}
