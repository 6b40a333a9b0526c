package host

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"maps"
	"net/netip"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
)

func line(t testing.TB, e entry) []byte {
	t.Helper()
	l, err := encodeEntry(e)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func prepared(id uint64, c Change) entry {
	u := blankUndo(c)
	*u.place() = bootNetns{Boot: "b", Namespace: 1, Cookie: 2}
	return entry{ID: id, State: statePrepared, Scope: ScopeRun, Change: boxed{c}, Undo: u}
}

func TestEveryChangeSurvivesTheJournal(t *testing.T) {
	link, daemon := linkUp(), routingDaemon()
	link.MTUBytes, daemon.HelloS = ptr(1400), ptr(0.5)
	all := []Change{link, address("fd77::1/64"), route("10.77.9.0/24"), sysctl(sack, "0"), daemon}
	var data []byte
	for i, c := range all {
		data = append(data, line(t, prepared(uint64(i+1), c))...)
	}
	r := replay(append(data, line(t, entry{ID: 3, State: stateUndone})...))
	if len(r.pending) != 4 || len(r.damage) != 0 || r.lastID != 5 {
		t.Fatalf("replayed %+v", r)
	}
	for i, want := range []int{0, 1, 3, 4} {
		if !reflect.DeepEqual(r.pending[i].Change.Change, all[want]) {
			t.Errorf("entry %d is %+v, want %+v", i, r.pending[i].Change, all[want])
		}
	}
}

func TestADamagedLineLosesNoOther(t *testing.T) {
	first, second, third := line(t, prepared(1, linkUp())), line(t, prepared(2, sysctl(sack, "0"))),
		line(t, prepared(3, route("10.77.9.0/24")))
	second[len(second)/2] ^= 1
	dir := t.TempDir()
	whole := bytes.Join([][]byte{first, second, third}, nil)
	if err := os.WriteFile(filepath.Join(dir, "journal"), append(bytes.Clone(whole), "0123abcd {\"id\":4"...),
		0o600); err != nil {
		t.Fatal(err)
	}
	j, r, err := openJournal(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := j.close(); err != nil {
			t.Error(err)
		}
	}()
	if len(r.pending) != 2 || len(r.damage) != 1 || !strings.Contains(r.damage[0], "journal line 2") {
		t.Errorf("replayed %+v", r)
	}
	if got, err := os.ReadFile(filepath.Join(dir, "journal")); err != nil || !bytes.Equal(got, whole) {
		t.Errorf("torn tail is not cut: %q, %v", got, err)
	}
	if _, err := os.Stat(filepath.Join(dir, "journal.damaged")); err != nil {
		t.Errorf("no copy of the damaged journal: %v", err)
	}
}

func TestAnEntryOfALaterVersionIsReported(t *testing.T) {
	body, err := json.Marshal(map[string]any{"id": 7, "state": "prepared", "scope": "run",
		"change": map[string]any{"radio": 1}, "undo": map[string]any{}})
	if err != nil {
		t.Fatal(err)
	}
	r := replay(seal(body))
	if len(r.pending) != 0 || len(r.damage) != 1 || !strings.Contains(r.damage[0], "radio") {
		t.Errorf("replayed %+v", r)
	}
}

var update = flag.Bool("update", false, "draft testdata/journal's line of a new kind, and write testdata/undone again")

// draft adds a line for each kind that has none. Its values follow from the types; correct those that no node has.
func draft(t *testing.T) {
	t.Helper()
	data, err := os.ReadFile("testdata/journal")
	if err != nil {
		t.Fatal(err)
	}
	r := replay(data)
	known := map[string]bool{}
	for _, e := range r.pending {
		name, _, err := kindOf(e.Change.Change)
		if err != nil {
			t.Fatal(err)
		}
		known[name] = true
	}
	for _, name := range slices.Sorted(maps.Keys(kinds())) {
		if known[name] {
			continue
		}
		change := reflect.New(kinds()[name].change).Elem()
		plausible(change)
		e := prepared(uint64(len(r.pending)+1), change.Interface().(Change))
		plausible(reflect.ValueOf(e.Undo).Elem())
		*e.Undo.place() = *r.pending[0].Undo.place()
		r.pending, data = append(r.pending, e), append(data, line(t, e)...)
	}
	if err := os.WriteFile("testdata/journal", data, 0o644); err != nil {
		t.Fatal(err)
	}
}

// plausible fills what is not a pointer.
func plausible(v reflect.Value) {
	switch {
	case v.Type() == reflect.TypeFor[netip.Prefix]():
		v.Set(reflect.ValueOf(netip.MustParsePrefix("10.77.0.0/24")))
	case v.Type() == reflect.TypeFor[netip.Addr]():
		v.Set(reflect.ValueOf(netip.MustParseAddr("10.77.0.1")))
	case v.Type() == reflect.TypeFor[bootNetns]():
	case v.Kind() == reflect.Struct:
		for i := range v.NumField() {
			plausible(v.Field(i))
		}
	case v.Kind() == reflect.String:
		v.SetString("wlan0")
	case v.Kind() == reflect.Bool:
		v.SetBool(true)
	case v.CanInt():
		v.SetInt(1)
	case v.CanUint():
		v.SetUint(1)
	case v.CanFloat():
		v.SetFloat(1)
	}
}

// TestAnAgentBeforeThisOneIsUndone: testdata/journal has every kind of change,
// and every part of an undo, in the form in which agents are in the field. It is
// read whole, written again as it was, and undone: in another boot, by what
// outlives one.
func TestAnAgentBeforeThisOneIsUndone(t *testing.T) {
	if *update {
		draft(t)
	}
	data, err := os.ReadFile("testdata/journal")
	if err != nil {
		t.Fatal(err)
	}
	r := replay(data)
	if len(r.pending) != bytes.Count(data, []byte("\n")) || len(r.damage) > 0 {
		t.Fatalf("%d of %d entries, damage %q", len(r.pending), bytes.Count(data, []byte("\n")), r.damage)
	}
	var again []byte
	for _, e := range r.pending {
		again = append(again, line(t, e)...)
	}
	if !bytes.Equal(again, data) {
		t.Errorf("written again it is\n%s\nand was\n%s", again, data)
	}
	d := &disk{data: data, bomb: &bomb{}}
	k := newKeeper(&kernel{netns: bootNetns{Boot: "a later one"}}, &journal{file: d, size: r.length}, r, policy{},
		quiet())
	report, err := k.restore("")
	if err != nil || len(report.Failed) > 0 || len(d.data) > 0 {
		t.Errorf("failed %q, %v; %d bytes are left of the journal", report.Failed, err, len(d.data))
	}
	slices.Reverse(report.Undone)
	got := []byte(strings.Join(report.Undone, "\n") + "\n")
	if *update {
		err = os.WriteFile("testdata/undone", got, 0o644)
	}
	want, readErr := os.ReadFile("testdata/undone")
	if err := errors.Join(err, readErr); err != nil || !bytes.Equal(got, want) {
		t.Errorf("undone\n%s\nwant\n%s\n%v", got, want, err)
	}
}

// FuzzReplay: whatever is in the file, replaying it neither panics nor invents
// a change; and what was whole before a torn tail stays.
func FuzzReplay(f *testing.F) {
	good := append(line(f, prepared(1, linkUp())), line(f, prepared(2, routingDaemon()))...)
	f.Add(good)
	f.Add(good[:len(good)-7])
	f.Add(append(bytes.Clone(good), line(f, entry{ID: 2, State: stateUndone})...))
	f.Add([]byte("00000000 {}\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		r := replay(data)
		if r.length > int64(len(data)) {
			t.Fatalf("sound part of %d bytes in a journal of %d", r.length, len(data))
		}
		for _, e := range r.pending {
			if e.Change.Change == nil || e.Undo == nil {
				t.Fatalf("entry %d without change or undo", e.ID)
			}
		}
		if again := replay(data[:r.length]); len(again.pending) != len(r.pending) {
			t.Fatalf("%d pending, after the tail was cut %d", len(r.pending), len(again.pending))
		}
		if after := replay(append(bytes.Clone(good), data...)); after.length < int64(len(good)) {
			t.Fatalf("only %d sound bytes of %d before the tail", after.length, len(good))
		}
	})
}
