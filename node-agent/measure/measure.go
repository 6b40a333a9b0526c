// Package measure samples the kernel's own counters on a fixed beat: one
// interface's, and tcp_info of the measured flows' sockets. It decides neither
// when a trial runs nor what its samples mean.
package measure

import (
	"context"
	"fmt"
	"math"
	"slices"
	"sync"
	"time"

	"fieldmesh.dev/fieldmesh/internal/pause"
	"fieldmesh.dev/fieldmesh/node-agent/clock"
	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// Beginner is a source that wants to know when a trial begins, because it does
// not give a sample at every beat.
type Beginner interface{ Begin() }

// Pacer is a source that has its samples from elsewhere, and wants to know how
// often it will be asked; 0: not any more.
type Pacer interface{ Pace(interval time.Duration) }

// Source gives samples when asked. Sample is called from one goroutine; the
// slice that it returns is the source's until the next call, the bodies in it
// are the caller's.
type Source interface {
	Name() string
	Sample(tBootNs int64) ([]wire.Body, error)
}

// At is a body that came about at a moment of its own, and not when its source
// was asked.
type At struct {
	wire.Body
	BootNs int64
}

// Sampler asks its sources on a fixed beat and keeps account of how late it was.
type Sampler struct {
	clk      clock.Clock
	interval time.Duration
	sources  []Source
	emit     func(tBootNs int64, b wire.Body) error
	sleep    func(ctx context.Context, d time.Duration) error // nil: by an alarm of its own
	asleepNs func() int64
	slewedNs func() (int64, bool)
	troubles []string // by source: the error that was last reported
	rest     rest

	mu    sync.Mutex
	ticks []tick // a ring of the newest ticks
	next  int    // place of the next tick in the ring
}

// rest is how a sampler asks until it is woken.
type rest struct {
	untilNs int64 // on the boot clock; 0: it does not rest
	every   time.Duration
	busy    int             // so many of the first sources are asked at each beat all the same
	over    context.Context // ends when it is woken before
	wake    context.CancelFunc
}

// tick is one beat: when it was due and how late it came.
type tick struct {
	dueNs, lateNs int64
	asleepNs      int64  // for how long the machine had been suspended by then
	slewedNs      *int64 // of a sampler without sources: by how much the boot clock had been slewed; nil: not known
	skipped       bool   // the beat before it took so long that this one never came
}

// keptFor bounds the account: the longest window that a plan may have, and what
// comes after it.
const keptFor = time.Hour + 5*time.Minute

// leastAsleepNs is how late a beat is at least after which the machine may have been suspended.
const leastAsleepNs = int64(time.Millisecond)

// NewSampler makes a sampler; Run starts it. A source that fails is reported
// once, as an event, and asked again at the next beat.
func NewSampler(clk clock.Clock, interval time.Duration, sources []Source,
	emit func(tBootNs int64, b wire.Body) error) *Sampler {
	return &Sampler{
		clk: clk, interval: interval, sources: sources, emit: emit,
		asleepNs: clock.AsleepNs, slewedNs: clock.SlewedNs, troubles: make([]string, len(sources)),
	}
}

// Rest has the sampler ask its sources only every so often until a moment of the boot
// clock, but for the first of them, so many, which it asks at each beat. It is called
// before Run.
func (s *Sampler) Rest(untilNs int64, every time.Duration, busy int) {
	over, wake := context.WithCancel(context.Background())
	s.rest = rest{untilNs: untilNs, every: max(every, s.interval), busy: busy, over: over, wake: wake}
}

// Wake ends a rest before its time: all sources are asked now, and then at each beat.
func (s *Sampler) Wake() {
	if s.rest.wake != nil {
		s.rest.wake()
	}
}

// Loop is Run of a sampler that emits its lateness over its whole life: at each hour
// that of the time since the last, and at its end that of the rest.
func Loop(ctx context.Context, clk clock.Clock, interval time.Duration, sources []Source,
	emit func(tBootNs int64, b wire.Body) error) error {
	told := &hourly{fromNs: clk.BootNs()}
	s := NewSampler(clk, interval, append(slices.Clone(sources), told), emit)
	told.sampler = s
	if err := s.Run(ctx); err != nil {
		return err
	}
	now := clk.BootNs()
	return emit(now, s.Lateness(told.fromNs, now))
}

// hourly is a source of its sampler's own lateness, as long as its beats are kept.
type hourly struct {
	sampler *Sampler
	fromNs  int64 // what was due before is told
}

func (h *hourly) Name() string { return "lateness" }

func (h *hourly) Sample(tBootNs int64) ([]wire.Body, error) {
	if tBootNs-h.fromNs < time.Hour.Nanoseconds() {
		return nil, nil
	}
	// Of a late beat, those that it skips are noted after it.
	from, to := h.fromNs, h.sampler.newestNs()+1
	h.fromNs = to
	return []wire.Body{h.sampler.Lateness(from, to)}, nil
}

// Run samples until ctx ends, which is not an error, or emit fails. Beats are
// due at fixed times from the start, so that lateness does not add up.
func (s *Sampler) Run(ctx context.Context) error {
	if s.interval <= 0 {
		return fmt.Errorf("sample every %v: the interval must be positive", s.interval)
	}
	if s.sleep == nil {
		alarm, err := pause.NewAlarm()
		if err != nil {
			return fmt.Errorf("sample every %v: %w", s.interval, err)
		}
		defer alarm.Close()
		s.sleep = alarm.For
	}
	defer s.pace(0)
	if s.rest.untilNs > 0 {
		if err := s.resting(ctx); err != nil || ctx.Err() != nil {
			return err
		}
	}
	s.pace(s.interval)
	return s.beats(ctx, s.interval, math.MaxInt64, func(int64) []Source { return s.sources })
}

// resting samples until the rest is over, or ctx ends.
func (s *Sampler) resting(ctx context.Context) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	defer context.AfterFunc(s.rest.over, stop)()
	every, busy := s.rest.every, s.sources[:s.rest.busy]
	s.pace(every)
	if len(busy) == 0 {
		return s.beats(ctx, every, s.rest.untilNs, func(int64) []Source { return s.sources })
	}
	fullNs := int64(math.MinInt64) // when all are asked next
	return s.beats(ctx, s.interval, s.rest.untilNs, func(dueNs int64) []Source {
		if dueNs < fullNs {
			return busy
		}
		fullNs = dueNs + every.Nanoseconds()
		return s.sources
	})
}

// beats samples at each beat until a moment, and asks tells whom: the first of the
// sources, or all.
func (s *Sampler) beats(ctx context.Context, interval time.Duration, untilNs int64,
	asks func(dueNs int64) []Source) error {
	step := interval.Nanoseconds()
	asleep := s.asleepNs()
	for due := s.clk.BootNs(); ; {
		now := s.clk.BootNs()
		if now >= untilNs || ctx.Err() != nil {
			return nil
		}
		if now < due {
			if s.sleep(ctx, time.Duration(min(due, untilNs)-now)) != nil {
				return nil
			}
			continue // a timer may fire early by the boot clock
		}
		if now-due >= leastAsleepNs { // a machine that was suspended wakes late by the boot clock
			asleep = s.asleepNs()
		}
		t := tick{dueNs: due, lateNs: now - due, asleepNs: asleep}
		if len(s.sources) == 0 {
			if slewed, ok := s.slewedNs(); ok {
				t.slewedNs = &slewed
			}
		}
		s.note(t)
		if err := s.sample(asks(due)); err != nil {
			return err
		}
		for due += step; due+step <= now; due += step {
			s.note(tick{dueNs: due, lateNs: now - due, asleepNs: asleep, skipped: true})
		}
	}
}

func (s *Sampler) pace(interval time.Duration) {
	for _, source := range s.sources {
		if p, ok := source.(Pacer); ok {
			p.Pace(interval)
		}
	}
}

// sample asks each of these sources once, which are the first of the sampler's; each
// sample carries the time just before its source was asked, unless it has one of its own.
func (s *Sampler) sample(sources []Source) error {
	for i, source := range sources {
		t := s.clk.BootNs()
		bodies, err := source.Sample(t)
		for _, b := range bodies {
			at := t
			if timed, is := b.(At); is {
				at, b = timed.BootNs, timed.Body
			}
			if err := s.emit(at, b); err != nil {
				return fmt.Errorf("emit sample of %s: %w", source.Name(), err)
			}
		}
		if event := s.trouble(i, err); event != nil {
			if err := s.emit(t, event); err != nil {
				return fmt.Errorf("emit trouble of %s: %w", source.Name(), err)
			}
		}
	}
	return nil
}

// trouble makes the event that reports a source's new error or its end.
func (s *Sampler) trouble(i int, err error) *wire.Event {
	text := ""
	if err != nil {
		text = err.Error()
	}
	if text == s.troubles[i] {
		return nil
	}
	s.troubles[i] = text
	if text == "" {
		return &wire.Event{Level: "info", Text: fmt.Sprintf("source %s gives samples again", s.sources[i].Name())}
	}
	return &wire.Event{Level: "warning", Text: fmt.Sprintf("source %s: %s", s.sources[i].Name(), text)}
}

func (s *Sampler) note(t tick) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.ticks) < s.kept() {
		s.ticks = append(s.ticks, t)
		return
	}
	s.ticks[s.next] = t
	s.next = (s.next + 1) % len(s.ticks)
}

// kept is how many beats are kept at most.
func (s *Sampler) kept() int { return int(keptFor / s.interval) }

// newestNs is when the newest beat was due.
func (s *Sampler) newestNs() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ticks[(s.next+len(s.ticks)-1)%len(s.ticks)].dueNs
}

// Standstill is how late a sampler without sources was, which is late for nothing
// of its own: for so long its process did not run. What of it the machine was
// suspended for is told besides, and how far its clock was slewed.
func (s *Sampler) Standstill(fromBootNs, toBootNs int64) *wire.Lateness {
	out := s.Lateness(fromBootNs, toBootNs)
	out.Source = wire.LateAgent
	s.mu.Lock()
	defer s.mu.Unlock()
	first, last, worst := int64(math.MaxInt64), int64(math.MinInt64), int64(0)
	slow, fast := first, last
	for _, t := range s.ticks {
		if t.dueNs >= fromBootNs && t.dueNs < toBootNs {
			first, last = min(first, t.asleepNs), max(last, t.asleepNs)
			worst = max(worst, min(t.lateNs, toBootNs-t.dueNs)) // what lies within
			if t.slewedNs != nil {
				slow, fast = min(slow, *t.slewedNs), max(fast, *t.slewedNs)
			}
		}
	}
	out.WorstUs = float64(worst) / 1e3
	if last >= first {
		out.SuspendedMs = new(float64(last-first) / 1e6)
	}
	if fast >= slow {
		out.SlewedMs = new(float64(fast-slow) / 1e6)
	}
	return out
}

// Lateness is how late the beats were that were due in [fromBootNs,
// toBootNs), as far back as they are kept, which its window tells. A beat that was
// skipped counts with the lateness that it had when the loop came round.
func (s *Sampler) Lateness(fromBootNs, toBootNs int64) *wire.Lateness {
	s.mu.Lock()
	if n := len(s.ticks); n > 0 && n == s.kept() {
		fromBootNs = min(max(fromBootNs, s.ticks[s.next].dueNs), toBootNs)
	}
	var late []int64
	sum, behind := int64(0), int64(0)
	for _, t := range s.ticks {
		if t.dueNs < fromBootNs || t.dueNs >= toBootNs {
			continue
		}
		late = append(late, t.lateNs)
		sum += t.lateNs
		if !t.skipped {
			behind += t.lateNs // the time of a skipped beat lies within that of the beat before it
		}
	}
	s.mu.Unlock()
	out := &wire.Lateness{Source: wire.LateSampler, WindowS: float64(toBootNs-fromBootNs) / 1e9,
		Events: uint64(len(late)), SumS: float64(behind) / 1e9}
	if len(late) == 0 {
		return out
	}
	slices.Sort(late)
	out.MeanUs = float64(sum) / float64(len(late)) / 1e3
	// Nearest rank: the smallest value that at least 99 % do not exceed.
	out.P99Us = float64(late[int(math.Ceil(0.99*float64(len(late))))-1]) / 1e3
	out.WorstUs = float64(late[len(late)-1]) / 1e3
	return out
}
