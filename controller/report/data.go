package report

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"fieldmesh.dev/fieldmesh/controller/archive"
	"fieldmesh.dev/fieldmesh/controller/design"
	"fieldmesh.dev/fieldmesh/controller/metrics"
	"fieldmesh.dev/fieldmesh/controller/plan"
	"fieldmesh.dev/fieldmesh/controller/report/effects"
	"fieldmesh.dev/fieldmesh/controller/topology"
	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// data is everything that the sections are made from.
type data struct {
	info     archive.RunInfo
	campaign *plan.Campaign // nil: a log of phones has none, and one of an older format claims nothing
	attempts []attempt      // all, in the order of the schedule
	nodes    []string       // of the plan, in its order
	warnings []string       // events of the nodes above info
	notes    []archive.JournalEntry
	altered  []archive.Finding // files that are not as the run wrote them
	sealed   archive.Signature // of the plan
	signed   archive.Signature // of the run
	origin   origin
	stop     *archive.Stop       // nil: the run did not stop by itself
	compared *effects.Comparison // once compare was asked
	table    []metrics.Row       // of all attempts
}

// attempt is one attempt with its numbers.
type attempt struct {
	wire.TrialKey
	Trial      wire.Trial
	Verdict    *wire.Verdict
	Section    string   // A, B …; empty when the campaign has none
	Unit       string   // hardware in the car
	Sender     string   // hardware that sends the data; empty when it is not known
	Session    string   // one stretch of driving: see design.Sessions
	Mbps       *float64 // of the measured flows together; nil: not measured
	rows       []metrics.Row
	points     []metrics.Point
	traces     []metrics.Trace // of the sender's connections
	node       map[string]wire.Provenance
	places     map[string][]place // node → where it was during the window
	mesh       *topology.Mesh     // nil when nothing was recorded of routing
	heard      []metrics.Row      // what captures say of routing, where its daemon does not count
	packets    []metrics.Row      // what captures say, in a campaign that puts a paper's question
	began      time.Time          // by the first GPS time in its records; zero when there is none
	unmeasured string             // why it has no throughput; empty where it has
	unjudged   []string           // what its agents did not record though the rules judge by it
	lacks      []string           // what captures are not whole, and why
	decided    time.Time          // by the controller's clock; zero when it is not
	spools     []spool            // of its nodes
	// speedErr is the mean of what the car's receiver says of its speed's error.
	speedErr *float64
}

func (a attempt) accepted() bool { return a.Verdict != nil && a.Verdict.Outcome == wire.Accepted }

// interrupted reports whether the attempt was ended from outside: it says nothing
// of its trial.
func (a attempt) interrupted() bool {
	return a.Verdict != nil && a.Verdict.Outcome == wire.Interrupted
}

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
	d := &data{info: a.Info(), campaign: campaignOf(a.Info())}
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
	found, err := archive.Verify(a.Dir())
	if err != nil {
		return nil, fmt.Errorf("gather run %q: %w", d.info.Run, err)
	}
	if d.altered = archive.Altered(found); len(d.altered) == 0 {
		sealed, err := a.PlanSealed()
		signed, serr := a.Signed()
		if err = errors.Join(err, serr); err != nil {
			return nil, fmt.Errorf("gather run %q: %w", d.info.Run, err)
		}
		d.sealed, d.signed = sealed, signed
	}
	d.decidedAt(journal)
	d.stop = a.Stopped()
	d.sessions()
	return d, nil
}

// campaignOf is the campaign that was driven, by its file.
func campaignOf(info archive.RunInfo) *plan.Campaign {
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

// asks are the effects that the campaign names.
func (d *data) asks() []string {
	if d.campaign == nil {
		return nil
	}
	return d.campaign.Asks
}

// pass is the attempt as the model sees it.
func (a *attempt) pass() design.Pass {
	return design.Pass{Trial: a.Trial, Section: a.Section, Unit: a.Unit, Sender: a.Sender, Session: a.Session}
}

func passesOf(attempts []attempt) []design.Pass {
	var out []design.Pass
	for _, a := range attempts {
		out = append(out, a.pass())
	}
	return out
}

// attemptOf is an attempt at a trial, without numbers.
func (d *data) attemptOf(t wire.Trial) attempt {
	p := design.Of(d.info.Plan.Nodes, t)
	return attempt{Trial: t, Section: p.Section, Unit: p.Unit, Sender: p.Sender}
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
	at := d.attemptOf(t)
	at.TrialKey, at.Verdict, at.node = e.TrialKey, e.Verdict, map[string]wire.Provenance{}
	at.rows, at.points, at.traces = loaded.Rows(), loaded.Timeline(), loaded.Traces()
	_, at.Mbps = metrics.Measured(t, at.rows)
	at.unmeasured, at.unjudged = loaded.Unmeasured(), loaded.Unjudged()
	at.mesh = loaded.Mesh()
	if at.mesh != nil && at.mesh.HasDaemon() && at.mesh.Cost().PacketsPerS == nil && t.Capture != nil {
		at.heard = loaded.CapturedRouting(a)
	}
	captured := loaded.Captured(a)
	at.lacks = lacksOf(loaded.Lacks(a), captured)
	if d.info.Paper != nil && at.accepted() {
		at.packets = captured
	}
	at.gps(loaded.Records())
	at.spools = spoolsOf(d.info.Plan.Nodes, loaded.Records())
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
				d.warnings = append(d.warnings, fmt.Sprintf("trial %d, attempt %d, %s: %s", at.TrialKey.Trial,
					at.Attempt, one.Node, b.Text))
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
			a.began, _ = time.Parse(time.RFC3339Nano, b.TimeUTC) // gpsd's form; anything else is not a time
		}
		if r.Node == a.Trial.Car && b.SpeedErrMps != nil {
			sum, n = sum+*b.SpeedErrMps, n+1
		}
	}
	if n > 0 {
		a.speedErr = new(sum / n)
	}
}

// results are the accepted attempts that answer the campaign's question: no
// calibration, something was measured, and it was before the run had enough.
func (d *data) results() []attempt {
	var out []attempt
	for _, a := range d.attempts {
		if d.counts(a) && a.Mbps != nil {
			out = append(out, a)
		}
	}
	return out
}

// rate is the unit of the number that trials are compared by.
const rate = "Mbit/s"

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

// course is the course that was driven; all of them when they differ.
func (d *data) courses() []string {
	return levels(d.attempts, func(a attempt) string {
		if a.calibration() {
			return ""
		}
		return a.Trial.Course.Kind
	})
}
