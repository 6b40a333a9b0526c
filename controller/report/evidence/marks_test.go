package evidence

import (
	"testing"
	"time"

	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// A node that was started again numbers its records in the same spool, and its boot clock began again.
func TestAMarkIsDatedByTheBootInWhichItWasMade(t *testing.T) {
	const minute = int64(time.Minute)
	var m marks
	add := func(seq uint64, bootNs int64, b wire.Body) {
		m.add(wire.Record{Header: wire.Header{Node: "car", Epoch: "e", Seq: seq, TBootNs: bootNs}, Body: b})
	}
	wall := func(seq uint64, bootNs, offset int64) {
		add(seq, bootNs, &wire.WallClock{OwnWallOffsetNs: offset})
	}
	note := func(seq uint64, bootNs int64, text string) {
		add(seq, bootNs, &wire.Noted{ID: text, Note: "mark", Text: text, By: "phone", NotedBootNs: new(bootNs)})
	}
	const first, second, third, fourth = 1_000_000 * minute, 1_000_100 * minute, 1_000_200 * minute, 1_000_300 * minute
	wall(10, 60*minute, first)
	wall(500, 30*minute, second) // two boots and an hour later
	wall(30, 70*minute, first+1) // the clock was set since
	wall(600, 40*minute, second)
	const gap = 1 << 24
	wall(gap+700, 90*minute, third) // longer after its boot than the boot before lasted
	wall(2*gap+900, 500*minute, fourth)
	note(20, 65*minute, "before lunch")
	note(40, 80*minute, "lunch")
	note(300, 5*minute, "after lunch")
	note(gap+650, 85*minute, "in the evening")
	note(3*gap+1000, 600*minute, "at night") // in a boot without an attempt
	want := map[string]int64{"before lunch": first + 1 + 65*minute, "lunch": first + 1 + 80*minute,
		"after lunch": second + 5*minute, "in the evening": third + 85*minute}
	before := time.Time{}
	for _, one := range m.all(t.TempDir()) {
		at, known := want[one.Text]
		switch {
		case !known && !one.Wall.IsZero():
			t.Errorf("%s: dated %v", one.Text, one.Wall)
		case known && one.Wall.UnixNano() != at:
			t.Errorf("%s: dated %v, want %v", one.Text, one.Wall, time.Unix(0, at))
		case known && one.Wall.Before(before):
			t.Errorf("%s: out of order", one.Text)
		}
		before = one.Wall
	}
}
