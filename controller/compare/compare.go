// Package compare sets two runs of one design beside each other, cell by cell.
// It says how far they are apart and how certain that is; why is for people.
package compare

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"gonum.org/v1/gonum/stat"

	"fieldmesh.dev/fieldmesh/controller/archive"
	"fieldmesh.dev/fieldmesh/controller/metrics"
	"fieldmesh.dev/fieldmesh/controller/stats"
	"fieldmesh.dev/fieldmesh/controller/stopping"
	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// Number is one of the numbers that are compared, in the unit that it is shown in.
type Number struct {
	Name, Unit string
	PerUnit    float64 // of the metric's own unit
	measured   bool    // of the measured flows; else of the attempt
	tcp        bool    // of those of TCP alone
}

// Numbers are what is compared. Packet loss is there where both ends captured,
// the retransmitted segments everywhere.
func Numbers() []Number {
	return []Number{
		{Name: metrics.ThroughputBps, Unit: "Mbit/s", PerUnit: 1e6, measured: true, tcp: true},
		{Name: metrics.PacketLossPercent, Unit: "%", PerUnit: 1, measured: true},
		{Name: metrics.RetransmitsName, Unit: "segments", PerUnit: 1, measured: true, tcp: true},
		{Name: metrics.SignalMeanDbm, Unit: "dBm", PerUnit: 1},
	}
}

// Mean is of a cell's values, one a trial; its interval is absent below three.
type Mean struct {
	N        int
	Value    float64
	HalfWide *float64
}

// Difference is the second run's mean less the first's, in one cell.
type Difference struct {
	Cell   string
	Number Number
	A, B   *Mean    // absent: nothing was measured
	Apart  *float64 // absent unless both are there
	// HalfWide is of Welch's interval, absent where either mean has none, or where
	// no value differs from its cell's mean.
	HalfWide *float64
}

// Table is the comparison of two runs.
type Table struct {
	A, B        archive.RunInfo
	Differences []Difference // by cell, then in the order of Numbers
	Replay      *Replay      // absent unless the second's field was calibrated by a part of the first
	Notes       []string     // what makes the two differ besides what is asked
}

// Confidence is that of every interval: that of the runs' own reports, and of two the greater.
func (t *Table) Confidence() float64 {
	return max(stopping.Level(t.A.Enough, t.A.Plan), stopping.Level(t.B.Enough, t.B.Plan))
}

// ErrNoCell is returned for runs without a common cell.
var ErrNoCell = errors.New("the runs have no cell of the design in common")

// values are a run's, by cell and number.
type values map[string]map[string][]float64

// Runs compares two runs. Of the first only what was held out counts, where the second's
// field was calibrated by the rest.
func Runs(a, b *archive.Archive) (*Table, error) {
	t := &Table{A: a.Info(), B: b.Info()}
	field := t.calibrated()
	var passes [2][]pass
	for i, run := range []*archive.Archive{a, b} {
		p, err := collect(run, field != nil)
		if err != nil {
			return nil, fmt.Errorf("compare: run %q: %w", run.Info().Run, err)
		}
		passes[i] = p
		t.noteMissing(run, p)
	}
	if field != nil {
		if err := t.replay(field, passes[0], passes[1]); err != nil {
			return nil, err
		}
		passes[0] = slices.DeleteFunc(passes[0], func(p pass) bool {
			return !slices.Contains(t.Replay.HeldOut, p.repetition)
		})
	}
	of := [2]values{byCell(passes[0]), byCell(passes[1])}
	cells := map[string]bool{}
	common := false
	for i, one := range of {
		for cell := range one {
			cells[cell] = true
			common = common || of[1-i][cell] != nil
		}
	}
	if !common {
		return nil, fmt.Errorf("compare %q and %q: %w", t.A.Run, t.B.Run, ErrNoCell)
	}
	for _, cell := range slices.Sorted(maps.Keys(cells)) {
		for _, n := range Numbers() {
			if d := difference(of[0][cell][n.Name], of[1][cell][n.Name], t.Confidence()); d.A != nil || d.B != nil {
				d.Cell, d.Number = cell, n
				t.Differences = append(t.Differences, d)
			}
		}
	}
	t.oneDraw(field != nil)
	t.note()
	t.noteDrops(passes)
	return t, nil
}

// pass is an accepted attempt.
type pass struct {
	repetition int // 0 of a calibration pass
	cell       string
	speedMps   *float64
	numbers    map[string]float64 // by name, in the unit that each is shown in
	along      []spot             // absent if so
	dropped    float64            // packets that the kernel dropped from captures
}

// collect gathers the accepted attempts' numbers, calibration passes too, but none
// of what was driven after the run had enough. With along it has what they did from
// moment to moment.
func collect(a *archive.Archive, along bool) ([]pass, error) {
	attempts, err := a.Trials()
	if err != nil {
		return nil, err
	}
	var out []pass
	for _, at := range attempts {
		trial, planned := a.Trial(at.Trial)
		if !planned || !a.Drives(trial) || at.Verdict == nil || at.Verdict.Outcome != wire.Accepted {
			continue
		}
		loaded, err := metrics.Load(a, at.TrialKey)
		if err != nil {
			return nil, err
		}
		rows, _ := loaded.AllRows(a)
		p := pass{repetition: trial.Repetition, cell: cellOf(trial), speedMps: trial.SpeedMps,
			numbers: map[string]float64{}}
		if n := metrics.Value(rows, "", metrics.CaptureDropped); n != nil {
			p.dropped = *n
		}
		for _, n := range Numbers() {
			if v := n.of(trial, rows); v != nil {
				p.numbers[n.Name] = *v / n.PerUnit
			}
		}
		if along {
			p.along = spots(loaded.Timeline())
		}
		out = append(out, p)
	}
	return out, nil
}

func byCell(passes []pass) values {
	out := values{}
	for _, p := range passes {
		if out[p.cell] == nil {
			out[p.cell] = map[string][]float64{}
		}
		for name, v := range p.numbers {
			out[p.cell][name] = append(out[p.cell][name], v)
		}
	}
	return out
}

// cellOf names a cell by its factors. What is balanced within cells, such as the
// direction of travel, is none; parked passes are cells by their marks.
func cellOf(t wire.Trial) string {
	var parts []string
	for _, f := range slices.Sorted(maps.Keys(t.Factors)) {
		parts = append(parts, f+" "+t.Factors[f])
	}
	if t.Course.MarkM != nil {
		parts = append(parts, fmt.Sprintf("parked at %g m", *t.Course.MarkM))
	}
	if len(parts) == 0 {
		return "all"
	}
	return strings.Join(parts, ", ")
}

// of returns an attempt's number: the sum over its measured flows, but of loss that of
// all their packets, and of throughputs that of the flows together. It is nil as soon as
// one of these flows has none.
func (n Number) of(t wire.Trial, rows []metrics.Row) *float64 {
	if !n.measured {
		return metrics.Value(rows, "", n.Name)
	}
	if n.Name == metrics.ThroughputBps {
		if _, mbps := metrics.Measured(t, rows); mbps != nil {
			return new(*mbps * n.PerUnit)
		}
		return nil
	}
	flows := slices.DeleteFunc(slices.Clone(t.Traffic), func(f wire.Flow) bool {
		return f.Background || f.Kind == wire.KindDelay || n.tcp && f.Kind != "iperf3_tcp"
	})
	if n.Name != metrics.PacketLossPercent {
		return metrics.Sum(rows, flows, n.Name)
	}
	var values, sent []*float64
	for _, f := range flows {
		values, sent = append(values, metrics.Value(rows, f.Name, n.Name)),
			append(sent, metrics.Value(rows, f.Name, metrics.PacketsSent))
	}
	return stats.Weighted(values, sent)
}

func difference(a, b []float64, confidence float64) Difference {
	d := Difference{A: meanOf(a, confidence), B: meanOf(b, confidence)}
	if d.A == nil || d.B == nil {
		return d
	}
	d.Apart = new(d.B.Value - d.A.Value)
	if w := stats.Welch(a, b, confidence); w != nil {
		d.HalfWide = new((w.High - w.Low) / 2)
	}
	return d
}

func meanOf(v []float64, confidence float64) *Mean {
	if len(v) == 0 {
		return nil
	}
	return &Mean{N: len(v), Value: stat.Mean(v, nil), HalfWide: stats.HalfWidth(confidence, v)}
}

// note names what differs between the runs besides road and rehearsal, and what the intervals are.
func (t *Table) note() {
	say := func(format string, args ...any) { t.Notes = append(t.Notes, fmt.Sprintf(format, args...)) }
	told := 0
	for _, d := range t.Differences {
		if d.HalfWide != nil {
			told++
		}
	}
	if t.Replay != nil {
		for _, e := range t.Replay.Errors {
			if e.Low != nil {
				told++
			}
		}
	}
	if told > 1 {
		say("of %d intervals, each at %.3g %%, about %.1f leave zero out by chance where nothing differs: they are "+
			"not corrected for being many", told, 100*t.Confidence(), float64(told)*(1-t.Confidence()))
	}
	for _, of := range []archive.RunInfo{t.A, t.B} {
		if of.Enough != nil {
			say("%s could stop early, where its trials happened to scatter little: every interval here is at %.3g %%, "+
				"because the chance of error is shared among its looks", of.Run, 100*t.Confidence())
		}
	}
	if t.A.Version != t.B.Version {
		say("they were driven by different versions of Fieldmesh, whose emulated radio, daemons and verdicts may "+
			"differ: %s and %s", cmp.Or(t.A.Version, "an unknown one"), cmp.Or(t.B.Version, "an unknown one"))
	}
	if a, b := clockOf(t.A), clockOf(t.B); a != b {
		say("time was %s in %s and %s in %s: in virtual time computing takes none", a, t.A.Run, b, t.B.Run)
	}
	for _, of := range []archive.RunInfo{t.A, t.B} {
		if of.Shard != nil {
			say("%s is shard %s of a run", of.Run, of.Shard)
		}
	}
	if t.A.Campaign != t.B.Campaign {
		say("they are of different campaigns: %s and %s", t.A.Campaign, t.B.Campaign)
	} else if of, other := t.A.Plan.CampaignSHA256, t.B.Plan.CampaignSHA256; of != other {
		say("their campaign files differ (SHA-256 %.16s… and %.16s…): cells go by factors alone, and what else the "+
			"files say of their trials, such as their traffic, may be in the difference; see campaign.yaml of each run",
			of, other)
	}
	for _, of := range []archive.RunInfo{t.A, t.B} {
		for _, d := range of.Deviations {
			say("%s was not driven as its campaign file has it: %s", of.Run, d)
		}
	}
	if t.A.Place == t.B.Place {
		say("both are of one kind of place: %s", t.A.Place)
	}
	if t.B.Place == archive.PlaceRehearsal {
		say("a rehearsal is no evidence about velocity: what speed and distance do to the radio there is what its " +
			"section field put into it")
	}
	if t.A.Place != archive.PlaceRehearsal || t.B.Place != archive.PlaceRehearsal {
		say("an interval takes trials for independent: what the trials of a day have in common, such as weather, " +
			"set-up and a road's shadows, is in the difference and not in its interval")
	}
	if s, u := scaleOf(t.A), scaleOf(t.B); s != u {
		say("they were driven at different scales: %s and %s", s, u)
	} else if t.A.Scale != nil && t.A.Scale.Why != t.B.Scale.Why { // each was chosen for its run
		say("they were driven at different scales of the same name, %s: the first: %s The second: %s", s, t.A.Scale.Why,
			t.B.Scale.Why)
	}
	if d, e := durations(t.A.Plan), durations(t.B.Plan); d != e {
		say("their windows are of different lengths: %s and %s", d, e)
	}
}

// noteDrops names what captures lack of the passes that are compared: it looks as if lost on the air.
func (t *Table) noteDrops(passes [2][]pass) {
	for i, run := range []archive.RunInfo{t.A, t.B} {
		trials, packets := 0, 0.0
		for _, p := range passes[i] {
			if p.dropped > 0 {
				trials, packets = trials+1, packets+p.dropped
			}
		}
		if trials > 0 {
			t.Notes = append(t.Notes, fmt.Sprintf("for lack of room the kernels dropped %.0f packets from captures "+
				"of %s, in %d of %d trials: its packet loss may be too high by as much", packets, run.Run, trials,
				len(passes[i])))
		}
	}
}

// noteMissing names what a run lacks of its plan: its cells are of the others, which may be those that the network
// let through.
func (t *Table) noteMissing(run *archive.Archive, accepted []pass) {
	planned := 0
	for _, x := range run.Info().Plan.Trials {
		if run.Drives(x) && x.Pass == "" {
			planned++
		}
	}
	missing := planned
	for _, p := range accepted {
		if p.repetition > 0 {
			missing--
		}
	}
	if missing > 0 {
		t.Notes = append(t.Notes, fmt.Sprintf("%d of %d planned trials of %s have no accepted attempt: its cells are "+
			"of the others", missing, planned, run.Info().Run))
	}
}

// clockOf says what time was in a run.
func clockOf(i archive.RunInfo) string {
	if i.Clock.Virtual() {
		return "virtual"
	}
	return "real"
}

func scaleOf(i archive.RunInfo) string {
	if i.Scale == nil {
		return "full"
	}
	return i.Scale.Name
}

func durations(p wire.RunPlan) string {
	least, most := math.Inf(1), 0.0
	for _, t := range p.Trials {
		least, most = min(least, t.DurationS), max(most, t.DurationS)
	}
	if least == most {
		return fmt.Sprintf("%g s", least)
	}
	return fmt.Sprintf("%g to %g s", least, most)
}
