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
)

// The archive is read once a second, and less often when reading it is much
// work: never more than a quarter of the time.
const (
	readEvery = time.Second
	restTimes = 3
)

// Board is the newest state of a run, for any number of viewers.
type Board struct {
	dir string
	log *slog.Logger

	mu      sync.Mutex
	text    []byte        // the state as JSON
	failure string        // why the archive could not be read; "" while it can
	changed chan struct{} // closed with the next change
}

// NewBoard makes a board of the run in a folder; Follow fills it.
func NewBoard(dir string, log *slog.Logger) *Board {
	return &Board{dir: dir, log: log, changed: make(chan struct{})}
}

// Follow reads the archive again and again until ctx ends. An archive that
// cannot be read is told to the viewers, and tried again.
func (b *Board) Follow(ctx context.Context) {
	for ctx.Err() == nil {
		began := time.Now()
		b.look(began)
		t := time.NewTimer(max(readEvery, restTimes*time.Since(began)))
		select {
		case <-ctx.Done():
		case <-t.C:
		}
		t.Stop()
	}
}

// look reads the archive once.
func (b *Board) look(now time.Time) {
	s, err := read(b.dir, now)
	var text []byte
	if err == nil {
		text, err = json.Marshal(s)
	}
	if err != nil {
		b.set(nil, err.Error())
		return
	}
	b.set(text, "")
}

// set puts a state up, or with a failure keeps the last and tells why it is old.
func (b *Board) set(text []byte, failure string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if failure != "" {
		if failure == b.failure {
			return
		}
		b.log.Warn("the archive cannot be read", "error", failure)
	} else {
		b.text = text
	}
	b.failure = failure
	close(b.changed)
	b.changed = make(chan struct{})
}

// now is the state, why it is not newer, and what tells of the next.
func (b *Board) now() (text []byte, failure string, changed <-chan struct{}) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text, b.failure, b.changed
}
