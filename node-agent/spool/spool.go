// Package spool keeps records on the node's disk, in order, until the
// controller has confirmed them. What it reports as durable survives a crash.
// It knows nothing of trials, and nothing of the API that reads it.
package spool

import (
	"context"
	"errors"
	"fmt"
	"time"

	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// Options shape a spool; a zero value takes the default.
type Options struct {
	QuotaBytes   int64         // most bytes that all segments may have; default 1 GiB
	MinFreeBytes int64         // disk space that is left to others; default 64 MiB
	SyncEvery    time.Duration // longest time from Append to durable; default 200 ms, at most 250 ms
	SegmentBytes int64         // size at which a new segment is begun; default 8 MiB
}

// Spool is an append-only journal of records in a folder of its own.
type Spool struct{}

// FullError says that the spool has no room, and what would give it some.
type FullError struct {
	NeededBytes int64
	FreeBytes   int64
	Cure        string
}

func (e *FullError) Error() string {
	return fmt.Sprintf("spool has room for %d bytes, %d are needed: %s", e.FreeBytes, e.NeededBytes, e.Cure)
}

var errSkeleton = errors.New("not built yet")

// Open opens or makes the spool in dir.
func Open(dir, node string, opt Options) (*Spool, error) { return nil, errSkeleton }

// Append queues a record.
func (s *Spool) Append(h wire.Header, b wire.Body) (uint64, error) { return 0, errSkeleton }

// Sync makes durable what was appended before it.
func (s *Spool) Sync(ctx context.Context) error { return errSkeleton }

// Position is the newest durable record.
func (s *Spool) Position() wire.SpoolPosition { return wire.SpoolPosition{} }

// Status is how full the spool is.
func (s *Spool) Status() wire.SpoolStatus { return wire.SpoolStatus{} }

// Read returns durable records after a seq.
func (s *Spool) Read(after uint64, limit int) (lines [][]byte, last uint64, err error) {
	return nil, after, errSkeleton
}

// Wait returns when a durable record newer than after exists.
func (s *Spool) Wait(ctx context.Context, after uint64) error { return errSkeleton }

// Confirm allows records up to seq to be dropped.
func (s *Spool) Confirm(seq uint64) error { return errSkeleton }

// CheckRoom says whether needBytes more can be taken; a *FullError when not.
func (s *Spool) CheckRoom(needBytes int64) error { return errSkeleton }

// Close makes everything durable and closes the spool.
func (s *Spool) Close() error { return errSkeleton }
