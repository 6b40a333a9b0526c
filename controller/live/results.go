package live

import (
	"cmp"
	"log/slog"
	"maps"
	"math"
	"slices"
	"strconv"
	"time"

	"fieldmesh.dev/fieldmesh/controller/archive"
	"fieldmesh.dev/fieldmesh/controller/metrics"
	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// Bounds of what a viewer is sent with every decision.
const (
	attemptsMax = 1000 // the newest
	pointsMax   = 200  // of a level, the newest
)

// measureFor is how long results are computed at a time, so that what happens now is not kept waiting.
var measureFor = 50 * time.Millisecond

// Results are what was decided and measured so far.
type Results struct {
	By       string    `json:"by,omitempty"` // what the levels are of: speed, or a factor's name
	Levels   []Level   `json:"levels"`
	Unread   int       `json:"unread,omitempty"` // attempts that count and have records that are not measured yet
	Decided  int       `json:"decided"`          // attempts, of which
	Attempts []Decided `json:"attempts"`         // the newest, newest first
	failed   int       // attempts that count and cannot be read now
}

// Level is what was measured at one speed, or at one level of a factor.
type Level struct {
	Name   string   `json:"name"`
	N      int      `json:"n"`
	Mbps   float64  `json:"mbps"`   // mean of all n
	Points []Result `json:"points"` // the newest of them
}

// Result is one attempt's throughput, as results.csv has it.
type Result struct {
	Trial   int     `json:"trial"`
	Attempt int     `json:"attempt"`
	Mbps    float64 `json:"mbps"`
	CarGets bool    `json:"car_gets,omitempty"` // the car receives
}

// Decided is an attempt that the controller judged.
type Decided struct {
	Trial   int               `json:"trial"`
	Attempt int               `json:"attempt"`
	Factors map[string]string `json:"factors,omitempty"`
	Outcome wire.Outcome      `json:"outcome"`
	Reason  wire.Reason       `json:"reason,omitzero"`
	Mbps    *float64          `json:"mbps,omitempty"` // of an accepted one that measures TCP, when it is known
}

// Measured keeps what attempts of a run measured: each is computed once, and again only where
// it could not be read or has got records since.
type Measured map[wire.TrialKey]measured

// measured is what an attempt measured.
type measured struct {
	mbps    *float64  // nil: no TCP, or it cannot be read
	at      time.Time // when that was computed
	bytes   int64     // of the records that it had
	grown   bool      // it has got records since
	failure string    // why it cannot be read; "": it can
}

// Results are those of a run so far. It computes what is missing for a while only: see Results.Unread.
func (m Measured) Results(a *archive.Archive, log *slog.Logger) Results {
	decided := a.Decisions()
	m.some(a, decided, func(k wire.TrialKey, err error) {
		log.Warn("what an attempt measured is not known", "trial", k.Trial, "attempt", k.Attempt, "error", err)
	})
	return resultsOf(a, decided, m)
}

// some computes what is missing, the newest first, then what has got records since, and last what could not be read,
// for a while: what it does not come to is first the next time. It tells what goes wrong, once.
func (m Measured) some(a *archive.Archive, decisions []wire.Verdict, told func(wire.TrialKey, error)) {
	until := time.Now().Add(measureFor)
	var due, failed []wire.TrialKey
	for _, v := range slices.Backward(decisions) {
		if v.Outcome != wire.Accepted {
			continue
		}
		had, known := m[v.TrialKey]
		bytes, _ := a.Recorded(v.TrialKey) // where it fails, Result does, and says why
		if had.grown = bytes > had.bytes; known {
			m[v.TrialKey] = had
		}
		switch {
		case had.failure != "":
			failed = append(failed, v.TrialKey)
		case !known || had.grown:
			due = append(due, v.TrialKey)
		}
	}
	byAge := func(x, y wire.TrialKey) int { return m[x].at.Compare(m[y].at) }
	slices.SortStableFunc(due, byAge)
	slices.SortStableFunc(failed, byAge)
	for _, k := range append(due, failed...) {
		before := m[k]
		now := measured{at: time.Now()}
		now.bytes, _ = a.Recorded(k)
		var err error
		if _, now.mbps, err = metrics.Result(a, k); err != nil {
			now.failure = err.Error()
		}
		if m[k] = now; now.failure != "" && now.failure != before.failure {
			told(k, err)
		}
		if time.Now().After(until) {
			return
		}
	}
}

func resultsOf(a *archive.Archive, decisions []wire.Verdict, m Measured) Results {
	r := Results{By: levelsBy(a), Levels: []Level{}, Decided: len(decisions), Attempts: []Decided{}}
	levels := map[string]*Level{}
	for i, v := range slices.Backward(decisions) {
		t, _ := a.Trial(v.Trial) // one that the plan lacks has no factors to show
		had, known := m[v.TrialKey]
		if len(decisions)-i <= attemptsMax {
			d := Decided{Trial: v.Trial, Attempt: v.Attempt, Factors: t.Factors, Outcome: v.Outcome, Reason: v.Reason}
			if v.Outcome == wire.Accepted {
				d.Mbps = had.mbps
			}
			r.Attempts = append(r.Attempts, d)
		}
		counts := archive.Counts(t, &v, a.Stopped())
		if counts && (!known || had.grown) {
			r.Unread++
		}
		switch name := levelOf(t, r.By); {
		case !counts || !known:
		case had.failure != "":
			r.failed++
		case had.mbps != nil && name != "":
			if levels[name] == nil {
				levels[name] = &Level{Name: name}
			}
			levels[name].add(Result{Trial: v.Trial, Attempt: v.Attempt, Mbps: *had.mbps,
				CarGets: t.Car != "" && t.Receiver == t.Car})
		}
	}
	for _, name := range slices.SortedFunc(maps.Keys(levels), inOrder) {
		l := levels[name]
		l.Mbps /= float64(l.N)
		r.Levels = append(r.Levels, *l)
	}
	return r
}

// add takes a result; Mbps is the sum of them until all are there.
func (l *Level) add(r Result) {
	l.N++
	l.Mbps += r.Mbps
	if len(l.Points) < pointsMax {
		l.Points = append(l.Points, r)
	}
}

// BySpeed is Results.By where the levels are speeds, in m/s.
const BySpeed = "speed"

// levelsBy is what results are told by: the speed, or where none is planned the first factor, by name, that has more
// than one level; "" where there is none.
func levelsBy(a *archive.Archive) string {
	levels := map[string]map[string]bool{}
	for _, t := range a.Info().Plan.Trials {
		if t.SpeedMps != nil && t.Pass == "" {
			return BySpeed
		}
		for name, level := range t.Factors {
			if levels[name] == nil {
				levels[name] = map[string]bool{}
			}
			levels[name][level] = true
		}
	}
	for _, name := range slices.Sorted(maps.Keys(levels)) {
		if len(levels[name]) > 1 {
			return name
		}
	}
	return ""
}

func levelOf(t wire.Trial, by string) string {
	switch {
	case by != BySpeed:
		return cmp.Or(t.Factors[by], "all")
	case t.SpeedMps == nil:
		return ""
	}
	return strconv.FormatFloat(*t.SpeedMps, 'g', -1, 64)
}

// inOrder has numbers in the order of their size, before other names.
func inOrder(x, y string) int {
	size := func(name string) float64 {
		if v, err := strconv.ParseFloat(name, 64); err == nil {
			return v
		}
		return math.Inf(1)
	}
	return cmp.Or(cmp.Compare(size(x), size(y)), cmp.Compare(x, y))
}
