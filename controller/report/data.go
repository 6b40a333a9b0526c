package report

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"

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
	rate     bool // windows differ in length: compare rates, not amounts
}

// attempt is one attempt with its numbers.
type attempt struct {
	wire.TrialKey
	Trial   wire.Trial
	Verdict *wire.Verdict
	Section string // A, B …; empty when the campaign has none
	Unit    string // hardware in the car
	Sender  string // hardware that sends the data; empty when it is not known
	MB      *float64
	Mbps    *float64
	rows    []metrics.Row
	points  []metrics.Point
	traces  []metrics.Trace // of the sender's connections
	node    map[string]wire.Provenance
	places  map[string][]place // node → where it was during the window
	mesh    *topology.Mesh     // nil when nothing was recorded of routing
	heard   []metrics.Row      // what captures say of routing, where its daemon does not count
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

// gather reads an archive once, one attempt at a time.
func gather(a *archive.Archive) (*data, error) {
	d := &data{info: a.Info()}
	for _, n := range d.info.Plan.Nodes {
		d.nodes = append(d.nodes, n.Name)
	}
	entries, err := a.Trials()
	if err != nil {
		return nil, fmt.Errorf("gather run %q: %w", d.info.Run, err)
	}
	for _, e := range entries {
		if err := d.add(a, e); err != nil {
			return nil, fmt.Errorf("gather run %q: %w", d.info.Run, err)
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
	d.rate = d.windowsDiffer()
	return d, nil
}

func (d *data) add(a *archive.Archive, e archive.Attempt) error {
	t, planned := a.Trial(e.Trial)
	if !planned {
		return nil
	}
	loaded, err := metrics.Load(a, e.TrialKey)
	if err != nil {
		return err
	}
	at := attempt{
		TrialKey: e.TrialKey, Trial: t, Verdict: e.Verdict, Section: sectionOf(t), Unit: d.unitOf(t), Sender: d.senderOf(t),
		rows: loaded.Rows(), points: loaded.Timeline(), traces: loaded.Traces(), node: map[string]wire.Provenance{},
	}
	at.MB, at.Mbps = measured(t, at.rows)
	at.places = placesOf(t, loaded.Records(), &d.origin)
	at.mesh = loaded.Mesh()
	if at.mesh != nil && at.mesh.HasDaemon() && at.mesh.Cost().PacketsPerS == nil && t.Capture != nil {
		at.heard = loaded.CapturedRouting(a)
	}
	for _, r := range loaded.Records() {
		switch b := r.Body.(type) {
		case *wire.Provenance:
			at.node[r.Node] = *b
		case *wire.Event:
			if b.Level != "info" && len(d.warnings) < maxWarnings {
				d.warnings = append(d.warnings, fmt.Sprintf("trial %d, attempt %d, %s: %s", e.Trial, e.Attempt, r.Node, b.Text))
			}
		}
	}
	d.attempts = append(d.attempts, at)
	return nil
}

// measured sums the flows that are measured; absent as soon as one of them is.
func measured(t wire.Trial, rows []metrics.Row) (mb, mbps *float64) {
	var amount, rate float64
	flows := 0
	for _, f := range t.Traffic {
		if f.Background || f.Kind != "iperf3_tcp" {
			continue
		}
		m, r := metrics.Value(rows, f.Name, metrics.TransferredMB), metrics.Value(rows, f.Name, metrics.ThroughputBps)
		if m == nil || r == nil {
			return nil, nil
		}
		amount, rate, flows = amount+*m, rate+*r/1e6, flows+1
	}
	if flows == 0 {
		return nil, nil
	}
	return &amount, &rate
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
// calibration, and something was measured.
func (d *data) results() []attempt {
	var out []attempt
	for _, a := range d.attempts {
		if a.accepted() && !a.calibration() && a.MB != nil {
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
	return slices.SortedFunc(maps.Keys(seen), func(x, y string) int {
		fx, errX := strconv.ParseFloat(x, 64)
		fy, errY := strconv.ParseFloat(y, 64)
		if errX == nil && errY == nil {
			return cmp.Compare(fx, fy)
		}
		return cmp.Compare(x, y)
	})
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
