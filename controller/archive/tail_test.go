package archive_test

import (
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"testing"
	"time"

	"fieldmesh.dev/fieldmesh/controller/archive"
	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// What a tail returns is what reading everything again returns, whatever happens to
// the files in between.
func TestATailHasWhatAllHas(t *testing.T) {
	a := create(t)
	k := wire.TrialKey{Trial: 1, Attempt: 1}
	file := filepath.Join(a.Dir(), "trials", "0001-a1", "records", "car.ndjson")
	replace := func(path string, lines ...[]byte) {
		var text []byte
		for _, l := range lines {
			text = append(append(text, l...), '\n')
		}
		must(t, os.WriteFile(path, text, 0o644))
	}
	grow := func(text []byte) {
		f, err := os.OpenFile(file, os.O_APPEND|os.O_WRONLY, 0o644)
		must(t, err)
		_, err = f.Write(text)
		must(t, err)
		must(t, f.Close())
	}
	var tail archive.Tail
	for _, step := range []struct {
		what string
		do   func()
		want int
	}{
		{"nothing", func() {}, 0},
		{"two records", func() {
			must(t, a.Append("car", [][]byte{line("car", "e", 1, 1, 1), line("car", "e", 2, 1, 1)}))
		}, 2},
		{"the same", func() {}, 2},
		{"a second node", func() { must(t, a.Append("roadside", [][]byte{line("roadside", "e", 1, 1, 1)})) }, 3},
		{"half a line", func() { grow(line("car", "e", 3, 1, 1)[:20]) }, 3},
		{"its rest, and one more", func() {
			grow(append(line("car", "e", 3, 1, 1)[20:], '\n'))
			grow(append(line("car", "e", 4, 1, 1), '\n'))
		}, 5},
		{"a shorter file", func() { replace(file, line("car", "f", 9, 1, 1)) }, 2},
		{"another of the same length in its place", func() {
			replace(file+".new", line("car", "f", 8, 1, 1))
			must(t, os.Rename(file+".new", file))
		}, 2},
		{"a file less", func() { must(t, os.Remove(file)) }, 1},
	} {
		step.do()
		got, err := tail.Read(a, k)
		must(t, err)
		all, err := a.All(k.Trial, k.Attempt)
		must(t, err)
		if len(got) != step.want || len(got) > 0 && !reflect.DeepEqual(got, all) {
			t.Errorf("%s: the tail has %v, all are %v, want %d", step.what, got, all, step.want)
		}
	}
	if got, err := tail.Read(a, wire.TrialKey{Trial: 2, Attempt: 1}); err != nil || len(got) != 0 {
		t.Errorf("of an attempt without records it has %v, %v", got, err)
	}
}

// A node is heard when its newest file grew, be it one of records that came late.
func TestATailKnowsWhenEachNodeWasHeard(t *testing.T) {
	a := create(t)
	k := wire.TrialKey{Trial: 1, Attempt: 1}
	must(t, a.Append("car", [][]byte{line("car", "e", 1, 1, 1)}))
	must(t, a.Append("roadside", [][]byte{line("roadside", "e", 1, 1, 1)}))
	must(t, a.Decide(wire.Verdict{TrialKey: k, Outcome: wire.Accepted, Final: true}))
	must(t, a.Seal(k.Trial, k.Attempt))
	must(t, a.Append("car", [][]byte{line("car", "e", 2, 1, 1)}))
	at := time.Unix(1_000_000, 0)
	for rel, after := range map[string]time.Duration{"trials/0001-a1/records/car.ndjson": 0,
		"trials/0001-a1/records/roadside.ndjson": time.Second, "late/0001-a1/car.ndjson": time.Minute} {
		must(t, os.Chtimes(filepath.Join(a.Dir(), rel), at.Add(after), at.Add(after)))
	}
	var tail archive.Tail
	if heard := tail.Heard(); len(heard) != 0 {
		t.Errorf("before it is read: %v", heard)
	}
	_, err := tail.Read(a, k)
	must(t, err)
	heard := tail.Heard()
	if len(heard) != 2 || !heard["car"].Equal(at.Add(time.Minute)) || !heard["roadside"].Equal(at.Add(time.Second)) {
		t.Errorf("%v", heard)
	}
}

// What is not wanted is read once and not held.
func TestATailHoldsWhatIsWanted(t *testing.T) {
	a := create(t)
	k := wire.TrialKey{Trial: 1, Attempt: 1}
	tail := archive.Tail{Wants: func(r wire.Record) bool { return r.Seq%2 == 0 }}
	var got []uint64
	for seq := range uint64(5) {
		must(t, a.Append("car", [][]byte{line("car", "e", seq+1, 1, 1)}))
		records, err := tail.Read(a, k)
		must(t, err)
		got = got[:0]
		for _, r := range records {
			got = append(got, r.Seq)
		}
	}
	if !slices.Equal(got, []uint64{2, 4}) {
		t.Errorf("it holds %v", got)
	}
}

// A line that is not a record is an error each time, and is read again when it was put
// right.
func TestATailReadsABrokenFileAgain(t *testing.T) {
	a := create(t)
	k := wire.TrialKey{Trial: 1, Attempt: 1}
	must(t, a.Append("car", [][]byte{line("car", "e", 1, 1, 1)}))
	file := filepath.Join(a.Dir(), "trials", "0001-a1", "records", "car.ndjson")
	whole, err := os.ReadFile(file)
	must(t, err)
	must(t, os.WriteFile(file, append(whole, "no record\n"...), 0o644))
	var tail archive.Tail
	for range 2 {
		if got, err := tail.Read(a, k); err == nil {
			t.Errorf("it has %v", got)
		}
	}
	must(t, os.WriteFile(file, whole, 0o644))
	if got, err := tail.Read(a, k); err != nil || len(got) != 1 {
		t.Errorf("put right: %v, %v", got, err)
	}
}
