package calibrate

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"fieldmesh.dev/fieldmesh/controller/archive"
	"fieldmesh.dev/fieldmesh/controller/metrics"
	"fieldmesh.dev/fieldmesh/controller/plan/environment"
	"fieldmesh.dev/fieldmesh/protocols/wire"
	"fieldmesh.dev/fieldmesh/test/synthetic"
)

// driven is an archive whose trials are all accepted at once.
func driven(t *testing.T, info archive.RunInfo, change func(node string, r *wire.Record)) *archive.Archive {
	t.Helper()
	a, err := archive.Create(filepath.Join(t.TempDir(), "run"), info)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = a.Close() })
	seqs := map[string]*uint64{}
	for _, trial := range info.Plan.Trials {
		told := synthetic.Attempt(info.Plan, trial, 1, synthetic.Conditions{MB: 10}, seqs)
		delete(told, archive.FieldNode)
		for node, records := range told {
			for i := range records {
				change(node, &records[i])
			}
			if err := synthetic.Store(a, node, records); err != nil {
				t.Fatal(err)
			}
		}
		if err := a.Decide(wire.Verdict{TrialKey: wire.TrialKey{Trial: trial.Number, Attempt: 1},
			Outcome: wire.Accepted, Final: true}); err != nil {
			t.Fatal(err)
		}
	}
	return a
}

func unchanged(string, *wire.Record) {}

// A silence counts while the other node's radio loses frames, not while it loses none; and always where it counts none.
func TestSilenceCountsWhereFramesWereLost(t *testing.T) {
	const moments = 100 // a window of ten seconds
	for name, c := range map[string]struct {
		lost func(sample uint64) *uint64
		want int
	}{
		"all the time": {func(sample uint64) *uint64 { return &sample }, moments},
		"none":         {func(uint64) *uint64 { return new(uint64(5)) }, 0},
		"half the time": {func(sample uint64) *uint64 { return new(sample - sample%2 + 2) },
			moments / 2},
		"not counted": {func(uint64) *uint64 { return nil }, moments},
		"always zero": {func(uint64) *uint64 { return new(uint64(0)) }, moments},
	} {
		info := synthetic.Info(synthetic.Options{Seed: 1, Speeds: []float64{10}, Repetitions: 1})
		trial := info.Plan.Trials[0]
		var samples uint64
		a := driven(t, info, func(node string, r *wire.Record) {
			b, ok := r.Body.(*wire.Station)
			switch {
			case !ok:
			case node == trial.Receiver:
				b.InactiveMs = new(5000.0)
			default:
				samples++
				b.TxRetries, b.TxFailed = c.lost(samples), nil
			}
		})
		at, err := metrics.Load(a, wire.TrialKey{Trial: trial.Number, Attempt: 1})
		if err != nil {
			t.Fatal(err)
		}
		o, _ := at.Origin()
		got := len(at.Hears(trial.Receiver, trial.Sender, o))
		if got < c.want-2 || got > c.want+2 {
			t.Errorf("frames lost %s: %d silent moments, want %d", name, got, c.want)
		}
	}
}

// A radio that tells signals but not when it heard them takes its own way out of the fit, and nothing else: the others'
// signals are cut where they were cut. Where all radios are so, the error names them.
func TestARadioThatDoesNotTellWhenItHeardIsLeftOut(t *testing.T) {
	info := synthetic.Info(synthetic.Options{Seed: 1, Speeds: []float64{10}, Repetitions: 3})
	trial := info.Plan.Trials[0]
	undated := func(nodes ...string) (*Survey, error) {
		return gather(driven(t, info, func(node string, r *wire.Record) {
			if b, is := r.Body.(*wire.Station); is && slices.Contains(nodes, node) {
				b.InactiveMs = nil
			}
		}), 0, nil)
	}
	usual, err := undated()
	if err != nil || len(usual.leftOut()) > 0 {
		t.Fatalf("%v, left out: %q", err, usual.leftOut())
	}
	s, err := undated(trial.Sender)
	if err != nil {
		t.Fatal(err)
	}
	if 2*s.Heard != usual.Heard || s.Attempts != usual.Attempts || (s.CutM == nil) != (usual.CutM == nil) ||
		s.CutM != nil && *s.CutM != *usual.CutM {
		t.Errorf("one way: %+v, both: %+v", s, usual)
	}
	r, err := s.fit()
	if err != nil {
		t.Fatal(err)
	}
	want := fmt.Sprintf("what %s heard of %s, in %d accepted attempts: ", trial.Sender, trial.Receiver, usual.Attempts)
	if !strings.Contains(strings.Join(r.notes(), "|"), "|not known: "+want) {
		t.Errorf("%q is not among %q", want, r.notes())
	}
	if _, err = undated(trial.Sender, trial.Receiver); !errors.Is(err, ErrNothing) ||
		!strings.Contains(err.Error(), want) {
		t.Errorf("both: %v", err)
	}
}

// Repetitions that have shadows of their own are as links of their own.
func TestDrawsOfRepetitionsAreIndependent(t *testing.T) {
	for draws, want := range map[string]int{environment.DrawsPerRepetition: 3, environment.DrawsPerCampaign: 1, "": 1} {
		info := synthetic.Info(synthetic.Options{Seed: 1, Speeds: []float64{10}, Repetitions: 3})
		info.ChannelDraws = draws
		s, err := gather(driven(t, info, unchanged), 0, nil)
		if err != nil {
			t.Fatal(err)
		}
		links := map[string]bool{}
		for _, x := range s.samples {
			links[x.link] = true
		}
		if len(links) != want || !s.bothWays() {
			t.Errorf("draws %q: links %v, both ways %v; want %d links", draws, slices.Collect(maps.Keys(links)),
				s.bothWays(), want)
		}
	}
}

// What Android says about an access point is of no link: a run that has only that is refused with
// the reason, and beside what a radio's driver tells it changes nothing.
func TestWhatAndroidTellsIsNotFitted(t *testing.T) {
	info := synthetic.Info(synthetic.Options{Seed: 1, Speeds: []float64{10}, Repetitions: 3})
	usual, err := gather(driven(t, info, unchanged), 0, nil)
	if err != nil {
		t.Fatal(err)
	}
	told := &wire.WiFi{Source: wire.SourceAndroid, RenewedWithinMs: 500, SignalDbm: new(-40.0)}
	beside, err := gather(driven(t, info, func(_ string, r *wire.Record) {
		if _, is := r.Body.(*wire.Lateness); is {
			r.Body = told
		}
	}), 0, nil)
	if err != nil || beside.Heard != usual.Heard {
		t.Errorf("beside the driver's: %v, %d signals of %d", err, beside.Heard, usual.Heard)
	}
	_, err = gather(driven(t, info, func(_ string, r *wire.Record) {
		if _, is := r.Body.(*wire.Station); is {
			r.Body = told
		}
	}), 0, nil)
	if !errors.Is(err, ErrAndroid) {
		t.Errorf("alone: %v", err)
	}
}

// Where a trial names no channel, free space takes what it takes on the channel that a rehearsal has then.
func TestFreeSpaceOfATrialWithoutAChannel(t *testing.T) {
	// 2437 MHz are 12.3 cm: 20·log10(4π ÷ 0.12302) is 40.18 dB.
	if got := freeSpaceDb(wire.Radio{}); math.Abs(got-40.18) > 0.01 {
		t.Errorf("%.2f dB, want 40.18", got)
	}
}

// What is left out by distance is not counted among what the numbers come from.
func TestCountsWhatIsKept(t *testing.T) {
	var all []moment
	for i := range 100 {
		m := moment{sample: sample{attempt: i / 50, link: "a b", tx: "x", rx: "y", distanceM: 10 + float64(i),
			b: metrics.Place{EastM: 10 + float64(i)}}, heard: i < 50 || i%2 == 0}
		all = append(all, m)
	}
	s := &Survey{}
	if err := s.choose(all); err != nil {
		t.Fatal(err)
	}
	if s.CutM == nil || *s.CutM != 60 || s.Heard != 50 || s.Attempts != 1 {
		t.Errorf("cut at %v m; %d signals in %d attempts, want 60 m, 50 and 1", s.CutM, s.Heard, s.Attempts)
	}
}

// Repetitions with shadows of their own do not make the places coarser at once: the work
// of a fit is that of its links.
func TestManyLinksKeepTheirPlaces(t *testing.T) {
	var all []sample
	for l := range 10 {
		for i := range 60 {
			d := 10 * float64(i+1)
			all = append(all, sample{link: fmt.Sprint("a b ", l), distanceM: d, b: metrics.Place{EastM: d}})
		}
	}
	if n := len(cells(all)); n != 600 {
		t.Errorf("%d places, want 600", n)
	}
}

// What is held out has no part in the fit, and something is left for it. What was driven after the run had enough has
// none either, and is not what is held out.
func TestHeldOutRepetitionsAreNotUsed(t *testing.T) {
	a := driven(t, synthetic.Info(synthetic.Options{Seed: 1, Speeds: []float64{10}, Repetitions: 3}), unchanged)
	for n, want := range [][]int{{}, {3}, {2, 3}} {
		s, err := gather(a, n, nil)
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(s.HeldOut, want) || s.Attempts != 2*(3-n) { // two sections
			t.Errorf("%d held out: repetitions %v, and %d attempts are left", n, s.HeldOut, s.Attempts)
		}
	}
	for _, n := range []int{-1, 3} {
		if _, err := gather(a, n, nil); err == nil {
			t.Errorf("%d of 3 repetitions are held out", n)
		}
	}
	if err := a.StopAfter(archive.Stop{Blocks: 2, Reason: "enough"}); err != nil {
		t.Fatal(err)
	}
	s, err := gather(a, 1, nil)
	if err != nil || !slices.Equal(s.HeldOut, []int{2}) || s.Attempts != 2 {
		t.Errorf("%v: enough after repetition 2: %+v", err, s)
	}
}

// A run whose nearest moments are too often silent has signals, all of which the cut leaves out: the error says so,
// also beside what Android says about a Wi-Fi.
func TestARunThatIsSilentNearByIsToldApart(t *testing.T) {
	var all []moment
	for i := range 100 {
		all = append(all, moment{sample: sample{link: "a b", tx: "x", rx: "y", distanceM: 10 + float64(i)},
			heard: i > 0})
	}
	info := synthetic.Info(synthetic.Options{Seed: 1, Speeds: []float64{10}, Repetitions: 3})
	trial := info.Plan.Trials[0]
	_, gathered := gather(driven(t, info, func(node string, r *wire.Record) {
		if b, is := r.Body.(*wire.Station); is && node == trial.Receiver {
			b.InactiveMs, b.TxRetries, b.TxFailed = new(5000.0), nil, nil
		} else if _, is := r.Body.(*wire.Lateness); is {
			r.Body = &wire.WiFi{Source: wire.SourceAndroid, RenewedWithinMs: 500, SignalDbm: new(-40.0)}
		}
	}), 0, nil)
	for want, err := range map[string]error{"none of 99 signals is left: from 10 m on": (&Survey{}).choose(all),
		"is left: from": gathered} {
		if err == nil || errors.Is(err, ErrNothing) || errors.Is(err, ErrAndroid) ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("want %q: %v", want, err)
		}
	}
	near := []moment{{sample: sample{link: "a b", tx: "x", rx: "y", distanceM: 3}, heard: true}}
	if err := (&Survey{}).choose(near); err == nil || errors.Is(err, ErrNothing) ||
		!strings.Contains(err.Error(), "all signals (1) are from nearer than 10 m") {
		t.Errorf("with a signal at 3 m only: %v", err)
	}
	for i := range all {
		all[i].heard = false
	}
	if err := (&Survey{}).choose(all); !errors.Is(err, ErrNothing) {
		t.Errorf("without a signal: %v", err)
	}
}
