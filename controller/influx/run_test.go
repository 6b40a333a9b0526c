package influx

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"fieldmesh.dev/fieldmesh/controller/archive"
	"fieldmesh.dev/fieldmesh/internal/influx"
	"fieldmesh.dev/fieldmesh/protocols/wire"
	"fieldmesh.dev/fieldmesh/test/testnet"
)

const (
	second  = int64(1_000_000_000)
	wallNs  = 1_790_000_000 * second // of the controller when its boot clock was 0
	carAway = 5000 * second          // the car's boot clock minus the controller's
	roadsNs = -40 * second           // the roadside node's
)

// step is one thing that happens to an archive.
type step func(t testing.TB, a *archive.Archive)

// script is a run of n trials as an archive sees it: records before the first
// trial, then for each trial the estimates, the nodes' records, a verdict.
// Each trial's estimates differ a little, as clocks drift. In every fourth
// trial from the second on there are none, for the controller was out of
// reach; in every fourth from the third on it came back at the end.
func script(n int) []step {
	s := &scripted{seq: map[string]uint64{}}
	var out []step
	s.nowNs = 1000 * second
	out = append(out, s.records("car", 0, 3), s.records("roadside", 0, 2))
	for k := 1; k <= n; k++ {
		if k%4 < 2 {
			out = append(out, s.clocks(k))
		}
		out = append(out, s.records("car", k, 20), s.records("roadside", k, 20), s.records(archive.FieldNode, k, 5),
			s.records("car", 0, 2))
		if k%4 == 3 {
			out = append(out, s.clocks(k))
		}
		out = append(out, s.decide(k))
	}
	return append(out, s.records("roadside", 0, 2))
}

type scripted struct {
	seq   map[string]uint64
	nowNs int64 // the controller's boot clock
}

func (s *scripted) header(node string, trial int) wire.Header {
	s.seq[node]++
	s.nowNs += second / 10
	h := wire.Header{Node: node, Epoch: "00000000000000" + node[:2], Seq: s.seq[node], TBootNs: s.nowNs, Run: "r"}
	switch node {
	case "car":
		h.TBootNs += carAway
	case "roadside":
		h.TBootNs += roadsNs
	}
	if trial > 0 {
		h.Trial, h.Attempt = trial, 1
	}
	return h
}

// records makes GPS records of a node; of several, two fall in one instant.
func (s *scripted) records(node string, trial, n int) step {
	var rs []wire.Record
	for i := range n {
		h := s.header(node, trial)
		if i > 0 && i%5 == 0 {
			h.TBootNs = rs[i-1].TBootNs
		}
		rs = append(rs, wire.Record{Header: h, Body: &wire.GPS{Mode: 3, Connected: true, SpeedMps: new(float64(i))}})
	}
	return func(t testing.TB, a *archive.Archive) {
		t.Helper()
		if node == archive.FieldNode {
			if err := a.AppendField(trial, 1, rs); err != nil {
				t.Fatal(err)
			}
			return
		}
		appendAll(t, a, node, rs)
	}
}

func (s *scripted) clocks(trial int) step {
	var rs []wire.Record
	drift := int64(trial) * 1_000_000
	for _, peer := range []string{"car", "roadside"} {
		away := carAway
		if peer == "roadside" {
			away = roadsNs
		}
		rs = append(rs, wire.Record{Header: s.header(controllerNode, trial),
			Body: &wire.Clock{Peer: peer, OffsetNs: away + drift, OwnWallOffsetNs: new(wallNs)}})
	}
	return func(t testing.TB, a *archive.Archive) { t.Helper(); appendAll(t, a, controllerNode, rs) }
}

func (s *scripted) decide(trial int) step {
	return func(t testing.TB, a *archive.Archive) {
		t.Helper()
		v := wire.Verdict{TrialKey: wire.TrialKey{Trial: trial, Attempt: 1}, Outcome: "accepted", Final: true}
		if err := errors.Join(a.Decide(v), a.Seal(trial, 1)); err != nil {
			t.Fatal(err)
		}
	}
}

func appendAll(t testing.TB, a *archive.Archive, node string, rs []wire.Record) {
	t.Helper()
	var lines [][]byte
	for _, r := range rs {
		line, err := json.Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		lines = append(lines, line)
	}
	if err := a.Append(node, lines); err != nil {
		t.Fatal(err)
	}
}

// newRun makes the empty archive of a run with n trials.
func newRun(t testing.TB, n int) *archive.Archive {
	t.Helper()
	info := archive.RunInfo{Run: "r", Campaign: "c", Place: archive.PlaceBench, CampaignRaw: []byte("version: 1\n"),
		Plan: wire.RunPlan{Run: "r"}}
	for i := range n {
		info.Plan.Trials = append(info.Plan.Trials, wire.Trial{Number: i + 1, Car: "car", Roadside: "roadside",
			SpeedMps: new(1.0), Acceptance: wire.Acceptance{SpeedBandMps: new(1.5)}})
	}
	a, err := archive.Create(filepath.Join(t.TempDir(), "r"), info)
	if err != nil {
		t.Fatal(err)
	}
	testnet.CloseAtEnd(t, a)
	return a
}

// database is a hand-written Writer: a point is what it was last told to be.
type database struct {
	mu     sync.Mutex
	points map[string]int      // line → how often it came
	fail   func() (bool, bool) // whether a write fails, and whether it is stored all the same
}

func (d *database) Write(_ context.Context, lines []byte) ([]influx.Refusal, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	failed, stored := false, true
	if d.fail != nil {
		failed, stored = d.fail()
	}
	if stored || !failed {
		for start, i := 0, 0; i < len(lines); i++ {
			if lines[i] == '\n' {
				d.points[string(lines[start:i])]++
				start = i + 1
			}
		}
	}
	if failed {
		return nil, errors.New("the database went away")
	}
	return nil, nil
}

// Forget deletes nothing, as InfluxDB 3.
func (d *database) Forget(context.Context, string, map[string]string, time.Time) error {
	return errors.New("not implemented")
}

func published(t *testing.T, dir string) (map[string]int, Summary) {
	t.Helper()
	d := &database{points: map[string]int{}}
	s, err := Publish(t.Context(), dir, d)
	if err != nil {
		t.Fatal(err)
	}
	return d.points, s
}

func TestPublishDatesEveryRecord(t *testing.T) {
	a := newRun(t, 3)
	for _, s := range script(3) {
		s(t, a)
	}
	points, sum := published(t, a.Dir())
	const records = 3 + 2 + 3*(20+20+5+2) + 2*2 + 2
	if int(sum.Points) != records || sum.Results != 3 || len(points) != records+3 || len(sum.Undated) != 0 ||
		sum.Unknown+sum.Damaged+sum.RefusedN != 0 {
		t.Errorf("%d points, %d different, of %d records and 3 results; %+v", sum.Points, len(points), records, sum)
	}
	// The first record of all: the car's clock less its offset in trial 1, on
	// the controller's wall clock, with the record's number as last digits.
	at := wallNs + 1000*second + second/10 - 1_000_000 + 1
	want := fmt.Sprintf("fm_gps,node=car,run=r seq=1i,t_boot_ns=%di,mode=3i,connected=true,speed_mps=0 %d",
		1000*second+second/10+carAway, at)
	if points[want] != 1 {
		t.Errorf("no point %s", want)
		for p := range points {
			t.Log(p)
		}
	}
}

// However the archive grows, whenever the tail looks, and however often it is
// ended or loses its database, it sends what Publish sends and nothing else.
func TestTailSendsWhatPublishSends(t *testing.T) {
	for seed := range uint64(30) {
		rng := rand.New(rand.NewPCG(seed, 1))
		a := newRun(t, 4)
		d := &database{points: map[string]int{}}
		d.fail = func() (bool, bool) { return rng.IntN(6) == 0, rng.IntN(2) == 0 }
		for _, s := range script(4) {
			s(t, a)
			for range rng.IntN(3) {
				session(t, a.Dir(), d, 1+rng.IntN(3), false)
			}
		}
		d.fail = nil
		session(t, a.Dir(), d, 2, true)
		want, _ := published(t, a.Dir())
		for p := range want {
			if d.points[p] == 0 {
				t.Errorf("seed %d: the tail did not send %s", seed, p)
			}
		}
		for p := range d.points {
			if want[p] == 0 {
				t.Errorf("seed %d: the tail sent another point %s", seed, p)
			}
		}
		if t.Failed() {
			return
		}
		if behind, err := Behind(a.Dir(), influx.Target{}); behind != 0 || err != nil {
			t.Errorf("seed %d: %d bytes behind, %v", seed, behind, err)
		}
	}
}

// A record that nothing dates holds back none behind it: not while the run goes where the next attempt shows that it is
// of an earlier boot, and not at the end where it is of a spool of which there is no attempt.
func TestATailPassesWhatNothingDates(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*wire.Header)
		final  bool
	}{
		"of a boot before the first attempt": {func(h *wire.Header) { h.TBootNs += 7 * 86400 * second }, false},
		"of a spool without an attempt":      {func(h *wire.Header) { h.Epoch = "another" }, true},
	} {
		a := newRun(t, 2)
		s := &scripted{seq: map[string]uint64{}, nowNs: 1000 * second}
		h := s.header("car", 0)
		c.change(&h)
		appendAll(t, a, "car", []wire.Record{{Header: h, Body: &wire.GPS{Mode: 3}}})
		for _, step := range []step{s.records("car", 0, 3), s.clocks(1), s.records("car", 1, 2), s.decide(1),
			s.records("car", 0, 2)} {
			step(t, a)
		}
		d := &database{points: map[string]int{}}
		session(t, a.Dir(), d, 3, c.final)
		want, sum := published(t, a.Dir())
		if sum.Undated["car"] != 1 || sum.Points != 3+2+2+2 {
			t.Errorf("%s: published %+v", name, sum)
		}
		for p := range want {
			if d.points[p] == 0 {
				t.Errorf("%s: the tail did not send %s", name, p)
			}
		}
	}
}

// session is one life of a tail: some polls, ended by a failed write or not.
func session(t *testing.T, dir string, d *database, polls int, final bool) {
	t.Helper()
	c, err := openCursor(dir, influx.Target{})
	if err != nil {
		t.Fatal(err)
	}
	f := newFollower(dir, d, c)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	sent := make(chan error, 1)
	go func() { err := f.send(ctx); cancel(); sent <- err }()
	for i := range polls {
		if err := f.poll(ctx, final && i == polls-1); err != nil && ctx.Err() == nil {
			t.Fatal(err)
		}
	}
	close(f.batches)
	if err := <-sent; err != nil && final {
		t.Fatal(err)
	}
}

// A run that is published, or whose tail ends, while attempts are not judged is no other afterwards: nodes that drove
// alone have an estimate only when their controller is back.
func TestWhatIsPublishedAmidARunIsTheSame(t *testing.T) {
	a, tailed := newRun(t, 4), &database{points: map[string]int{}}
	d := &database{points: map[string]int{}}
	waited := int64(0)
	for _, s := range script(4) {
		s(t, a)
		sum, err := Publish(t.Context(), a.Dir(), d)
		if err != nil {
			t.Fatal(err)
		}
		waited = max(waited, sum.Waiting)
		session(t, a.Dir(), tailed, 2, true)
	}
	want, sum := published(t, a.Dir())
	if waited != 20+20+5+2 || sum.Waiting != 0 {
		t.Errorf("%d records waited, and %d at the end", waited, sum.Waiting)
	}
	for name, of := range map[string]*database{"publish": d, "a tail": tailed} {
		for p := range want {
			if of.points[p] == 0 {
				t.Errorf("%s did not send %s", name, p)
			}
		}
		for p := range of.points {
			if want[p] == 0 {
				t.Errorf("%s sent another point: %s", name, p)
			}
		}
	}
}

// Nodes that no estimate was ever made of are left out and counted, and a tail
// keeps them for later.
func TestUndatedRecordsAreCounted(t *testing.T) {
	a := newRun(t, 1)
	s := &scripted{seq: map[string]uint64{}, nowNs: second}
	s.records("car", 0, 4)(t, a)
	points, sum := published(t, a.Dir())
	if len(points) != 0 || sum.Undated["car"] != 4 {
		t.Errorf("points %v, %+v", points, sum)
	}
	d := &database{points: map[string]int{}}
	session(t, a.Dir(), d, 2, true)
	s.clocks(1)(t, a)
	s.records("car", 1, 2)(t, a)
	session(t, a.Dir(), d, 3, true)
	if len(d.points) != 8 {
		t.Errorf("%d points after the estimate, want 4 + 2 + 2 of the controller: %v", len(d.points), d.points)
	}
}

func TestReboot(t *testing.T) {
	d := newDating()
	d.finished = true
	own := new(wallNs)
	h := func(seq uint64, bootS int64) wire.Header {
		return wire.Header{Node: "car", Epoch: "e", Seq: seq, TBootNs: bootS * second}
	}
	k1, k2 := wire.TrialKey{Trial: 1, Attempt: 1}, wire.TrialKey{Trial: 2, Attempt: 1}
	d.learn(k1, wire.Header{TBootNs: 100 * second}, &wire.Clock{Peer: "car", OffsetNs: 9000 * second,
		OwnWallOffsetNs: own})
	d.begin(k1, h(10, 9101))
	d.learn(k2, wire.Header{TBootNs: 400 * second}, &wire.Clock{Peer: "car", OffsetNs: -350 * second,
		OwnWallOffsetNs: own})
	d.begin(k2, h(50, 51))
	before, after := wallNs-9000*second, wallNs+350*second
	for _, c := range []struct {
		name  string
		h     wire.Header
		want  int64
		state answer
	}{
		{"before the first trial", h(3, 9050), before, dated},
		{"after the first trial", h(30, 9200), before, dated},
		{"after the reboot", h(40, 20), after, dated},
		{"after the second trial", h(70, 90), after, dated},
		{"of another spool", wire.Header{Node: "car", Epoch: "f", Seq: 1, TBootNs: second}, 0, never},
	} {
		got, state := d.offset(c.h, wire.TrialKey{}, true)
		if got != c.want || state != c.state {
			t.Errorf("%s: offset %d (%d), want %d (%d)", c.name, got, state, c.want, c.state)
		}
	}
}

// A node that is started again within an attempt has two boot clocks in it, and the controller compares both.
func TestRebootWithinAnAttempt(t *testing.T) {
	h := func(seq uint64, bootS int64) wire.Header {
		return wire.Header{Node: "car", Epoch: "e", Seq: seq, TBootNs: bootS * second}
	}
	k1, k2 := wire.TrialKey{Trial: 1, Attempt: 1}, wire.TrialKey{Trial: 2, Attempt: 1}
	before, again, after := wallNs-9000*second, wallNs-50*second, wallNs-51*second
	learn := func(d *dating, k wire.TrialKey, atS, awayS int64) {
		d.learn(k, wire.Header{TBootNs: atS * second},
			&wire.Clock{Peer: "car", OffsetNs: awayS * second, OwnWallOffsetNs: new(wallNs)})
	}
	d := newDating()
	d.begin(k1, h(10, 9101))
	check := func(when string, h wire.Header, k wire.TrialKey, final bool, want int64, state answer) {
		t.Helper()
		d.finished = final
		if got, said := d.offset(h, k, final); got != want || said != state {
			t.Errorf("%s: offset %d (%d), want %d (%d)", when, got, said, want, state)
		}
	}
	learn(d, k1, 100, 9000)
	check("before the reboot", h(20, 9110), k1, false, before, dated)
	check("long into the attempt", h(21, 9101+3600), k1, false, before, dated)
	check("after it, before another estimate", h(40, 20), k1, false, 0, notYet)
	check("of no trial, before another estimate", h(41, 21), wire.TrialKey{}, false, 0, notYet)
	check("after it, and no other estimate came", h(40, 20), k1, true, 0, never)
	learn(d, k1, 110, 50)
	d.sealed[k1] = true
	check("before the reboot, with both", h(20, 9110), k1, false, before, dated)
	check("after it, with both", h(40, 20), k1, false, again, dated)
	check("of no trial, with both", h(41, 21), wire.TrialKey{}, false, again, dated)

	// The estimate after the reboot is the next attempt's, or the only one.
	d = newDating()
	d.begin(k1, h(10, 9101))
	learn(d, k1, 100, 9000)
	d.sealed[k1] = true
	learn(d, k2, 400, 51)
	d.begin(k2, h(50, 452))
	check("by the next attempt", h(40, 20), k1, false, after, dated)
	d = newDating()
	d.begin(k1, h(10, 9101))
	learn(d, k1, 110, 50)
	check("after it, by the only estimate", h(40, 20), k1, true, again, dated)
	check("before it, and the only estimate is of after it", h(20, 9110), k1, true, 0, never)
}

// slow takes so long for a batch.
type slow time.Duration

func (s slow) Write(ctx context.Context, _ []byte) ([]influx.Refusal, error) {
	select {
	case <-time.After(time.Duration(s)):
		return nil, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

func (slow) Forget(context.Context, string, map[string]string, time.Time) error { return nil }

// At the end a database that is slow is told apart from one that is away.
func TestADatabaseThatIsBehindAtTheEnd(t *testing.T) {
	a := newRun(t, 3)
	for _, s := range script(3) {
		s(t, a)
	}
	for takes, away := range map[time.Duration]bool{15 * time.Second: false, time.Hour: true} {
		synctest.Test(t, func(t *testing.T) {
			done := make(chan struct{})
			close(done)
			target := influx.Target{URL: "http://" + takes.String(), Database: "d"}
			_, err := Tail(t.Context(), a.Dir(), target, slow(takes), done, slog.New(slog.DiscardHandler))
			if err == nil || errors.Is(err, influx.ErrAway) != away ||
				!strings.Contains(err.Error(), "within 20s of the end") {
				t.Errorf("of one that takes %v for a batch: %v", takes, err)
			}
		})
	}
}

func TestNotARun(t *testing.T) {
	if _, err := Publish(t.Context(), t.TempDir(), &database{}); err == nil {
		t.Error("an empty folder was published")
	}
}
