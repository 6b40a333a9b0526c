package capture

import (
	"encoding/binary"
	"fmt"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"
)

// The kernel writes frames into a ring of blocks that this process maps
// (packet(7), TPACKET_V3): no call and no copy per frame, and a block is handed
// over when it is full or after retireMs.
const (
	blockBytes = 256 << 10
	blocks     = 32 // 8 MiB: 50,000 frames of 96 bytes
	retireMs   = 50
	frameBytes = 2048 // what the kernel wants to be told; blocks of this version hold frames of any length
)

// Offsets in struct tpacket_block_desc and struct tpacket3_hdr, linux/if_packet.h.
const (
	descStatus = 8
	descCount  = 12
	descFirst  = 16

	headNext  = 0
	headSec   = 4
	headNsec  = 8
	headSnap  = 12
	headLen   = 16
	headMAC   = 24
	headBytes = 48 // struct tpacket3_hdr
	linkType  = 10 // struct sockaddr_ll behind it: sll_pkttype
)

var native = binary.NativeEndian

// frame is one captured frame; its data are the ring's until the block goes back.
type frame struct {
	timeNs    int64
	wireBytes int
	outbound  bool
	data      []byte
}

// ring is a mapped ring of a packet socket.
type ring struct {
	fd    int
	mem   []byte
	next  int // the block that is handed over next
	drops uint64
}

func openRing(fd int) (*ring, error) {
	if err := unix.SetsockoptInt(fd, unix.SOL_PACKET, unix.PACKET_VERSION, unix.TPACKET_V3); err != nil {
		return nil, fmt.Errorf("ask for a ring of version 3: %w", err)
	}
	req := unix.TpacketReq3{Block_size: blockBytes, Block_nr: blocks, Frame_size: frameBytes,
		Frame_nr: blocks * (blockBytes / frameBytes), Retire_blk_tov: retireMs}
	if err := unix.SetsockoptTpacketReq3(fd, unix.SOL_PACKET, unix.PACKET_RX_RING, &req); err != nil {
		return nil, fmt.Errorf("make ring of %d MiB: %w", blockBytes*blocks>>20, err)
	}
	mem, err := unix.Mmap(fd, 0, blockBytes*blocks, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return nil, fmt.Errorf("map ring: %w", err)
	}
	r := &ring{fd: fd, mem: mem}
	return r, r.countDrops() // what came before the ring was there is no loss
}

func (r *ring) close() error {
	if err := unix.Munmap(r.mem); err != nil {
		return fmt.Errorf("unmap ring: %w", err)
	}
	return nil
}

// countDrops adds what the kernel dropped since it was asked last.
func (r *ring) countDrops() error {
	st, err := unix.GetsockoptTpacketStatsV3(r.fd, unix.SOL_PACKET, unix.PACKET_STATISTICS)
	if err != nil {
		return fmt.Errorf("count drops: %w", err)
	}
	r.drops += uint64(st.Drops)
	return nil
}

// drain takes every block that is there.
func (r *ring) drain(take func(frame) error) error {
	for {
		block := r.mem[r.next*blockBytes : (r.next+1)*blockBytes]
		status := (*uint32)(unsafe.Pointer(&block[descStatus]))
		if atomic.LoadUint32(status)&unix.TP_STATUS_USER == 0 {
			return nil
		}
		err := walk(block, take)
		atomic.StoreUint32(status, unix.TP_STATUS_KERNEL)
		if err != nil {
			return err
		}
		r.next = (r.next + 1) % blocks
	}
}

// walk gives a block's frames.
func walk(block []byte, take func(frame) error) error {
	at := int(native.Uint32(block[descFirst:]))
	for range native.Uint32(block[descCount:]) {
		if at < 0 || at+headBytes+linkType >= len(block) {
			return fmt.Errorf("read ring: a frame at byte %d of a block", at)
		}
		h := block[at:]
		first, snap := int(native.Uint16(h[headMAC:])), int(native.Uint32(h[headSnap:]))
		if first+snap > len(h) {
			return fmt.Errorf("read ring: a frame of %d bytes at byte %d of a block", snap, at+first)
		}
		if err := take(frame{
			timeNs:    int64(native.Uint32(h[headSec:]))*1e9 + int64(native.Uint32(h[headNsec:])),
			wireBytes: int(native.Uint32(h[headLen:])),
			outbound:  h[headBytes+linkType] == unix.PACKET_OUTGOING,
			data:      h[first : first+snap],
		}); err != nil {
			return err
		}
		at += int(native.Uint32(h[headNext:]))
	}
	return nil
}
