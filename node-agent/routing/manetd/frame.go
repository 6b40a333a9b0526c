package manetd

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"time"
	"unsafe"

	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"

	"fieldmesh.dev/fieldmesh/protocols/manet"
)

// framer sends and receives a carrier's IP packets over one interface, each to
// the neighbour that the protocol names, whatever address stands in the packet
// as its destination. The kernel resolves the neighbours' addresses.
type framer struct {
	iface     int
	index     int
	fd        int
	mute      int // a raw socket that keeps the kernel from refusing the protocol's packets
	neighbors *neighbors
	now       func() manet.Time
	lost      func(packets int)     // those that wait no longer
	waiting   *manet.Buffer[[]byte] // for a neighbour's hardware address

	memory    *slab
	in, out   frames
	queued    int    // of out
	delivered []byte // the last packet that came to its end here
}

// frames is a batch of packets with their neighbours' addresses, as the kernel
// takes and gives them.
type frames struct {
	messages [batchPackets]message
	data     [batchPackets]unix.Iovec
	link     [batchPackets]unix.RawSockaddrLinklayer
	packet   [batchPackets][]byte
}

// wire joins the headers of messages to what they are about.
func (f *frames) wire() {
	for i := range f.messages {
		f.messages[i].header = unix.Msghdr{Name: (*byte)(unsafe.Pointer(&f.link[i])),
			Namelen: unix.SizeofSockaddrLinklayer, Iov: &f.data[i]}
		f.messages[i].header.SetIovlen(1)
	}
}

func (f *frames) put(i int, packet []byte) {
	f.packet[i] = packet
	f.data[i].Base = unsafe.SliceData(packet)
	f.data[i].SetLen(len(packet))
}

// What packets may wait in for a neighbour's hardware address. The kernel gives
// one up after 3 s and says so, unless its table is full, or had to let it go:
// who is named as a next hop, but is not there, must fill no memory.
const (
	waitingMax = 16 // packets a neighbour
	waitingAll = 256
	waitingFor = 5 * time.Second
)

// frameBuffer holds as many packets as a TUN device does (500), at about two
// kilobytes of the kernel's memory each; the usual buffer holds 90, and loses
// the rest of every burst.
const frameBuffer = 1 << 20

func openFramer(iface, index, protocol int, n *neighbors, memory *slab, now func() manet.Time,
	lost func(packets int)) (*framer, error) {
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return nil, fmt.Errorf("open packet socket: %w", err)
	}
	if err := setUpFramer(fd, index, protocol); err != nil {
		return nil, errors.Join(err, unix.Close(fd))
	}
	mute, err := unix.Socket(unix.AF_INET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, protocol)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("open raw socket: %w", err), unix.Close(fd))
	}
	// It takes nothing: a full buffer, however small, would have newer kernels
	// refuse the packets all the same.
	if err := attach(mute, bpf.RetConstant{Val: 0}); err != nil {
		return nil, errors.Join(err, unix.Close(fd), unix.Close(mute))
	}
	f := &framer{iface: iface, index: index, fd: fd, mute: mute, memory: memory,
		neighbors: n, now: now, lost: lost, waiting: newWaiting()}
	f.in.wire()
	f.out.wire()
	for i := range f.in.packet {
		f.in.put(i, f.memory.take())
	}
	return f, nil
}

// setUpFramer lets in the protocol's packets alone, and none that this node
// sent.
func setUpFramer(fd, index, protocol int) error {
	err := attach(fd,
		bpf.LoadExtension{Num: bpf.ExtType},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: unix.PACKET_OUTGOING, SkipTrue: 3},
		bpf.LoadAbsolute{Off: 9, Size: 1}, // protocol: RFC 791, section 3.1
		bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: uint32(protocol), SkipTrue: 1},
		bpf.RetConstant{Val: 1 << 16},
		bpf.RetConstant{Val: 0},
	)
	if err != nil {
		return err
	}
	if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, frameBuffer); err != nil {
		return fmt.Errorf("set receive buffer: %w", err)
	}
	if err := unix.Bind(fd, &unix.SockaddrLinklayer{Protocol: networkOrder(unix.ETH_P_IP), Ifindex: index}); err !=
		nil {
		return fmt.Errorf("bind packet socket: %w", err)
	}
	return nil
}

// attach gives a socket a filter of what it lets in.
func attach(fd int, instructions ...bpf.Instruction) error {
	filter, err := bpf.Assemble(instructions)
	if err != nil {
		return fmt.Errorf("assemble filter: %w", err)
	}
	program := make([]unix.SockFilter, 0, len(filter))
	for _, i := range filter {
		program = append(program, unix.SockFilter{Code: i.Op, Jt: i.Jt, Jf: i.Jf, K: i.K})
	}
	err = unix.SetsockoptSockFprog(fd, unix.SOL_SOCKET, unix.SO_ATTACH_FILTER,
		&unix.SockFprog{Len: uint16(len(program)), Filter: &program[0]})
	if err != nil {
		return fmt.Errorf("attach filter: %w", err)
	}
	return nil
}

func networkOrder(v uint16) uint16 {
	return binary.NativeEndian.Uint16(binary.BigEndian.AppendUint16(nil, v))
}

// transmit sends a packet, or keeps it for a moment while the kernel finds the
// neighbour.
func (f *framer) transmit(t manet.Transmit) error {
	if _, _, ok := endpoints(t.Packet); !ok {
		return errors.New("transmit packet: no IPv4")
	}
	seal(t.Packet)
	if !t.To.IsValid() {
		return f.send([6]byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff}, t.Packet)
	}
	if mac, ok := f.neighbors.mac(t.To); ok {
		return f.send(mac, t.Packet)
	}
	f.lost(len(f.waiting.Put(f.now(), t.To, t.Packet)))
	return f.neighbors.ask(t.To)
}

func newWaiting() *manet.Buffer[[]byte] {
	return manet.NewBuffer[[]byte](waitingMax, waitingAll, waitingFor)
}

// seal writes length and checksum of a packet's header.
func seal(packet []byte) {
	binary.BigEndian.PutUint16(packet[2:], uint16(len(packet)))
	packet[10], packet[11] = 0, 0
	binary.BigEndian.PutUint16(packet[10:], checksum(packet[:headerLength(packet)]))
}

// resolved lets what waited for a neighbour go.
func (f *framer) resolved(ip netip.Addr) error {
	mac, ok := f.neighbors.mac(ip)
	if !ok {
		return nil
	}
	var errs []error
	for _, packet := range f.take(ip) {
		errs = append(errs, f.send(mac, packet))
	}
	return errors.Join(errs...)
}

// take removes what waits for a neighbour.
func (f *framer) take(ip netip.Addr) [][]byte {
	f.lost(len(f.waiting.Expire(f.now())))
	return f.waiting.Take(ip)
}

// send puts a packet into the batch that flush sends.
func (f *framer) send(mac [6]byte, packet []byte) error {
	var err error
	if f.queued == batchPackets {
		err = f.flush()
	}
	to := unix.RawSockaddrLinklayer{Family: unix.AF_PACKET, Protocol: networkOrder(unix.ETH_P_IP),
		Ifindex: int32(f.index), Halen: 6}
	copy(to.Addr[:], mac[:])
	f.out.link[f.queued] = to
	f.out.put(f.queued, packet)
	f.queued++
	return err
}

// flush sends the batch. What the device does not take is lost, as it would be
// on the air; the last reason is told.
func (f *framer) flush() error {
	var last error
	for from := 0; from < f.queued; {
		sent, err := sendAllNow(f.fd, f.out.messages[from:f.queued])
		from += sent
		if err != nil {
			last = fmt.Errorf("send frame: %w", err)
			from++
		}
	}
	for i := range f.queued {
		f.memory.put(f.out.packet[i])
		f.out.put(i, nil)
	}
	f.queued = 0
	return last
}

// receive hands on the packets of the protocol that are there. Another call may
// find more.
func (f *framer) receive(take func(manet.Received)) error {
	for i := range f.in.messages {
		f.in.messages[i].header.Namelen = unix.SizeofSockaddrLinklayer
	}
	n, err := receiveAllNow(f.fd, f.in.messages[:])
	if errors.Is(err, unix.EAGAIN) || errors.Is(err, unix.ENETDOWN) {
		// the latter is told once; the interface may come up again
		return nil
	}
	if err != nil {
		return fmt.Errorf("receive frame: %w", err)
	}
	for i := range n {
		packet, link := f.in.packet[i][:f.in.messages[i].bytes], &f.in.link[i]
		if _, _, whole := endpoints(packet); !whole {
			continue
		}
		room := f.in.packet[i]
		f.delivered = nil
		take(manet.Received{Interface: f.iface, From: f.neighbors.ip([6]byte(link.Addr[:6])),
			Overheard: link.Pkttype == unix.PACKET_OTHERHOST, Packet: packet})
		if !sameRoom(f.delivered, room) { // it is used for another packet, or kept
			f.in.put(i, f.memory.take())
		}
	}
	return nil
}

func (f *framer) close() error { return errors.Join(unix.Close(f.fd), unix.Close(f.mute)) }
