package pcapng

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/bits"
)

// Reader reads a capture block by block. Its memory does not grow with the
// capture.
type Reader struct {
	r          *bufio.Reader
	order      binary.ByteOrder
	interfaces []described
	counts     Counts
	offset     int64 // of the block being read
	next       int64 // of the one after it
	packets    int
	buf        []byte
}

// described is an interface with what its packets' times mean.
type described struct {
	Interface
	perSecond uint64 // units of time in a second
	offsetS   int64
}

// NewReader reads a capture's beginning. What is not a capture is a
// *CorruptError.
func NewReader(r io.Reader) (*Reader, error) {
	out := &Reader{r: bufio.NewReaderSize(r, 256<<10), order: binary.LittleEndian}
	head, err := out.r.Peek(4)
	if err != nil || native.Uint32(head) != blockSection {
		if err != nil && !errors.Is(err, io.EOF) {
			return nil, fmt.Errorf("read capture: %w", err)
		}
		return nil, out.corrupt("it does not begin with a section header: this is not a pcapng file")
	}
	return out, nil
}

// Interfaces are those that were described so far.
func (r *Reader) Interfaces() []Interface {
	out := make([]Interface, len(r.interfaces))
	for i, d := range r.interfaces {
		out[i] = d.Interface
	}
	return out
}

// Counts are what the capture has said of itself so far.
func (r *Reader) Counts() Counts { return r.counts }

// Offset is where the last packet's block begins.
func (r *Reader) Offset() int64 { return r.offset }

func (r *Reader) corrupt(format string, args ...any) error {
	return &CorruptError{Offset: r.offset, Packet: r.packets, Reason: fmt.Sprintf(format, args...)}
}

// Next reads the next packet into p; io.EOF says that there is none, and that
// the capture ended between two blocks.
func (r *Reader) Next(p *Packet) error {
	for {
		kind, body, err := r.block()
		if err != nil {
			return err
		}
		switch kind {
		case blockEnhanced:
			if err := r.enhanced(body, p); err != nil {
				return err
			}
			r.packets++
			return nil
		case blockSimple:
			if err := r.simple(body, p); err != nil {
				return err
			}
			r.packets++
			return nil
		case blockInterface:
			err = r.describe(body)
		case blockStats:
			err = r.count(body)
		case blockSection:
			r.interfaces = r.interfaces[:0] // a section has interfaces of its own
		}
		if err != nil {
			return err
		}
	}
}

// block reads one block and gives its body.
func (r *Reader) block() (kind uint32, body []byte, err error) {
	r.offset = r.next
	head, err := r.r.Peek(8)
	if err != nil {
		return 0, nil, r.ends(err, len(head), 8)
	}
	if kind = r.order.Uint32(head); kind == blockSection { // the same in either order
		if err := r.section(); err != nil {
			return 0, nil, err
		}
		head, _ = r.r.Peek(8) // was there before
	}
	n := int(r.order.Uint32(head[4:]))
	if n < minBlockBytes || n%4 != 0 || n > maxBlockBytes {
		return 0, nil, r.corrupt("its length is %d bytes", n)
	}
	if body, err = r.take(n); err != nil {
		return 0, nil, err
	}
	if again := int(r.order.Uint32(body[n-4:])); again != n {
		return 0, nil, r.corrupt("its length is %d bytes at its beginning and %d at its end", n, again)
	}
	r.next = r.offset + int64(n)
	return kind, body[8 : n-4], nil
}

// take reads n bytes: within the buffer where they fit, so that nothing is copied.
func (r *Reader) take(n int) ([]byte, error) {
	if n <= r.r.Size() {
		b, err := r.r.Peek(n)
		if err != nil {
			return nil, r.ends(err, len(b), n)
		}
		_, err = r.r.Discard(n) // leaves b as it is until the next read
		return b, err
	}
	if cap(r.buf) < n {
		r.buf = make([]byte, n)
	}
	got, err := io.ReadFull(r.r, r.buf[:n])
	if err != nil {
		return nil, r.ends(err, got, n)
	}
	return r.buf[:n], nil
}

// ends tells a capture that is over from one that was cut, and from a disk that fails.
func (r *Reader) ends(err error, got, want int) error {
	if !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return fmt.Errorf("read capture at byte %d: %w", r.offset, err)
	}
	if got == 0 && want == 8 {
		return io.EOF
	}
	return r.corrupt("it is cut: %d of %d bytes are there", got, want)
}

// section learns the byte order of what follows.
func (r *Reader) section() error {
	head, err := r.r.Peek(16)
	if err != nil {
		return r.ends(err, len(head), 16)
	}
	switch magic := native.Uint32(head[8:]); magic {
	case byteOrderMagic:
		r.order = binary.LittleEndian
	case bits.ReverseBytes32(byteOrderMagic):
		r.order = binary.BigEndian
	default:
		return r.corrupt("the byte-order magic is %#x", magic)
	}
	if major := r.order.Uint16(head[12:]); major != 1 {
		return r.corrupt("version %d of the format is not known", major)
	}
	return nil
}

func (r *Reader) describe(body []byte) error {
	if len(body) < 8 {
		return r.corrupt("an interface's description of %d bytes", len(body))
	}
	if len(r.interfaces) == maxInterfaces {
		return r.corrupt("more than %d interfaces", maxInterfaces)
	}
	d := described{perSecond: microPerSecond}
	d.LinkType, d.SnapBytes = r.order.Uint16(body), int(r.order.Uint32(body[4:]))
	wrong := ""
	bad := options(r.order, body[8:], func(code uint16, v []byte) {
		switch {
		case code == optName:
			d.Name = string(v)
		case code == optFilter && len(v) > 0:
			d.Filter = string(v[1:])
		case code == optTimeOffset && len(v) == 8:
			d.offsetS = int64(r.order.Uint64(v))
		case code == optResolution && len(v) == 1:
			if d.perSecond = unitsPerSecond(v[0]); d.perSecond == 0 {
				wrong = fmt.Sprintf("a resolution of time of %#x", v[0])
			}
		}
	})
	if bad == "" {
		bad = wrong
	}
	if bad != "" {
		return r.corrupt("an interface's description: %s", bad)
	}
	r.interfaces = append(r.interfaces, d)
	return nil
}

// unitsPerSecond reads if_tsresol: a negative power of 10, or of 2 with the
// top bit set; 0 when it is finer than anything measures.
func unitsPerSecond(v byte) uint64 {
	n := int(v & 0x7f)
	if v&0x80 != 0 {
		if n > 40 {
			return 0
		}
		return 1 << n
	}
	if n > 12 {
		return 0
	}
	out := uint64(1)
	for range n {
		out *= 10
	}
	return out
}

func (r *Reader) enhanced(body []byte, p *Packet) error {
	if len(body) < 20 {
		return r.corrupt("a packet's block of %d bytes", len(body))
	}
	i, kept := int(r.order.Uint32(body)), int(r.order.Uint32(body[12:]))
	if i >= len(r.interfaces) {
		return r.corrupt("a packet of interface %d, of %d", i, len(r.interfaces))
	}
	if kept < 0 || kept > len(body)-20 {
		return r.corrupt("a packet of %d bytes in a block with room for %d", kept, len(body)-20)
	}
	d := &r.interfaces[i]
	at := uint64(r.order.Uint32(body[4:]))<<32 | uint64(r.order.Uint32(body[8:]))
	p.Interface, p.LinkType, p.TimeNs = i, d.LinkType, d.time(at)
	p.WireBytes, p.Data, p.Direction = int(r.order.Uint32(body[16:])), body[20:20+kept], Unknown
	rest := body[20+min(pad(kept), len(body)-20):]
	if len(rest) == 0 {
		return nil
	}
	if bad := options(r.order, rest, func(code uint16, v []byte) {
		if code == optFlags && len(v) == 4 {
			p.Direction = Direction(r.order.Uint32(v) & 3)
		}
	}); bad != "" {
		return r.corrupt("a packet's options: %s", bad)
	}
	return nil
}

// time converts an interface's units to nanoseconds since 1970.
func (d *described) time(at uint64) int64 {
	if d.perSecond == nanosPerSecond && d.offsetS == 0 {
		return int64(at)
	}
	s, part := at/d.perSecond, at%d.perSecond
	hi, lo := bits.Mul64(part, nanosPerSecond)
	ns, _ := bits.Div64(hi, lo, d.perSecond) // part < perSecond, so the quotient fits
	return (int64(s)+d.offsetS)*nanosPerSecond + int64(ns)
}

func (r *Reader) simple(body []byte, p *Packet) error {
	if len(body) < 4 || len(r.interfaces) == 0 {
		return r.corrupt("a simple packet of %d bytes with %d interfaces", len(body), len(r.interfaces))
	}
	d := r.interfaces[0]
	n := int(r.order.Uint32(body))
	kept := min(n, len(body)-4)
	if d.SnapBytes > 0 {
		kept = min(kept, d.SnapBytes)
	}
	*p = Packet{LinkType: d.LinkType, WireBytes: n, Data: body[4 : 4+max(kept, 0)]}
	return nil
}

// added sums up what each interface has.
func added(to *uint64, n uint64) *uint64 {
	if to != nil {
		n += *to
	}
	return &n
}

func (r *Reader) count(body []byte) error {
	if len(body) < 12 {
		return r.corrupt("statistics of %d bytes", len(body))
	}
	if bad := options(r.order, body[12:], func(code uint16, v []byte) {
		if len(v) != 8 {
			return
		}
		switch n := r.order.Uint64(v); code {
		case optReceived:
			r.counts.Received = added(r.counts.Received, n)
		case optOSDropped:
			r.counts.Dropped = added(r.counts.Dropped, n)
		}
	}); bad != "" {
		return r.corrupt("statistics: %s", bad)
	}
	return nil
}
