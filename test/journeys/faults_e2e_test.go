//go:build e2e

package journeys

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"fieldmesh.dev/fieldmesh/protocols/wire"
	"fieldmesh.dev/fieldmesh/test/testnet"
)

const faultWindow = 7 * time.Second

// fault is what goes wrong in the first attempt at one cell of the campaign,
// and what has to come of it.
type fault struct {
	// Steps of the attempt: before the car sets off, in the window (called
	// when it opens), and after the attempt.
	armed, measuring, kept func(t *testing.T, d *desk, trial wire.Trial)
	check                  func(t *testing.T, k kept, d *desk, trial wire.Trial)
	rejected               string // begin of the reason; empty: accepted
}

// faults by "speed section".
var faults = map[string]fault{
	"5.6 A": {
		measuring: func(t *testing.T, d *desk, _ wire.Trial) {
			inWindow(1)
			d.receiver.pause(t, true)
			time.Sleep(3 * time.Second)
			d.receiver.pause(t, false)
		},
		check:    gpsWasSeenToStop,
		rejected: "gps: fix_age_ms_max",
	},
	"5.6 B":  {armed: pull, kept: putBack, check: nothingCame},
	"8.3 A":  {armed: pull, kept: putBack, check: nothingCame},
	"8.3 B":  {measuring: pullAtHalfTime, kept: putBack, check: halfCame},
	"11.1 A": {measuring: pullAtHalfTime, kept: putBack, check: halfCame},
	"11.1 B": {check: func(t *testing.T, k kept, _ *desk, trial wire.Trial) {
		if mb, ok := k.metric(t, wire.TrialKey{Trial: trial.Number, Attempt: 1}, "transferred_mb"); !ok || mb < 1 {
			t.Errorf("trial %d, in which nothing was wrong: %g MB (measured: %v)", trial.Number, mb, ok)
		}
	}},
}

// inWindow waits from the window's open.
func inWindow(seconds float64) { time.Sleep(time.Duration(seconds * float64(time.Second))) }

func pull(t *testing.T, d *desk, _ wire.Trial)    { d.cable(t, false) }
func putBack(t *testing.T, d *desk, _ wire.Trial) { d.cable(t, true) }

func pullAtHalfTime(t *testing.T, d *desk, trial wire.Trial) {
	inWindow(faultWindow.Seconds() / 2)
	d.cable(t, false)
	d.pulledNs[trial.Number] = testnet.BootNs()
}

// Each cell of a stationary campaign meets a mishap of its own; the campaign
// goes on to its end, and no node is left changed.
func TestMishapsAreDataAndNeverLeaveANodeChanged(t *testing.T) {
	d := newDesk(t, "")
	file := stationary(t, "mishaps", "[5.6, 8.3, 11.1]",
		"duration_s: 3", fmt.Sprintf("duration_s: %g", faultWindow.Seconds()))
	cell := func(trial wire.Trial) string { return trial.Factors["speed"] + " " + trial.Factors["section"] }
	c := d.start(t, file)
	c.steps = func(step string, k wire.TrialKey) {
		trial := c.trials[k.Trial]
		f := faults[cell(trial)]
		do := map[string]func(*testing.T, *desk, wire.Trial){"armed": f.armed, "measuring": f.measuring,
			"kept": f.kept}[step]
		if do != nil && k.Attempt == 1 {
			t.Logf("trial %d, %s: mishap when %s", k.Trial, cell(trial), step)
			do(t, d, trial)
		}
	}
	k := c.finish(t, 10*time.Minute)
	d.restored(t)
	k.nothingLost(t, deskNodes...)
	first := map[int]*wire.Verdict{}
	wasLate := map[int]bool{}
	for _, at := range k.attempts {
		if at.Attempt == 1 {
			first[at.Trial] = at.Verdict
		} else if reason := faults[cell(c.trials[at.Trial])].rejected; !wasLate[at.Trial] && (at.Attempt > 2 ||
			reason == "") {
			t.Errorf("trial %d needed attempt %d", at.Trial, at.Attempt)
		}
		wasLate[at.Trial] = wasLate[at.Trial] || late(at)
	}
	if len(wasLate) == len(c.trials) && !slices.Contains(slices.Collect(maps.Values(wasLate)), false) {
		t.Error("every trial was late: nothing was looked at")
	}
	for n, trial := range c.trials {
		f, v := faults[cell(trial)], first[n]
		if wasLate[n] {
			t.Logf("trial %d, %s: %s %q", n, cell(trial), v.Outcome, v.Reason)
			continue
		}
		switch {
		case v == nil:
			t.Errorf("trial %d has no first attempt", n)
		case f.rejected == "" && v.Outcome != "accepted",
			f.rejected != "" && (v.Outcome != "rejected" || !strings.HasPrefix(v.Reason.String(), f.rejected)):
			t.Errorf("trial %d, %s: %s %q, want rejected for %q, or accepted where there is none", n, cell(trial),
				v.Outcome, v.Reason, f.rejected)
		}
		f.check(t, k, d, trial)
		k.everyChangeUndone(t, wire.TrialKey{Trial: n, Attempt: 1})
	}
	d.stopAgents(t)
	d.restored(t)
}

// everyChangeUndone fails unless each node has put back what it changed for
// the attempt, all of it.
func (k kept) everyChangeUndone(t *testing.T, key wire.TrialKey) {
	t.Helper()
	open := map[string]int{}
	changes := 0
	for _, r := range k.records(t, key) {
		c, ok := r.Body.(*wire.HostChange)
		if !ok || c.Scope != "trial" {
			continue
		}
		changes++
		if c.Action == "applied" {
			open[r.Node+": "+c.What]++
		} else {
			open[r.Node+": "+c.What]--
		}
	}
	if changes == 0 {
		t.Errorf("trial %d: no change is recorded", key.Trial)
	}
	for what, n := range open {
		if n != 0 {
			t.Errorf("trial %d: %s was applied %d times more than undone", key.Trial, what, n)
		}
	}
}

// staleAfterMs is beyond what a fix may take from the receiver to a record: a
// tenth for the next tick, and gpsd's own time to tell all of it.
const staleAfterMs = 500

// gpsWasSeenToStop: while gpsd stood still the fix's age grew and no speed was
// recorded, and no record ever showed a speed older than it said.
func gpsWasSeenToStop(t *testing.T, k kept, d *desk, trial wire.Trial) {
	t.Helper()
	records := k.records(t, wire.TrialKey{Trial: trial.Number, Attempt: 1})
	w := windowOf(t, records, trial.Car)
	var oldest, before float64
	grew, fixes, worst := 0, 0, 0.0
	for _, r := range records {
		g, ok := r.Body.(*wire.GPS)
		if !ok || r.Node != trial.Car || r.TBootNs < w.OpenBootNs || r.TBootNs > w.CloseBootNs {
			continue
		}
		if g.FixAgeMs == nil {
			t.Fatalf("a record without the fix's age: %+v", g)
		}
		if *g.FixAgeMs > before && g.SpeedMps == nil {
			grew++
		}
		oldest, before = max(oldest, *g.FixAgeMs), *g.FixAgeMs
		if g.SpeedMps == nil {
			continue
		}
		fixes++
		written, known := d.receiver.writtenAt(g.TimeUTC)
		if !known {
			t.Errorf("a fix of %s, which the receiver has not reported", g.TimeUTC)
			continue
		}
		trueAge := float64(r.TBootNs-written) / 1e6
		worst = max(worst, trueAge-*g.FixAgeMs)
		if trueAge > staleAfterMs || *g.FixAgeMs > staleAfterMs {
			t.Errorf("%.1f s into the window a speed is recorded that is %.0f ms old; the record says %.0f ms",
				float64(r.TBootNs-w.OpenBootNs)/1e9, trueAge, *g.FixAgeMs)
		}
	}
	t.Logf("trial %d: oldest fix %.0f ms, its age grew over %d records without a speed; %d fixes, none older than "+
		"its record says by more than %.0f ms", trial.Number, oldest, grew, fixes, worst)
	if oldest < 2500 || oldest > 4000 || grew < 20 || fixes < 10 {
		t.Errorf("gpsd stood still for 3 s of %v: oldest fix %.0f ms, growing over %d records, %d fixes", faultWindow,
			oldest, grew, fixes)
	}
}

// nothingCame: no connection is 0 bytes, measured.
func nothingCame(t *testing.T, k kept, _ *desk, trial wire.Trial) {
	t.Helper()
	key := wire.TrialKey{Trial: trial.Number, Attempt: 1}
	mb, ok := k.metric(t, key, "transferred_mb")
	if !ok || mb != 0 {
		t.Errorf("trial %d without a link: %g MB (measured: %v), want 0", trial.Number, mb, ok)
	}
	if w := windowOf(t, k.records(t, key), "bravo"); w.GoPath != "control" {
		t.Errorf("trial %d: GO came by %q", trial.Number, w.GoPath)
	}
	t.Logf("trial %d without a link: %g MB, accepted; iperf3's client: %s", trial.Number, mb,
		k.iperf3(t, key, "bulk", "client").Error)
}

// halfCame: the link was there for half of the window, or until the cable was pulled,
// which a busy machine does later.
func halfCame(t *testing.T, k kept, d *desk, trial wire.Trial) {
	t.Helper()
	key := wire.TrialKey{Trial: trial.Number, Attempt: 1}
	w, pulledNs := windowOf(t, k.records(t, key), trial.Receiver), d.pulledNs[trial.Number]
	if pulledNs < w.OpenBootNs+faultWindow.Nanoseconds()/2 || pulledNs > w.CloseBootNs-1e9 {
		t.Fatalf("trial %d: the cable was pulled %.2f s after the open: this test shows nothing", trial.Number,
			float64(pulledNs-w.OpenBootNs)/1e9)
	}
	var early, atHalf, late uint64 // received by a second in, by the cable's pull, and ever
	for _, s := range k.received(t, key, trial) {
		early = max(early, s.upTo(w.OpenBootNs+1e9))
		atHalf += s.upTo(pulledNs)
		late += s.upTo(w.CloseBootNs + 1e9)
	}
	mb, ok := k.metric(t, key, "transferred_mb")
	t.Logf("trial %d: %.1f MB when the cable was pulled, %.1f MB in all, %.1f MB reported; iperf3's client: %+v",
		trial.Number, float64(atHalf)/1e6, float64(late)/1e6, mb, k.iperf3(t, key, "bulk", "client").Killed)
	if early == 0 || !ok || mb*1e6 < float64(atHalf) || mb*1e6 > 1.2*float64(atHalf) {
		t.Errorf("trial %d, the cable pulled at half time: reported %g MB (measured: %v), %.1f MB by then",
			trial.Number, mb, ok, float64(atHalf)/1e6)
	}
	for _, side := range []string{"client", "server"} {
		if r := k.iperf3(t, key, "bulk", side); r.Output == nil && r.RawText == "" {
			t.Errorf("trial %d: nothing is kept of what iperf3's %s printed: %+v", trial.Number, side, r)
		}
	}
}

// iperf3 is how one side of a flow ended.
func (k kept) iperf3(t *testing.T, key wire.TrialKey, flow, side string) wire.Iperf3 {
	t.Helper()
	for _, r := range k.records(t, key) {
		if b, ok := r.Body.(*wire.Iperf3); ok && b.Flow == flow && b.Side == side {
			return *b
		}
	}
	t.Errorf("trial %d has no record of iperf3's %s of flow %s", key.Trial, side, flow)
	return wire.Iperf3{}
}

// counted is what one data socket had received at times of its node's clock.
type counted []wire.Record

func (c counted) upTo(bootNs int64) uint64 {
	var n uint64
	for _, r := range c {
		if r.TBootNs <= bootNs {
			n = max(n, r.Body.(*wire.TCPSample).BytesReceived)
		}
	}
	return n
}

// received are the samples of the receiver's data sockets, by socket.
func (k kept) received(t *testing.T, key wire.TrialKey, trial wire.Trial) map[uint64]counted {
	t.Helper()
	out := map[uint64]counted{}
	for _, r := range k.records(t, key) {
		if b, ok := r.Body.(*wire.TCPSample); ok && r.Node == trial.Receiver && b.Stream != nil {
			out[b.Cookie] = append(out[b.Cookie], r)
		}
	}
	return out
}
