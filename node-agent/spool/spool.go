// Package spool keeps records on the node's disk, in order, until the
// controller has confirmed them. What it reports as durable survives a crash
// and a power cut. It knows nothing of trials, nor of the API that reads it.
//
// A spool is a folder: the files epoch, confirmed and boot, and segments named
// by the seq of their first record. A segment is lines of
//
//	crc32c-of-json SP json LF
//
// Only the newest segment is ever written; it is synced before the next is
// begun, so that only its tail can be torn. Beside each of the others a note,
// of the same name and .runs, names the runs of which it has records.
package spool

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"fieldmesh.dev/fieldmesh/internal/sumline"
	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// Options shape a spool; a zero value takes the default.
type Options struct {
	QuotaBytes   int64         // most bytes that all segments may have; default 1 GiB
	KeptBytes    int64         // size up to which confirmed records stay; default half of the quota, negative: none do
	MinFreeBytes int64         // disk space that is left to others; default 64 MiB, negative for none
	SyncEvery    time.Duration // longest time from Append to the sync that covers it; default 200 ms, at most 250 ms
	SegmentBytes int64         // size at which a new segment is begun; default 8 MiB or an eighth of the quota
	Sign         Signer        // signs records as they are taken; nil: they stay unsigned
	// Last reports whether a record is the last of what it belongs to, and is to be
	// signed at once; nil: none is.
	Last func(wire.Body) bool
	// Boot names the machine's boot: after another one, the records' numbers leave room for
	// those that a power cut took back; empty: they do not.
	Boot string
	// Damaged makes the record that reports lines whose checksum does not hold; nil: nobody is told. It is asked when
	// they are come across, at Open or by Read, and no call of the spool waits for it.
	Damaged func(Damage) (wire.Header, wire.Body)
}

const (
	defaultQuotaBytes   = 1 << 30
	defaultMinFreeBytes = 64 << 20
	defaultSyncEvery    = 200 * time.Millisecond
	maxSyncEvery        = 250 * time.Millisecond // "recorded" is promised to mean at most this long after it happened
	defaultSegmentBytes = 8 << 20
	maxRecordBytes      = 16 << 20 // bounds what a reader must hold at once
)

func (o Options) withDefaults() (Options, error) {
	if o.QuotaBytes == 0 {
		o.QuotaBytes = defaultQuotaBytes
	}
	if o.KeptBytes == 0 {
		o.KeptBytes = o.QuotaBytes / 2
	}
	o.KeptBytes = max(o.KeptBytes, 0)
	if o.MinFreeBytes == 0 {
		o.MinFreeBytes = defaultMinFreeBytes
	}
	o.MinFreeBytes = max(o.MinFreeBytes, 0)
	if o.SyncEvery == 0 {
		o.SyncEvery = defaultSyncEvery
	}
	if o.SegmentBytes == 0 {
		o.SegmentBytes = max(min(defaultSegmentBytes, o.QuotaBytes/8), 1)
	}
	if o.QuotaBytes < 0 || o.SegmentBytes < 0 || o.SyncEvery < 0 || o.SyncEvery > maxSyncEvery {
		return o, fmt.Errorf("spool options %+v: sizes and times must be positive, sync_every at most %v", o,
			maxSyncEvery)
	}
	return o, nil
}

// ErrClosed is returned by every call on a spool that was closed.
var ErrClosed = errors.New("spool is closed")

// Recovery is what Open found to be damaged in the newest segment. A torn tail was never
// durable, unless the disk damaged the last lines that were.
type Recovery struct {
	CutBytes int64    // length of the torn tail
	TornFile string   // where its first MiB was put aside; empty when nothing was cut
	Damaged  []Damage // before the tail
}

// Spool is an append-only journal of records in a folder of its own. Its
// methods may be called from any goroutine.
type Spool struct {
	dir, node, epoch string
	opt              Options
	recovery         Recovery
	lock             *os.File
	openSegment      func(path string) (file, error)
	diskFree         func(dir string) (int64, error)

	requests chan chan error // Sync → flusher
	wake     chan struct{}   // Append → flusher: there is something pending
	stop     chan struct{}   // Close → flusher
	stopped  chan struct{}   // closed when the flusher has ended

	live    file // the newest segment; the flusher's alone
	unclean bool // its end may hold bytes of a write that failed; the flusher's alone

	mu        sync.Mutex
	segments  []*segment // oldest first; the last is live
	pending   []byte     // lines not yet durable
	spare     []byte     // the buffer that pending was, for reuse
	next      uint64     // seq of the next record
	durable   uint64     // newest durable seq
	confirmed confirmed
	runs      map[string]uint64 // run → newest seq of it in pending
	written   map[string]uint64 // run → newest seq of it in what is being flushed
	flushing  int64             // bytes taken out of pending that are not yet durable
	used      int64             // durable bytes in all segments
	free      int64             // disk space at the last look
	failure   error             // why the last flush failed; nil when it did not
	changed   chan struct{}
	closed    bool
	told      map[uint64]bool // the records before which damage was reported
	reports   []report        // in the newest segment, when it was opened
	unsigned  map[subject]*unsigned
	signed    map[string]uint64 // run → seq of its newest signature
}

// Open opens the spool in dir, or makes one, for records of the node. Only
// one process at a time can have it open.
func Open(dir, node string, opt Options) (*Spool, error) {
	return open(dir, node, opt, openSegmentFile, diskFree)
}

func open(dir, node string, opt Options, openSegment func(string) (file, error),
	free func(string) (int64, error)) (_ *Spool, err error) {
	opt, err = opt.withDefaults()
	if err != nil {
		return nil, err
	}
	if node == "" {
		return nil, fmt.Errorf("open spool %q: the node has no name", dir)
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("make spool %q: %w", dir, err)
	}
	s := &Spool{
		dir: dir, node: node, opt: opt, openSegment: openSegment, diskFree: free,
		requests: make(chan chan error), wake: make(chan struct{}, 1),
		stop: make(chan struct{}), stopped: make(chan struct{}), changed: make(chan struct{}),
		unsigned: map[subject]*unsigned{}, signed: map[string]uint64{}, runs: map[string]uint64{},
		told: map[uint64]bool{},
	}
	if s.lock, err = lockFolder(dir); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.lock.Close())
		}
	}()
	if err := s.recover(); err != nil {
		return nil, fmt.Errorf("open spool %q: %w", dir, err)
	}
	if s.free, err = s.diskFree(dir); err != nil {
		return nil, fmt.Errorf("open spool %q: %w", dir, err)
	}
	go s.run()
	s.tell(s.recovery.Damaged)
	return s, nil
}

// Append takes a record and returns its seq; it is durable after the next
// sync. It fills the header's kind, version, node, epoch and seq. When there
// is no room the record is not taken and the error holds a *FullError.
func (s *Spool) Append(h wire.Header, b wire.Body) (uint64, error) {
	if _, ok := b.(wire.Unknown); ok || b == nil {
		return 0, fmt.Errorf("append to spool %q: a record needs a body of a known kind", s.dir)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return 0, ErrClosed
	}
	if s.failure != nil {
		return 0, fmt.Errorf("append to spool %q: %w", s.dir, s.failure)
	}
	if h.Trial != 0 { // what a run that is over records beside its attempts, nobody waits for
		if err := s.reopen(h.Run); err != nil {
			return 0, fmt.Errorf("append to spool %q: %w", s.dir, err)
		}
	}
	h, line, err := s.take(h, b)
	if err != nil {
		return 0, err
	}
	if s.opt.Sign != nil {
		u := s.toSign(h, line)
		if h.TBootNs-u.fromNs >= signEveryNs || s.opt.Last != nil && s.opt.Last(b) {
			s.sign(u)
		}
	}
	return h.Seq, nil
}

// take puts a record among those that are pending. mu is held.
func (s *Spool) take(h wire.Header, b wire.Body) (wire.Header, []byte, error) {
	h.Kind, h.Version, h.Node, h.Epoch, h.Seq = b.Kind(), wire.SchemaVersion, s.node, s.epoch, s.next
	json, err := wire.Record{Header: h, Body: b}.MarshalJSON()
	if err != nil {
		return h, nil, fmt.Errorf("append to spool %q: %w", s.dir, err)
	}
	if len(json) > maxRecordBytes {
		return h, nil, fmt.Errorf("append to spool %q: a %s record of %d bytes is above the limit of %d", s.dir, h.Kind,
			len(json), maxRecordBytes)
	}
	if err := s.room(int64(len(json)) + sumline.Overhead); err != nil {
		return h, nil, fmt.Errorf("append to spool %q: %w", s.dir, err)
	}
	s.pending = sumline.Append(s.pending, json)
	s.runs[h.Run] = h.Seq
	s.next++
	select {
	case s.wake <- struct{}{}:
	default: // the flusher is already told
	}
	return h, json, nil
}

// Sync returns when all that was appended before it is durable, or cannot be
// made so at present; it is then kept and tried again.
func (s *Spool) Sync(ctx context.Context) error {
	reply := make(chan error, 1)
	select {
	case s.requests <- reply:
	case <-s.stopped:
		return ErrClosed
	case <-ctx.Done():
		return ctx.Err()
	}
	select {
	case err := <-reply:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Position is the newest durable record; seq 0 when there is none.
func (s *Spool) Position() wire.SpoolPosition {
	s.mu.Lock()
	defer s.mu.Unlock()
	return wire.SpoolPosition{Epoch: s.epoch, Seq: s.durable}
}

// Cut says what Open cut off the newest segment, and where it is; "" for nothing.
func (r Recovery) Cut() string {
	if r.CutBytes == 0 {
		return ""
	}
	said := fmt.Sprintf("its last %d bytes were no whole record and have been cut off", r.CutBytes)
	if r.TornFile != "" {
		said += "; they are in " + r.TornFile
	}
	return said
}

// Recovered is what Open found to be damaged in the newest segment.
func (s *Spool) Recovered() Recovery { return s.recovery }

// Wait returns when a durable record newer than after exists.
func (s *Spool) Wait(ctx context.Context, after uint64) error {
	for {
		s.mu.Lock()
		durable, changed, closed := s.durable, s.changed, s.closed
		s.mu.Unlock()
		switch {
		case durable > after:
			return nil
		case closed:
			return ErrClosed
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// Close makes everything durable and closes the spool.
func (s *Spool) Close() error {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return nil
	}
	s.signAll()
	s.closed = true
	s.mu.Unlock()
	close(s.stop)
	<-s.stopped
	s.mu.Lock()
	defer s.mu.Unlock()
	s.announce()
	return errors.Join(s.failure, s.live.Close(), s.lock.Close())
}

// announce wakes everyone in Wait. mu is held.
func (s *Spool) announce() {
	close(s.changed)
	s.changed = make(chan struct{})
}
