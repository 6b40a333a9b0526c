package influx

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"fieldmesh.dev/fieldmesh/internal/influx"
	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// follower reads files of records as they grow and hands batches to a sender.
// poll belongs to one goroutine, send to another.
type follower struct {
	dir     string
	logOf   string // name of a run that was made of nodes' own logs, whose records bear none
	writer  Writer
	cursor  *cursor // nil: everything is sent, and nothing noted
	log     *slog.Logger
	encoder *influx.Encoder
	dating  *dating
	files   map[string]*progress
	batches chan batch
	pending batch

	resulted map[string]string // attempt → what its result was made of
	looked   int64             // when results were looked for; see judgedAnew
	computed map[string]influx.Measurement
	trials   map[int]wire.Trial // the plan's; nil: not yet read

	mu  sync.Mutex
	sum Summary
}

// progress is how far one file has been read.
type progress struct {
	recordFile
	read   int64 // handed to the sender
	learnt int64 // looked through for clock estimates
	seen   int64 // size at the last poll
	begun  bool  // its first record is known to the dating
}

// batch is lines on their way, with what they acknowledge.
type batch struct {
	lines    []byte
	points   int64 // of records
	results  int64
	targets  int64
	ends     map[string]int64
	resulted map[string]string
	stale    []stale // results that were others before
}

func newBatch(size int) batch {
	return batch{lines: make([]byte, 0, size), ends: map[string]int64{}, resulted: map[string]string{}}
}

func newFollower(dir string, w Writer, c *cursor) *follower {
	resulted := map[string]string{}
	if c != nil {
		resulted = maps.Clone(c.Results)
	}
	computed := map[string]influx.Measurement{}
	for _, m := range influx.Computed() {
		computed[m.Name] = m
	}
	return &follower{
		computed: computed,
		resulted: resulted,
		dir:      dir, writer: w, cursor: c, log: slog.New(slog.DiscardHandler),
		encoder: influx.NewEncoder(), dating: newDating(), files: map[string]*progress{},
		batches: make(chan batch, 2), pending: newBatch(0),
		sum: Summary{Undated: map[string]int64{}},
	}
}

// send delivers batches and notes what was acknowledged.
func (f *follower) send(ctx context.Context) error {
	for {
		var b batch
		var open bool
		select {
		case b, open = <-f.batches:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		if !open {
			return nil
		}
		if err := f.forget(ctx, b.stale); err != nil {
			return err
		}
		refused, err := f.writer.Write(ctx, b.lines)
		f.count(b, refused, err == nil)
		if err != nil {
			return err
		}
		if f.cursor != nil {
			if err := f.cursor.advance(b.ends, b.resulted); err != nil {
				return err
			}
		}
	}
}

// stale is a result that has to be deleted before it is written again.
type stale struct {
	tags map[string]string
	at   time.Time
}

// forget deletes results before they are written again: a server keeps the fields that a
// point had before.
func (f *follower) forget(ctx context.Context, all []stale) error {
	for _, s := range all {
		err := f.writer.Forget(ctx, influx.ResultName, s.tags, s.at)
		switch {
		case err == nil:
		case ctx.Err() != nil, errors.Is(err, influx.ErrAway):
			return err
		default:
			f.log.Warn("influxdb may still show numbers of an attempt that are not known any more",
				"trial", s.tags["trial"], "attempt", s.tags["attempt"], "error", err)
			f.miss(func(s *Summary) { s.Kept, s.KeptWhy = s.Kept+1, err })
		}
	}
	return nil
}

func (f *follower) count(b batch, refused []influx.Refusal, stored bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, r := range refused {
		if f.sum.RefusedN++; len(f.sum.Refused) < shownMax {
			f.sum.Refused = append(f.sum.Refused, r)
			f.log.Warn("influxdb refuses a record", "reason", r.Reason, "line", r.Line)
		}
	}
	if !stored {
		return
	}
	for _, r := range refused {
		switch name, _, _ := strings.Cut(r.Line, ","); name {
		case influx.ResultName:
			b.results--
		case influx.TargetName:
			b.targets--
		default:
			b.points--
		}
	}
	f.sum.Points += b.points
	f.sum.Results += b.results
	f.sum.Targets += b.targets
}

func (f *follower) summary() Summary {
	f.mu.Lock()
	defer f.mu.Unlock()
	s := f.sum
	s.Undated = maps.Clone(f.sum.Undated)
	return s
}

// poll reads what is new in every file and hands it on. With final the whole
// of each file is read, and what waits for better knowledge is counted.
func (f *follower) poll(ctx context.Context, final bool) error {
	f.noteSealed()
	found, err := list(f.dir)
	if err != nil {
		return err
	}
	if err := f.study(found); err != nil {
		return err
	}
	// Results are reckoned while the server stores the records, and follow them.
	var outcomes []outcome
	g, reading := errgroup.WithContext(ctx)
	g.Go(func() (err error) {
		if outcomes, err = f.outcomes(reading, final); err != nil {
			return fmt.Errorf("reckon results: %w", err)
		}
		return nil
	})
	g.Go(func() error {
		for _, r := range found {
			p := f.files[r.rel]
			if err := f.read(reading, p, final); err != nil {
				return fmt.Errorf("read %s: %w", p.rel, err)
			}
			p.seen = p.size
		}
		return nil
	})
	if err := g.Wait(); err != nil {
		return err
	}
	for _, o := range outcomes {
		if err := f.add(ctx, o); err != nil {
			return err
		}
	}
	return f.flush(ctx)
}

// noteSealed goes before the files' sizes are taken: what a sealed attempt or a finished run
// has is then read whole, its clock estimates too.
func (f *follower) noteSealed() {
	_, err := os.Stat(filepath.Join(f.dir, "MANIFEST.sha256"))
	f.dating.finished = err == nil
	for _, p := range f.files {
		if p.inAttempt() && !f.dating.sealed[p.key] && sealed(f.dir, p.recordFile) {
			f.dating.sealed[p.key] = true
		}
	}
}

// study notes the files' sizes, and learns about clocks before any record is dated.
func (f *follower) study(found []recordFile) error {
	for _, r := range found {
		p := f.files[r.rel]
		if p == nil {
			p = &progress{}
			if f.cursor != nil {
				p.read = f.cursor.Files[r.rel]
			}
			f.files[r.rel] = p
		}
		p.recordFile = r
	}
	for _, r := range found {
		p := f.files[r.rel]
		var err error
		switch {
		case f.logOf != "":
			err = f.learn(p, f.dating.learnLog)
		case r.node == controllerNode && !r.late:
			err = f.learn(p, func(h wire.Header, body wire.Body) {
				if c, ok := body.(*wire.Clock); ok {
					f.dating.learn(p.key, h, c)
				}
			})
		case r.inAttempt() && !p.begun:
			err = f.begin(p)
		}
		if err != nil {
			return fmt.Errorf("read %s: %w", r.rel, err)
		}
	}
	for _, c := range f.dating.logs {
		c.settle()
	}
	return nil
}

// learn looks through a file's new records for what they say about clocks.
func (f *follower) learn(p *progress, take func(wire.Header, wire.Body)) error {
	end, err := lines(f.dir, p.rel, p.learnt, p.size, func(line []byte, _ int64) error {
		var r wire.Record
		if r.UnmarshalJSON(line) != nil {
			return nil // counted when it is sent
		}
		take(r.Header, r.Body)
		return nil
	})
	p.learnt = end
	return err
}

// begin reads the first record of an attempt's file.
func (f *follower) begin(p *progress) error {
	_, err := lines(f.dir, p.rel, 0, p.size, func(line []byte, _ int64) error {
		var r wire.Record
		if r.UnmarshalJSON(line) == nil {
			f.dating.begin(p.key, r.Header)
			p.begun = true
		}
		return errStop
	})
	return err
}

// read makes points of a file's new records, up to the first that cannot be
// dated yet.
func (f *follower) read(ctx context.Context, p *progress, final bool) error {
	limit := p.size
	if p.key == (wire.TrialKey{}) && !final {
		// One append writes several files. What was here at the last poll has
		// the attempts that began before it beside it by now.
		limit = min(limit, p.seen)
	}
	held := false
	_, err := lines(f.dir, p.rel, p.read, limit, func(line []byte, end int64) error {
		when, err := f.take(p, line, final)
		switch {
		case err != nil:
			return err
		case when == notYet:
			return errStop
		case when == never && f.cursor != nil:
			// A later Tail may know better, so the cursor must not pass the record. What follows is sent all the same,
			// and again by that Tail.
			held = true
		}
		if !held {
			p.read = end
			f.pending.ends[p.rel] = end
		}
		return f.flushFull(ctx)
	})
	return err
}

// take adds one record to the pending batch, if it can be dated.
func (f *follower) take(p *progress, line []byte, final bool) (answer, error) {
	r, err := f.encoder.Parse(line)
	if err != nil {
		f.miss(func(s *Summary) { s.Damaged++ })
		return dated, nil
	}
	if f.logOf != "" {
		r.Header.Run = f.logOf
	}
	offset, when := f.dating.offset(r.Header, p.key, final)
	switch when {
	case notYet:
		if !final {
			return notYet, nil
		}
		f.miss(func(s *Summary) { s.Waiting++ })
		return never, nil // as far as it is known
	case never, hopeless:
		f.miss(func(s *Summary) { s.Undated[r.Header.Node]++ })
		return when, nil
	}
	grown, err := f.encoder.Append(f.pending.lines, r, offset)
	switch {
	case errors.Is(err, influx.ErrNoMeasurement):
		f.miss(func(s *Summary) { s.Unknown++ })
	case err != nil:
		f.miss(func(s *Summary) { s.Damaged++ })
	default:
		f.pending.lines = grown
		f.pending.points++
		return dated, f.target(r.Header, offset)
	}
	return dated, nil
}

func (f *follower) miss(note func(*Summary)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	note(&f.sum)
}

// flush hands the pending batch to the sender, and waits while that is behind.
func (f *follower) flush(ctx context.Context) error {
	if len(f.pending.lines) == 0 && len(f.pending.ends) == 0 && len(f.pending.resulted) == 0 {
		return nil
	}
	select {
	case f.batches <- f.pending:
		f.pending = newBatch(len(f.pending.lines))
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// errStop ends the reading of lines without being an error.
var errStop = errors.New("stop")

// lines calls do with every whole line of a file from an offset on, with the
// offset after it, and returns where it came to.
func lines(dir, rel string, from, to int64, do func(line []byte, end int64) error) (end int64, err error) {
	if from >= to {
		return from, nil
	}
	file, err := os.Open(filepath.Join(dir, filepath.FromSlash(rel)))
	if err != nil {
		return from, err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	if from, err = lineStart(file, from); err != nil {
		return from, err
	}
	r := bufio.NewReaderSize(io.NewSectionReader(file, from, to-from), 256<<10)
	for end = from; ; {
		line, err := r.ReadSlice('\n')
		if errors.Is(err, bufio.ErrBufferFull) {
			var rest []byte
			line = bytes.Clone(line)
			rest, err = r.ReadBytes('\n')
			line = append(line, rest...)
		}
		if errors.Is(err, io.EOF) {
			return end, nil // the rest of the line is still being written
		}
		if err != nil {
			return end, err
		}
		switch err := do(line[:len(line)-1], end+int64(len(line))); {
		case errors.Is(err, errStop):
			return end, nil
		case err != nil:
			return end, err
		}
		end += int64(len(line))
	}
}

// lineStart is from, or 0 when no line begins there: then the file was cut back
// by a crash and grew again, and is read from its beginning.
func lineStart(file *os.File, from int64) (int64, error) {
	if from == 0 {
		return 0, nil
	}
	var before [1]byte
	if _, err := file.ReadAt(before[:], from-1); err != nil && !errors.Is(err, io.EOF) {
		return from, err
	}
	if before[0] != '\n' {
		return 0, nil
	}
	return from, nil
}
