package live

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"fieldmesh.dev/fieldmesh/controller/archive"
	"fieldmesh.dev/fieldmesh/protocols/wire"
	"fieldmesh.dev/fieldmesh/test/synthetic"
)

// undecided is a run of four trials, of which the first so many are decided, each a minute after the one before; none
// of the others has begun.
func undecided(t *testing.T, decide int) *archive.Archive {
	t.Helper()
	o := synthetic.Options{Seed: 31, Speeds: []float64{2.8, 8.3}, Repetitions: 1}
	dir := filepath.Join(t.TempDir(), "run")
	info := synthetic.Info(o)
	info.CreatedWall = time.Date(2026, 5, 1, 9, 0, 0, 0, time.UTC)
	a, err := archive.Create(dir, info)
	if err != nil {
		t.Fatal(err)
	}
	var journal []byte
	for i, trial := range info.Plan.Trials[:decide] {
		if err := a.Decide(wire.Verdict{TrialKey: wire.TrialKey{Trial: trial.Number, Attempt: 1},
			Outcome: wire.Accepted, Final: true}); err != nil {
			t.Fatal(err)
		}
		raw, err := os.ReadFile(filepath.Join(dir, "journal.ndjson"))
		if err != nil {
			t.Fatal(err)
		}
		line := raw[bytes.LastIndexByte(raw[:len(raw)-1], '\n')+1:]
		_, rest, _ := bytes.Cut(line, []byte(`","type"`))
		at := info.CreatedWall.Add(time.Duration(i+1) * time.Minute).Format(time.RFC3339Nano)
		journal = append(journal, append([]byte(`{"t_wall":"`+at+`","type"`), rest...)...)
	}
	if err := errors.Join(a.Close(), os.WriteFile(filepath.Join(dir, "journal.ndjson"), journal, 0o644)); err != nil {
		t.Fatal(err)
	}
	if a, err = archive.Read(dir); err != nil {
		t.Fatal(err)
	}
	return a
}

func TestTheNextTrialIsTheFirstThatNobodyBegan(t *testing.T) {
	a := undecided(t, 2)
	p := plannedOf(a, a.Decisions())
	want := a.Info().Plan.Trials[2]
	if p.total != 4 || p.decided != 2 || p.next == nil || p.next.Trial != 3 || p.next.Attempt != 1 ||
		*p.next.TargetMps != *want.SpeedMps || p.next.Sender != want.Sender || p.next.DurationS != 10 {
		t.Errorf("%+v, next %+v", p, p.next)
	}
	if err := os.MkdirAll(filepath.Join(a.Dir(), "trials/0003-a1"), 0o755); err != nil {
		t.Fatal(err)
	}
	if p := plannedOf(a, a.Decisions()); p.next == nil || p.next.Trial != 4 {
		t.Errorf("while trial 3 is under way, the next is %+v", p.next)
	}
	rejected := wire.Verdict{TrialKey: wire.TrialKey{Trial: 3, Attempt: 1}, Outcome: wire.Rejected, Final: true}
	if p := plannedOf(a, append(a.Decisions(), rejected)); p.next == nil || p.next.Trial != 3 || p.next.Attempt != 2 {
		t.Errorf("after its rejection, the next is %+v", p.next)
	}
	all := undecided(t, 4)
	if p := plannedOf(all, all.Decisions()); p.next != nil || p.decided != 4 {
		t.Errorf("after the last: %+v", p)
	}
}

// Before the first decision the plan says how long it takes, then the trials themselves; a pause is no trial.
func TestTimeLeftIsWhatRunSays(t *testing.T) {
	for _, tc := range []struct {
		decided   int
		atMin     float64
		about, by string
	}{
		{1, 1.5, "4 min", "by the trial decided so far"},
		{2, 2, "2 min", "by the 2 trials decided so far"},
		{3, 4, "1 min", "by the 3 trials decided so far"},
		{4, 4, "", ""},
	} {
		a := undecided(t, tc.decided)
		at := a.Info().CreatedWall.Add(time.Duration(tc.atMin * float64(time.Minute)))
		l, err := leftOf(a, plannedOf(a, a.Decisions()), a.Decisions(), at)
		if err != nil || (l == nil) != (tc.about == "") || l != nil && (l.About != tc.about || l.By != tc.by) {
			t.Errorf("%d decided: %+v, %v, want %q %s", tc.decided, l, err, tc.about, tc.by)
		}
	}
	a := undecided(t, 0)
	l, err := leftOf(a, plannedOf(a, nil), nil, a.Info().CreatedWall)
	if err != nil || l == nil || l.By != "by the plan" || l.About == "0 s" {
		t.Errorf("before the first: %+v, %v", l, err)
	}
}

func TestAPauseBeginsAnew(t *testing.T) {
	at := func(minutes int) time.Time { return time.Unix(0, 0).Add(time.Duration(minutes) * time.Minute) }
	key := func(trial int) wire.TrialKey { return wire.TrialKey{Trial: trial, Attempt: 1} }
	judged := map[wire.TrialKey]time.Time{key(1): at(5), key(2): at(10), key(3): at(70), key(4): at(74)}
	if got := begunAt(at(0), judged); !got.Equal(at(70)) {
		t.Errorf("begun at %v", got)
	}
	delete(judged, key(4))
	delete(judged, key(3))
	if got := begunAt(at(0), judged); !got.Equal(at(0)) {
		t.Errorf("without a pause, begun at %v", got)
	}
}

// A run whose pace nobody knows has no estimate, and no zero in its place.
func TestVirtualTimeHasNoTimeLeft(t *testing.T) {
	o := synthetic.Options{Seed: 32, Speeds: []float64{2.8}, Repetitions: 1}
	info := synthetic.Info(o)
	info.Clock = &archive.Clock{Kind: archive.ClockVirtual}
	a, err := archive.Create(filepath.Join(t.TempDir(), "run"), info)
	if err != nil {
		t.Fatal(err)
	}
	l, err := leftOf(a, plannedOf(a, nil), nil, time.Now())
	if err := errors.Join(err, a.Close()); l != nil || err != nil {
		t.Errorf("%+v, %v", l, err)
	}
}

func TestPhases(t *testing.T) {
	trial := wire.Trial{Initiator: "car", Relays: []string{"relay"}, DurationS: 10}
	record := func(node string, s float64, b wire.Body) wire.Record {
		return wire.Record{Header: wire.Header{Node: node, TBootNs: int64(s * 1e9)}, Body: b}
	}
	window := &wire.Window{OpenBootNs: 100e9, CloseBootNs: 110e9}
	for _, tc := range []struct {
		car, peer wire.State
		windowS   float64 // since it opened; negative: there is none
		judged    wire.Outcome
		want      Phase
	}{
		{"", "", -1, "", ""},
		{"", wire.StateArmed, -1, "", PhaseArmed},
		{wire.StateLoaded, wire.StateArmed, -1, "", PhaseArming},
		{wire.StateArmed, wire.StateArmed, -1, "", PhaseArmed},
		{wire.StateArmed, wire.StateArmed, 2.5, "", PhaseRunning},
		{wire.StateRunning, wire.StateRunning, 14, "", PhaseRunning},
		{wire.StateRestoring, wire.StateRunning, 10, "", PhaseDraining},
		{wire.StateKept, wire.StateRestoring, 10, "", PhaseKept},
		{wire.StateKept, wire.StateKept, 10, wire.Rejected, PhaseJudged},
	} {
		records := map[string][]wire.Record{}
		if tc.windowS >= 0 {
			records["car"] = []wire.Record{record("car", 100, window), record("car", 100+tc.windowS, &wire.Event{})}
		}
		c := Current{Outcome: tc.judged, Nodes: []Node{{Name: "relay"}, {Name: "peer", State: tc.peer},
			{Name: "car", State: tc.car}}}
		c.seePhase(trial, records)
		running := tc.want == PhaseRunning
		if c.Phase != tc.want || (c.ElapsedS != nil) != running || running && *c.ElapsedS != min(tc.windowS, 10) {
			t.Errorf("car %q, peer %q: %q, elapsed %v; want %q", tc.car, tc.peer, c.Phase, c.ElapsedS, tc.want)
		}
	}
}
