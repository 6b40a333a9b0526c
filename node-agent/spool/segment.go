package spool

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"fieldmesh.dev/fieldmesh/internal/sumline"
	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// file is what the spool needs of the segment that it writes.
type file interface {
	io.WriterAt
	Truncate(size int64) error
	Sync() error
	Close() error
}

// dataFile syncs data and size only: times are of no use here, and without
// them a sync costs one write less.
type dataFile struct{ *os.File }

func (f dataFile) Sync() error { return unix.Fdatasync(int(f.Fd())) }

func openSegmentFile(path string) (file, error) {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	return dataFile{f}, nil
}

// segment is one file of the spool.
type segment struct {
	path  string
	first uint64            // seq of its first record
	bytes int64             // durable length
	marks []mark            // places in it, rising; a reader need not begin at the start
	runs  map[string]uint64 // run → newest seq of it here; nil: not known
	told  *wire.Header      // of the record that reports damage here; nil: none does
}

// mark says that the line of seq begins at offset.
type mark struct {
	seq    uint64
	offset int64
}

const bytesBetweenMarks = 64 << 10

// note remembers where a line begins, if no other mark is near.
func (g *segment) note(seq uint64, offset int64) {
	if n := len(g.marks); n == 0 && offset >= bytesBetweenMarks || n > 0 && offset >= g.marks[n-1].offset+
		bytesBetweenMarks {
		g.marks = append(g.marks, mark{seq, offset})
	}
}

// before is the last known offset at or before the first record newer than after.
func (g *segment) before(after uint64) int64 {
	offset := int64(0)
	for _, m := range g.marks {
		if m.seq > after+1 {
			break
		}
		offset = m.offset
	}
	return offset
}

const (
	segmentSuffix = ".seg"
	tornSuffix    = ".torn"
	runsSuffix    = ".runs"
)

func segmentPath(dir string, first uint64) string {
	return filepath.Join(dir, fmt.Sprintf("%020d%s", first, segmentSuffix))
}

// parseSegmentName gives the seq in a segment's file name.
func parseSegmentName(name string) (first uint64, ok bool) {
	digits, ok := strings.CutSuffix(name, segmentSuffix)
	if !ok || len(digits) != 20 {
		return 0, false
	}
	first, err := strconv.ParseUint(digits, 10, 64)
	return first, err == nil && first > 0
}

// parseLine checks a line without its line feed and gives its record and seq.
func parseLine(line []byte) (json []byte, seq uint64, ok bool) {
	if json, ok = sumline.Text(line); !ok {
		return nil, 0, false
	}
	seq, ok = seqOf(json)
	return json, seq, ok
}

// seqOf finds the seq in a record that the spool wrote: the header comes
// first, and a quote inside a string is escaped, so the first match is it.
func seqOf(json []byte) (uint64, bool) {
	_, rest, found := bytes.Cut(json, []byte(`"seq":`))
	if !found {
		return 0, false
	}
	end := 0
	for end < len(rest) && rest[end] >= '0' && rest[end] <= '9' {
		end++
	}
	seq, err := strconv.ParseUint(string(rest[:end]), 10, 64)
	return seq, err == nil && seq > 0 && seq < 1<<62 // room to count on from it
}

// runOf finds the run of a record that the spool wrote, "" for none: in the header it comes
// after the seq and the time, and has no quotes in it.
func runOf(json []byte) string {
	_, rest, _ := bytes.Cut(json, []byte(`"t_boot_ns":`))
	_, rest, _ = bytes.Cut(rest, []byte(`,`))
	rest, named := bytes.CutPrefix(rest, []byte(`"run":"`))
	run, _, _ := bytes.Cut(rest, []byte(`"`))
	if !named {
		return ""
	}
	return string(run)
}

// place is where a good line is.
type place struct {
	offset  int64 // of its beginning
	damaged int   // lines between the good one before it and it
}

// scanned is what scan has seen beside good lines.
type scanned struct {
	damaged int   // lines before the last good one
	after   int   // lines after it; 0 where visit had scan stop
	end     int64 // where it ended
}

// scan calls visit with every whole, undamaged line of r in turn until visit
// says false. Offsets count from base.
func scan(r io.Reader, base int64, visit func(json []byte, seq uint64, at place) bool) (scanned, error) {
	in := bufio.NewReaderSize(r, 64<<10)
	offset, suspect := base, 0
	seen := scanned{end: base}
	var long []byte
	for {
		line, err := in.ReadSlice('\n')
		if errors.Is(err, bufio.ErrBufferFull) {
			long = append(long, line...)
			if len(long) <= maxRecordBytes+sumline.Overhead {
				continue
			}
			// No line is as long as that: it is damage, dropped piece by piece.
			offset += int64(len(long))
			long, suspect = long[:0], suspect+1
			continue
		}
		if len(long) > 0 {
			line = append(long, line...)
			long = long[:0]
		}
		if errors.Is(err, io.EOF) {
			if seen.after = suspect; len(line) > 0 {
				seen.after++
			}
			return seen, nil
		}
		if err != nil {
			return seen, err
		}
		next := offset + int64(len(line))
		if json, seq, ok := parseLine(line[:len(line)-1]); ok {
			at := place{offset, suspect}
			seen.damaged, suspect, seen.end = seen.damaged+suspect, 0, next
			if !visit(json, seq, at) {
				return seen, nil
			}
		} else {
			suspect++
		}
		offset = next
	}
}
