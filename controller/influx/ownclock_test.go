package influx

import (
	"testing"

	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// A log's readings of its clocks date all of one life of the program, and no record of another.
func TestALogIsDatedByItsOwnClock(t *testing.T) {
	const gps = 100_000_000 // uncertainty
	type told struct {
		seq   uint64
		bootS int64
		body  wire.Body
	}
	begin := func(wallNs int64) wire.Body { return &wire.Clock{Peer: "car", OwnWallOffsetNs: &wallNs} }
	wall := func(wallNs int64) *wire.WallClock { return &wire.WallClock{OwnWallOffsetNs: wallNs} }
	unset := func(wallNs int64) *wire.WallClock { return &wire.WallClock{OwnWallOffsetNs: wallNs, Unset: true} }
	byGPS := func(w *wire.WallClock, aheadNs int64) wire.Body {
		w.GPSOffsetNs, w.GPSUncertaintyNs = &aheadNs, new(int64(gps))
		return w
	}
	fix := func(bootS int64, utc string) wire.Body {
		return &wire.GPS{FixBootNs: new(bootS * second), TimeUTC: utc}
	}
	const early = 5 * second // a wall clock that nobody has set
	for name, c := range map[string]struct {
		log   []told
		want  int64
		state answer
	}{
		"by the first record, of a log that ended at once": {[]told{{2, 100, begin(wallNs)}}, wallNs, dated},
		"a step moves no record": {[]told{{2, 100, begin(early)}, {3, 100, wall(early)}, {90, 110, wall(wallNs)}},
			wallNs, dated},
		"set by nobody": {[]told{{2, 100, begin(early)}, {3, 100, unset(early)}}, 0, never},
		"set by nobody, with GPS": {[]told{{2, 100, begin(early)}, {3, 100, unset(early)},
			{90, 110, byGPS(unset(early), wallNs-early)}}, wallNs, dated},
		"GPS shows that it is wrong": {[]told{{2, 100, begin(early)}, {90, 110, byGPS(wall(wallNs), -7*second)}},
			wallNs - 7*second, dated},
		"GPS is less exact": {[]told{{2, 100, begin(wallNs)}, {90, 110, byGPS(wall(wallNs), gps)}}, wallNs, dated},
		"of a life after another boot": {[]told{{2, 9000, begin(early)}, {9, 9010, wall(early)},
			{11, 100, begin(wallNs)}}, wallNs, dated},
		"of a life before another boot": {[]told{{2, 100, begin(early)}, {9, 110, wall(wallNs)},
			{12, 20, begin(early)}, {13, 20, wall(early)}}, wallNs, dated},
		"given in another order": {[]told{{90, 110, wall(wallNs)}, {2, 100, begin(early)}}, wallNs, dated},
		"a phone's, of which one fix has a wrong date": {[]told{{2, 100, fix(100, "2026-05-01T10:00:00Z")},
			{3, 101, fix(101, "2007-05-01T10:00:01Z")}, {4, 102, fix(102, "2026-05-01T10:00:02Z")}},
			1_777_629_600*second - 100*second, dated},
		"another node's estimate": {[]told{{2, 100, &wire.Clock{Peer: "bus", OwnWallOffsetNs: new(wallNs)}}}, 0, never},
		"nothing is told":         {nil, 0, never},
	} {
		d := newDating()
		d.logs = map[spool]*ownClock{}
		h := func(seq uint64, bootS int64) wire.Header {
			return wire.Header{Node: "car", Epoch: "e", Seq: seq, TBootNs: bootS * second}
		}
		for _, one := range c.log {
			d.learnLog(h(one.seq, one.bootS), one.body)
		}
		for _, clock := range d.logs {
			clock.settle()
		}
		if got, state := d.offset(h(10, 100), wire.TrialKey{}, true); got != c.want || state != c.state {
			t.Errorf("%s: offset %d (%d), want %d (%d)", name, got, state, c.want, c.state)
		}
	}
}
