package verdict

import (
	"math"
	"strings"
	"testing"

	"fieldmesh.dev/fieldmesh/protocols/wire"
)

const openNs = int64(700e9)

// at places a record of the car s seconds after the window opens.
func at(node string, s float64, b wire.Body) wire.Record {
	return wire.Record{Header: wire.Header{Node: node, TBootNs: openNs + int64(s*1e9), Trial: 7, Attempt: 2}, Body: b}
}

func fix(s, speedMps float64) wire.Record {
	return at("car", s+0.02, &wire.GPS{Mode: 3, FixAgeMs: new(20.0), FixBootNs: new(openNs + int64(s*1e9)),
		SpeedMps: &speedMps, Connected: true})
}

func window(node string, goUs *float64) wire.Record {
	return at(node, 0, &wire.Window{OpenBootNs: openNs, CloseBootNs: openNs + 10e9, GoUncertaintyUs: goUs})
}

func kept(node string, outcome wire.Outcome, reason string) wire.Record {
	state := &wire.TrialState{State: wire.StateKept, Outcome: outcome, Reason: wire.ParseReason(reason)}
	return at(node, 10.5, state)
}

func trial() wire.Trial {
	return wire.Trial{
		Number: 7, Car: "car", Roadside: "roadside", Sender: "car", Receiver: "roadside", Initiator: "car",
		SpeedMps: new(10.0), DurationS: 10,
		Acceptance: wire.Acceptance{
			SpeedBandMps: new(0.5), InBandShareMin: new(0.9), FixModeMin: new(2), FixAgeMsMax: new(1500.0),
			ClockErrorMsMax: new(5.0), LatenessShareMax: new(0.02),
		},
	}
}

// good is an attempt that passes every rule: fixes at 1 Hz from before the
// window to its end.
func good() []wire.Record {
	out := []wire.Record{window("car", nil), window("roadside", new(900.0))}
	for s := -0.5; s < 10; s++ {
		out = append(out, fix(s, 10.2))
	}
	return append(out,
		at("car", 1, &wire.Clock{Peer: "roadside", UncertaintyNs: 2_000_000}),
		at("field", 10, &wire.Lateness{Source: "medium", WindowS: 10, SumS: 0.1}),
		kept("car", "accepted", ""), kept("roadside", "accepted", ""))
}

func without(records []wire.Record, drop func(wire.Record) bool) []wire.Record {
	var out []wire.Record
	for _, r := range records {
		if !drop(r) {
			out = append(out, r)
		}
	}
	return out
}

func isKind(kind string) func(wire.Record) bool {
	return func(r wire.Record) bool { return r.Body.Kind() == kind }
}

func TestJudge(t *testing.T) {
	cases := map[string]struct {
		change  func(*wire.Trial, []wire.Record) []wire.Record
		outcome wire.Outcome
		reason  string // begins with
	}{
		"all well": {nil, wire.Accepted, ""},
		"out of band": {func(_ *wire.Trial, r []wire.Record) []wire.Record {
			return append(r, fix(2.6, 13), fix(4.9, 13))
		}, wire.Rejected, "speed: in_band_share_min is 0.85"},
		"dead radio": {func(_ *wire.Trial, r []wire.Record) []wire.Record { return without(r, isKind("tcp")) },
			wire.Accepted, ""},
		"2-D asked 3-D": {func(t *wire.Trial, r []wire.Record) []wire.Record {
			t.Acceptance.FixModeMin = new(4)
			return r
		}, wire.Rejected, "gps: fix_mode_min on car is 3, limit 4"},
		"stale for 3 s": {func(_ *wire.Trial, r []wire.Record) []wire.Record {
			return without(r, func(r wire.Record) bool {
				g, ok := r.Body.(*wire.GPS)
				return ok && *g.FixBootNs > openNs+3e9 && *g.FixBootNs < openNs+6e9
			})
		}, wire.Rejected, "gps: fix_age_ms_max on car is 4000, limit 1500"},
		"no gps": {func(_ *wire.Trial, r []wire.Record) []wire.Record { return without(r, isKind("gps")) },
			wire.Rejected, "gps: fix_mode_min on car not measured"},
		"clock unsure": {func(t *wire.Trial, r []wire.Record) []wire.Record {
			t.Acceptance.ClockErrorMsMax = new(2.5)
			return r
		}, wire.Rejected, "clock: clock_error_ms_max is 4.7, limit 2.5"},
		"clock unknown": {func(_ *wire.Trial, r []wire.Record) []wire.Record {
			r = without(r, isKind("clock"))
			r[1] = window("roadside", nil)
			return r
		}, wire.Rejected, "clock: clock_error_ms_max not measured"},
		"late medium": {func(_ *wire.Trial, r []wire.Record) []wire.Record {
			return append(r, at("field", 10, &wire.Lateness{Source: "medium", WindowS: 10, SumS: 0.5}))
		}, wire.Rejected, "lateness: lateness_share_max is 0.05, limit 0.02"},
		"late sampler is no matter": {func(_ *wire.Trial, r []wire.Record) []wire.Record {
			return append(r, at("car", 10, &wire.Lateness{Source: "sampler", WindowS: 10, SumS: 5}))
		}, wire.Accepted, ""},
		"a real radio has no lateness": {func(_ *wire.Trial, r []wire.Record) []wire.Record {
			return without(r, isKind("lateness"))
		}, wire.Accepted, ""},
		"peer failed": {func(_ *wire.Trial, r []wire.Record) []wire.Record {
			return append(r, kept("roadside", wire.Failed, "iperf3: no answer"))
		}, wire.Failed, "iperf3: on roadside: no answer"},
		"peer failed, which the initiator found ended": {func(_ *wire.Trial, r []wire.Record) []wire.Record {
			return []wire.Record{kept("car", wire.Failed, "peer_not_ready: roadside: this attempt has ended here"),
				kept("roadside", wire.Failed, "routing_daemon: aodv has ended")}
		}, wire.Failed, "routing_daemon: on roadside: aodv has ended"},
		"initiator failed, for which the peer was aborted": {func(_ *wire.Trial, r []wire.Record) []wire.Record {
			return []wire.Record{kept("roadside", wire.Failed, "aborted: car: routing_daemon"),
				kept("car", wire.Failed, "routing_daemon: aodv has ended")}
		}, wire.Failed, "routing_daemon: on car: aodv has ended"},
		"peer never ready": {func(_ *wire.Trial, r []wire.Record) []wire.Record {
			return []wire.Record{kept("car", wire.Failed, "peer_not_ready: roadside: no room")}
		}, wire.Failed, "peer_not_ready: on car: roadside: no room"},
		"peer without window": {func(_ *wire.Trial, r []wire.Record) []wire.Record {
			return without(r, func(r wire.Record) bool { return r.Node == "roadside" && r.Body.Kind() == "window" })
		}, wire.Failed, "no_window: the measuring window did not open on roadside"},
		"gate given up": {func(_ *wire.Trial, r []wire.Record) []wire.Record {
			return []wire.Record{kept("car", wire.Rejected, "gate_timeout: 60 s"),
				kept("roadside", wire.Failed, "aborted")}
		}, wire.Rejected, "gate_timeout: 60 s"},
		"peer interrupted, after which the initiator failed": {func(_ *wire.Trial, r []wire.Record) []wire.Record {
			return append(r, kept("car", wire.Failed, "go_failed: no answer"),
				kept("roadside", wire.Interrupted, Interruption{wire.ReasonAgentRestarted, "killed"}.Error()))
		}, wire.Interrupted, "agent_restarted: on roadside: killed"},
		"initiator interrupted, after which the peer was aborted": {func(_ *wire.Trial, r []wire.Record) []wire.Record {
			return append(r, kept("roadside", wire.Failed, "aborted: car"),
				kept("car", wire.Interrupted, Interruption{wire.ReasonHostRestarted, "killed"}.Error()))
		}, wire.Interrupted, "host_restarted: on car: killed"},
		"peer interrupted before a window": {func(_ *wire.Trial, r []wire.Record) []wire.Record {
			return []wire.Record{kept("car", wire.Failed, "aborted: roadside"),
				kept("roadside", wire.Interrupted, Interruption{wire.ReasonAborted, "a dog ran in"}.Error())}
		}, wire.Interrupted, "aborted: on roadside: a dog ran in"},
		"parked": {func(t *wire.Trial, r []wire.Record) []wire.Record {
			t.SpeedMps = nil
			return append(r, fix(4.2, 0))
		}, wire.Accepted, ""},
		"nobody moves, no gps": {func(t *wire.Trial, r []wire.Record) []wire.Record {
			t.Car, t.SpeedMps = "", nil
			return without(r, isKind("gps"))
		}, wire.Accepted, ""},
		"other attempt's failure": {func(_ *wire.Trial, r []wire.Record) []wire.Record {
			old := kept("car", wire.Failed, "crash")
			old.Attempt = 1
			return append(r, old)
		}, wire.Accepted, ""},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			tr, records := trial(), good()
			if c.change != nil {
				records = c.change(&tr, records)
			}
			v := Judge(tr, 2, records, Scope{Final: true})
			if v.Outcome != c.outcome || !strings.HasPrefix(v.Reason.String(), c.reason) ||
				(c.reason == "") != v.Reason.IsZero() {
				t.Fatalf("got %s %q, want %s %q\nchecks %+v", v.Outcome, v.Reason, c.outcome, c.reason, v.Checks)
			}
			if v.Trial != 7 || v.Attempt != 2 || !v.Final {
				t.Errorf("verdict is on %+v, final %v", v.TrialKey, v.Final)
			}
		})
	}
}

func TestChecksCarryMeasuredValues(t *testing.T) {
	v := Judge(trial(), 2, good(), Scope{Final: true})
	want := map[string]float64{"fix_mode_min": 3, "fix_age_ms_max": 1000, "in_band_share_min": 1,
		"clock_error_ms_max": 4.7, "lateness_share_max": 0.01}
	if len(v.Checks) != len(want) {
		t.Fatalf("got %d checks, want %d: %+v", len(v.Checks), len(want), v.Checks)
	}
	for _, c := range v.Checks {
		if c.Measured == nil || math.Abs(*c.Measured-want[c.Rule]) > 1e-9 || !c.Pass {
			t.Errorf("%s: %+v, want measured %g", c.Rule, c, want[c.Rule])
		}
	}
}

// How old the newest fix was is not known where there was none at the window's open.
func TestTheAgeOfNoFixIsAbsent(t *testing.T) {
	tr := trial()
	tr.Acceptance.FixModeMin, tr.Acceptance.InBandShareMin = nil, nil
	late := without(good(), func(r wire.Record) bool { return r.Body.Kind() == "gps" && r.TBootNs < openNs+9e9 })
	if m := Measure(tr, late); m.FixAgeMsMax != nil {
		t.Errorf("%g ms, and for 9 s there was no fix", *m.FixAgeMsMax)
	}
	v := Judge(tr, 2, late, Scope{Final: true})
	if v.Outcome != wire.Rejected || v.Reason.String() != "gps: fix_age_ms_max on car not measured" {
		t.Errorf("%s: %s", v.Outcome, v.Reason)
	}
}

// The initiator has its own records only: what it cannot know does not reject.
func TestProvisionalSkipsWhatOneNodeCannotKnow(t *testing.T) {
	own := without(good(), func(r wire.Record) bool { return r.Node != "car" || r.Body.Kind() == "clock" })
	if v := Judge(trial(), 2, own, Scope{}); v.Outcome != wire.Accepted || v.Final || len(v.Checks) != 3 {
		t.Errorf("got %+v", v)
	}
	if v := Judge(trial(), 2, own, Scope{Final: true}); v.Outcome != wire.Failed {
		t.Errorf("finally, the roadside's window is missing: got %+v", v)
	}
	if v := Judge(trial(), 2, append(own, fix(2.6, 13), fix(4.9, 13)), Scope{}); v.Outcome != wire.Rejected {
		t.Errorf("speed is the initiator's to judge: got %+v", v)
	}
}

func TestInBandShareIsExact(t *testing.T) {
	cases := map[string]struct {
		fixes []wire.Record
		want  float64
	}{
		// From -1 s; the fix at 0.5 s holds until it is 1.5 s old at 2 s, and the
		// rest of the window is stale.
		"stale counts out of band": {[]wire.Record{fix(-1, 10), fix(0.5, 10)}, 0.2},
		// In band for [0, 2.5) and [4, 5.5), out of it for [2.5, 4).
		"a fix ends its predecessor": {[]wire.Record{fix(-0.5, 10), fix(1, 10), fix(2.5, 12), fix(4, 10)}, 0.4},
		"the edge of the band is in": {[]wire.Record{fix(0, 10.5), fix(1.5, 9.5)}, 0.3},
		"beyond the edge is out":     {[]wire.Record{fix(0, 10.6), fix(1.5, 9.5)}, 0.15},
		"clipped at the close":       {[]wire.Record{fix(9.25, 10)}, 0.075},
		"two ticks tell one fix":     {[]wire.Record{fix(0, 10), fix(0, 10)}, 0.15},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			m := Measure(trial(), append(c.fixes, window("car", nil)))
			if m.InBandShare == nil || math.Abs(*m.InBandShare-c.want) > 1e-12 {
				t.Errorf("got %v, want %g", m.InBandShare, c.want)
			}
		})
	}
}

func TestClockErrorOfAnOutsideObserverIsTheSum(t *testing.T) {
	records := []wire.Record{window("car", nil), window("roadside", nil)}
	for peer, ns := range map[string]int64{"car": 3e6, "roadside": 1e6} {
		records = append(records, wire.Record{Header: wire.Header{Node: "controller", TBootNs: openNs},
			Body: &wire.Clock{Peer: peer, UncertaintyNs: ns}})
	}
	m := Measure(trial(), records)
	if m.ClockErrorMs == nil || math.Abs(*m.ClockErrorMs-8) > 1e-6 {
		t.Errorf("got %v, want 4 ms and the drift of two windows", m.ClockErrorMs)
	}
	m = Measure(trial(), append(records, at("car", 0, &wire.Clock{Peer: "roadside", UncertaintyNs: 2e6})))
	if math.Abs(*m.ClockErrorMs-4) > 1e-6 {
		t.Errorf("the direct comparison is the better one: got %v, want 2 ms and the drift of a window",
			*m.ClockErrorMs)
	}
}

// A value that was refused is not shown as its limit, nor on the other side of it.
func TestARefusedValueIsShownBesideItsLimit(t *testing.T) {
	for _, c := range []struct {
		measured, limit float64
		want            string
	}{
		{0.62, 0.8, "0.62"},
		{0.123456, 0.8, "0.1235"},
		{0.79996, 0.8, "0.79996"},
		{0.8 - 1e-12, 0.8, "0.799999999999"},
		{math.Nextafter(0.8, 0), 0.8, "0.7999999999999999"},
		{0.80005, 0.80004, "0.8001"},
		{0.800041, 0.80004, "0.800041"},
		{0.80003, 0.80004, "0.8"},
		{1500.4, 1500, "1500.4"},
		{1e9, 1500, "1e+09"},
		{math.Inf(1), 1500, "+Inf"},
		{math.NaN(), 1500, "NaN"},
	} {
		if got := beside(c.measured, c.limit); got != c.want {
			t.Errorf("%v beside %v: %s, want %s", c.measured, c.limit, got, c.want)
		}
	}
	share := atLeast("in_band_share_min", 0.8, new(0.79996))
	if got := reasonOf(share).Text; share.Pass || got != "in_band_share_min is 0.79996, limit 0.8" {
		t.Errorf("%s", got)
	}
}
