package tcp

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/ringbuf"
	"golang.org/x/sys/unix"
)

// EventKind is what a connection did, by the numbers of events.bpf.c.
type EventKind uint32

// What is reported about. A failed retransmission never left the node: no
// route, say.
const (
	Retransmission EventKind = iota + 1
	FailedRetransmission
	Timeout
	Recovery
	RecoveryEnd
)

// Event is something that a connection did about a loss, at a moment of the
// boot clock.
type Event struct {
	BootNs           int64
	Cookie           uint64 // the socket's
	Kind             EventKind
	Count            uint32 // segments of a retransmission; else 1
	Seq              uint32 // of a retransmission's first byte; else the first that is not acknowledged
	CwndSegments     uint32 // when it happened
	SsthreshSegments uint32
	Local, Remote    netip.AddrPort
}

// eventBytes is the size of struct event of events.bpf.c.
const eventBytes = 80

// EventReader reads the ring buffer of an EventTrace; it needs no privileges.
type EventReader struct {
	ring       *ebpf.Map
	reader     *ringbuf.Reader
	record     ringbuf.Record
	read, next uint32 // events; the number after the highest
}

// NewEventReader takes what EventTrace.Ring gave; the file is closed, also with
// an error.
func NewEventReader(file *os.File) (*EventReader, error) {
	defer file.Close() // what is opened here is a copy
	fd, err := unix.FcntlInt(file.Fd(), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("copy ring buffer: %w", err)
	}
	ring, err := ebpf.NewMapFromFD(fd)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("open ring buffer: %w", err), unix.Close(fd))
	}
	reader, err := ringbuf.NewReader(ring)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("read ring buffer: %w", err), ring.Close())
	}
	reader.SetDeadline(time.Unix(1, 0)) // never waits
	return &EventReader{ring: ring, reader: reader}, nil
}

// Read tells each event that has come since the last call, in the kernel's
// order, and does not wait for any.
func (r *EventReader) Read(tell func(Event)) error {
	for {
		err := r.reader.ReadInto(&r.record)
		if errors.Is(err, os.ErrDeadlineExceeded) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("read events of TCP: %w", err)
		}
		e, number, err := decodeEvent(r.record.RawSample)
		if err != nil {
			return err
		}
		r.read, r.next = r.read+1, max(r.next, number+1)
		tell(e)
	}
}

// Lost is how many events found no room in the ring buffer, as far as a later
// one tells.
func (r *EventReader) Lost() uint32 { return r.next - r.read }

// Close gives the ring buffer back.
func (r *EventReader) Close() error {
	return errors.Join(r.reader.Close(), r.ring.Close())
}

// decodeEvent reads struct event of events.bpf.c, in the machine's byte order.
func decodeEvent(b []byte) (Event, uint32, error) {
	if len(b) < eventBytes {
		return Event{}, 0, fmt.Errorf("decode event of TCP: %d bytes, want %d", len(b), eventBytes)
	}
	word := func(at int) uint32 { return binary.NativeEndian.Uint32(b[at:]) }
	e := Event{
		BootNs: int64(binary.NativeEndian.Uint64(b)), Cookie: binary.NativeEndian.Uint64(b[8:]),
		Kind: EventKind(word(20)), Count: word(24), Seq: word(28), CwndSegments: word(32), SsthreshSegments: word(36),
	}
	end := func(address []byte, port int) netip.AddrPort {
		a := netip.AddrFrom4([4]byte(address))
		if word(40) == unix.AF_INET6 {
			a = netip.AddrFrom16([16]byte(address)).Unmap()
		}
		return netip.AddrPortFrom(a, binary.NativeEndian.Uint16(b[port:]))
	}
	e.Local, e.Remote = end(b[48:64], 44), end(b[64:80], 46)
	return e, word(16), nil
}
