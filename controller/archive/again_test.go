package archive_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"testing"
	"time"

	"fieldmesh.dev/fieldmesh/controller/archive"
	"fieldmesh.dev/fieldmesh/protocols/wire"
	"fieldmesh.dev/fieldmesh/test/synthetic"
)

// A run that is read again is as one that is read for the first time.
func TestAgainHasWhatReadHas(t *testing.T) {
	a := create(t)
	known, err := archive.Read(a.Dir())
	must(t, err)
	one := wire.TrialKey{Trial: 1, Attempt: 1}
	for _, step := range []struct {
		what string
		do   func()
	}{
		{"nothing", func() {}},
		{"records", func() { must(t, a.Append("car", [][]byte{line("car", "e", 1, 1, 1)})) }},
		{"a verdict", func() {
			must(t, a.Decide(wire.Verdict{TrialKey: one, Outcome: wire.Rejected, Final: true}))
		}},
		{"a seal", func() { must(t, a.Seal(1, 1)) }},
		{"a person's word", func() {
			must(t, a.Decide(wire.Verdict{TrialKey: one, Outcome: wire.Accepted, Final: true,
				Word: &wire.Word{}}))
		}},
		{"another run in its place", func() {
			other, err := archive.Create(filepath.Join(t.TempDir(), "run"), synthetic.Info(synthetic.Options{Seed: 9,
				Speeds: []float64{1}, Repetitions: 1}))
			must(t, err)
			must(t, other.Close())
			must(t, os.RemoveAll(a.Dir()))
			must(t, os.CopyFS(a.Dir(), os.DirFS(other.Dir())))
		}},
	} {
		step.do()
		known, err = known.Again()
		must(t, err)
		fresh, err := archive.Read(a.Dir())
		must(t, err)
		for name, got := range map[string]func(*archive.Archive) any{
			"info":      func(a *archive.Archive) any { return a.Info() },
			"decisions": func(a *archive.Archive) any { return a.Decisions() },
			"attempts": func(a *archive.Archive) any {
				attempts, err := a.Trials()
				must(t, err)
				return attempts
			},
		} {
			if again, want := got(known), got(fresh); !reflect.DeepEqual(again, want) {
				t.Errorf("%s: %s are %v again, and %v", step.what, name, again, want)
			}
		}
	}
}

// Records that come in is what makes an attempt the latest, unless they are a sealed attempt's stragglers.
func TestTheLatestIsWhatGrows(t *testing.T) {
	a := create(t)
	began := time.Now().Add(-time.Hour)
	write := func(trial int, seq uint64, after time.Duration) {
		must(t, a.Append("car", [][]byte{line("car", "e", seq, trial, 1)}))
		for _, folder := range []string{"trials/%04d-a1/records", "late/%04d-a1"} {
			touch(t, a, folder, trial, began.Add(after))
		}
	}
	check := func(trial int, after time.Duration) {
		t.Helper()
		if k, written, ok := a.Latest(); !ok || k.Trial != trial || !written.Equal(began.Add(after)) {
			t.Errorf("the latest is %v, of %v, %v; want trial %d, of %v", k, written, ok, trial, began.Add(after))
		}
	}
	if k, _, ok := a.Latest(); ok {
		t.Errorf("before the first record, the latest is %v", k)
	}
	write(1, 1, 0)
	write(2, 2, time.Minute)
	check(2, time.Minute)
	write(1, 3, 2*time.Minute)
	check(1, 2*time.Minute)
	for trial := 1; trial <= 2; trial++ {
		must(t, a.Decide(wire.Verdict{TrialKey: wire.TrialKey{Trial: trial, Attempt: 1}, Outcome: wire.Accepted,
			Final: true}))
		must(t, a.Seal(trial, 1))
	}
	check(2, time.Minute)
	write(1, 4, 3*time.Minute)
	check(2, time.Minute)
}

// touch gives a file of the car's records another time, where there is one.
func touch(t *testing.T, a *archive.Archive, folder string, trial int, at time.Time) {
	t.Helper()
	err := os.Chtimes(filepath.Join(a.Dir(), fmt.Sprintf(folder, trial), "car.ndjson"), at, at)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
}
