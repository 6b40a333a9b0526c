// Package verdict judges one attempt at a trial by its covariates: the traffic
// generator's life, speed, GPS, clock and lateness, never by its throughput. The
// initiator's agent uses it provisionally with its own records, the controller
// finally with everybody's.
// It is pure: records in, verdict out; no file, no clock, no network.
package verdict

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"

	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// Scope says what the judge may know. A provisional verdict has only the
// initiator's own records and skips what those cannot tell: the other nodes'
// windows, the clocks' alignment, and the medium's lateness.
type Scope struct{ Final bool }

// Judge returns the verdict on one attempt from the records of its nodes.
// Records of other trials and attempts are passed over; clock records may also
// belong to no trial.
//
// The order of precedence: what interrupted a node interrupted the attempt,
// whatever the others made of it; an attempt that the initiator gave up before
// its window takes the initiator's reason; a node that failed, fails it, the one
// with the cause before one that only found the attempt ended; a node without a
// window fails it; a TCP that was not the trial's fails it; so does an edge of the
// window at which a node's sockets were not sampled in time, an iperf3 that
// somebody ended, a node that stood still within the window or whose clock was
// slewed in it, and an iperf3 that stood still or found no server; then the
// acceptance rules speak, and the first that does not hold is the reason.
func Judge(t wire.Trial, attempt int, records []wire.Record, scope Scope) wire.Verdict {
	v := wire.Verdict{TrialKey: wire.TrialKey{Trial: t.Number, Attempt: attempt}, Final: scope.Final}
	own := ofAttempt(t, attempt, records)
	if outcome, reason := withoutRules(t, own, scope); outcome != "" {
		v.Outcome, v.Reason = outcome, reason
		return v
	}
	generator := generatorFailed(t, own, scope)
	fault := cmp.Or(notInForce(t, own), atEdges(t, own, scope), generator.ended(), stalled(t, own, scope),
		generator.reason)
	if !fault.IsZero() {
		v.Outcome, v.Reason = wire.Failed, fault.Fit() // iperf3 may have said much
		return v
	}
	v.Checks = checks(t, Measure(t, own), scope)
	v.Outcome = wire.Accepted
	for _, c := range v.Checks {
		if !c.Pass {
			v.Outcome, v.Reason = wire.Rejected, reasonOf(c)
			break
		}
	}
	return v
}

// ofAttempt keeps the attempt's records, and clock records of no trial.
func ofAttempt(t wire.Trial, attempt int, records []wire.Record) []wire.Record {
	out := make([]wire.Record, 0, len(records))
	for _, r := range records {
		_, isClock := r.Body.(*wire.Clock)
		if (r.Trial == t.Number && r.Attempt == attempt) || (isClock && r.Trial == 0) {
			out = append(out, r)
		}
	}
	return out
}

// withoutRules judges the attempt where no rule is needed for that: it returns
// no outcome when the rules decide.
func withoutRules(t wire.Trial, records []wire.Record, scope Scope) (outcome wire.Outcome, reason wire.Reason) {
	// why a node was interrupted, why the initiator gave up before the window, why a node failed
	var interrupted, given, failed wire.Reason
	windows := map[string]bool{}
	for _, r := range records {
		switch b := r.Body.(type) {
		case *wire.Window:
			windows[r.Node] = true
		case *wire.TrialState:
			if b.State != wire.StateKept {
				continue
			}
			if b.Outcome == wire.Interrupted && interrupted.IsZero() {
				interrupted = nodeReason(b.Reason, r.Node)
			}
			// a fault of a generator is judged here, by all records
			if b.Outcome == wire.Failed && b.Reason.Code != wire.ReasonGenerator &&
				(failed.IsZero() || ofAnother(failed) && !ofAnother(b.Reason)) {
				failed = nodeReason(b.Reason, r.Node)
			}
			if b.Outcome == wire.Rejected && r.Node == t.Initiator {
				given = b.Reason
			}
		}
	}
	if !interrupted.IsZero() {
		return wire.Interrupted, interrupted
	}
	if !windows[t.Initiator] && !given.IsZero() {
		return wire.Rejected, given
	}
	if !failed.IsZero() {
		return wire.Failed, failed
	}
	var missing []string
	for _, n := range t.Nodes() {
		if !windows[n] && (scope.Final || n == t.Initiator) {
			missing = append(missing, n)
		}
	}
	if len(missing) > 0 {
		text := "the measuring window did not open on " + strings.Join(missing, ", ")
		return wire.Failed, wire.Reason{Code: wire.ReasonNoWindow, Text: text}
	}
	return "", wire.Reason{}
}

// ofAnother reports whether a reason says no more than that another node had
// ended the attempt before.
func ofAnother(r wire.Reason) bool {
	return r.Code == wire.ReasonPeerNotReady || r.Code == wire.ReasonAborted
}

// nodeReason says of a node's reason on which node it arose.
func nodeReason(r wire.Reason, node string) wire.Reason {
	switch {
	case r.IsZero():
		return wire.Reason{Code: wire.ReasonNodeFailed, Text: "on " + node + ", without a reason"}
	case strings.HasPrefix(r.Text, node+" "): // its words begin with the node
	default:
		if r.Node != "" { // it is about another
			r.Text = strings.TrimSuffix("on "+r.Node+": "+r.Text, ": ")
		}
		r.Node = node
	}
	return r
}

// checks applies every rule that is set and that the scope can know. GPS comes
// before speed: where the fix is bad, the speed is not the cause.
func checks(t wire.Trial, m Covariates, scope Scope) []wire.Check {
	a := t.Acceptance
	out := gpsChecks(t, m, scope)
	if t.Car != "" && (scope.Final || t.Car == t.Initiator) {
		if t.SpeedMps != nil && a.SpeedBandMps != nil && a.InBandShareMin != nil {
			c := atLeast("in_band_share_min", *a.InBandShareMin, m.InBandShare)
			band := fmt.Sprintf("; band %g ± %g m/s", *t.SpeedMps, *a.SpeedBandMps)
			c.Detail = strings.TrimPrefix(c.Detail+band, "; ")
			out = append(out, c)
		}
	}
	if scope.Final && a.ClockErrorMsMax != nil && len(t.Nodes()) > 1 {
		c := atMost("clock_error_ms_max", *a.ClockErrorMsMax, m.ClockErrorMs)
		if c.Measured != nil {
			c.Detail = m.ClockSource
		}
		out = append(out, c)
	}
	if scope.Final && a.LatenessShareMax != nil && m.LatenessShare != nil { // a real radio has none
		out = append(out, atMost("lateness_share_max", *a.LatenessShareMax, m.LatenessShare))
	}
	return out
}

const notMeasured = "not measured"

func atLeast(rule string, limit float64, measured *float64) wire.Check {
	c := wire.Check{Rule: rule, Limit: limit, Measured: measured, Detail: notMeasured}
	if measured != nil {
		c.Pass, c.Detail = *measured >= limit, ""
	}
	return c
}

func atMost(rule string, limit float64, measured *float64) wire.Check {
	c := wire.Check{Rule: rule, Limit: limit, Measured: measured, Detail: notMeasured}
	if measured != nil {
		c.Pass, c.Detail = *measured <= limit, ""
	}
	return c
}

// reasonOf is the reason of a failed check: a code to count by, and what was found.
func reasonOf(c wire.Check) wire.Reason {
	code := map[string]wire.ReasonCode{
		"in_band_share_min": wire.ReasonSpeed, "fix_mode_min": wire.ReasonGPS, "fix_age_ms_max": wire.ReasonGPS,
		"clock_error_ms_max": wire.ReasonClock, "lateness_share_max": wire.ReasonLateness,
	}[c.Rule]
	rule := c.Rule
	if c.Node != "" {
		rule += " on " + c.Node
	}
	if c.Measured == nil {
		return wire.Reason{Code: code, Text: rule + " not measured"}
	}
	return wire.Reason{Code: code, Text: fmt.Sprintf("%s is %s, limit %g", rule, beside(*c.Measured, c.Limit), c.Limit)}
}

// beside words a measured value with four digits, or with as many more as show on which side of its limit it is.
func beside(measured, limit float64) string {
	for digits := 4; ; digits++ {
		text := strconv.FormatFloat(measured, 'g', digits, 64)
		shown, err := strconv.ParseFloat(text, 64)
		if err != nil || digits == 17 || cmp.Compare(shown, limit) == cmp.Compare(measured, limit) {
			return text
		}
	}
}
