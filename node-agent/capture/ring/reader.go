package ring

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"os"

	"golang.org/x/sys/unix"
)

// Offsets in struct tpacket3_hdr, linux/if_packet.h.
const (
	headNext  = 0
	headSec   = 4
	headNsec  = 8
	headSnap  = 12
	headLen   = 16
	headMAC   = 24
	headBytes = 48 // struct tpacket3_hdr
	linkType  = 10 // struct sockaddr_ll behind it: sll_pkttype
)

// Frame is one captured frame. Its data are valid until the function that it is
// given to returns.
type Frame struct {
	TimeNs    int64 // since the epoch, by the wall clock
	WireBytes int
	Outbound  bool
	Data      []byte
}

// Pair makes a connection for a ring: what feeds it, and what its reader reads.
func Pair() (feed *net.UnixConn, read *os.File, err error) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return nil, nil, fmt.Errorf("make connection for frames: %w", err)
	}
	read = os.NewFile(uintptr(fds[1]), "captured frames")
	if feed, err = connection(os.NewFile(uintptr(fds[0]), "frames to pass on")); err != nil {
		return nil, nil, errors.Join(err, read.Close())
	}
	return feed, read, nil
}

// connection makes a connection of a descriptor, which it closes.
func connection(f *os.File) (*net.UnixConn, error) {
	c, err := net.FileConn(f)
	if err = errors.Join(err, f.Close()); err != nil {
		return nil, fmt.Errorf("take connection of frames: %w", err)
	}
	u, ok := c.(*net.UnixConn)
	if !ok {
		return nil, errors.Join(fmt.Errorf("take connection of frames: it is a %T", c), c.Close())
	}
	return u, nil
}

// Reader reads what a ring is given.
type Reader struct {
	conn  *net.UnixConn
	in    *bufio.Reader
	block []byte
}

// NewReader reads from the descriptor that Pair made, which is the reader's from
// then on.
func NewReader(f *os.File) (*Reader, error) {
	conn, err := connection(f)
	if err != nil {
		return nil, err
	}
	return &Reader{conn: conn, in: bufio.NewReaderSize(conn, 64<<10), block: make([]byte, blockBytes)}, nil
}

// End asks for the end: what came before it is still read.
func (r *Reader) End() error { return r.conn.CloseWrite() }

// Close gives up the connection.
func (r *Reader) Close() error { return r.conn.Close() }

// Frames gives take every frame until the end, and returns how many the kernel
// dropped. An error says that frames are missing.
func (r *Reader) Frames(take func(Frame) error) (drops uint64, err error) {
	var head [dropsBytes]byte
	for {
		if _, err := io.ReadFull(r.in, head[:lengthBytes]); err != nil {
			return 0, ended(err)
		}
		length := native.Uint32(head[:])
		if length == 0 {
			if _, err := io.ReadFull(r.in, head[:]); err != nil {
				return 0, ended(err)
			}
			return native.Uint64(head[:]), nil
		}
		if length < descEnd || length > blockBytes {
			return 0, fmt.Errorf("read frames: a block of %d bytes", length)
		}
		block := r.block[:length]
		if _, err := io.ReadFull(r.in, block); err != nil {
			return 0, ended(err)
		}
		if err := walk(block, take); err != nil {
			return 0, err
		}
	}
}

func ended(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return errors.New("read frames: the host process ended the capture")
	}
	return fmt.Errorf("read frames: %w", err)
}

// walk gives a block's frames, without those for other nodes: an interface that
// overhears them has them besides.
func walk(block []byte, take func(Frame) error) error {
	at := int(native.Uint32(block[descFirst:]))
	for left := native.Uint32(block[descCount:]); left > 0; left-- {
		if at < 0 || at+headBytes+linkType >= len(block) {
			return fmt.Errorf("read frames: a frame at byte %d of a block", at)
		}
		h := block[at:]
		first, snap := int(native.Uint16(h[headMAC:])), int(native.Uint32(h[headSnap:]))
		if snap < 0 || snap > len(h) || first+snap > len(h) {
			return fmt.Errorf("read frames: a frame of %d bytes at byte %d of a block", snap, at+first)
		}
		kind := h[headBytes+linkType]
		next := int(native.Uint32(h[headNext:]))
		// Only the last frame has none behind it. An int of 32 bits may not hold it.
		if next < 0 || next > len(block) || next == 0 && left > 1 {
			return fmt.Errorf("read frames: the next frame is %d bytes on", next)
		}
		at += next
		if kind == unix.PACKET_OTHERHOST {
			continue
		}
		if err := take(Frame{
			TimeNs:    int64(native.Uint32(h[headSec:]))*1e9 + int64(native.Uint32(h[headNsec:])),
			WireBytes: int(native.Uint32(h[headLen:])),
			Outbound:  kind == unix.PACKET_OUTGOING,
			Data:      h[first : first+snap],
		}); err != nil {
			return err
		}
	}
	return nil
}
