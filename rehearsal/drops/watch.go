package drops

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"os"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"github.com/cilium/ebpf/ringbuf"
	"github.com/cilium/ebpf/rlimit"
)

const (
	// ringBytes holds some 2,000 packets, more than come while a reader waits
	// for the processor.
	ringBytes = 256 << 10
	// maxNamespaces is well above the nodes of a field.
	maxNamespaces = 1024
)

// Watch tells single packets of some network namespaces.
type Watch struct {
	layout     layout
	namespaces *ebpf.Map
	events     *ebpf.Map
	program    *ebpf.Program
	attached   link.Link
	reader     *ringbuf.Reader
	asked      chan chan struct{} // by Settled
}

// NewWatch attaches to the kernel. An error says why this machine does not
// allow or know it; counters remain.
func NewWatch() (w *Watch, err error) {
	w = &Watch{asked: make(chan chan struct{}, 1)}
	defer func() {
		if err != nil {
			err = errors.Join(fmt.Errorf("watch the kernel's drops: %w", err), w.Close())
			w = nil
		}
	}()
	// Kernels before 5.11 count maps against the limit of locked memory.
	if err := rlimit.RemoveMemlock(); err != nil {
		return w, err
	}
	if w.layout, err = kernelLayout(); err != nil {
		return w, err
	}
	w.namespaces, err = ebpf.NewMap(&ebpf.MapSpec{Name: "namespaces", Type: ebpf.Hash, KeySize: 4,
		ValueSize: 8 * uint32(reasons), MaxEntries: maxNamespaces})
	if err != nil {
		return w, err
	}
	if w.events, err = ebpf.NewMap(&ebpf.MapSpec{Name: "drops", Type: ebpf.RingBuf, MaxEntries: ringBytes}); err !=
		nil {
		return w, err
	}
	// The helpers that read the kernel's memory are for GPL-compatible programs.
	w.program, err = ebpf.NewProgram(&ebpf.ProgramSpec{Name: "drops", Type: ebpf.RawTracepoint, License: "Dual MIT/GPL",
		Instructions: w.layout.program(w.namespaces.FD(), w.events.FD())})
	if err != nil {
		return w, err
	}
	if w.reader, err = ringbuf.NewReader(w.events); err != nil {
		return w, err
	}
	w.attached, err = link.AttachRawTracepoint(link.RawTracepointOptions{Name: "kfree_skb", Program: w.program})
	return w, err
}

// Add has a namespace watched, by its inode.
func (w *Watch) Add(netns uint64) error {
	if err := w.namespaces.Put(uint32(netns), [reasons]uint64{}); err != nil {
		return fmt.Errorf("watch drops of namespace %d: %w", netns, err)
	}
	return nil
}

// Count is how many packets of a namespace were dropped for a reason since it
// was added, those included that Run could not tell for lack of room.
func (w *Watch) Count(netns uint64, why Reason) (uint64, error) {
	var counts [reasons]uint64
	if err := w.namespaces.Lookup(uint32(netns), &counts); err != nil {
		return 0, fmt.Errorf("count drops of namespace %d: %w", netns, err)
	}
	return counts[why], nil
}

// Run tells each packet until ctx ends. It may be called once.
func (w *Watch) Run(ctx context.Context, tell func(Drop)) error {
	stop := context.AfterFunc(ctx, func() { _ = w.reader.Close() }) // Close closes it again, and tells
	defer stop()
	var record ringbuf.Record
	for {
		err := w.reader.ReadInto(&record)
		switch {
		case errors.Is(err, ringbuf.ErrFlushed):
			close(<-w.asked)
			continue
		case errors.Is(err, os.ErrClosed):
			return nil
		case err != nil:
			return fmt.Errorf("read the kernel's drops: %w", err)
		}
		var e event
		if err := binary.Read(bytes.NewReader(record.RawSample), binary.NativeEndian, &e); err != nil {
			return fmt.Errorf("decode a drop: %w", err)
		}
		if d, known := w.layout.drop(e); known {
			tell(d)
		}
	}
}

// Settled returns when Run has told all that was dropped before the call. For
// one caller at a time.
func (w *Watch) Settled(ctx context.Context) error {
	done := make(chan struct{})
	select {
	case w.asked <- done:
	case <-ctx.Done():
		return ctx.Err()
	}
	if err := w.reader.Flush(); err != nil {
		return fmt.Errorf("read the kernel's drops to their end: %w", err)
	}
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Close detaches from the kernel; nil is not a watch. It may be called twice.
func (w *Watch) Close() error {
	if w == nil {
		return nil
	}
	var errs []error
	if w.attached != nil {
		errs = append(errs, w.attached.Close())
	}
	if w.reader != nil {
		errs = append(errs, w.reader.Close())
	}
	// Closing nil programs and maps does nothing.
	errs = append(errs, w.program.Close(), w.events.Close(), w.namespaces.Close())
	return errors.Join(errs...)
}

const (
	ipv4HeaderBytes = 20
	transportBytes  = 20 // TCP's header (RFC 9293, 3.1)
)

// drop is an event in our words.
func (l layout) drop(e event) (Drop, bool) {
	d := Drop{Boot: time.Duration(e.BootNs), Netns: uint64(e.Netns), Reason: reasons}
	for reason, numbers := range l.reason {
		for _, n := range numbers {
			if uint32(n) == e.Reason {
				d.Reason = reason
			}
		}
	}
	if e.Local == 0 {
		d.Packet = e.Bytes[:]
		return d, d.Reason != reasons
	}
	h := make([]byte, ipv4HeaderBytes, ipv4HeaderBytes+transportBytes)
	h[0] = 4<<4 | ipv4HeaderBytes/4 // RFC 791, section 3.1
	if length := ipv4HeaderBytes + e.Length; length <= math.MaxUint16 {
		binary.BigEndian.PutUint16(h[2:4], uint16(length))
	}
	h[9] = byte(e.Protocol)
	copy(h[12:16], e.Saddr[:])
	copy(h[16:20], e.Daddr[:])
	d.Packet = append(h, e.Bytes[:transportBytes]...)
	return d, d.Reason != reasons
}
