package papers

import (
	"fmt"
	"maps"
	"math"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"fieldmesh.dev/fieldmesh/controller/stats"
	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// interval is ± 1 about the mean from three values on: tests choose their
// distances from zero by it.
func interval(values []float64) (float64, *float64) {
	sum := 0.0
	for _, v := range values {
		sum += v
	}
	if len(values) < 3 {
		return sum / float64(len(values)), nil
	}
	return sum / float64(len(values)), new(1.0)
}

func read(t *testing.T) Published {
	t.Helper()
	p, err := Read()
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// Every published figure is there, and every statement is put to a test or has
// the reason why not.
func TestThePapersFiguresAreWhole(t *testing.T) {
	p := read(t)
	if len(p.Velocity["A"]) != 6 || len(p.Velocity["B"]) != 6 || p.Velocity["A"][13.9] != "15.0" {
		t.Errorf("P1: %v", p.Velocity)
	}
	// Chain: 5 variants × 3 protocols × 2; grid: × 4 protocols; 3 metrics each.
	if n := len(p.of("chain")); n != 90 {
		t.Errorf("the chain's tables have %d cells, want 90", n)
	}
	if n := len(p.of("grid")); n != 120 {
		t.Errorf("the grid's tables have %d cells, want 120", n)
	}
	tested := map[string]bool{}
	for _, c := range p.Tests {
		tested[c.ID] = true
		if c.Relation == None && c.Note == "" {
			t.Errorf("%s is not tested, and nothing says why", c.ID)
		}
	}
	for _, s := range p.Statements {
		if !tested[s.ID] {
			t.Errorf("statement %s (%s, %s) is put to no test", s.ID, s.Setting, s.Quantity)
		}
		if _, known := Of(s.Paper); !known {
			t.Errorf("statement %s is of nobody", s.ID)
		}
	}
	// The claims' conditions speak of facts that trials have.
	facts := Facts(wire.Trial{Factors: map[string]string{"mobility": "low"}, TCP: wire.TCP{WindowPackets: new(8)},
		Car: "a", Sender: "a",
		SpeedMps: new(16.7),
		Conditions: &wire.Conditions{SpeedMaxMps: new(5.0), WidthM: new(400.0), HeightM: new(800.0),
			QueueFrames: new(50)},
		Acceptance: wire.Acceptance{HopsMin: new(6)}})
	for _, c := range p.Tests {
		if _, known := ValueUnits[c.Metric]; !known && c.Metric != referenceRatio && c.Metric != referenceGap {
			t.Errorf("%s: no trial has a value %q", c.ID, c.Metric)
		}
		for _, k := range []Condition{c.Where, c.A, c.B} {
			for _, fact := range slices.Concat(c.Each, slices.Collect(maps.Keys(k))) {
				if _, known := facts[fact]; !known {
					t.Errorf("%s: no trial has a fact %q", c.ID, fact)
				}
			}
		}
	}
}

func TestFactsOfATrial(t *testing.T) {
	yes, no := true, false
	got := Facts(wire.Trial{
		Sender: "a", Receiver: "f", Still: true, Routing: wire.Routing{Protocol: "aodv-p3"},
		TCP: wire.TCP{Variant: "reno", SACK: &yes, DelayedACK: &yes, FixedRTO: true, RTOMinMs: new(500),
			WindowPackets: new(8)},
		Conditions: &wire.Conditions{ChannelErrorMean: new(0.01), QueueFrames: new(50)},
		Acceptance: wire.Acceptance{HopsMin: new(6)},
		Traffic: []wire.Flow{{Kind: "iperf3_tcp", Streams: 2}, {Kind: "iperf3_tcp"},
			{Kind: "iperf3_tcp", Background: true},
			{Kind: wire.KindCBR, Background: true, BitrateBps: new(5e3)}, {Kind: "iperf3_udp", Background: true,
				Streams: 9, BitrateBps: new(5e3)}},
	})
	want := map[string]string{"routing": "aodv", "variant": "reno", "tcp": "reno+sack+delack+fixedrto",
		"motion": "static", "speed_max_mps": "0", "channel_error": "0.01",
		"queue_frames": "50", "window_packets": "8", "rto_min_ms": "500", "tcp_flows": "3", "cbr_flows": "10",
		"cbr_kbit_s": "10", "nodes": "2", "ends": "a to f", "hops": "6"}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	if p := profile(wire.TCP{Variant: "sack", SACK: &yes, DelayedACK: &no}); p != "sack" {
		t.Errorf("profile %q", p)
	}
}

// trials makes one trial a repetition for each variant, with its value.
func trials(metric string, values map[string][]float64) []Trial {
	var out []Trial
	for _, name := range slices.Sorted(maps.Keys(values)) {
		for i, v := range values[name] {
			out = append(out, Trial{Repetition: i + 1, Facts: map[string]string{"variant": name, "routing": "dsr",
				"motion": "static"}, Values: map[string]float64{metric: v}})
		}
	}
	return out
}

func TestDecisions(t *testing.T) {
	type c = Claim
	a, b := Condition{"variant": {"vegas"}}, Condition{"variant": {"reno"}}
	both := Condition{"variant": {"reno", "tahoe"}}
	for _, k := range []struct {
		name    string
		claim   Claim
		values  map[string][]float64
		verdict string
	}{
		{"more", c{A: a, B: b, Relation: More}, map[string][]float64{"vegas": {5, 6, 7}, "reno": {1, 2, 3}}, Supported},
		{"less", c{A: a, B: b, Relation: Less}, map[string][]float64{"vegas": {5, 6, 7}, "reno": {1, 2, 3}},
			Contradicted},
		{"within noise", c{A: a, B: b, Relation: More}, map[string][]float64{"vegas": {5, 6, 7},
			"reno": {4.5, 5.5, 6.5}}, Undecided},
		{"just touching zero", c{A: a, B: b, Relation: More}, map[string][]float64{"vegas": {5, 6, 7},
			"reno": {4, 5, 6}}, Undecided},
		{"two pairs", c{A: a, B: b, Relation: More}, map[string][]float64{"vegas": {5, 6}, "reno": {1, 2}}, Undecided},
		{"pairs, not trials", c{A: a, B: b, Relation: More}, map[string][]float64{"vegas": {5, 6, 7, 8},
			"reno": {1, 2}}, Undecided},
		{"nothing to compare with", c{A: a, B: b, Relation: More}, map[string][]float64{"vegas": {5, 6, 7}}, NotAsked},
		{"elsewhere", c{A: a, B: b, Relation: More, Where: Condition{"routing": {"aodv"}}},
			map[string][]float64{"vegas": {5, 6, 7}, "reno": {1, 2, 3}}, NotAsked},
		{"best of all", c{A: a, B: both, Relation: More}, map[string][]float64{"vegas": {5, 6, 7}, "reno": {1, 2, 3},
			"tahoe": {1, 1, 1}}, Supported},
		{"not best of all", c{A: a, B: both, Relation: More}, map[string][]float64{"vegas": {5, 6, 7},
			"reno": {1, 2, 3}, "tahoe": {9, 9, 9}}, Contradicted},
		{"perhaps best of all", c{A: a, B: both, Relation: More}, map[string][]float64{"vegas": {5, 6, 7},
			"reno": {1, 2, 3}, "tahoe": {5, 6, 7}}, Undecided},
		{"same", c{A: a, B: b, Relation: Same}, map[string][]float64{"vegas": {50, 60, 70}, "reno": {50, 61, 69}},
			Supported},
		{"not the same", c{A: a, B: b, Relation: Same}, map[string][]float64{"vegas": {50, 60, 70},
			"reno": {70, 80, 90}}, Contradicted},
		{"perhaps the same", c{A: a, B: b, Relation: Same}, map[string][]float64{"vegas": {5, 6, 7},
			"reno": {5, 7, 6}}, Undecided},
		{"ratio", c{A: a, B: b, Relation: Ratio, Low: new(8.0), High: new(12.0)},
			map[string][]float64{"vegas": {100, 200, 300}, "reno": {10, 20, 30}}, Supported},
		{"ratio beyond", c{A: a, B: b, Relation: Ratio, High: new(8.0)}, map[string][]float64{"vegas": {100, 200, 300},
			"reno": {10, 20, 30}}, Contradicted},
		{"ratio to what may be nothing", c{A: a, B: b, Relation: Ratio, High: new(8.0)},
			map[string][]float64{"vegas": {10, 20, 30}, "reno": {0, 1, 1.5}}, Undecided},
		{"ratio of too few pairs", c{A: a, B: b, Relation: Ratio, Low: new(8.0), High: new(12.0)},
			map[string][]float64{"vegas": {10, 20}, "reno": {1, 2}}, Undecided},
		{"ratio of nothing", c{A: a, B: b, Relation: Ratio, Low: new(8.0), High: new(12.0)},
			map[string][]float64{"vegas": {0, 0, 0}, "reno": {0, 0, 0}}, Undecided},
		{"difference", c{A: a, B: b, Relation: Apart, Low: new(3.0), High: new(5.0)},
			map[string][]float64{"vegas": {5, 6, 7}, "reno": {1, 2, 3}}, Supported},
		{"difference beyond", c{A: a, B: b, Relation: Apart, Low: new(6.0)}, map[string][]float64{"vegas": {5, 6, 7},
			"reno": {1, 2, 3}}, Contradicted},
		{"asked in part", c{A: a, B: both, Relation: More}, map[string][]float64{"vegas": {5, 6, 7},
			"reno": {1, 2, 3}}, Undecided},
		{"contradicted in what is asked", c{A: a, B: both, Relation: Less}, map[string][]float64{"vegas": {5, 6, 7},
			"reno": {1, 2, 3}}, Contradicted},
		{"level", c{A: a, Relation: Level, Low: new(4.0), High: new(8.0)}, map[string][]float64{"vegas": {5, 6, 7}},
			Supported},
		{"level below", c{A: a, Relation: Level, Low: new(8.0)}, map[string][]float64{"vegas": {5, 6, 7}},
			Contradicted},
		{"level perhaps", c{A: a, Relation: Level, Low: new(6.0)}, map[string][]float64{"vegas": {5, 6, 7}}, Undecided},
		{"none", c{A: a, Relation: Level, Low: new(0.0), High: new(0.0)}, map[string][]float64{"vegas": {0, 0, 0}},
			Supported},
		{"some where none is said", c{A: a, Relation: Level, Low: new(0.0), High: new(0.0)},
			map[string][]float64{"vegas": {0, 0, 0.1}}, Contradicted},
		{"none of too few", c{A: a, Relation: Level, Low: new(0.0), High: new(0.0)},
			map[string][]float64{"vegas": {0, 0.1}}, Undecided},
		{"no test", c{A: a, Relation: None}, map[string][]float64{"vegas": {5, 6, 7}}, Untestable},
	} {
		k.claim.Metric = "m"
		if got := Decide(k.claim, trials("m", k.values), interval); got.Verdict != k.verdict {
			t.Errorf("%s: %s (%+v), want %s", k.name, got.Verdict, got.Parts, k.verdict)
		}
	}
}

// What does not vary has no t interval: two that are equal in each of three repetitions are the same
// all the same, and a level that repeats is what it is. Others that do not vary decide nothing.
func TestValuesThatDoNotVary(t *testing.T) {
	type values = map[string][]float64
	zero, half, five, more := []float64{0, 0, 0}, []float64{0.5, 0.5, 0.5}, []float64{5, 5, 5}, []float64{7, 7, 7}
	tenth := []*float64{new(0.9), new(1.1)}
	for _, k := range []struct {
		name     string
		relation Relation
		bounds   []*float64 // from, to
		values   values
		verdict  string
	}{
		{"none of both", Same, nil, values{"vegas": zero, "reno": zero}, Supported},
		{"equal", Same, nil, values{"vegas": five, "reno": five}, Supported},
		{"equal while repetitions differ", Same, nil, values{"vegas": {0.001, 0, 0.0005}, "reno": {0.001, 0, 0.0005}},
			Supported},
		{"equal twice", Same, nil, values{"vegas": {5, 5}, "reno": {5, 5}}, Undecided},
		{"equal once", Same, nil, values{"vegas": {5}, "reno": {5}}, Undecided},
		{"equal twice, and once unknown", Same, nil, values{"vegas": five, "reno": {5, 5}}, Undecided},
		{"unknown", Same, nil, values{"vegas": five}, NotAsked},
		{"equal but for one", Same, nil, values{"vegas": zero, "reno": {0, 0, 1}}, Undecided},
		{"one difference throughout", Same, nil, values{"vegas": five, "reno": more}, Undecided},
		{"one small difference throughout", Same, nil, values{"vegas": {100, 100, 100}, "reno": {101, 101, 101}},
			Undecided},
		{"more", More, nil, values{"vegas": more, "reno": five}, Undecided},
		{"more, and equal", More, nil, values{"vegas": five, "reno": five}, Undecided},
		{"less", Less, nil, values{"vegas": five, "reno": more}, Undecided},
		{"in no case less", Apart, []*float64{new(0.0), nil}, values{"vegas": five, "reno": five}, Supported},
		{"a difference", Apart, []*float64{new(1.0), nil}, values{"vegas": five, "reno": five}, Contradicted},
		{"a difference that does not vary", Apart, []*float64{new(1.0), nil}, values{"vegas": more, "reno": five},
			Undecided},
		{"a difference of too few", Apart, []*float64{new(0.0), nil}, values{"vegas": {5, 5}, "reno": {5, 5}},
			Undecided},
		{"a ratio of 1", Ratio, tenth, values{"vegas": five, "reno": five}, Supported},
		{"a ratio of 1 while repetitions differ", Ratio, tenth, values{"vegas": {1, 3, 0.1}, "reno": {1, 3, 0.1}},
			Supported},
		{"a ratio of more than 1", Ratio, []*float64{new(1.5), nil}, values{"vegas": five, "reno": five},
			Contradicted},
		{"a ratio that does not vary", Ratio, []*float64{new(1.1), nil}, values{"vegas": more, "reno": five},
			Undecided},
		{"a ratio of none to none", Ratio, tenth, values{"vegas": zero, "reno": zero}, Undecided},
		{"a ratio of too few", Ratio, tenth, values{"vegas": {5, 5}, "reno": {5, 5}}, Undecided},
		{"a level", Level, tenth, values{"vegas": {1, 1, 1}}, Supported},
		{"a level beyond", Level, tenth, values{"vegas": half}, Contradicted},
		{"a level of too few", Level, tenth, values{"vegas": {1, 1}}, Undecided},
	} {
		claim := Claim{Metric: "m", A: Condition{"variant": {"vegas"}}, B: Condition{"variant": {"reno"}},
			Relation: k.relation}
		if k.bounds != nil {
			claim.Low, claim.High = k.bounds[0], k.bounds[1]
		}
		if k.relation == Level {
			claim.B = nil
		}
		got := Decide(claim, trials("m", k.values), tInterval)
		if got.Verdict != k.verdict {
			t.Errorf("%s: %s (%+v), want %s", k.name, got.Verdict, got.Parts, k.verdict)
		}
		if told := strings.HasPrefix(got.Parts[0].Test, "each repetition"); k.relation != More && k.relation != Less &&
			told != (k.verdict == Supported || k.verdict == Contradicted) {
			t.Errorf("%s: it is told as of %q", k.name, got.Parts[0].Test)
		}
	}
}

// Times that are equal as far as they are known decide nothing where one is not known.
func TestEqualTimesThatAreCensoredDecideNothing(t *testing.T) {
	claim := Claim{Metric: "connect_time_ms", A: Condition{"variant": {"vegas"}}, B: Condition{"variant": {"reno"}},
		Relation: Same}
	all := trials(claim.Metric, map[string][]float64{"vegas": {100, 100, 100}, "reno": {100, 100, 100}})
	if got := Decide(claim, all, tInterval); got.Verdict != Supported {
		t.Fatalf("%+v", got)
	}
	late := all[0]
	late.Repetition, late.Values, late.Times = 4, nil,
		map[string][]stats.Duration{claim.Metric: {{Value: 9000, Censored: true}}}
	if got := Decide(claim, append(all, late), tInterval); got.Verdict != Undecided {
		t.Errorf("%+v", got)
	}
}

// What is known of times are the short ones: where one is only known to be
// longer, nothing is decided.
func TestCensoredTimesDecideNothing(t *testing.T) {
	claim := Claim{Metric: "connect_time_ms", A: Condition{"variant": {"vegas"}}, B: Condition{"variant": {"reno"}},
		Relation: Less}
	all := trials(claim.Metric, map[string][]float64{"vegas": {100, 101, 102, 103}, "reno": {900, 901, 903, 904}})
	if got := Decide(claim, all, interval); got.Verdict != Supported {
		t.Fatalf("%+v", got)
	}
	late := all[0]
	late.Repetition, late.Values, late.Times = 5, nil,
		map[string][]stats.Duration{claim.Metric: {{Value: 9000, Censored: true}}}
	if got := Decide(claim, append(all, late), interval); got.Verdict != Undecided ||
		!strings.Contains(got.Parts[0].Test, "1 of the trials had not come to it") {
		t.Errorf("%+v", got)
	}
	if got := Decide(claim, []Trial{late}, interval); got.Verdict != Undecided {
		t.Errorf("of one censored trial: %+v", got)
	}
	late.Facts = map[string]string{"variant": "tahoe"}
	if got := Decide(claim, append(all, late), interval); got.Verdict != Supported {
		t.Errorf("a trial that is not compared: %+v", got)
	}
}

// A ratio is that of the means, and its interval is where that of the mean of a − r·b
// has 0 in it. Pairs with 0 on both sides are pairs like others.
func TestARatioIsOfTheMeans(t *testing.T) {
	as, bs := []float64{91, 99, 110, 101, 90, 100, 109, 0}, []float64{9, 10, 11, 10, 9, 10, 11, 0}
	s := Summariser(tInterval)
	q := s.quotient(as, bs)
	if q == nil || math.Abs(q.Mean-10) > 1e-9 || q.Low == nil || !(*q.Low < 10 && 10 < *q.High) {
		t.Fatalf("%+v", q)
	}
	for _, end := range []float64{*q.Low, *q.High} {
		var rest []float64
		for i := range as {
			rest = append(rest, as[i]-end*bs[i])
		}
		if v := s.of(rest); math.Abs(math.Abs(v.Mean)-*v.Half) > 1e-9 {
			t.Errorf("at the end %v the interval of the rest is %v ± %v", end, v.Mean, *v.Half)
		}
	}
	if q := s.quotient([]float64{1, 2, 3}, []float64{0, 0, 0}); q != nil {
		t.Errorf("÷ 0: %+v", q)
	}
	if q := s.quotient([]float64{1, 2, 3}, []float64{-1, 0, 2}); q == nil || q.Low != nil || q.High != nil {
		t.Errorf("÷ what may be 0: %+v", q)
	}
}

// Where nothing is below 0, no ratio's interval is.
func TestARatioOfWhatIsNeverNegativeIsNone(t *testing.T) {
	s := Summariser(tInterval)
	if q := s.quotient([]float64{0, 1, 5}, []float64{10, 11, 9}); q == nil || q.Low == nil || *q.Low != 0 {
		t.Errorf("%+v", q)
	}
	if q := s.quotient([]float64{-1, 1, 5}, []float64{10, 11, 9}); q == nil || q.Low == nil || *q.Low >= 0 {
		t.Errorf("%+v", q)
	}
}

// A ratio that is 0 in every repetition does not vary: it has no interval, and neither supports nor contradicts a size.
func TestARatioOfNothingHasNoInterval(t *testing.T) {
	as, bs := []float64{0, 0, 0, 0}, []float64{900, 901, 903, 904}
	if q := Summariser(tInterval).quotient(as, bs); q == nil || q.Mean != 0 || q.Low != nil || q.High != nil {
		t.Errorf("%+v", q)
	}
	claim := Claim{ID: "x", Metric: ThroughputKbitS, A: Condition{"variant": {"vegas"}},
		B: Condition{"variant": {"reno"}}, Relation: Ratio}
	all := trials(claim.Metric, map[string][]float64{"vegas": as, "reno": bs})
	for _, low := range []float64{0, 2} {
		claim.Low, claim.High = &low, new(low+1)
		if got := Decide(claim, all, tInterval); got.Verdict != Undecided {
			t.Errorf("a ratio of %g to %g is %s", low, low+1, got.Verdict)
		}
	}
	claim.Relation, claim.Low, claim.High = Less, nil, nil
	if got := Decide(claim, all, tInterval); got.Verdict != Supported {
		t.Errorf("that nothing is less is %s", got.Verdict)
	}
}

// Of what R-TCP has above another there is no ratio, for it may be below 0; a trial whose
// R-TCP carried nothing has no share of it, and the part says so.
func TestSharesOfTheReference(t *testing.T) {
	var all []Trial
	for rep := 1; rep <= 4; rep++ {
		for _, speed := range []string{"2", "20"} {
			for variant, v := range map[string]float64{"newreno": 50, "reference": 100} {
				if rep == 4 && speed == "20" && variant == "reference" {
					v = 0
				}
				all = append(all, Trial{Repetition: rep, Values: map[string]float64{ThroughputKbitS: v},
					Facts: map[string]string{"variant": variant, "speed_max_mps": speed}})
			}
		}
	}
	WithReferenceRatio(all)
	claim := Claim{Metric: referenceRatio, A: Condition{"speed_max_mps": {"20"}}, B: Condition{"speed_max_mps": {"2"}},
		Relation: Less}
	got := Decide(claim, all, interval).Parts[0]
	if got.N != 3 || got.Ratio != nil || got.Test !=
		"paired t interval, n = 3; without 1 trial whose R-TCP carried nothing" {
		t.Errorf("%+v", got)
	}
	claim.Metric = referenceGap
	if got = Decide(claim, all, interval).Parts[0]; got.N != 4 || got.Ratio != nil {
		t.Errorf("%+v", got)
	}
}

// What a paper says of every speed has a part for each: that the mean over them has a
// side supports nothing.
func TestEveryValueHasItsPart(t *testing.T) {
	var all []Trial
	for speed, gap := range map[string]float64{"1": 9, "5": 9, "20": -3} {
		for rep := 1; rep <= 3; rep++ {
			for variant, v := range map[string]float64{"vegas": 20 + gap, "reno": 20} {
				one := Trial{Repetition: rep, Values: map[string]float64{"m": v + float64(rep)},
					Facts: map[string]string{"variant": variant, "speed_max_mps": speed, "motion": "mobile"}}
				if speed == "20" {
					one.Facts["motion"] = "static"
				}
				all = append(all, one)
			}
		}
	}
	a, b := Condition{"variant": {"vegas"}}, Condition{"variant": {"reno"}}
	for _, k := range []struct {
		where   string
		verdict string
		parts   []string
	}{
		{"", Supported, []string{"vegas against reno"}},
		{"speed_max_mps=1|5|20", Supported, []string{"vegas against reno"}},
		{"speed_max_mps=1|5|10", Undecided, []string{"vegas against reno"}},
		{"speed_max_mps=1&5&20", Contradicted, []string{"1 m/s: vegas against reno", "5 m/s: vegas against reno",
			"20 m/s: vegas against reno"}},
		{"speed_max_mps=1&20", Contradicted, []string{"1 m/s: vegas against reno", "20 m/s: vegas against reno"}},
		{"speed_max_mps=1&5", Supported, []string{"1 m/s: vegas against reno", "5 m/s: vegas against reno"}},
		{"speed_max_mps=10&15", NotAsked, []string{"10 m/s: vegas against reno",
			"15 m/s: vegas against reno"}},
		{"speed_max_mps=1&10", Undecided, []string{"1 m/s: vegas against reno", "10 m/s: vegas against reno"}},
	} {
		where, each, err := readCondition(k.where)
		if err != nil {
			t.Fatal(err)
		}
		got := Decide(Claim{Metric: "m", Where: where, Each: each, A: a, B: b, Relation: More}, all, interval)
		var parts []string
		for _, p := range got.Parts {
			parts = append(parts, p.What)
			if p.N != 3 && p.Verdict != NotAsked {
				t.Errorf("%q, %s: n = %d", k.where, p.What, p.N)
			}
			lacks := strings.HasSuffix(p.Test, "; not asked of 10 m/s")
			if lacks != (k.where == "speed_max_mps=1|5|10") {
				t.Errorf("%q: %s", k.where, p.Test)
			}
		}
		if got.Verdict != k.verdict || !slices.Equal(parts, k.parts) {
			t.Errorf("%q: %s of %q, want %s of %q", k.where, got.Verdict, parts, k.verdict, k.parts)
		}
	}
	for _, text := range []string{"speed_max_mps=1|2&5", "speed_max_mps=*", "speed_max_mps=", "speed_max_mps"} {
		if _, _, err := readCondition(text); err == nil {
			t.Errorf("condition %q was read", text)
		}
	}
}

// Pairs that share a repetition's draw are one of the sample, not several. They are of the
// cells that every repetition has; of those that have none in common those with the same cells count.
func TestPairsOfARepetitionCountOnce(t *testing.T) {
	with := func(cells ...[]string) (all []Trial) {
		for i, repetition := range cells {
			for _, mobility := range repetition {
				for variant, v := range map[string]float64{"vegas": 9, "reno": 2} {
					all = append(all, Trial{Repetition: i + 1, Values: map[string]float64{"m": v + float64(i)},
						Facts: map[string]string{"variant": variant, "mobility": mobility}})
				}
			}
		}
		return all
	}
	both := []string{"low", "high"}
	for _, k := range []struct {
		trials []Trial
		n      int
		level  float64
		paired string
		alone  string
	}{
		{with(both, both, both), 3, 10, "n = 3, each the mean of 2 pairs", "n = 3, each the mean of 2 trials"},
		{with(both, both, both, []string{"low"}), 4, 10.5, "n = 4; without 1 cell that a repetition lacks",
			"n = 4; without 1 cell that a repetition lacks"},
		{with(both, both, both, []string{"none"}), 3, 10,
			"n = 3, each the mean of 2 pairs; without 1 repetition that had other cells",
			"n = 3, each the mean of 2 trials; without 1 repetition that had other cells"},
	} {
		claim := Claim{Metric: "m", A: Condition{"variant": {"vegas"}}, B: Condition{"variant": {"reno"}},
			Relation: More}
		got := Decide(claim, k.trials, interval).Parts[0]
		if got.N != k.n || got.Estimate.Mean != 7 || got.Test != "paired t interval, "+k.paired {
			t.Errorf("%+v", got)
		}
		claim.Relation, claim.B = Level, nil
		if got = Decide(claim, k.trials, interval).Parts[0]; got.N != k.n || got.Estimate.Mean != k.level ||
			got.Test != "t interval of the mean, "+k.alone {
			t.Errorf("%+v", got)
		}
	}
}

// Ends that every repetition draws make no cell of their own, so that one that a repetition
// lacks is seen.
func TestCellsOfDrawnEndsAreFound(t *testing.T) {
	var all []Trial
	for rep := 1; rep <= 3; rep++ {
		for _, mobility := range []string{"low", "high"} {
			for variant, v := range map[string]float64{"vegas": 9, "reno": 2} {
				if rep == 2 && mobility == "high" && variant == "reno" {
					continue
				}
				all = append(all, Trial{Repetition: rep, Values: map[string]float64{"m": v}, Facts: map[string]string{
					"variant": variant, "mobility": mobility, "ends": fmt.Sprintf("a to %d", rep)}})
			}
		}
	}
	got := pairsOf("m", Condition{"variant": {"vegas"}}, Condition{"variant": {"reno"}}, all)
	if len(got.pairs) != 3 || got.each != 1 || got.cells != 1 || got.repetitions != 0 || len(got.trials) != 3 {
		t.Errorf("%+v", got)
	}
}

// One of several parts is contradicted by the interval of one of so many only; supported it
// is by its own.
func TestPartsAreContradictedTogether(t *testing.T) {
	all := trials("m", map[string][]float64{"vegas": {5, 6, 7}, "reno": {7, 8, 9}, "tahoe": {10, 11, 12}})
	of := func(parts int) Summariser {
		return func(values []float64) (float64, *float64) {
			mean, half := interval(values)
			if half != nil {
				*half *= float64(parts)
			}
			return mean, half
		}
	}
	a := Condition{"variant": {"vegas"}}
	claims := []Claim{{ID: "x", Metric: "m", A: a, B: Condition{"variant": {"reno", "sack"}}, Relation: More}}
	if got := Answers(claims, all, of)[0]; got.Verdict != Contradicted {
		t.Errorf("of one part that is asked: %+v", got)
	}
	claims = append(claims, Claim{ID: "x", Metric: "m", A: a, B: Condition{"variant": {"tahoe"}}, Relation: Less})
	got := Answers(claims, all, of)[0]
	if got.Verdict != Undecided || got.Parts[0].Verdict != Undecided || got.Parts[2].Verdict != Supported ||
		got.Parts[0].Test != "paired t interval, n = 3; not contradicted by its interval as one of 2 parts" {
		t.Errorf("of two: %+v", got)
	}
	claims[1].Relation = More
	if got := Answers(claims, all, of)[0]; got.Verdict != Contradicted || got.Parts[2].Verdict != Contradicted {
		t.Errorf("of two, one of them far: %+v", got)
	}
}

// A statement of several lines has one answer, whose parts say of what they are.
func TestAStatementHasOneAnswer(t *testing.T) {
	a, b := Condition{"variant": {"vegas"}}, Condition{"variant": {"reno"}}
	all := trials("delay_ms", map[string][]float64{"vegas": {1, 2, 3}, "reno": {5, 6, 7}})
	for i := range all {
		all[i].Values["delivery_fraction"] = 0.5
	}
	got := Answers([]Claim{
		{ID: "P5.3", Metric: "delay_ms", A: a, B: b, Relation: Less, High: new(0.5), Note: "x"},
		{ID: "P5.3", Metric: "delivery_fraction", A: a, B: b, Relation: More, Note: "x"},
		{ID: "P5.4", Relation: None, Note: "no unit"},
	}, all, func(int) Summariser { return interval })
	more := Answers([]Claim{
		{ID: "P4.8", Metric: "delay_ms", A: a, B: b, Relation: Apart, High: new(-3.0),
			Where: Condition{"routing": {"dsr"}, "motion": {"static"}}},
		{ID: "P4.8", Metric: "delay_ms", A: a, B: b, Relation: More, Where: Condition{"routing": {"aodv"},
			"motion": {"static"}}},
	}, all, func(int) Summariser { return interval })
	if len(more) != 1 || more[0].Parts[0].What != "dsr, vegas against reno" || more[0].Parts[1].What !=
		"aodv, vegas against reno" || more[0].Parts[0].Test != "paired t interval beside at most -3, n = 3" {
		t.Errorf("%+v", more)
	}
	if len(got) != 2 || got[0].Verdict != Undecided || len(got[0].Parts) != 2 || len(got[0].Notes) != 1 ||
		got[0].Parts[0].What != "delay_ms, vegas against reno" || !got[0].Parts[0].OfSide() ||
		got[0].Parts[1].OfSide() || got[1].Verdict != Untestable {
		t.Errorf("%+v", got)
	}
}

// Conditions are told in words.
func TestConditionsAreWords(t *testing.T) {
	c := Condition{"field_m": {"", "400x800"}, "cbr_flows": {"2"}, "channel_error": {"0.01"}, "variant": {"reference"},
		"speed_max_mps": {"5", "20"}}
	want := "2 background flows, channel error 1 %, field of 400x800 m, 5 or 20 m/s, R-TCP"
	if got := c.String(); got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// A pair's trials differ in nothing but what is compared.
func TestPairsAreAlike(t *testing.T) {
	one := func(rep int, v float64, facts ...string) Trial {
		out := Trial{Repetition: rep, Facts: map[string]string{}, Values: map[string]float64{"m": v}}
		for _, f := range facts {
			k, v, _ := strings.Cut(f, "=")
			out.Facts[k] = v
		}
		return out
	}
	all := []Trial{
		one(1, 1, "tcp=reno", "variant=reno", "cbr_flows=10"), one(1, 2, "tcp=reno+sack", "variant=reno",
			"cbr_flows=10"), one(1, 4, "tcp=reno+sack", "variant=reno", "cbr_flows=10"),
		one(2, 7, "tcp=reno", "variant=reno", "cbr_flows=10"), one(2, 9, "tcp=reno+sack", "variant=reno",
			"cbr_flows=40"),
	}
	got := pairsOf("m", Condition{"tcp": {"reno+sack"}}, Condition{"tcp": {"reno"}}, all)
	if !slices.Equal(got.pairs, []twin{{3, 1}}) || got.each != 1 || got.cells != 0 || got.repetitions != 0 {
		t.Errorf("%+v", got)
	}
}

// like makes trials that have the published values times a factor, of a number
// of repetitions, each a little off.
func like(p Published, scenario string, factor float64, repetitions int) []Trial {
	var out []Trial
	for _, c := range p.of(scenario) {
		for r := range repetitions {
			f := c.facts()
			f.Repetition, f.Values = r+1, map[string]float64{c.Metric: factor * c.Value * (1 + 0.001*float64(r-1))}
			out = append(out, f)
		}
	}
	return out
}

func tInterval(values []float64) (float64, *float64) {
	mean, _ := interval(values)
	if len(values) < 3 || slices.Min(values) == slices.Max(values) { // as the report's own
		return mean, nil
	}
	ss := 0.0
	for _, v := range values {
		ss += (v - mean) * (v - mean)
	}
	// of two degrees of freedom: wide enough here
	return mean, new(4.303 * math.Sqrt(ss/float64(len(values)-1)/float64(len(values))))
}

// Ends that every repetition draws again make no cells of their own; ends that
// a plan compares do.
func TestEndsThatWereDrawnAreRepetitionsOfACell(t *testing.T) {
	trial := func(repetition int, ends string) Trial {
		return Trial{Repetition: repetition, Facts: map[string]string{"ends": ends, "variant": "reno", "tcp": "reno"},
			Values: map[string]float64{"m": float64(repetition)}}
	}
	of := func(values []float64) (float64, *float64) { return values[0], nil }
	for _, c := range []struct {
		trials []Trial
		facts  []string
		counts []int
	}{
		{[]Trial{trial(1, "a to b"), trial(2, "c to d"), trial(3, "e to f")}, nil, []int{3}},
		{[]Trial{trial(1, "a to b"), trial(1, "a to c"), trial(2, "a to b"), trial(2, "a to c")}, []string{"ends"},
			[]int{2, 2}},
	} {
		facts, cells := Cells(c.trials, []string{"m"}, of)
		var counts []int
		for _, cell := range cells {
			counts = append(counts, cell.Trials)
			if cell.Values[0].N != cell.Trials {
				t.Errorf("%d values of %d trials", cell.Values[0].N, cell.Trials)
			}
		}
		if !slices.Equal(facts, c.facts) || !slices.Equal(counts, c.counts) {
			t.Errorf("facts %v and %v trials a cell, want %v and %v", facts, counts, c.facts, c.counts)
		}
	}
}

// Trials as published have the published orders and support what was drawn from
// the tables; turned round, they contradict it and are remarked upon.
func TestTablesBesidePublishedOnes(t *testing.T) {
	p := read(t)
	tables := p.Tables("chain", like(p, "chain", 2, 3), tInterval)
	if len(tables) != 3 {
		t.Fatalf("%d tables", len(tables))
	}
	for _, k := range tables {
		if len(k.Remarks) > 0 || k.Turned > 0 || k.Compared == 0 || len(k.Rows) != 6 || len(k.Variants) != 5 {
			t.Errorf("%+v", k)
		}
		for _, r := range k.Rows {
			for _, c := range r.Cells {
				if c.Printed == "" || c.Ours.N != 3 || c.Ratio != nil && math.Abs(*c.Ratio-2) > 1e-9 {
					t.Errorf("%s %s: %+v", r.Routing, r.Motion, c)
				}
			}
		}
	}
	claims := p.Claims("p2", "chain")
	kinds := map[Relation]int{}
	for _, c := range claims {
		kinds[c.Relation]++
		if got := Decide(c, like(p, "chain", 1, 3), tInterval); got.Verdict == Contradicted || c.Relation == Same &&
			got.Verdict != Supported {
			t.Errorf("%s is %s by its own figures: %+v", c.Text, got.Verdict, got.Parts)
		}
	}
	if kinds[More] == 0 || kinds[Same] == 0 {
		t.Errorf("claims drawn: %v", kinds)
	}
	turned := p.Tables("chain", like(p, "chain", -1, 3), tInterval)[1]
	if turned.Turned != turned.Compared || len(turned.Remarks) == 0 ||
		!strings.Contains(strings.Join(turned.Remarks, " "), "beyond noise") {
		t.Errorf("%d of %d turned: %q", turned.Turned, turned.Compared, turned.Remarks)
	}
	t.Logf("%s", turned.Remarks[0])
}

// What the tables show is said of each cell: a mean over them supports nothing.
func TestWhatTablesShowHasAPartACell(t *testing.T) {
	p := read(t)
	parts := map[string][]Claim{}
	for _, c := range p.Drawn("grid") {
		parts[c.ID] = append(parts[c.ID], c)
	}
	kinds := map[Relation]int{}
	for _, c := range parts["P2 grid.3"] {
		kinds[c.Relation]++
	}
	if len(parts["P2 grid.5"]) != 10 || kinds[More] != 7 || kinds[Same] != 1 {
		t.Errorf("grid.5 has %d cells, grid.3 %v", len(parts["P2 grid.5"]), kinds)
	}
	ours := like(p, "grid", 1, 3)
	other := slices.IndexFunc(ours, parts["P2 grid.5"][0].Where.and(Condition{"routing": {"dsr"}}).holds)
	of := func(int) Summariser { return tInterval }
	if got := Answers(parts["P2 grid.5"], ours, of)[0]; got.Verdict != Supported {
		t.Errorf("by its own figures: %+v", got)
	}
	for i := range 3 {
		ours[other+i].Values["packet_loss_percent"] += 20 + float64(i)
	}
	if got := Answers(parts["P2 grid.5"], ours, of)[0]; got.Verdict != Contradicted {
		t.Errorf("with one cell turned round: %+v", got)
	}
}

// Where ours are equal, their order is neither the published one nor the other.
func TestEqualCellsHaveNoOrder(t *testing.T) {
	p := read(t)
	for _, k := range p.Tables("chain", like(p, "chain", 0, 3), tInterval) {
		if k.Compared == 0 || k.Equal != k.Compared || k.Turned != 0 {
			t.Errorf("%s: of %d orders %d are equal and %d turned", k.Metric, k.Compared, k.Equal, k.Turned)
		}
	}
}

// What the papers printed stands beside our cells and is in none of them.
func TestPublishedFiguresChangeNoMeasuredCell(t *testing.T) {
	p, other := read(t), read(t)
	for i := range other.Cells {
		other.Cells[i].Value, other.Cells[i].Printed = 1000-3*other.Cells[i].Value, "else"
	}
	ours := func(p Published) string {
		var out []string
		for _, k := range p.Tables("grid", like(read(t), "grid", 1, 3), tInterval) {
			for _, r := range k.Rows {
				for _, c := range r.Cells {
					half := 0.0
					if c.Ours.Half != nil {
						half = *c.Ours.Half
					}
					out = append(out, fmt.Sprint(k.Metric, k.Unit, r.Routing, r.Motion, c.Ours.Mean, half, c.Ours.N))
				}
			}
		}
		return strings.Join(out, "\n")
	}
	if a, b := ours(p), ours(other); a != b || len(a) == 0 {
		t.Error("a changed published figure changed a measured cell")
	}
}

// A statement of P2's is put to a run of the scenario that it is of; those of
// another paper to all of that paper's.
func TestStatementsAreOfTheirScenario(t *testing.T) {
	p := read(t)
	of := func(paper, scenario string) (stated int) {
		for _, c := range p.Claims(paper, scenario) {
			if slices.ContainsFunc(p.Tests, func(x Claim) bool { return x.ID == c.ID }) {
				stated++
			}
		}
		return stated
	}
	if of("p2", "random") == 0 || of("p2", "chain") == 0 || of("p2", "chain")+of("p2", "grid")+of("p2", "random") !=
		of("p2", "") || of("p1", "") != 7 {
		t.Errorf("random %d, chain %d, P1 %d", of("p2", "random"), of("p2", "chain"), of("p1", ""))
	}
}

// A run with more nodes draws other ends, and a section of P1's turns them round:
// they are pairs all the same.
func TestPairsOfOtherEnds(t *testing.T) {
	for _, fact := range []string{"nodes", "moving"} {
		var trials []Trial
		for rep := 1; rep <= 3; rep++ {
			for k, v := range []string{"x", "y"} {
				trials = append(trials, Trial{Repetition: rep, Values: map[string]float64{"m": float64(10 - 5*k)},
					Facts: map[string]string{fact: v, "ends": v + " to z"}})
			}
		}
		got := Decide(Claim{Metric: "m", A: Condition{fact: {"x"}}, B: Condition{fact: {"y"}}, Relation: More}, trials,
			interval)
		if got.Verdict != Supported {
			t.Errorf("%s: %s", fact, got.Verdict)
		}
	}
	w, h := 400.0, 1700.0
	if f := Facts(wire.Trial{Conditions: &wire.Conditions{WidthM: &w, HeightM: &h}})["field_m"]; f != "400x1700" {
		t.Errorf("field %q", f)
	}
}

// What P2 calls Westwood is its authors', and Linux's is a variant that the papers lack.
func TestVariantsAsPublishedHaveThePapersNames(t *testing.T) {
	for variant, want := range map[string]string{"westwood2001": "westwood", "vegas1995": "vegas", "reno": "reno",
		"westwood": "westwood of Linux", "vegas": "vegas of Linux"} {
		got := Facts(wire.Trial{TCP: wire.TCP{Variant: variant}})
		if got["variant"] != want || got["tcp"] != variant {
			t.Errorf("%s is called %s, %s; want %s", variant, got["variant"], got["tcp"], want)
		}
	}
}

// What the papers call DSR and AODV is what ns-2 has, and the RFCs' are none of theirs.
func TestRoutingIsThatOfTheSimulator(t *testing.T) {
	for protocol, want := range map[string]string{"dsr": "dsr of RFC 4728", "dsr-ns2": "dsr",
		"aodv": "aodv of RFC 3561", "aodv-ns2": "aodv", "aodv-p3": "aodv", "dsdv": "dsdv"} {
		if got := Facts(wire.Trial{Routing: wire.Routing{Protocol: protocol}})["routing"]; got != want {
			t.Errorf("%s is called %s, want %s", protocol, got, want)
		}
	}
}

// P3's AODV has its own times, and neither ns-2's nor RFC 3561's is the paper's.
func TestOthersAODVIsApartFromP3s(t *testing.T) {
	for protocol, want := range map[string]string{"dsr": "dsr of RFC 4728", "dsr-ns2": "dsr",
		"aodv": "aodv of RFC 3561", "aodv-ns2": "aodv of ns-2", "aodv-p3": "aodv", "adv": "adv"} {
		got := Trial{Facts: Facts(wire.Trial{Routing: wire.Routing{Protocol: protocol}})}
		got.ApartFromP3(protocol)
		if got.Facts["routing"] != want {
			t.Errorf("%s is called %s, want %s", protocol, got.Facts["routing"], want)
		}
	}
}

// A statement of both, of all or of every one is put to a test with a part for each.
func TestWhatIsSaidOfEveryOneHasPartsForEach(t *testing.T) {
	p := read(t)
	words := regexp.MustCompile(`\b(both|all six|all scenarios|all cases|in general|every|consistently|various|for each)\b`)
	found := 0
	for _, s := range p.Statements {
		text := s.Setting + " " + s.Quantity + " " + s.Printed
		if !words.MatchString(text) || onTheWhole.MatchString(text) {
			continue
		}
		found++
		if !slices.ContainsFunc(p.Tests, func(c Claim) bool {
			return c.ID == s.ID && (c.Relation == None || len(c.Each) > 0 || len(c.A.choices()) > 1)
		}) {
			t.Errorf("%s (%s: %s, %s) is read as one mean", s.ID, s.Setting, s.Quantity, s.Printed)
		}
	}
	if found < 8 {
		t.Errorf("%d statements are of every one", found)
	}
}

// onTheWhole are words by which a paper allows for exceptions.
var onTheWhole = regexp.MustCompile(`\b(generally|in most|most of)\b`)

// A statement that allows for exceptions is put to a test as a mean over the loads.
func TestWhatIsSaidOnTheWholeIsAMean(t *testing.T) {
	p := read(t)
	found := 0
	for _, s := range p.Statements {
		if !onTheWhole.MatchString(s.Setting + " " + s.Quantity + " " + s.Printed) {
			continue
		}
		found++
		for _, c := range p.Tests {
			if c.ID == s.ID && slices.ContainsFunc(c.Each, func(fact string) bool {
				return slices.Contains([]string{"tcp_flows", "cbr_flows", "cbr_kbit_s", "nodes"}, fact)
			}) {
				t.Errorf("%s (%s: %s, %s) has a part for each load: %v", s.ID, s.Setting, s.Quantity, s.Printed, c.Each)
			}
		}
	}
	if found < 7 {
		t.Errorf("%d statements allow for exceptions", found)
	}
}

// Of the chain P2 ranks Vegas among the variants over each protocol, standing and moving.
func TestVegasIsRankedOnTheChainOverEachProtocol(t *testing.T) {
	p := read(t)
	chain := p.Claims("p2", "chain")
	for _, routing := range []string{"dsdv", "dsr", "aodv"} {
		for _, motion := range []string{"static", "mobile"} {
			if !slices.ContainsFunc(chain, func(c Claim) bool {
				return strings.HasPrefix(c.ID, "P2.") && c.Metric == ThroughputPerConnection &&
					slices.Equal(c.Where["routing"], []string{routing}) &&
					slices.Equal(c.Where["motion"], []string{motion}) &&
					slices.Equal(c.A["variant"], []string{"vegas"}) && len(c.B["variant"]) == 4
			}) {
				t.Errorf("over %s, %s, no statement has Vegas beside the other variants", routing, motion)
			}
		}
	}
}

// A conclusion over a sweep is not decided by one point of it.
func TestAConclusionIsNotDecidedByOnePointOfItsSweep(t *testing.T) {
	p := read(t)
	var all []Trial
	for rep := 1; rep <= 3; rep++ {
		for _, mobility := range []string{"low", "high"} {
			for i, variant := range []string{"vegas", "tahoe", "reno", "newreno", "sack", "fack"} {
				all = append(all, Trial{Repetition: rep, Facts: map[string]string{"variant": variant,
					"mobility": mobility, "nodes": "50", "tcp_flows": "5"}, Values: map[string]float64{
					"one_way_delay_mean_ms": float64(100 * (i + 1)), "delivery_fraction": 100 / float64(i+1)}})
			}
		}
	}
	var claims []Claim
	for _, c := range p.Tests {
		if c.ID == "P5.3" {
			claims = append(claims, c)
		}
	}
	got := Answers(claims, all, func(int) Summariser { return interval })
	if len(got) != 1 || got[0].Verdict != NotAsked {
		t.Errorf("of 50 nodes and 5 connections: %+v", got)
	}
}

// What P3 concludes of ADV is not asked of cells of which its sections say otherwise: with 10 CBR
// flows at 200 kbit/s and several connections ADV and AODV are the same, and at 100 kbit/s ADV is
// ahead in most cases, not in all.
func TestP3sConclusionAgreesWithItsSections(t *testing.T) {
	var all []Trial
	for _, load := range []struct{ tcp, kbits []string }{{[]string{"1"}, []string{"50", "100", "150", "200"}},
		{[]string{"2", "5", "10"}, []string{"100", "200"}}} {
		for _, tcp := range load.tcp {
			for _, kbits := range load.kbits {
				for _, flows := range []string{"10", "40"} {
					for rep := range 3 {
						is := map[string]float64{"adv": 110, "aodv": 100, "dsr": 80}
						switch {
						case tcp != "1" && flows == "10" && kbits == "200":
							is["aodv"] = 109 + float64(rep)
						case tcp == "10" && flows == "10" && kbits == "100":
							is["aodv"] = 113
						}
						for routing, off := range map[string]float64{"adv": 0.1, "aodv": 0.2, "dsr": 0.3} {
							v := is[routing] + off*float64(rep*rep)
							all = append(all, Trial{Repetition: rep + 1, Values: map[string]float64{ThroughputKbitS: v},
								Facts: map[string]string{"tcp": "reno", "tcp_flows": tcp, "cbr_kbit_s": kbits,
									"cbr_flows": flows, "routing": routing}})
						}
					}
				}
			}
		}
	}
	var claims []Claim
	for _, c := range read(t).Tests {
		if c.ID == "P3.54" {
			claims = append(claims, c)
		}
	}
	got := Answers(claims, all, func(int) Summariser { return tInterval })
	if len(got) != 1 || got[0].Verdict != Supported || len(got[0].Parts) != 27 {
		t.Errorf("%d parts: %+v", len(got[0].Parts), got)
	}
	for _, p := range got[0].Parts {
		if p.N != 3 {
			t.Errorf("%s: n = %d", p.What, p.N)
		}
	}
}
