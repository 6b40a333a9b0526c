// Package mcap writes MCAP files (https://mcap.dev/spec), which Foxglove,
// Lichtblick and their libraries read: messages with a time on channels, in
// compressed chunks with an index. It reads none, and knows nothing of what a
// message says.
package mcap

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"hash"
	"hash/crc32"
	"io"
	"maps"
	"math"
	"slices"

	"github.com/klauspost/compress/zstd"
)

// chunkBytes is how much a chunk holds before it is compressed: what a reader has
// to take into memory to see one message, and what a file that is cut off loses.
const chunkBytes = 1 << 20

// Opcodes of records.
const (
	opHeader = iota + 1
	opFooter
	opSchema
	opChannel
	opMessage
	opChunk
	opMessageIndex
	opChunkIndex
	_ // attachment
	_ // attachment index
	opStatistics
	opMetadata
	opMetadataIndex
	opSummaryOffset
	opDataEnd
)

const magic = "\x89MCAP0\r\n"

// Writer writes one file. Schemas, channels and messages may come in any order;
// messages that come in the order of their times are read fastest. The first
// error is told by Close.
type Writer struct {
	out      io.Writer
	offset   uint64
	sum      hash.Hash32
	err      error
	zstd     *zstd.Encoder
	schemas  [][]byte // records, by identifier − 1
	channels [][]byte
	schemaOf map[uint16]uint16 // channel → schema
	chunk    chunk
	written  map[uint16]bool // channels that the data section has
	defined  map[uint16]bool // schemas that it has
	indexes  [][]byte        // of chunks
	metadata [][]byte        // indexes of metadata
	counts   map[uint16]uint64
	messages uint64
	first    uint64
	last     uint64
}

// chunk is what will be compressed together.
type chunk struct {
	records     []byte
	index       map[uint16][]entry
	first, last uint64
}

type entry struct{ time, offset uint64 }

// New begins a file. library says what wrote it.
func New(out io.Writer, library string) (*Writer, error) {
	// One goroutine and small windows: a chunk is as large as a window.
	z, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(1),
		zstd.WithWindowSize(chunkBytes))
	if err != nil {
		return nil, fmt.Errorf("write MCAP: %w", err)
	}
	w := &Writer{out: out, sum: crc32.NewIEEE(), zstd: z, schemaOf: map[uint16]uint16{}, written: map[uint16]bool{},
		defined: map[uint16]bool{}, counts: map[uint16]uint64{}, first: math.MaxUint64}
	w.chunk.reset()
	w.put([]byte(magic))
	w.put(record(opHeader, text(text(nil, ""), library)))
	return w, w.err
}

// AddSchema says what the messages of channels look like; encoding is one that the
// specification registers, such as jsonschema.
func (w *Writer) AddSchema(name, encoding string, data []byte) (id uint16) {
	id = uint16(len(w.schemas) + 1)
	b := text(text(u16(nil, id), name), encoding)
	w.schemas = append(w.schemas, record(opSchema, append(u32(b, uint32(len(data))), data...)))
	return id
}

// AddChannel begins a channel of a schema; encoding is that of its messages, such as json.
func (w *Writer) AddChannel(schema uint16, topic, encoding string, metadata map[string]string) (id uint16) {
	id = uint16(len(w.channels) + 1)
	b := text(text(u16(u16(nil, id), schema), topic), encoding)
	w.channels = append(w.channels, record(opChannel, texts(b, metadata)))
	w.schemaOf[id] = schema
	return id
}

// Message adds a message at a time in nanoseconds since 1970.
func (w *Writer) Message(channel uint16, sequence uint32, timeNs uint64, data []byte) {
	c := &w.chunk
	if schema := w.schemaOf[channel]; !w.defined[schema] {
		c.records, w.defined[schema] = append(c.records, w.schemas[schema-1]...), true
	}
	if !w.written[channel] {
		c.records, w.written[channel] = append(c.records, w.channels[channel-1]...), true
	}
	c.index[channel] = append(c.index[channel], entry{timeNs, uint64(len(c.records))})
	b := append(c.records, opMessage)
	b = u64(b, uint64(2+4+8+8+len(data)))
	b = u64(u64(u32(u16(b, channel), sequence), timeNs), timeNs)
	c.records = append(b, data...)
	c.first, c.last = min(c.first, timeNs), max(c.last, timeNs)
	w.counts[channel]++
	w.messages++
	if len(c.records) >= chunkBytes {
		w.endChunk()
	}
}

// Metadata adds names with their values, for the whole file.
func (w *Writer) Metadata(name string, values map[string]string) {
	w.endChunk()
	at := w.offset
	w.put(record(opMetadata, texts(text(nil, name), values)))
	w.metadata = append(w.metadata, record(opMetadataIndex, text(u64(u64(nil, at), w.offset-at), name)))
}

// Close ends the file: without it a reader has no index, and has to recover it.
func (w *Writer) Close() error {
	w.endChunk()
	w.put(record(opDataEnd, u32(nil, w.sum.Sum32())))
	w.sum.Reset()
	summary := w.offset
	var offsets []byte
	for _, g := range []struct {
		opcode  byte
		records [][]byte
	}{{opSchema, w.schemas}, {opChannel, w.channels}, {opStatistics, [][]byte{w.statistics()}},
		{opMetadataIndex, w.metadata}, {opChunkIndex, w.indexes}} {
		at := w.offset
		for _, r := range g.records {
			w.put(r)
		}
		if w.offset > at {
			offsets = append(offsets, record(opSummaryOffset, u64(u64([]byte{g.opcode}, at), w.offset-at))...)
		}
	}
	at := w.offset
	w.put(offsets)
	footer := u64(append([]byte{opFooter}, u64(nil, 8+8+4)...), summary)
	w.put(u64(footer, at))
	w.put(u32(nil, w.sum.Sum32()))
	w.put([]byte(magic))
	return errors.Join(w.err, w.zstd.Close())
}

func (w *Writer) statistics() []byte {
	first := w.first
	if w.messages == 0 {
		first = 0
	}
	b := u32(u16(u64(nil, w.messages), uint16(len(w.schemas))), uint32(len(w.channels)))
	b = u32(u32(u32(b, 0), uint32(len(w.metadata))), uint32(len(w.indexes))) // 0: attachments
	return record(opStatistics, numbers(u64(u64(b, first), w.last), w.counts))
}

// endChunk compresses and writes what was collected, its indexes after it.
func (w *Writer) endChunk() {
	c := &w.chunk
	if len(c.records) == 0 {
		return
	}
	const compression = "zstd"
	packed := w.zstd.EncodeAll(c.records, nil)
	b := u32(u64(u64(u64(nil, c.first), c.last), uint64(len(c.records))), crc32.ChecksumIEEE(c.records))
	b = append(u64(text(b, compression), uint64(len(packed))), packed...)
	at := w.offset
	w.put(record(opChunk, b))
	length, places := w.offset-at, map[uint16]uint64{}
	for _, id := range slices.Sorted(maps.Keys(c.index)) {
		entries := c.index[id]
		slices.SortStableFunc(entries, func(a, b entry) int { return cmp.Compare(a.time, b.time) })
		b := u32(u16(nil, id), uint32(16*len(entries)))
		for _, e := range entries {
			b = u64(u64(b, e.time), e.offset)
		}
		places[id] = w.offset
		w.put(record(opMessageIndex, b))
	}
	index := numbers(u64(u64(u64(u64(nil, c.first), c.last), at), length), places)
	index = text(u64(index, w.offset-at-length), compression)
	w.indexes = append(w.indexes, record(opChunkIndex, u64(u64(index, uint64(len(packed))), uint64(len(c.records)))))
	w.first, w.last = min(w.first, c.first), max(w.last, c.last)
	c.reset()
}

func (c *chunk) reset() {
	*c = chunk{records: c.records[:0], index: map[uint16][]entry{}, first: math.MaxUint64}
}

func (w *Writer) put(b []byte) {
	if w.err != nil {
		return
	}
	if _, err := w.out.Write(b); err != nil {
		w.err = fmt.Errorf("write MCAP: %w", err)
		return
	}
	w.sum.Write(b)
	w.offset += uint64(len(b))
}

func record(opcode byte, content []byte) []byte {
	return append(u64([]byte{opcode}, uint64(len(content))), content...)
}

func u16(b []byte, n uint16) []byte { return binary.LittleEndian.AppendUint16(b, n) }
func u32(b []byte, n uint32) []byte { return binary.LittleEndian.AppendUint32(b, n) }
func u64(b []byte, n uint64) []byte { return binary.LittleEndian.AppendUint64(b, n) }

func text(b []byte, s string) []byte { return append(u32(b, uint32(len(s))), s...) }

// texts appends a map, which has its length in bytes before it.
func texts(b []byte, m map[string]string) []byte {
	var of []byte
	for _, name := range slices.Sorted(maps.Keys(m)) {
		of = text(text(of, name), m[name])
	}
	return append(u32(b, uint32(len(of))), of...)
}

func numbers(b []byte, m map[uint16]uint64) []byte {
	b = u32(b, uint32(10*len(m)))
	for _, id := range slices.Sorted(maps.Keys(m)) {
		b = u64(u16(b, id), m[id])
	}
	return b
}
