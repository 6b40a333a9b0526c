// Package influx carries a run's archive to an InfluxDB: once and whole with
// Publish, or as it grows with Tail. It only reads the archive; what a record
// becomes is in internal/influx. The archive stays the truth, so a database
// may be away, or be wiped, at any time.
package influx

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sync/errgroup"

	"fieldmesh.dev/fieldmesh/controller/archive"
	"fieldmesh.dev/fieldmesh/internal/influx"
)

const (
	pollEvery = 500 * time.Millisecond
	// grace is how long the end of a run waits for a database that is away.
	grace = 20 * time.Second
	// batchLines and batchBytes bound a batch: large enough that a round trip
	// costs little, small enough to be sent again without harm.
	batchLines = 5000
	batchBytes = 1 << 20
	// publishers write side by side, so that the server need not wait for us
	// between batches. A tail has one: its cursor goes forward in order.
	publishers = 2
	shownMax   = 5 // refusals that are shown; the others are counted
)

// Summary is what happened to an archive's records.
type Summary struct {
	Points   int64            // of records, acknowledged by the server
	Results  int64            // of judged attempts, likewise
	Targets  int64            // of the plan's speeds, likewise
	Refused  []influx.Refusal // the first few that the server did not take
	RefusedN int64            // all that it did not take
	Undated  map[string]int64 // node → records left out, for no clock estimate tells their time
	Waiting  int64            // records left out until their attempt is sealed, which may tell their time
	Unknown  int64            // records of kinds that have no measurement
	Damaged  int64            // lines of the archive that are not records
	// Unreckoned are attempts without a result, for one of their lines is not a
	// record.
	Unreckoned int64
	// Kept are attempts of which the server may still show numbers that late records
	// made unknown: it deleted nothing, as KeptWhy says.
	Kept    int64
	KeptWhy error
}

// sent is how many lines the server has answered.
func (s Summary) sent() int64 { return s.Points + s.Results + s.Targets + s.RefusedN }

// Writer is what Publish and Tail send with, Publish from several goroutines;
// *influx.Writer is one.
type Writer interface {
	Write(ctx context.Context, lines []byte) ([]influx.Refusal, error)
	Forget(ctx context.Context, measurement string, tags map[string]string, at time.Time) error
}

// Publish sends every record of the run in dir, and the result of every judged
// attempt. It may be repeated: the same
// records are the same points. A run that is still being driven is sent as far
// as it has come.
func Publish(ctx context.Context, dir string, w Writer) (Summary, error) {
	if err := isRun(dir); err != nil {
		return Summary{}, fmt.Errorf("publish %q: %w", dir, err)
	}
	f := newFollower(dir, w, nil)
	if a, err := archive.Read(dir); err == nil && a.Info().Place == archive.PlaceLog {
		f.logOf, f.dating.logs = a.Info().Run, map[spool]*ownClock{}
	}
	read := func(ctx context.Context) error {
		if err := f.poll(ctx, false); err != nil { // by which the files are known, when it is asked what is sealed
			return err
		}
		return f.poll(ctx, true)
	}
	if err := f.run(ctx, publishers, f.send, read); err != nil {
		return f.summary(), fmt.Errorf("publish %q: %w", dir, err)
	}
	return f.summary(), nil
}

// run reads batches in one goroutine and sends them in n others.
func (f *follower) run(ctx context.Context, n int, send, read func(context.Context) error) error {
	g, ctx := errgroup.WithContext(ctx)
	for range n {
		g.Go(func() error { return send(ctx) })
	}
	g.Go(func() error {
		defer close(f.batches)
		return read(ctx)
	})
	return g.Wait()
}

// Tail sends the run in dir to the target as it grows, beginning where the
// last Tail to the same target ended, until done is closed; then it sends the
// rest and returns. While the server is away it waits, and the run's records
// wait on disk. Some seconds after done it ends with an error, influx.ErrAway if
// the server takes nothing: a later Tail or Publish brings the rest.
// A cancelled ctx ends it at once; what was acknowledged is noted.
func Tail(ctx context.Context, dir string, t influx.Target, w Writer, done <-chan struct{}, log *slog.Logger) (Summary,
	error) {
	if err := isRun(dir); err != nil {
		return Summary{}, fmt.Errorf("tail %q: %w", dir, err)
	}
	c, err := openCursor(dir, t)
	if err != nil {
		return Summary{}, fmt.Errorf("tail %q: %w", dir, err)
	}
	f := newFollower(dir, w, c)
	f.log = log
	if err := f.run(ctx, 1, func(ctx context.Context) error { return f.sendUntil(ctx, done) },
		func(ctx context.Context) error { return f.follow(ctx, done) }); err != nil {
		return f.summary(), fmt.Errorf("tail %q: %w", dir, err)
	}
	return f.summary(), nil
}

// follow polls until done is closed, then once more to the end.
func (f *follower) follow(ctx context.Context, done <-chan struct{}) error {
	ticker := time.NewTicker(pollEvery)
	defer ticker.Stop()
	for {
		if err := f.poll(ctx, false); err != nil {
			return err
		}
		select {
		case <-ticker.C:
		case <-done:
			return f.poll(ctx, true)
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// sendUntil sends, but gives up some time after done.
func (f *follower) sendUntil(ctx context.Context, done <-chan struct{}) error {
	ctx, giveUp := context.WithCancelCause(ctx)
	defer giveUp(nil)
	stopped := make(chan struct{})
	defer close(stopped)
	go func() {
		select {
		case <-done:
		case <-stopped:
			return
		}
		before := f.summary()
		timer := time.NewTimer(grace)
		defer timer.Stop()
		select {
		case <-timer.C:
			if f.summary().sent() > before.sent() {
				giveUp(fmt.Errorf("influxdb takes records, but had not all within %v of the end", grace))
			} else {
				giveUp(fmt.Errorf("%w: it did not come back within %v of the end", influx.ErrAway, grace))
			}
		case <-stopped:
		}
	}()
	return f.send(ctx)
}

// Behind is how many bytes of records a Tail to the target has yet to send.
func Behind(dir string, t influx.Target) (int64, error) {
	c, err := openCursor(dir, t)
	if err != nil {
		return 0, fmt.Errorf("look how far %q is sent: %w", dir, err)
	}
	files, err := list(dir)
	if err != nil {
		return 0, fmt.Errorf("look how far %q is sent: %w", dir, err)
	}
	var behind int64
	for _, r := range files {
		behind += max(0, r.size-c.Files[r.rel])
	}
	return behind, nil
}

func isRun(dir string) error {
	_, err := os.Stat(filepath.Join(dir, "run.json"))
	if errors.Is(err, os.ErrNotExist) {
		return errors.New("no run is there: it has no run.json")
	}
	return err
}
