package influx

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"fieldmesh.dev/fieldmesh/controller/archive"
	"fieldmesh.dev/fieldmesh/controller/metrics"
	"fieldmesh.dev/fieldmesh/controller/report"
	"fieldmesh.dev/fieldmesh/internal/influx"
	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// outcome is a judged attempt's point on its way.
type outcome struct {
	attempt string
	madeOf  string // its fingerprint
	tags    map[string]string
	fields  map[string]any // nil: one of its lines is not a record
	at      time.Time
	late    bool // records came after the attempt was sealed: numbers may be unknown that were not
}

// outcomes reckons the results of the judged attempts that have another one than
// before: when their verdict or their records are others. A tail waits until the
// attempt is sealed: its numbers and its time are settled then. It changes nothing
// of the follower but its counts, for records are read meanwhile.
func (f *follower) outcomes(ctx context.Context, final bool) (out []outcome, err error) {
	if !final && !f.judgedAnew() {
		return nil, nil
	}
	a, err := archive.Read(f.dir)
	if errors.Is(err, fs.ErrNotExist) { // a run's first moments
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	attempts, err := a.Trials()
	if err != nil {
		return nil, err
	}
	judged, err := a.Judged()
	if err != nil {
		return nil, err
	}
	for _, e := range attempts {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		if e.Verdict == nil || !final && !f.dating.settled(e.TrialKey) {
			continue
		}
		o := outcome{attempt: fmt.Sprintf("%d-a%d", e.Trial, e.Attempt), madeOf: f.fingerprint(a, e)}
		if f.resulted[o.attempt] == o.madeOf {
			continue
		}
		if o.tags, o.fields, o.at, err = f.result(a, e, judged[e.TrialKey]); err != nil {
			return nil, err
		}
		for _, p := range f.files {
			o.late = o.late || p.late && p.key == e.TrialKey
		}
		out = append(out, o)
	}
	return out, nil
}

// add puts a result into the pending batch, and hands that on when it is full.
func (f *follower) add(ctx context.Context, o outcome) error {
	if o.late && o.fields != nil {
		f.pending.stale = append(f.pending.stale, stale{map[string]string{"run": o.tags["run"],
			"trial": o.tags["trial"], "attempt": o.tags["attempt"]}, o.at})
	}
	if o.fields != nil {
		if err := f.compute(influx.ResultName, o.tags, o.fields, o.at); err != nil {
			return err
		}
		f.pending.results++
	}
	f.resulted[o.attempt] = o.madeOf
	f.pending.resulted[o.attempt] = o.madeOf
	return f.flushFull(ctx)
}

// judgedAnew reports whether any attempt may have another result than at the
// last look: it is cheap, for a tail asks twice a second.
func (f *follower) judgedAnew() bool {
	var now int64
	if st, err := os.Stat(filepath.Join(f.dir, "journal.ndjson")); err == nil {
		now = st.Size()
	}
	for _, p := range f.files {
		if p.late {
			now += p.size
		}
	}
	now += int64(len(f.dating.sealed)) << 40
	before := f.looked
	f.looked = now
	return now != before
}

// fingerprint names the verdict and the amount of records that a result is of, and
// whether it counts, which a stop may change.
func (f *follower) fingerprint(a *archive.Archive, e archive.Attempt) string {
	var bytes int64
	for _, p := range f.files {
		if p.key == e.TrialKey {
			bytes += p.size
		}
	}
	t, _ := a.Trial(e.Trial)
	return fmt.Sprintf("%d %s %t %s", bytes, e.Verdict.Outcome, archive.Counts(t, e.Verdict, a.Stopped()),
		e.Verdict.Reason)
}

// result is the point of an attempt that was judged at a time; without fields it has none.
func (f *follower) result(a *archive.Archive, e archive.Attempt, judged time.Time) (tags map[string]string,
	fields map[string]any, at time.Time, err error) {
	s, err := report.Summarise(a, e)
	if err != nil { // a line that is not a record; it has been counted
		f.miss(func(s *Summary) { s.Unreckoned++ })
		return nil, nil, at, nil
	}
	at, known, err := f.opening(s)
	if !known {
		at = judged
	}
	tags, fields = resultOf(a, s)
	return tags, fields, at, err
}

// compute adds a point of a computed measurement to the pending batch.
func (f *follower) compute(name string, tags map[string]string, fields map[string]any, at time.Time) error {
	grown, err := f.computed[name].AppendPoint(f.pending.lines, tags, fields, at)
	if err != nil {
		return err
	}
	f.pending.lines = grown
	return nil
}

// target adds the speed that the plan asks of the car beside a step of the
// trial on the car's node, so that a chart shows it from the first step on.
func (f *follower) target(h wire.Header, wallOffsetNs int64) error {
	if h.Kind != "trial" || h.Trial < 1 || h.Attempt < 1 {
		return nil
	}
	if f.trials == nil {
		a, err := archive.Read(f.dir)
		if err != nil {
			return err
		}
		f.trials = map[int]wire.Trial{}
		for _, t := range a.Info().Plan.Trials {
			f.trials[t.Number] = t
		}
	}
	t, planned := f.trials[h.Trial]
	if !planned || t.SpeedMps == nil || t.Car != h.Node {
		return nil
	}
	fields := map[string]any{"speed_target_mps": t.SpeedMps}
	if half := t.Acceptance.SpeedBandMps; half != nil {
		fields["speed_low_mps"], fields["speed_high_mps"] = new(max(*t.SpeedMps-*half, 0)), new(*t.SpeedMps+*half)
	}
	at, err := influx.Timestamp(h, wallOffsetNs)
	if err != nil {
		return nil // the record has been counted as damaged
	}
	tags := map[string]string{"run": h.Run, "trial": strconv.Itoa(h.Trial), "attempt": strconv.Itoa(h.Attempt)}
	f.pending.targets++
	return f.compute(influx.TargetName, tags, fields, time.Unix(0, at))
}

// opening is when the attempt's window opened, by the first of its nodes with a window and a clock estimate in what
// is sealed of the attempt. What comes later may not move the point, which would be another one then.
func (f *follower) opening(s report.Summary) (time.Time, bool, error) {
	for _, node := range s.Trial.Nodes() {
		p := part{node, s.TrialKey}
		if len(f.dating.estimates[p]) == 0 {
			continue
		}
		w, err := f.window(node, s.TrialKey)
		if err != nil {
			return time.Time{}, false, err
		}
		if w == nil {
			continue
		}
		if e, known := f.dating.within(p, w.OpenBootNs); known {
			return time.Unix(0, w.OpenBootNs+e.wallNs), true, nil
		}
	}
	return time.Time{}, false, nil
}

// window is the first in a node's file of the attempt, which has no late records; nil: it has none.
func (f *follower) window(node string, k wire.TrialKey) (w *wire.Window, err error) {
	for _, p := range f.files {
		if p.key != k || p.node != node || p.late {
			continue
		}
		_, err = lines(f.dir, p.rel, 0, p.size, func(line []byte, _ int64) error {
			var r wire.Record
			if r.UnmarshalJSON(line) != nil {
				return nil // counted when it is sent
			}
			var found bool
			if w, found = r.Body.(*wire.Window); found {
				return errStop
			}
			return nil
		})
	}
	return w, err
}

// resultOf is an attempt's tags and fields; see influx.Computed.
func resultOf(a *archive.Archive, s report.Summary) (tags map[string]string, fields map[string]any) {
	t, info := s.Trial, a.Info()
	tags = map[string]string{
		"run": info.Run, "trial": strconv.Itoa(s.TrialKey.Trial), "attempt": strconv.Itoa(s.Attempt),
		"section": s.Section, "unit": s.Unit, "direction": t.Direction,
		"variant": t.TCP.Variant, "routing": t.Routing.Protocol, "nodes": strconv.Itoa(len(t.Nodes())),
	}
	for name, level := range t.Factors {
		tags["factor_"+name] = level
	}
	if t.SpeedMps != nil {
		tags["speed"] = metrics.Number(*t.SpeedMps)
	}
	fields = map[string]any{
		"accepted": 0, "counts": 0, "outcome": string(s.Verdict.Outcome), "reason": new(s.Verdict.Reason.String()),
		"place": info.Place, "pass": t.Pass,
		"planned_trials": len(info.Plan.Trials), "speed_target_mps": t.SpeedMps, "transferred_mb": s.MB,
		"window_ms": int(math.Ceil(t.DurationS * 1e3)),
	}
	if info.Shard == nil {
		fields["begun"] = info.CreatedWall.UTC().Format(time.RFC3339Nano)
	}
	if s.Verdict.Outcome == wire.Accepted {
		fields["accepted"] = 1
	}
	if archive.Counts(t, &s.Verdict, a.Stopped()) {
		fields["counts"] = 1
	}
	if s.Mbps != nil {
		fields["throughput_bps"] = new(*s.Mbps * 1e6)
	}
	for _, name := range wholeNumbers {
		fields[name] = metrics.Value(s.Rows, "", name)
	}
	flows := t.Measured()
	if len(flows) == 0 { // of UDP alone
		flows = slices.DeleteFunc(slices.Clone(t.Traffic),
			func(f wire.Flow) bool { return f.Background || f.Kind == wire.KindDelay })
	}
	fields[metrics.RetransmitsName] = metrics.Sum(s.Rows, flows, metrics.RetransmitsName)
	if len(flows) == 1 {
		for _, name := range flowNumbers {
			fields[name] = metrics.Value(s.Rows, flows[0].Name, name)
		}
	}
	delays := slices.DeleteFunc(slices.Clone(t.Traffic), func(f wire.Flow) bool { return f.Kind != wire.KindDelay })
	if len(delays) == 1 {
		for _, name := range delayNumbers {
			fields[name] = metrics.Value(s.Rows, delays[0].Name, name)
		}
	}
	return tags, fields
}

// wholeNumbers are metrics of an attempt, flowNumbers of a flow, delayNumbers of one of kind delay; in a result
// they have the names that they have there.
var (
	wholeNumbers = []string{
		metrics.SpeedMeanMps, metrics.InBandShare, metrics.DistanceMeanM, metrics.SignalMeanDbm, metrics.ClockErrorMs,
		metrics.LatenessShare,
		"routing_packets_per_s", "routing_bytes_per_s", "daemon_packets_per_s", "route_outage_s", "data_outage_s",
		"hops_mean",
	}
	flowNumbers = []string{
		"packet_loss_percent", "goodput_ratio", "one_way_delay_mean_ms", "one_way_delay_uncertainty_ms",
		"round_trip_mean_ms",
		"connect_time_ms", "connect_censored_ms", "handshake_ms", "rtt_mean_ms",
	}
	delayNumbers = []string{metrics.DelayRoundTripP50Ms, metrics.DelayRoundTripP95Ms, metrics.DelayRoundTripP99Ms,
		metrics.DatagramsLostPercent}
)

// flushFull hands the batch on when it is large enough.
func (f *follower) flushFull(ctx context.Context) error {
	if f.pending.points+f.pending.results < batchLines && len(f.pending.lines) < batchBytes {
		return nil
	}
	return f.flush(ctx)
}
