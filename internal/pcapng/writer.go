package pcapng

import (
	"encoding/binary"
	"fmt"
	"io"
)

// Writer writes a capture. It does not buffer.
type Writer struct {
	w     io.Writer
	buf   []byte
	bytes int64
}

var native = binary.LittleEndian // a capture says in which order it is

// NewWriter writes a capture's beginning, with the interfaces that packets name
// by their place.
func NewWriter(w io.Writer, application string, interfaces ...Interface) (*Writer, error) {
	out := &Writer{w: w}
	out.begin(blockSection)
	out.u32(byteOrderMagic)
	out.u16(1) // version 1.0
	out.u16(0)
	out.u64(^uint64(0)) // length of the section: not known
	out.option(optApplication, []byte(application))
	out.end()
	if err := out.flush(); err != nil {
		return nil, err
	}
	for _, i := range interfaces {
		if err := out.describe(i); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func (w *Writer) describe(i Interface) error {
	w.begin(blockInterface)
	w.u16(i.LinkType)
	w.u16(0)
	w.u32(uint32(i.SnapBytes))
	w.option(optName, []byte(i.Name))
	if i.Filter != "" {
		w.option(optFilter, append([]byte{0}, i.Filter...)) // 0: a text for libpcap
	}
	w.option(optResolution, []byte{nanoseconds})
	w.end()
	return w.flush()
}

// Bytes is how much was written.
func (w *Writer) Bytes() int64 { return w.bytes }

// Packet writes one packet: the place of its interface, its time in nanoseconds
// since 1970, its length on the wire, and its first bytes.
func (w *Writer) Packet(iface int, timeNs int64, wireBytes int, d Direction, data []byte) error {
	w.begin(blockEnhanced)
	w.u32(uint32(iface))
	w.u32(uint32(uint64(timeNs) >> 32))
	w.u32(uint32(uint64(timeNs)))
	w.u32(uint32(len(data)))
	w.u32(uint32(wireBytes))
	w.padded(data)
	if d != Unknown {
		w.option(optFlags, binary.LittleEndian.AppendUint32(nil, uint32(d)))
	}
	w.end()
	return w.flush()
}

// Counts writes what the capture says of itself, an interface at a time.
func (w *Writer) Counts(iface int, timeNs int64, received, dropped uint64) error {
	w.begin(blockStats)
	w.u32(uint32(iface))
	w.u32(uint32(uint64(timeNs) >> 32))
	w.u32(uint32(uint64(timeNs)))
	w.option(optReceived, native.AppendUint64(nil, received))
	w.option(optIfDropped, native.AppendUint64(nil, 0))
	w.option(optOSDropped, native.AppendUint64(nil, dropped))
	w.end()
	return w.flush()
}

func (w *Writer) begin(kind uint32) {
	w.buf = w.buf[:0]
	w.u32(kind)
	w.u32(0)
}

func (w *Writer) u16(v uint16) { w.buf = native.AppendUint16(w.buf, v) }
func (w *Writer) u32(v uint32) { w.buf = native.AppendUint32(w.buf, v) }
func (w *Writer) u64(v uint64) { w.buf = native.AppendUint64(w.buf, v) }

func (w *Writer) padded(b []byte) {
	w.buf = append(w.buf, b...)
	for len(w.buf)%4 != 0 {
		w.buf = append(w.buf, 0)
	}
}

func (w *Writer) option(code uint16, value []byte) {
	value = value[:min(len(value), 0xffff)]
	w.u16(code)
	w.u16(uint16(len(value)))
	w.padded(value)
}

// end closes a block: no more options, and its length at either end.
func (w *Writer) end() {
	w.u32(optEnd)
	n := uint32(len(w.buf) + 4)
	native.PutUint32(w.buf[4:], n)
	w.u32(n)
}

func (w *Writer) flush() error {
	n, err := w.w.Write(w.buf)
	w.bytes += int64(n)
	if err != nil {
		return fmt.Errorf("write capture: %w", err)
	}
	return nil
}
