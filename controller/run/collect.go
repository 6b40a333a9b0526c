package run

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"fieldmesh.dev/fieldmesh/controller/archive/runkey"
	"fieldmesh.dev/fieldmesh/controller/attached"
	"fieldmesh.dev/fieldmesh/controller/run/engine"
	"fieldmesh.dev/fieldmesh/internal/pause"
	"fieldmesh.dev/fieldmesh/protocols/wire"
)

const (
	collectWait = 5 * time.Second
	// A node is asked for so many records at once. A link that is weak, or holds for seconds at
	// a time, breaks a large answer off, and what was under way of it is sent in vain.
	collectLimit  = 5000
	collectFewest = 100
	confirmEvery  = 5 * time.Second
	// confirmPatience is for the last of these, which nothing but room hangs on.
	confirmPatience = 2 * time.Second

	// answersPerS bounds how many answers with records a lane gets in a second
	// while nobody waits for any. One costs both ends about a millisecond, and a
	// node has new records five times a second: up to ten nodes nothing changes,
	// two hundred would keep a processor busy with asking.
	answersPerS = 50
	// endingFor is for how long after a node's end of a trial the others' are
	// expected: then all are asked at once, as the next trial waits for them.
	endingFor = 3 * time.Second
	// waitingRest is between two answers with records of a node whose gate waits for a
	// time: nothing is decided by them meanwhile.
	waitingRest = time.Second
)

// source is a node whose records are collected. Records has the lines that came, also
// beside an error.
type source interface {
	Records(ctx context.Context, epoch string, after uint64, limit int,
		wait time.Duration) (lines [][]byte, newEpoch string, last uint64, err error)
	Confirm(ctx context.Context, p wire.Confirmation) (wire.SpoolStatus, error)
}

// collectAll begins to collect the records of every node.
func (l *openLane) collectAll() {
	for name, c := range l.Nodes {
		l.s.work.Go(func() { l.collect(l.s.leave, name, c) })
	}
}

// collect copies a node's records into the archive until ctx ends. A node out
// of reach is asked again and again; nothing is lost meanwhile.
func (l *openLane) collect(ctx context.Context, name string, c source) {
	at := l.s.Archive.Cursor(name)
	told := at // what the node knows that the archive has
	backoff := 100 * time.Millisecond
	confirmed := time.Now()
	limit := collectLimit
	behind := false
	var unkept time.Time // since when nothing can be kept; zero: it can
	defer func() {
		if over := l.s.isOver(); (at != told || over) && !behind {
			l.confirmLast(ctx, name, c, at, over)
		}
	}()
	for ctx.Err() == nil {
		var lines [][]byte
		var next wire.SpoolPosition
		var err error
		asked := limit
		l.quiet.speak(ctx, func() { lines, next, err = l.copyRecords(ctx, name, c, at, &limit, l.holdFor()) })
		if ctx.Err() != nil {
			return
		}
		switch {
		case !errors.As(err, new(keepError)):
			unkept = time.Time{}
		case unkept.IsZero():
			unkept = time.Now()
		}
		if broken := l.cannotKeep(err, unkept); broken != nil {
			select {
			case l.s.broken <- broken:
			case <-ctx.Done():
			}
			return
		}
		if err != nil {
			behind = true
			l.s.tell(engine.Behind{Worker: l.index, Node: name, Err: err})
			_ = pause.For(ctx, backoff)
			backoff = min(2*backoff, 2*time.Second)
			continue
		}
		backoff = 100 * time.Millisecond
		if behind {
			behind = false
			l.s.tell(engine.Behind{Worker: l.index, Node: name})
		}
		at = next
		for _, line := range lines {
			l.see(line)
		}
		if len(lines) > 0 && time.Since(confirmed) > confirmEvery && !l.s.Archive.PassedOver(name) {
			confirmed = time.Now()
			l.quiet.speak(ctx, func() {
				if _, err := c.Confirm(ctx, l.archived(at, false)); err == nil {
					told = at
				} else if ctx.Err() == nil {
					l.s.Log.Warn("confirm records", "node", name, "error", err)
				}
			})
		}
		switch {
		case l.mesh():
			_ = pause.For(ctx, cmp.Or(l.s.lookEvery, time.Second)) // it does not wait at the node
		case len(lines) > 0 && len(lines) < asked:
			l.pace.rest(ctx, time.Duration(len(l.Nodes))*time.Second/answersPerS)
		}
	}
}

// archived says what of the run is in the archive, and whether the run is over.
func (l *openLane) archived(at wire.SpoolPosition, over bool) wire.Confirmation {
	return wire.Confirmation{Run: l.s.Plan.Run, Epoch: at.Epoch, Seq: at.Seq, Over: over}
}

// confirmLast tells a node at a run's end what the archive has, so that it has room again.
// What another shard's controller may lack is that one's to confirm.
func (l *openLane) confirmLast(ctx context.Context, name string, c source, at wire.SpoolPosition, over bool) {
	if l.s.Archive.PassedOver(name) {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), confirmPatience)
	defer cancel()
	if _, err := c.Confirm(ctx, l.archived(at, over)); err != nil {
		l.s.Log.Warn("confirm the last records", "node", name, "error", err)
	}
}

// keepError is an error of keeping what a node sent: its disk is at fault, and no node.
type keepError struct{ error }

func (e keepError) Unwrap() error { return e.error }

// keepPatience is for how long keeping is tried again: a process may be short of files for a moment.
const keepPatience = 10 * time.Second

// cannotKeep is the error of a run that cannot keep what it collects; nil where err says something else, or may pass.
func (l *openLane) cannotKeep(err error, since time.Time) error {
	switch {
	case !errors.As(err, new(keepError)):
		return nil
	case errors.Is(err, unix.ENOSPC), errors.Is(err, unix.EDQUOT):
		return fmt.Errorf("the disk of %s is full: make room on it, then continue with --resume; the nodes keep their "+
			"records until then: %w", l.s.Archive.Dir(), err)
	case time.Since(since) < keepPatience && !errors.Is(err, unix.EROFS):
		return nil
	}
	if _, ofDisk := errors.AsType[unix.Errno](err); !ofDisk {
		return fmt.Errorf("what the nodes sent cannot be kept: %w; continue with --resume", err)
	}
	dir := l.s.Archive.Dir()
	return fmt.Errorf("nothing can be written to %s: mend its disk; or copy the folder to another, and %s to .keys "+
		"beside the copy; then continue with --resume; the nodes keep their records until then: %w", dir,
		runkey.File(dir), err)
}

// holdFor is how long a node may hold a question for records: on the mesh it is
// to answer at once, so that no answer comes in a window.
func (l *openLane) holdFor() time.Duration {
	if l.mesh() {
		return 0
	}
	return collectWait
}

// copyRecords copies up to limit records that follow a position, waiting at most so long
// for them, and returns the position after them. The limit is then what to ask for next:
// less after an answer that did not come whole, more after one that did.
func (l *openLane) copyRecords(ctx context.Context, name string, c source, at wire.SpoolPosition, limit *int,
	wait time.Duration) ([][]byte, wire.SpoolPosition, error) {
	lines, epoch, last, err := c.Records(ctx, at.Epoch, at.Seq, *limit, wait)
	next := wire.SpoolPosition{Epoch: epoch, Seq: last}
	if err != nil {
		*limit = max(*limit/2, collectFewest)
	} else {
		*limit = min(2**limit, collectLimit)
	}
	if len(lines) == 0 && err != nil {
		return nil, next, fmt.Errorf("%s is out of reach: %w", name, err)
	}
	if len(lines) == 0 {
		return nil, next, nil
	}
	if err := l.s.Archive.Append(name, lines); err != nil {
		return nil, next, keepError{err}
	}
	if slices.ContainsFunc(lines, attached.Named) {
		l.s.named.Store(true)
	}
	if err := l.s.Archive.Reached(name, next); err != nil {
		return lines, next, keepError{err}
	}
	return lines, next, nil
}

// see looks at a line that is durable in the archive.
func (l *openLane) see(line []byte) {
	ev := sightingIn(l.index, l.s.Plan.Run, line)
	switch ev.(type) {
	case nil:
		return
	case engine.Kept, engine.Opened:
		l.pace.ends()
	}
	l.s.tell(ev)
}

// lookedAt are the kinds of records that tell the engine something.
var lookedAt = []string{"trial", "window", "note"}

// sightingIn returns the event that a record's line stands for, or nil. Records of
// another run, which the spool may still hold, are ignored.
func sightingIn(lane int, run string, line []byte) engine.Event {
	if uninteresting(line) {
		return nil
	}
	var head wire.Header
	if json.Unmarshal(line, &head) != nil || head.Run != run || !slices.Contains(lookedAt, head.Kind) {
		return nil
	}
	var rec wire.Record
	if json.Unmarshal(line, &rec) != nil {
		return nil
	}
	return sighting(lane, rec)
}

func sighting(lane int, rec wire.Record) engine.Event {
	k := wire.TrialKey{Trial: rec.Trial, Attempt: rec.Attempt}
	switch b := rec.Body.(type) {
	case *wire.TrialState:
		if b.State == wire.StateKept {
			return engine.Kept{Worker: lane, Node: rec.Node, Key: k, State: *b}
		}
	case *wire.Window:
		return engine.Opened{Worker: lane, Node: rec.Node, Key: k, Window: *b}
	case *wire.Noted:
		return engine.Said{Key: k, Noted: *b}
	}
	return nil
}

// uninteresting reports whether a line begins as nodes begin theirs, with a kind
// that is not looked at, as almost all do: they need not be decoded for that.
func uninteresting(line []byte) bool {
	kind, ok := bytes.CutPrefix(line, []byte(`{"kind":"`))
	return ok && !slices.ContainsFunc(lookedAt, func(k string) bool { return bytes.HasPrefix(kind, []byte(k+`"`)) })
}

// pace keeps a lane from asking its nodes for records all the time while no
// attempt is ending.
type pace struct {
	mu     sync.Mutex
	ending chan struct{} // closed when a node is at the end of an attempt
	ended  time.Time     // when one last was
	opens  time.Time     // no window opens before
}

func newPace() pace { return pace{ending: make(chan struct{})} }

// ends notes that a node is at the end of an attempt.
func (p *pace) ends() {
	p.mu.Lock()
	defer p.mu.Unlock()
	close(p.ending)
	p.ending, p.ended, p.opens = make(chan struct{}), time.Now(), time.Time{}
}

// waits notes that a node is armed, and for how long its gate waits at least.
func (p *pace) waits(d time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.opens = time.Now().Add(d)
}

// rest leaves a node alone for a while, unless an attempt is ending.
func (p *pace) rest(ctx context.Context, d time.Duration) {
	p.mu.Lock()
	ending, ended, opens := p.ending, p.ended, p.opens
	p.mu.Unlock()
	if time.Since(ended) < endingFor {
		return
	}
	d = max(d, min(waitingRest, time.Until(opens)))
	select {
	case <-time.After(d):
	case <-ending:
	case <-ctx.Done():
	}
}

// bootNs is this machine's boot clock.
func bootNs() int64 {
	var ts unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_BOOTTIME, &ts) // cannot fail for a clock that every Linux has
	return ts.Nano()
}
