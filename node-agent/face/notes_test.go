package face

import (
	"fmt"
	"testing"
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
