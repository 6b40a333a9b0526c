package influx

import (
	"slices"
	"time"

	"fieldmesh.dev/fieldmesh/controller/archive"
	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// controllerNode is the name under which the controller's own records stand.
const controllerNode = "controller"

// rebootSlack is how much a record may seem older than the estimate before it:
// an estimate made after a trial dates the records that followed it, too. More
// means that the node's boot clock started over in between.
const rebootSlack = 10 * time.Minute

// dating tells wall time from boot clocks. It must give the same answer
// whenever a record is sent, while the run goes or a year later, because time
// is part of a point's identity. So it depends on nothing but the archive, and
// says "not yet" while the archive may still learn better:
//
//   - a record of an attempt is dated by the attempt's first clock estimate of
//     its node that is of the same boot;
//   - without one, once the attempt is sealed or the run finished, like a record of no trial: by the
//     attempt that began before it on that node (by the record's number), else
//     by the next one;
//   - the controller and the emulated field share one clock, which the first
//     estimate of the attempt tells;
//   - a log that nodes kept by themselves has no estimates: see ownClock.
type dating struct {
	estimates map[part][]estimate     // in the order in which they were made
	first     map[part]int64          // the node's boot clock at its first record of the attempt
	own       map[wire.TrialKey]int64 // attempt → the controller's wall minus boot clock
	ownFirst  *estimate               // the earliest of all
	began     map[spool][]mark        // in the order of the spool
	sealed    map[wire.TrialKey]bool
	finished  bool                // the run is
	logs      map[spool]*ownClock // nil: the run is no log
}

// estimate dates a node's records: wall time is boot clock + wallNs.
type estimate struct {
	wallNs int64
	bootNs int64 // of the node that it is about, when it was made
}

// part is a node's in an attempt.
type part struct {
	node string
	key  wire.TrialKey
}

// spool is one numbering of records.
type spool struct{ node, epoch string }

// mark is where in a spool an attempt begins.
type mark struct {
	seq uint64
	key wire.TrialKey
}

type answer int

const (
	dated answer = iota
	notYet
	never    // by what is known at the end; a later Tail may know better
	hopeless // whatever may still come
)

func newDating() *dating {
	return &dating{
		estimates: map[part][]estimate{},
		first:     map[part]int64{},
		own:       map[wire.TrialKey]int64{},
		began:     map[spool][]mark{},
		sealed:    map[wire.TrialKey]bool{},
	}
}

// learn takes in a clock estimate of the controller's.
func (d *dating) learn(k wire.TrialKey, h wire.Header, c *wire.Clock) {
	if c.OwnWallOffsetNs == nil {
		return
	}
	own := *c.OwnWallOffsetNs
	if d.ownFirst == nil || h.TBootNs < d.ownFirst.bootNs {
		d.ownFirst = &estimate{wallNs: own, bootNs: h.TBootNs}
	}
	if k == (wire.TrialKey{}) {
		return
	}
	if _, known := d.own[k]; !known {
		d.own[k] = own
	}
	p := part{c.Peer, k}
	d.estimates[p] = append(d.estimates[p], estimate{wallNs: own - c.OffsetNs, bootNs: h.TBootNs + c.OffsetNs})
}

// begin notes the first record of an attempt's file.
func (d *dating) begin(k wire.TrialKey, h wire.Header) {
	d.first[part{h.Node, k}] = h.TBootNs
	s := spool{h.Node, h.Epoch}
	d.began[s] = append(d.began[s], mark{seq: h.Seq, key: k})
	slices.SortFunc(d.began[s], func(a, b mark) int {
		if a.seq < b.seq {
			return -1
		}
		return 1
	})
}

// learnLog takes in a record of a log.
func (d *dating) learnLog(h wire.Header, body wire.Body) {
	s := spool{h.Node, h.Epoch}
	if d.logs[s] == nil {
		d.logs[s] = &ownClock{}
	}
	d.logs[s].learn(h, body)
}

// offset is wall time minus boot clock for a record from the file of attempt k.
// With final nothing is waited for: what no attempt dates is never, as far as it is known. An attempt that is not
// sealed may still get an estimate of its own, as one that nodes drove alone: records that this may date are not yet.
func (d *dating) offset(h wire.Header, k wire.TrialKey, final bool) (int64, answer) {
	if d.logs != nil {
		if c := d.logs[spool{h.Node, h.Epoch}]; c != nil {
			return c.offset(h)
		}
		return 0, never
	}
	if h.Node == controllerNode || h.Node == archive.FieldNode {
		return d.ownOffset(k, final)
	}
	if e, ok := d.within(part{h.Node, k}, h.TBootNs); ok {
		return e.wallNs, dated
	}
	if k != (wire.TrialKey{}) && !d.settled(k) {
		return 0, notYet
	}
	return d.neighbour(h, k, final)
}

// within is an attempt's first estimate of the boot in which its node's clock was at bootNs. A clock that is far behind
// the node's first record of the attempt started over within the attempt.
func (d *dating) within(p part, bootNs int64) (estimate, bool) {
	rebooted := func(bootNs int64) bool { return bootNs < d.first[p]-int64(rebootSlack) }
	i := slices.IndexFunc(d.estimates[p], func(e estimate) bool { return rebooted(e.bootNs) == rebooted(bootNs) })
	if i < 0 {
		return estimate{}, false
	}
	return d.estimates[p][i], true
}

func (d *dating) ownOffset(k wire.TrialKey, final bool) (int64, answer) {
	if own, ok := d.own[k]; ok {
		return own, dated
	}
	if k != (wire.TrialKey{}) && !d.settled(k) {
		return 0, notYet
	}
	if d.ownFirst != nil {
		return d.ownFirst.wallNs, dated
	}
	return 0, unless(final)
}

// neighbour dates a record by the attempts around it in its spool, other than its own.
func (d *dating) neighbour(h wire.Header, own wire.TrialKey, final bool) (int64, answer) {
	marks := d.began[spool{h.Node, h.Epoch}]
	next := len(marks)
	for i, m := range marks {
		if m.seq > h.Seq {
			next = i
			break
		}
	}
	for i := next - 1; i >= 0; i-- {
		if marks[i].key == own {
			continue
		}
		all := d.estimates[part{h.Node, marks[i].key}]
		for _, e := range all {
			if h.TBootNs >= e.bootNs-int64(rebootSlack) {
				return e.wallNs, dated
			}
		}
		if !d.settled(marks[i].key) {
			return 0, notYet
		}
		if len(all) > 0 {
			break // the node was started again since
		}
	}
	for _, m := range marks[next:] {
		all := d.estimates[part{h.Node, m.key}]
		for _, e := range all {
			if h.TBootNs <= e.bootNs+int64(rebootSlack) {
				return e.wallNs, dated
			}
		}
		if !d.settled(m.key) {
			return 0, notYet
		}
		if len(all) > 0 {
			return 0, hopeless // it is of a boot before this attempt's, and so before that of any later one
		}
	}
	return 0, unless(final)
}

func (d *dating) settled(k wire.TrialKey) bool { return d.finished || d.sealed[k] }

func unless(final bool) answer {
	if final {
		return never
	}
	return notYet
}
