package influx

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"fieldmesh.dev/fieldmesh/controller/archive"
	"fieldmesh.dev/fieldmesh/controller/metrics"
	"fieldmesh.dev/fieldmesh/internal/influx"
	"fieldmesh.dev/fieldmesh/protocols/wire"
	"fieldmesh.dev/fieldmesh/test/synthetic"
)

// judged is a run of four cells; the first attempt at trial 2 was driven too slowly.
func judged(t *testing.T) *archive.Archive {
	t.Helper()
	return synthetic.Run(t, synthetic.Options{Seed: 5, Speeds: []float64{2.8, 16.7}, Repetitions: 1,
		Place: archive.PlaceBench,
		Change: func(t *wire.Trial) {
			t.TCP.Variant, t.Routing.Protocol = "reno", "aodv"
			synthetic.AddDelay(t)
		},
		Mishap: func(t wire.Trial, attempt int, c *synthetic.Conditions) {
			if t.Number == 2 && attempt == 1 {
				c.SpeedOffsetMps = -*t.SpeedMps / 2
			}
		}})
}

// resultsOf are the points of results by attempt, without measurement and time.
func resultsOf(points map[string]int) map[string]string {
	out := map[string]string{}
	for p := range points {
		rest, found := strings.CutPrefix(p, influx.ResultName+",")
		if !found {
			continue
		}
		var key [2]string
		for tag := range strings.SplitSeq(rest[:strings.IndexByte(rest, ' ')], ",") {
			name, value, _ := strings.Cut(tag, "=")
			switch name {
			case "trial":
				key[0] = value
			case "attempt":
				key[1] = value
			}
		}
		out[key[0]+"."+key[1]] = rest[:strings.LastIndexByte(rest, ' ')]
	}
	return out
}

// A result has the very numbers of metrics.csv, and every judged attempt has one.
func TestResultsAreTheMetrics(t *testing.T) {
	a := judged(t)
	points, sum := published(t, a.Dir())
	got := resultsOf(points)
	if len(got) != 5 || sum.Results != 5 || sum.Unreckoned != 0 {
		t.Fatalf("results %v; %+v", got, sum)
	}
	accepted := 0
	for _, d := range a.Decisions() {
		rows, err := metrics.Of(a, d.TrialKey)
		if err != nil {
			t.Fatal(err)
		}
		trial, _ := a.Trial(d.Trial)
		line := got[fmt.Sprintf("%d.%d", d.Trial, d.Attempt)]
		want := []string{
			"run=" + a.Info().Run, ",nodes=2,", "variant=reno", "routing=aodv", "section=" + trial.Factors["section"],
			",factor_speed_mps=" + trial.Factors["speed_mps"] + ",",
			",factor_car_unit=" + trial.Factors["car_unit"] + ",",
			"speed=" + metrics.Number(*trial.SpeedMps),
			"unit=laptop-1", "direction=" + trial.Direction, `outcome="` + string(d.Outcome) + `"`, `place="bench"`, "planned_trials=4i",
			`,begun="` + a.Info().CreatedWall.UTC().Format(time.RFC3339Nano) + `",`,
			",window_ms=10000i,",
			",throughput_bps=" + metrics.Number(*metrics.Value(rows, "bulk", metrics.ThroughputBps)),
			",speed_mean_mps=" + metrics.Number(*metrics.Value(rows, "", metrics.SpeedMeanMps)),
			",delay_round_trip_p50_ms=" + metrics.Number(*metrics.Value(rows, "delay", metrics.DelayRoundTripP50Ms)),
			",datagrams_lost_percent=2,", ",rtt_mean_ms=",
			",retransmits=" + metrics.Number(*metrics.Value(rows, "bulk", metrics.RetransmitsName)),
		}
		for _, w := range want {
			if !strings.Contains(line, w) {
				t.Errorf("trial %d attempt %d: no %s in %s", d.Trial, d.Attempt, w, line)
			}
		}
		if strings.Contains(line, "packet_loss_percent") || strings.Contains(line, "connect_time_ms") {
			t.Errorf("nothing was captured, yet %s", line)
		}
		if strings.Contains(line, " accepted=1i") {
			accepted++
		}
		if has := strings.Contains(line, `,reason="",`); has != (d.Outcome == "accepted") {
			t.Errorf("trial %d attempt %d is %s: %s", d.Trial, d.Attempt, d.Outcome, line)
		}
	}
	if accepted != 4 {
		t.Errorf("%d results are accepted, want 4", accepted)
	}
}

// The measured flows of a result are those of the report: a UDP flow beside one of TCP takes nothing from it.
func TestAUDPFlowBesideTheMeasuredOne(t *testing.T) {
	udp := wire.Flow{Name: "video", Kind: "iperf3_udp", Port: 5003, Streams: 1, ClientPort: 44000, DurationS: 10}
	a := synthetic.Run(t, synthetic.Options{Seed: 5, Speeds: []float64{2.8}, Repetitions: 1,
		Change: func(t *wire.Trial) {
			udp.From, udp.To = t.Sender, t.Receiver
			t.Traffic = append(t.Traffic, udp)
		}})
	points, _ := published(t, a.Dir())
	results := resultsOf(points)
	for _, d := range a.Decisions() {
		rows, err := metrics.Of(a, d.TrialKey)
		if err != nil {
			t.Fatal(err)
		}
		line := results[fmt.Sprintf("%d.%d", d.Trial, d.Attempt)]
		for _, name := range []string{metrics.RetransmitsName, "rtt_mean_ms"} {
			if want := "," + name + "=" + metrics.Number(*metrics.Value(rows, "bulk", name)); !strings.Contains(line,
				want) {
				t.Errorf("trial %d: no %s in %s", d.Trial, want, line)
			}
		}
	}
	if len(results) != 2 {
		t.Errorf("%d results, want 2", len(results))
	}
}

// Beside each step of a trial on the car's node stands what the plan asks.
func TestTargetsStandBesideTheSteps(t *testing.T) {
	const name = influx.TargetName + ","
	a := newRun(t, 1)
	s := &scripted{seq: map[string]uint64{}, nowNs: 1000 * second}
	s.clocks(1)(t, a)
	for _, node := range []string{"car", "roadside"} {
		appendAll(t, a, node, []wire.Record{{Header: s.header(node, 1), Body: &wire.TrialState{State: "armed"}}})
	}
	points, sum := published(t, a.Dir())
	var targets, states []string
	for p := range points {
		if strings.HasPrefix(p, name) {
			targets = append(targets, p)
		}
		if strings.HasPrefix(p, "fm_trial,attempt=1,node=car") {
			states = append(states, p)
		}
	}
	if len(targets) != 1 || len(states) != 1 || sum.Targets != 1 {
		t.Fatalf("targets %v beside %v; %+v", targets, states, sum)
	}
	at := states[0][strings.LastIndexByte(states[0], ' '):]
	if want := name + "attempt=1,run=r,trial=1 speed_target_mps=1,speed_low_mps=0,speed_high_mps=2.5" +
		at; targets[0] != want {
		t.Errorf("%s, want %s", targets[0], want)
	}
}

// A tail sends a result when its attempt is sealed, once, and again when a
// person's word changes the verdict; then publish makes the same points.
func TestResultFollowsItsVerdict(t *testing.T) {
	a := newRun(t, 2)
	d := &database{points: map[string]int{}}
	steps := script(2)
	for _, s := range steps[:len(steps)-2] { // all but trial 2's verdict and what follows it
		s(t, a)
	}
	session(t, a.Dir(), d, 2, false)
	if got := resultsOf(d.points); len(got) != 1 || !strings.Contains(got["1.1"], `outcome="accepted"`) {
		t.Fatalf("before trial 2 is judged: %v", got)
	}
	for _, s := range steps[len(steps)-2:] {
		s(t, a)
	}
	session(t, a.Dir(), d, 2, false)
	session(t, a.Dir(), d, 2, false)
	if got := resultsOf(d.points); len(got) != 2 {
		t.Fatalf("after it: %v", got)
	}
	for p, n := range d.points {
		if strings.HasPrefix(p, influx.ResultName) && n != 1 {
			t.Errorf("sent %d times: %s", n, p)
		}
	}
	word := wire.Verdict{TrialKey: wire.TrialKey{Trial: 1, Attempt: 1}, Outcome: "rejected",
		Reason: wire.ParseReason("a lorry stood between"), Final: true, Word: &wire.Word{Decision: "repeat"}}
	if err := a.Decide(word); err != nil {
		t.Fatal(err)
	}
	d.points = map[string]int{}
	session(t, a.Dir(), d, 2, false)
	if got := resultsOf(d.points); len(got) != 1 ||
		!strings.Contains(got["1.1"], `accepted=0i,counts=0i,outcome="rejected",reason="a lorry stood between"`) {
		t.Errorf("after a word: %v", got)
	}
	all, _ := published(t, a.Dir())
	for p := range d.points {
		if all[p] != 1 {
			t.Errorf("publish has no %s", p)
		}
	}
	// A server keeps the fields that a point had before and has no more: an accepted one must say that it has no
	// reason.
	word.Outcome, word.Reason, word.Word = "accepted", wire.Reason{}, &wire.Word{Decision: "accept"}
	if err := a.Decide(word); err != nil {
		t.Fatal(err)
	}
	d.points = map[string]int{}
	session(t, a.Dir(), d, 2, false)
	if got := resultsOf(d.points); !strings.Contains(got["1.1"], `outcome="accepted",reason="",`) {
		t.Errorf("accepted after all: %v", got)
	}
}

// A result that was driven after the run had enough is accepted, and does not count.
func TestResultsBeyondEnoughDoNotCount(t *testing.T) {
	a := synthetic.Run(t, synthetic.Options{Seed: 5, Speeds: []float64{2.8}, Repetitions: 3, Enough: 2})
	points, _ := published(t, a.Dir())
	got := resultsOf(points)
	for _, v := range a.Decisions() {
		trial, _ := a.Trial(v.Trial)
		line, want := got[fmt.Sprintf("%d.%d", v.Trial, v.Attempt)], ",counts=1i"
		if trial.Block > 2 {
			want = ",counts=0i"
		}
		if !strings.Contains(line, want) || !strings.Contains(line, "accepted=1i") {
			t.Errorf("block %d: no %s in %s", trial.Block, want, line)
		}
	}
	if len(got) != 6 {
		t.Errorf("%d results", len(got))
	}
}

// window makes the record of a node's window in a trial.
func (s *scripted) window(node string, trial int) step {
	h := s.header(node, trial)
	r := wire.Record{Header: h, Body: &wire.Window{OpenBootNs: h.TBootNs, CloseBootNs: h.TBootNs + 10*second}}
	return func(t testing.TB, a *archive.Archive) { t.Helper(); appendAll(t, a, node, []wire.Record{r}) }
}

// A result has one time, and so is one point, whenever it is sent: nothing that comes after its attempt was sealed
// moves it.
func TestResultHasOneTime(t *testing.T) {
	for name, after := range map[string]func(s *scripted) []step{
		"a neighbour's clock is known later": func(s *scripted) []step {
			return []step{s.window("car", 1), s.window("roadside", 1), s.decide(1), s.clocks(2), s.window("car", 2),
				s.window("roadside", 2), s.decide(2)}
		},
		"the first node's window comes late": func(s *scripted) []step {
			return []step{s.clocks(1), s.window("roadside", 1), s.decide(1), s.window("car", 1)}
		},
	} {
		t.Run(name, func(t *testing.T) {
			a := newRun(t, 2)
			d := &database{points: map[string]int{}}
			for _, happens := range after(&scripted{seq: map[string]uint64{}, nowNs: 1000 * second}) {
				happens(t, a)
				session(t, a.Dir(), d, 2, false)
			}
			all, _ := published(t, a.Dir())
			for p := range all {
				d.points[p]++
			}
			times := map[string]string{}
			for p := range d.points {
				if !strings.HasPrefix(p, influx.ResultName+",") {
					continue
				}
				tags, at := p[:strings.IndexByte(p, ' ')], p[strings.LastIndexByte(p, ' '):]
				if other, twice := times[tags]; twice && other != at {
					t.Errorf("%s is at%s and at%s", tags, other, at)
				}
				times[tags] = at
			}
		})
	}
}

// Of an attempt with late records the database may keep numbers that are not known any more: where it deletes nothing
// that is said, and the result is written all the same.
func TestADatabaseThatDeletesNothingIsTold(t *testing.T) {
	a := judged(t)
	if _, sum := published(t, a.Dir()); sum.Kept != 0 || sum.Results != 5 {
		t.Errorf("without a late record: %+v", sum)
	}
	at, _ := a.Trial(1)
	appendAll(t, a, at.Receiver, []wire.Record{{Header: wire.Header{Node: at.Receiver, Epoch: "0123456789abcdef",
		Seq: 1, TBootNs: 1, Run: a.Info().Run, Trial: 1, Attempt: 1}, Body: &wire.Edge{Edge: "open"}}})
	points, sum := published(t, a.Dir())
	if sum.Kept != 1 || sum.KeptWhy == nil || sum.Results != 5 {
		t.Errorf("with one: %+v", sum)
	}
	got := resultsOf(points)["1.1"]
	if strings.Contains(got, "throughput_bps") || !strings.Contains(got, "accepted=1i") {
		t.Errorf("the result is %s", got)
	}
}

// Every shard tells the trials of the whole run, whose results it is beside in the database.
func TestAShardTellsTheWholeRunsTrials(t *testing.T) {
	folders, err := synthetic.Shards(t.TempDir(), synthetic.Options{Speeds: []float64{2.8, 16.7}, Repetitions: 3}, 3)
	if err != nil {
		t.Fatal(err)
	}
	for _, folder := range folders {
		points, _ := published(t, folder)
		got := resultsOf(points)
		if len(got) != 4 {
			t.Errorf("%d results in a shard of 12 ÷ 3 trials", len(got))
		}
		for _, line := range got {
			if !strings.Contains(line, ",planned_trials=12i") || strings.Contains(line, "begun=") {
				t.Errorf("a shard has %s", line)
			}
		}
	}
}

// Every number of a result is a metric, of the unit that the measurement says: another name would be of no number, and
// its field would be left out without a word.
func TestResultsNumbersAreMetrics(t *testing.T) {
	units := map[string]string{}
	for _, m := range influx.Computed() {
		for _, f := range m.Fields {
			if m.Name == influx.ResultName {
				units[f.Name] = f.Unit
			}
		}
	}
	varying := regexp.MustCompile("[A-Z]+")
	for _, name := range slices.Concat(wholeNumbers, flowNumbers, delayNumbers, []string{metrics.RetransmitsName}) {
		known := slices.ContainsFunc(metrics.Definitions(), func(d metrics.Definition) bool {
			of := regexp.MustCompile("^" + varying.ReplaceAllString(d.Name, "(mean|p50|p95|p99)") + "$")
			return of.MatchString(name) && d.Unit == units[name]
		})
		if !known {
			t.Errorf("%s, in %q, is no metric of that unit", name, units[name])
		}
	}
}
