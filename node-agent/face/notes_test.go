package face

import (
	"errors"
	"fmt"
	"reflect"
	"testing"

	"fieldmesh.dev/fieldmesh/protocols/wire"
)

//attack:phone notes without an end, to fill the node's disk and keep it busy | 1,000 of a peer at once, and one a
//attack:and second
func TestNotesOfAPeerAreBounded(t *testing.T) {
	var n notes
	send := func(peer string, count int, atS float64) (taken int) {
		for range count {
			if n.mayNote(peer, int64(atS*1e9)) {
				taken++
			}
		}
		return taken
	}
	for _, c := range []struct {
		peer  string
		count int
		atS   float64
		want  int
	}{
		{"phone", 5000, 100, notesAtOnce},
		{"phone", 10, 100.9, 0},
		{"phone", 10, 101, 1},
		{"phone", 10, 104, 3},
		{"other", 10, 104, 10},
		{"phone", 5000, 100_000, notesAtOnce},
	} {
		if got := send(c.peer, c.count, c.atS); got != c.want {
			t.Errorf("%d notes of %s at %g s: %d are taken, want %d", c.count, c.peer, c.atS, got, c.want)
		}
	}
}

func TestANoteThatIsSentAgainIsNotNew(t *testing.T) {
	var n notes
	for i := range keptNotes + 1 {
		id := fmt.Sprint(i)
		if !n.isNew(id) {
			t.Fatalf("note %d is not new", i)
		}
		n.remember(id)
	}
	if n.isNew("1") || n.isNew(fmt.Sprint(keptNotes)) {
		t.Error("a note that is sent again is new")
	}
	if len(n.ids) != keptNotes {
		t.Errorf("%d notes are remembered, want %d", len(n.ids), keptNotes)
	}
}

func TestANoteIsOfTheTimeBeforeItCame(t *testing.T) {
	const hourNs = int64(3600e9)
	for name, c := range map[string]struct{ ageMs, want *int64 }{
		"at once":                  {new(int64(0)), new(hourNs)},
		"after three days":         {new(int64(3 * 24 * 3600e3)), new(hourNs - 3*24*hourNs)},
		"nobody knows how long on": {nil, nil},
	} {
		n := wire.Note{ID: "1", Note: "mark"}
		if c.ageMs != nil {
			n.AgeMs = new(float64(*c.ageMs))
		}
		if got := noted(n, "phone", hourNs).NotedBootNs; !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: noted at %v, want %v", name, got, c.want)
		}
	}
}

//attack:phone a decision of an earlier run, which the phone could not deliver then | it names its run, and is refused
func TestANoteIsAboutItsOwnRun(t *testing.T) {
	for _, c := range []struct {
		note, run, held string
		want            wire.Header
	}{
		{"mark", "", "tuesday-1", wire.Header{Run: "tuesday-1", Trial: 12, Attempt: 1}},
		{"mark", "tuesday-1", "tuesday-1", wire.Header{Run: "tuesday-1", Trial: 12, Attempt: 1}},
		{"mark", "monday-1", "tuesday-1", wire.Header{}},
		{"skip", "tuesday-1", "tuesday-1", wire.Header{Run: "tuesday-1", Trial: 12, Attempt: 1}},
	} {
		got, err := noteHeader(wire.Note{Note: c.note, Run: c.run, Trial: 12, Attempt: 1}, c.held)
		if err != nil || got != c.want {
			t.Errorf("%s of run %q where %q is held: %+v, %v, want %+v", c.note, c.run, c.held, got, err, c.want)
		}
	}
	for _, held := range []string{"tuesday-1", ""} {
		_, err := noteHeader(wire.Note{Note: "skip", Run: "monday-1", Trial: 12}, held)
		var refused *wire.Error
		if !errors.As(err, &refused) || refused.Code != wire.CodeConflict {
			t.Errorf("a decision of another run where %q is held: %v", held, err)
		}
	}
}
