// Package live shows a run while it goes: one page, served by the controller's
// machine to whoever looks, with nothing to install. It reads the archive as
// the records arrive in it, so it may be started, ended and started again
// beside the run. It judges nothing and changes nothing; Grafana stays the
// place for everything else.
package live

import (
	"context"
	"encoding/json"
	"log/slog"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"fieldmesh.dev/fieldmesh/controller/archive"
	"fieldmesh.dev/fieldmesh/internal/pause"
)

// The archive is read once a second, and less often when reading it is much
// work: for less than 15 % of a processor, unless a rest would be longer than restMax.
const (
	readEvery = time.Second
	restTimes = 6
	restMax   = 5 * time.Second
)

// Board is the newest state of a run, for any number of viewers.
type Board struct {
	dir string
	log *slog.Logger

	// Follow's own.
	run      *archive.Archive // as it was read last; nil: it was not, or could not be
	shown    *reach           // of the state that is up; nil: none is
	tail     archive.Tail     // of the attempt that is up
	measured Measured
	unread   int // results that are not measured yet, or cannot be read now

	mu      sync.Mutex
	seen    view
	changed chan struct{} // closed with the next change
}

// view is what viewers are told.
type view struct {
	state   []byte    // as JSON; nil: none yet
	results []byte    // as JSON; nil: none yet
	written time.Time // when the newest record came into the archive; zero: none yet
	failure string    // why the archive could not be read; "" while it can
}

// NewBoard makes a board of the run in a folder; Follow fills it.
func NewBoard(dir string, log *slog.Logger) *Board {
	return &Board{dir: dir, log: log, measured: Measured{}, changed: make(chan struct{})}
}

// Follow reads the archive again and again until ctx ends. An archive that
// cannot be read is told to the viewers, and tried again.
func (b *Board) Follow(ctx context.Context) {
	for ctx.Err() == nil {
		began := processorTime()
		b.look()
		_ = pause.For(ctx, max(readEvery, min(restTimes*(processorTime()-began), restMax)))
	}
}

// processorTime is that of this process so far, its garbage collector's among it.
func processorTime() time.Duration {
	var used unix.Rusage
	_ = unix.Getrusage(unix.RUSAGE_SELF, &used) // it fails for other arguments only
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}

// look reads the archive once, its records only when there are new ones.
func (b *Board) look() {
	a, err := b.read()
	if err != nil {
		b.fail(err)
		return
	}
	b.run = a
	at := reachOf(a)
	had := b.shown
	if had != nil && *had == at && b.unread == 0 {
		return
	}
	v, _ := b.now()
	v.written, v.failure = at.written, ""
	if had == nil || *had != at {
		if v.state, err = b.state(a, at); err != nil {
			b.fail(err)
			return
		}
	}
	if had == nil || had.decided != at.decided || had.recorded != at.recorded || b.unread > 0 {
		if v.results, err = b.results(a); err != nil {
			b.fail(err)
			return
		}
	}
	b.shown = &at
	b.set(v)
}

func (b *Board) read() (*archive.Archive, error) {
	if b.run == nil {
		return archive.Read(b.dir)
	}
	return b.run.Again()
}

func (b *Board) state(a *archive.Archive, at reach) ([]byte, error) {
	s, err := stateOf(a, at, &b.tail)
	if err != nil {
		return nil, err
	}
	return json.Marshal(s)
}

func (b *Board) results(a *archive.Archive) ([]byte, error) {
	r := b.measured.Results(a, b.log)
	b.unread = r.Unread + r.failed
	return json.Marshal(r)
}

// fail keeps the last state up and tells why it is old.
func (b *Board) fail(err error) {
	b.run, b.shown = nil, nil
	v, _ := b.now()
	if v.failure == err.Error() {
		return
	}
	b.log.Warn("the archive cannot be read", "error", err)
	v.failure = err.Error()
	b.set(v)
}

func (b *Board) set(v view) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.seen = v
	close(b.changed)
	b.changed = make(chan struct{})
}

// now is what viewers are told at this moment, and what reports the next.
func (b *Board) now() (v view, changed <-chan struct{}) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.seen, b.changed
}
