// Package ring passes captured frames from the process that may listen to one
// that may not. The first keeps the packet socket, empties the kernel's ring of
// frames and looks at none of them; the second can only read, and ask for the
// end. What a file of a capture looks like stays out.
package ring

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"os"
	"sync/atomic"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// The kernel writes frames into a ring of blocks that this process maps
// (packet(7), TPACKET_V3): no call and no copy per frame, and a block is handed
// over when it is full or after retire.
const (
	blockBytes = 256 << 10
	blocks     = 32 // 8 MiB: 50,000 frames of 96 bytes
	retire     = 50 * time.Millisecond
	frameBytes = 2048 // what the kernel wants to be told; blocks of this version hold frames of any length
)

// Offsets in struct tpacket_block_desc, linux/if_packet.h.
const (
	descStatus = 8
	descCount  = 12
	descFirst  = 16
	descBytes  = 20 // blk_len: the valid bytes
	descEnd    = 48
)

// On the connection a block is its length (4 bytes) and that much of its memory,
// both in the machine's own byte order. A length of 0 is the end; the number of
// frames that the kernel dropped follows it (8 bytes).
const (
	lengthBytes = 4
	dropsBytes  = 8
)

var native = binary.NativeEndian

// drainEvery is how often the ring is emptied. It is not waited for in a system
// call: while one lasts, Go's runtime looks after it every 20 µs to some ms, some
// hundred times a second. The ring holds 1.6 s even where every block goes over when retire is up.
const drainEvery = 200 * time.Millisecond

// patience is how long a reader may leave a block unread.
const patience = 30 * time.Second

// Ring is a mapped ring of a packet socket.
type Ring struct {
	sock  *os.File
	mem   []byte
	next  int // the block that is handed over next
	drops uint64
}

// Open gives a bound packet socket a ring. The socket is the ring's from then on,
// and closed by it, also with an error.
func Open(sock *os.File) (*Ring, error) {
	r := &Ring{sock: sock}
	if err := r.open(); err != nil {
		return nil, errors.Join(err, r.Close())
	}
	return r, nil
}

func (r *Ring) open() error {
	fd := int(r.sock.Fd())
	if err := unix.SetsockoptInt(fd, unix.SOL_PACKET, unix.PACKET_VERSION, unix.TPACKET_V3); err != nil {
		return fmt.Errorf("ask for a ring of version 3: %w", err)
	}
	req := unix.TpacketReq3{Block_size: blockBytes, Block_nr: blocks, Frame_size: frameBytes,
		Frame_nr: blocks * (blockBytes / frameBytes), Retire_blk_tov: uint32(retire.Milliseconds())}
	if err := unix.SetsockoptTpacketReq3(fd, unix.SOL_PACKET, unix.PACKET_RX_RING, &req); err != nil {
		return fmt.Errorf("make ring of %d MiB: %w", blockBytes*blocks>>20, err)
	}
	var err error
	if r.mem, err = unix.Mmap(fd, 0, blockBytes*blocks, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED); err != nil {
		return fmt.Errorf("map ring: %w", err)
	}
	if err := r.countDrops(); err != nil {
		return err
	}
	r.drops = 0 // what came before the ring was there is no loss
	return nil
}

// Close gives back the ring and its socket.
func (r *Ring) Close() error {
	var err error
	if r.mem != nil {
		err = unix.Munmap(r.mem)
	}
	if err = errors.Join(err, r.sock.Close()); err != nil {
		return fmt.Errorf("close ring: %w", err)
	}
	return nil
}

// countDrops adds what the kernel dropped since it was asked last.
func (r *Ring) countDrops() error {
	st, err := unix.GetsockoptTpacketStatsV3(int(r.sock.Fd()), unix.SOL_PACKET, unix.PACKET_STATISTICS)
	if err != nil {
		return fmt.Errorf("count drops: %w", err)
	}
	r.drops += uint64(st.Drops)
	return nil
}

// Feed gives a Reader what the ring gets, until the reader asks for the end, is
// gone, or ctx ends. After the first it gives what the kernel still holds, and the
// number of drops. It closes the connection.
func (r *Ring) Feed(ctx context.Context, to *net.UnixConn) (err error) {
	defer func() {
		if errors.Is(err, unix.EPIPE) || errors.Is(err, unix.ECONNRESET) { // the reader is gone
			err = nil
		}
		err = errors.Join(err, to.Close())
	}()
	stop := context.AfterFunc(ctx, func() { _ = to.SetDeadline(time.Unix(1, 0)) }) // fails only when closed
	defer stop()
	asked := make(chan struct{})
	go func() {
		defer close(asked)
		_, _ = to.Read(make([]byte, 1)) // returns at the reader's end, whichever way it came, or at ours
	}()
	ticker := time.NewTicker(drainEvery)
	defer ticker.Stop()
	for ended := false; !ended; {
		err := r.drain(to)
		if ctx.Err() != nil {
			return nil // without an end, which tells the reader that something is amiss
		}
		if err != nil {
			return err
		}
		select {
		case <-ctx.Done():
		case <-asked:
			ended = ctx.Err() == nil
		case <-ticker.C:
		}
	}
	// A block that is not full is handed over after retire; two of them are certain.
	time.Sleep(2 * retire)
	if err := errors.Join(r.drain(to), r.countDrops()); err != nil {
		return err
	}
	end := make([]byte, lengthBytes, lengthBytes+dropsBytes)
	return write(to, native.AppendUint64(end, r.drops))
}

// drain gives every block that is there.
func (r *Ring) drain(to *net.UnixConn) error {
	if err := to.SetWriteDeadline(time.Now().Add(patience)); err != nil {
		return fmt.Errorf("pass frames on: %w", err)
	}
	for {
		block := r.mem[r.next*blockBytes : (r.next+1)*blockBytes]
		status := (*uint32)(unsafe.Pointer(&block[descStatus]))
		if atomic.LoadUint32(status)&unix.TP_STATUS_USER == 0 {
			return nil
		}
		valid := min(native.Uint32(block[descBytes:]), blockBytes)
		err := write(to, native.AppendUint32(nil, valid), block[:valid])
		atomic.StoreUint32(status, unix.TP_STATUS_KERNEL)
		if err != nil {
			return err
		}
		r.next = (r.next + 1) % blocks
	}
}

func write(to *net.UnixConn, parts ...[]byte) error {
	for _, p := range parts {
		if _, err := to.Write(p); err != nil {
			return fmt.Errorf("pass frames on: %w", err)
		}
	}
	return nil
}
