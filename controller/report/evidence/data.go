// Package evidence is a run as the report's sections look at it: read from the
// archive once, each attempt with its numbers, its session and its places.
package evidence

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"fieldmesh.dev/fieldmesh/controller/archive"
	"fieldmesh.dev/fieldmesh/controller/design"
	"fieldmesh.dev/fieldmesh/controller/metrics"
	"fieldmesh.dev/fieldmesh/controller/metrics/inorder"
	"fieldmesh.dev/fieldmesh/controller/plan"
	"fieldmesh.dev/fieldmesh/controller/report/effects"
	"fieldmesh.dev/fieldmesh/controller/report/words"
	"fieldmesh.dev/fieldmesh/controller/stats"
	"fieldmesh.dev/fieldmesh/controller/topology"
	"fieldmesh.dev/fieldmesh/internal/verdict"
	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// Run is everything that the sections are made from.
type Run struct {
	Info     archive.RunInfo
	Dir      string         // its folder
	Alone    bool           // the report goes where that is not: no photo is beside it
	Campaign *plan.Campaign // nil: a log of phones has none, and one of an older format claims nothing
	Attempts []Attempt      // all, in the order of the schedule
	Nodes    []string       // of the plan, in its order
	Warnings []string       // the first events of the nodes above info
	Warned   int            // how many there are
	Notes    []archive.JournalEntry
	Marks    []Mark
	Altered  []archive.Finding // files that are not as the run wrote them
	Sealed   archive.Signature // of the plan
	Signed   archive.Signature // of the run
	origin   origin
	marks    marks
	Stop     *archive.Stop       // nil: the run did not stop by itself
	Compared *effects.Comparison // once compare was asked
	Table    []metrics.Row       // of all attempts
}

// Attempt is one attempt with its numbers.
type Attempt struct {
	wire.TrialKey
	Trial      wire.Trial
	Verdict    *wire.Verdict
	Section    string   // A, B …; empty when the campaign has none
	Unit       string   // hardware in the car
	Sender     string   // hardware that sends the data; empty when it is not known
	Session    string   // one stretch of driving: see design.Sessions
	Mbps       *float64 // of the measured flows together; nil: not measured
	Rows       []metrics.Row
	Points     []metrics.Point
	Traces     []metrics.Trace // of the sender's connections
	Node       map[string]wire.Provenance
	Places     map[string][]Place // node → where it was during the window
	Mesh       *topology.Mesh     // nil when nothing was recorded of routing
	Heard      []metrics.Row      // what captures say of routing, where its daemon does not count
	Packets    []metrics.Row      // what captures say, in a campaign that puts a paper's question
	began      time.Time          // by the first GPS time in its records; zero when there is none
	ended      time.Time          // by the last
	Unmeasured string             // why it has no throughput; empty where it has
	Unjudged   []string           // what its agents did not record though the rules judge by it
	Lacks      []string           // what captures are not whole, and why
	decided    time.Time          // by the controller's clock; zero when it is not
	spools     []spool            // of its nodes
	// SpeedErr is the mean of what the car's receiver says of its speed's error in the window.
	SpeedErr *float64
}

// Accepted reports whether the attempt was accepted.
func (a Attempt) Accepted() bool { return a.Verdict != nil && a.Verdict.Outcome == wire.Accepted }

// Interrupted reports whether the attempt was ended from outside: it says nothing
// of its trial.
func (a Attempt) Interrupted() bool {
	return a.Verdict != nil && a.Verdict.Outcome == wire.Interrupted
}

// Calibration reports whether the attempt is a calibrating pass.
func (a Attempt) Calibration() bool { return a.Trial.Pass != "" }

// Number is a metric of the whole attempt.
func (a Attempt) Number(name string) *float64 { return metrics.Value(a.Rows, "", name) }

// SpeedMps is where the attempt belongs on the axis of speeds: its target.
func (a Attempt) SpeedMps() (float64, bool) {
	if a.Trial.SpeedMps == nil {
		return 0, false
	}
	return *a.Trial.SpeedMps, true
}

// maxWarnings bounds the events that the report prints.
const maxWarnings = 20

// Gather reads an archive once, a few attempts at a time.
func Gather(a *archive.Archive) (*Run, error) {
	d := &Run{Info: a.Info(), Dir: a.Dir(), Campaign: CampaignOf(a.Info())}
	for _, n := range d.Info.Plan.Nodes {
		d.Nodes = append(d.Nodes, n.Name)
	}
	for r, err := range inorder.Read(a, func(e archive.Attempt) (*reading, error) { return d.read(a, e) }) {
		if err != nil {
			return nil, fmt.Errorf("gather run %q: %w", d.Info.Run, err)
		}
		if r != nil {
			d.add(r)
		}
	}
	journal, err := a.Journal()
	if err != nil {
		return nil, fmt.Errorf("gather run %q: %w", d.Info.Run, err)
	}
	for _, j := range journal {
		if j.Type == "note" {
			d.Notes = append(d.Notes, j)
		}
	}
	if err := d.marks.between(a); err != nil {
		return nil, fmt.Errorf("gather run %q: %w", d.Info.Run, err)
	}
	d.Marks = d.marks.all(d.Dir)
	found, err := archive.Verify(a.Dir())
	if err != nil {
		return nil, fmt.Errorf("gather run %q: %w", d.Info.Run, err)
	}
	if d.Altered = archive.Altered(found); len(d.Altered) == 0 {
		sealed, err := a.PlanSealed()
		signed, serr := a.Signed()
		if err = errors.Join(err, serr); err != nil {
			return nil, fmt.Errorf("gather run %q: %w", d.Info.Run, err)
		}
		d.Sealed, d.Signed = sealed, signed
	}
	d.decidedAt(journal)
	d.Stop = a.Stopped()
	d.sessions()
	return d, nil
}

// CampaignOf is the campaign that was driven, by its file.
func CampaignOf(info archive.RunInfo) *plan.Campaign {
	scale := plan.FullScale
	if info.Scale != nil {
		scale = info.Scale.Name
	}
	c, err := plan.ParseArchived("campaign.yaml", info.CampaignRaw, scale)
	if err != nil {
		return nil
	}
	return c
}

// Asks are the effects that the campaign names.
func (d *Run) Asks() []string {
	if d.Campaign == nil {
		return nil
	}
	return d.Campaign.Asks
}

// Pass is the attempt as the model sees it.
func (a *Attempt) Pass() design.Pass {
	return design.Pass{Trial: a.Trial, Section: a.Section, Unit: a.Unit, Sender: a.Sender, Session: a.Session}
}

// PassesOf are attempts as the model sees them.
func PassesOf(attempts []Attempt) []design.Pass {
	var out []design.Pass
	for _, a := range attempts {
		out = append(out, a.Pass())
	}
	return out
}

// AttemptOf is an attempt at a trial, without numbers.
func (d *Run) AttemptOf(t wire.Trial) Attempt {
	p := design.Of(d.Info.Plan.Nodes, t)
	return Attempt{Trial: t, Section: p.Section, Unit: p.Unit, Sender: p.Sender}
}

// reading is an attempt that was read, before it takes its place among the others.
type reading struct {
	Attempt
	records []wire.Record
	table   []metrics.Row // those of its captures too
}

// read reads an attempt; nil is one that the plan does not have. It is called
// for several at once, and only looks at d.
func (d *Run) read(a *archive.Archive, e archive.Attempt) (*reading, error) {
	t, planned := a.Trial(e.Trial)
	if !planned {
		return nil, nil
	}
	loaded, err := metrics.Load(a, e.TrialKey)
	if err != nil {
		return nil, err
	}
	at := d.AttemptOf(t)
	at.TrialKey, at.Verdict, at.Node = e.TrialKey, e.Verdict, map[string]wire.Provenance{}
	at.Rows, at.Points, at.Traces = loaded.Rows(), loaded.Timeline(), loaded.Traces()
	_, at.Mbps = metrics.Measured(t, at.Rows)
	at.Unmeasured, at.Unjudged = loaded.Unmeasured(), loaded.Unjudged()
	at.Mesh = loaded.Mesh()
	if at.Mesh != nil && at.Mesh.HasDaemon() && at.Mesh.Cost().PacketsPerS == nil && t.Capture != nil {
		at.Heard = loaded.CapturedRouting(a)
	}
	captured := loaded.Captured(a)
	at.Lacks = LacksOf(loaded.Lacks(a), captured)
	if d.Info.Paper != nil && at.Accepted() {
		at.Packets = captured
	}
	at.gps(loaded.Records())
	at.spools = spoolsOf(d.Info.Plan.Nodes, loaded.Records())
	return &reading{at, loaded.Records(), slices.Concat(at.Rows, captured)}, nil
}

// add puts an attempt behind those before it.
func (d *Run) add(r *reading) {
	at := r.Attempt
	at.Places = placesOf(at.Trial, r.records, &d.origin)
	for _, one := range r.records {
		d.marks.add(one)
		switch b := one.Body.(type) {
		case *wire.Provenance:
			at.Node[one.Node] = *b
		case *wire.Event:
			if b.Level == "info" {
				continue
			}
			if d.Warned++; d.Warned <= maxWarnings {
				d.Warnings = append(d.Warnings, fmt.Sprintf("trial %d, attempt %d, %s: %s", at.TrialKey.Trial,
					at.Attempt, one.Node, b.Text))
			}
		}
	}
	d.Table = append(d.Table, r.table...)
	d.Attempts = append(d.Attempts, at)
}

// gps takes from an attempt's fixes when it was, and how sure its speed is. It lasted at least until its window was
// closed, also when no fix came any more.
func (a *Attempt) gps(records []wire.Record) {
	w := verdict.WindowOf(a.Trial.Car, records)
	var sum, n float64
	for _, r := range records {
		b, ok := r.Body.(*wire.GPS)
		if !ok {
			continue
		}
		inWindow := r.Node == a.Trial.Car && w != nil && r.TBootNs >= w.OpenBootNs && r.TBootNs <= w.CloseBootNs
		if at, err := time.Parse(time.RFC3339Nano, b.TimeUTC); err == nil { // gpsd's form; all else is not a time
			if a.began.IsZero() {
				a.began = at
			}
			if inWindow {
				at = at.Add(time.Duration(w.CloseBootNs - r.TBootNs))
			}
			if at.After(a.ended) {
				a.ended = at
			}
		}
		if inWindow && b.SpeedErrMps != nil {
			sum, n = sum+*b.SpeedErrMps, n+1
		}
	}
	if n > 0 {
		a.SpeedErr = new(sum / n)
	}
}

// Results are the accepted attempts that answer the campaign's question: no
// calibration, something was measured, and it was before the run had enough.
func (d *Run) Results() []Attempt {
	var out []Attempt
	for _, a := range d.Attempts {
		if d.Counts(a) && a.Mbps != nil {
			out = append(out, a)
		}
	}
	return out
}

// RateUnit is the unit of the number that trials are compared by.
const RateUnit = "Mbit/s"

// Levels lists what a property takes on among attempts, sorted; numbers by
// their value.
func Levels(attempts []Attempt, of func(Attempt) string) []string {
	seen := map[string]bool{}
	for _, a := range attempts {
		if v := of(a); v != "" {
			seen[v] = true
		}
	}
	return slices.SortedFunc(maps.Keys(seen), wire.CompareLevels)
}

// Speeds lists the target speeds among attempts.
func Speeds(attempts []Attempt) []float64 {
	seen := map[float64]bool{}
	for _, a := range attempts {
		if v, ok := a.SpeedMps(); ok {
			seen[v] = true
		}
	}
	return slices.Sorted(maps.Keys(seen))
}

// Section is an attempt's section, for Levels.
func Section(a Attempt) string { return a.Section }

// Unit is an attempt's unit, for Levels.
func Unit(a Attempt) string { return a.Unit }

// course is the course that was driven; all of them when they differ.
func (d *Run) Courses() []string {
	return Levels(d.Attempts, func(a Attempt) string {
		if a.Calibration() {
			return ""
		}
		return a.Trial.Course.Kind
	})
}

// LacksOf says of an attempt's captures which are not whole, and why.
func LacksOf(lacks []metrics.Lack, captured []metrics.Row) []string {
	var out []string
	for _, l := range lacks {
		out = append(out, l.Node+": "+l.What)
	}
	if n := metrics.Value(captured, "", metrics.CapturesUnreadable); n != nil {
		out = append(out, fmt.Sprintf("of %s the capture cannot be read: fieldmesh metrics says where it is at fault",
			words.Count(int(*n), "node")))
	}
	return out
}

// CellOf summarises the responses of one section at one speed.
func CellOf(d *Run, sectionName string, speed float64) stats.Summary {
	var values []float64
	for _, a := range d.Results() {
		if v, ok := a.SpeedMps(); ok && v == speed && a.Section == sectionName {
			values = append(values, *a.Mbps)
		}
	}
	return stats.Summarise(values)
}

// Zeros counts the accepted trials that transferred nothing.
func Zeros(d *Run) int {
	n := 0
	for _, a := range d.Results() {
		if *a.Mbps == 0 {
			n++
		}
	}
	return n
}

// NumbersOf collects a metric where it was measured.
func NumbersOf(attempts []Attempt, name string) []float64 {
	return Measured(attempts, func(a Attempt) *float64 { return a.Number(name) })
}

// Measured collects a number of things that have it.
func Measured[T any](all []T, number func(T) *float64) []float64 {
	var out []float64
	for _, one := range all {
		if v := number(one); v != nil {
			out = append(out, *v)
		}
	}
	return out
}
