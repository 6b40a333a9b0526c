package report

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"fieldmesh.dev/fieldmesh/controller/archive"
	"fieldmesh.dev/fieldmesh/controller/metrics"
	"fieldmesh.dev/fieldmesh/controller/topology"
	"fieldmesh.dev/fieldmesh/protocols/verdict"
	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// data is everything that the sections are made from.
type data struct {
	info     archive.RunInfo
	attempts []attempt // all, in the order of the schedule
	nodes    []string  // of the plan, in its order
	warnings []string  // events of the nodes above info
	notes    []archive.JournalEntry
	origin   origin
	stop     *archive.Stop // nil: the run did not stop by itself
	compared *comparison   // once compare was asked
	table    []metrics.Row // of all attempts
	rate     bool          // windows differ in length: compare rates, not amounts
}

// attempt is one attempt with its numbers.
type attempt struct {
	wire.TrialKey
	Trial   wire.Trial
	Verdict *wire.Verdict
	Section string // A, B …; empty when the campaign has none
	Unit    string // hardware in the car
	Sender  string // hardware that sends the data; empty when it is not known
	Session string // one stretch of driving: see sessions
	MB      *float64
	Mbps    *float64
	rows    []metrics.Row
	points  []metrics.Point
	traces  []metrics.Trace // of the sender's connections
	node    map[string]wire.Provenance
	places  map[string][]place // node → where it was during the window
	mesh    *topology.Mesh     // nil when nothing was recorded of routing
	heard   []metrics.Row      // what captures say of routing, where its daemon does not count
	packets []metrics.Row      // what captures say, in a campaign that puts a paper's question
	began   time.Time          // by the first GPS time in its records; zero when there is none
	// speedErr is the mean of what the car's receiver says of its speed's error.
	speedErr *float64
}

func (a attempt) accepted() bool { return a.Verdict != nil && a.Verdict.Outcome == verdict.Accepted }

func (a attempt) calibration() bool { return a.Trial.Pass != "" }

// number is a metric of the whole attempt.
func (a attempt) number(name string) *float64 { return metrics.Value(a.rows, "", name) }

// speedMps is where the attempt belongs on the axis of speeds: its target.
func (a attempt) speedMps() (float64, bool) {
	if a.Trial.SpeedMps == nil {
		return 0, false
	}
	return *a.Trial.SpeedMps, true
}

// maxWarnings bounds the events that the report prints.
const maxWarnings = 50

// gather reads an archive once, a few attempts at a time.
func gather(a *archive.Archive) (*data, error) {
	d := &data{info: a.Info()}
	for _, n := range d.info.Plan.Nodes {
		d.nodes = append(d.nodes, n.Name)
	}
	for r, err := range metrics.InOrder(a, func(e archive.Attempt) (*reading, error) { return d.read(a, e) }) {
		if err != nil {
			return nil, fmt.Errorf("gather run %q: %w", d.info.Run, err)
		}
		if r != nil {
			d.add(r)
		}
	}
	journal, err := a.Journal()
	if err != nil {
		return nil, fmt.Errorf("gather run %q: %w", d.info.Run, err)
	}
	for _, j := range journal {
		if j.Type == "note" {
			d.notes = append(d.notes, j)
		}
	}
	d.stop = a.Stopped()
	d.rate = d.windowsDiffer()
	d.sessions()
	return d, nil
}

// pause ends a session: people went away, and came back to other weather, other
// traffic and nodes put down anew.
const pause = 30 * time.Minute

// sessions numbers the stretches of driving without a pause and without another
// unit being put into the car.
func (d *data) sessions() {
	n := 0
	var last *attempt
	for i := range d.attempts {
		a := &d.attempts[i]
		if a.calibration() {
			continue
		}
		if last == nil || a.Unit != last.Unit || !a.began.IsZero() && !last.began.IsZero() && a.began.Sub(last.began).Abs() > pause {
			n++
		}
		a.Session, last = fmt.Sprint(n), a
	}
}

// reading is an attempt that was read, before it takes its place among the others.
type reading struct {
	attempt
	records []wire.Record
	table   []metrics.Row // those of its captures too
}

// read reads an attempt; nil is one that the plan does not have. It is called
// for several at once, and only looks at d.
func (d *data) read(a *archive.Archive, e archive.Attempt) (*reading, error) {
	t, planned := a.Trial(e.Trial)
	if !planned {
		return nil, nil
	}
	loaded, err := metrics.Load(a, e.TrialKey)
	if err != nil {
		return nil, err
	}
	at := attempt{
		TrialKey: e.TrialKey, Trial: t, Verdict: e.Verdict, Section: sectionOf(t), Unit: d.unitOf(t), Sender: d.senderOf(t),
		rows: loaded.Rows(), points: loaded.Timeline(), traces: loaded.Traces(), node: map[string]wire.Provenance{},
	}
	at.MB, at.Mbps = metrics.Measured(t, at.rows)
	at.mesh = loaded.Mesh()
	if at.mesh != nil && at.mesh.HasDaemon() && at.mesh.Cost().PacketsPerS == nil && t.Capture != nil {
		at.heard = loaded.CapturedRouting(a)
	}
	captured := loaded.Captured(a)
	if d.info.Paper != nil && at.accepted() {
		at.packets = captured
	}
	at.gps(loaded.Records())
	return &reading{at, loaded.Records(), slices.Concat(at.rows, captured)}, nil
}

// add puts an attempt behind those before it.
func (d *data) add(r *reading) {
	at := r.attempt
	at.places = placesOf(at.Trial, r.records, &d.origin)
	for _, one := range r.records {
		switch b := one.Body.(type) {
		case *wire.Provenance:
			at.node[one.Node] = *b
		case *wire.Event:
			if b.Level != "info" && len(d.warnings) < maxWarnings {
				d.warnings = append(d.warnings, fmt.Sprintf("trial %d, attempt %d, %s: %s", at.TrialKey.Trial, at.Attempt, one.Node, b.Text))
			}
		}
	}
	d.table = append(d.table, r.table...)
	d.attempts = append(d.attempts, at)
}

// gps takes from an attempt's fixes when it was, and how sure its speed is.
func (a *attempt) gps(records []wire.Record) {
	var sum, n float64
	for _, r := range records {
		b, ok := r.Body.(*wire.GPS)
		if !ok {
			continue
		}
		if a.began.IsZero() && b.TimeUTC != "" {
			a.began, _ = time.Parse(time.RFC3339Nano, b.TimeUTC) // gpsd's form; anything else is no time
		}
		if r.Node == a.Trial.Car && b.SpeedErrMps != nil {
			sum, n = sum+*b.SpeedErrMps, n+1
		}
	}
	if n > 0 {
		a.speedErr = new(sum / n)
	}
}

// sectionOf follows the campaign's own factor or, without one, P1's meaning of
// the letters: in A the car sends, in B it receives.
func sectionOf(t wire.Trial) string {
	if s := t.Factors["section"]; s != "" {
		return s
	}
	switch {
	case t.Car == "":
		return ""
	case t.Sender == t.Car:
		return "A"
	case t.Receiver == t.Car:
		return "B"
	}
	return ""
}

// unitOf is the hardware in the car.
func (d *data) unitOf(t wire.Trial) string {
	if u := t.Factors["car_unit"]; u != "" {
		return u
	}
	for _, n := range d.info.Plan.Nodes {
		if n.Name == t.Car && n.Unit != "" {
			return n.Unit
		}
	}
	return t.Car
}

// senderOf is the hardware that sends the data. Where a factor says which unit
// is in the car, the roadside has the one that the car's node would have had.
func (d *data) senderOf(t wire.Trial) string {
	units := map[string]string{}
	for _, n := range d.info.Plan.Nodes {
		units[n.Name] = n.Unit
	}
	car := d.unitOf(t)
	switch {
	case t.Sender == t.Car && t.Car != "":
		return car
	case t.Sender == t.Roadside && units[t.Sender] == car:
		return units[t.Car]
	}
	return units[t.Sender]
}

func (d *data) windowsDiffer() bool {
	seconds := map[float64]bool{}
	for _, a := range d.results() {
		seconds[a.Trial.DurationS] = true
	}
	return len(seconds) > 1
}

// results are the accepted attempts that answer the campaign's question: no
// calibration, something was measured, and it was before the run had enough.
func (d *data) results() []attempt {
	var out []attempt
	for _, a := range d.attempts {
		if a.accepted() && !a.calibration() && a.MB != nil && !d.beyond(a.Trial) {
			out = append(out, a)
		}
	}
	return out
}

// response is the number that trials are compared by: the amount, where all
// windows are equally long, else the rate.
func (d *data) response(a attempt) float64 {
	if d.rate {
		return *a.Mbps
	}
	return *a.MB
}

func (d *data) unit() string {
	if d.rate {
		return "Mbit/s"
	}
	return "MB"
}

// levels lists what a property takes on among attempts, sorted; numbers by
// their value.
func levels(attempts []attempt, of func(attempt) string) []string {
	seen := map[string]bool{}
	for _, a := range attempts {
		if v := of(a); v != "" {
			seen[v] = true
		}
	}
	return slices.SortedFunc(maps.Keys(seen), wire.CompareLevels)
}

// speeds lists the target speeds among attempts.
func speeds(attempts []attempt) []float64 {
	seen := map[float64]bool{}
	for _, a := range attempts {
		if v, ok := a.speedMps(); ok {
			seen[v] = true
		}
	}
	return slices.Sorted(maps.Keys(seen))
}

func section(a attempt) string { return a.Section }

func unit(a attempt) string { return a.Unit }

func direction(a attempt) string { return a.Trial.Direction }

// course is the course that was driven; all of them when they differ.
func (d *data) courses() []string {
	return levels(d.attempts, func(a attempt) string {
		if a.calibration() {
			return ""
		}
		return a.Trial.Course.Kind
	})
}
