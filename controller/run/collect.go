package run

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"fieldmesh.dev/fieldmesh/controller/archive"
	"fieldmesh.dev/fieldmesh/protocols/wire"
)

const (
	collectWait  = 5 * time.Second
	collectLimit = 5000
	confirmEvery = 5 * time.Second

	// answersPerS bounds how many answers with records a lane gets in a second
	// while nobody waits for any. One costs both ends about a millisecond, and a
	// node has new records five times a second: up to ten nodes nothing changes,
	// two hundred would keep a processor busy with asking.
	answersPerS = 50
	// endingFor is for how long after a node's end of a trial the others' are
	// expected: then all are asked at once, as the next trial waits for them.
	endingFor = 3 * time.Second
)

// source is a node whose records are collected.
type source interface {
	Records(ctx context.Context, epoch string, after uint64, limit int, wait time.Duration) (lines [][]byte, newEpoch string, last uint64, err error)
	Confirm(ctx context.Context, p wire.SpoolPosition) (wire.SpoolStatus, error)
}

// collect copies a node's records into the archive until ctx ends. A node out
// of reach is asked again and again; nothing is lost meanwhile.
func (l *openLane) collect(ctx context.Context, name string, c source) {
	at := l.r.Archive.Cursor(name)
	backoff := 100 * time.Millisecond
	confirmed := time.Now()
	for ctx.Err() == nil {
		var lines [][]byte
		var next wire.SpoolPosition
		var err error
		l.hush.speak(func() { lines, next, err = l.copyRecords(ctx, name, c, at, l.hush.wait(collectWait)) })
		if err != nil {
			if ctx.Err() == nil {
				l.seen.behind(name, err)
			}
			sleep(ctx, backoff)
			backoff = min(2*backoff, 2*time.Second)
			continue
		}
		backoff = 100 * time.Millisecond
		l.seen.upToDate(name)
		at = next
		for _, line := range lines {
			l.seen.see(line)
		}
		if len(lines) > 0 && time.Since(confirmed) > confirmEvery {
			confirmed = time.Now()
			l.hush.speak(func() {
				if _, err := c.Confirm(ctx, at); err != nil && ctx.Err() == nil {
					l.r.Log.Warn("confirm records", "node", name, "error", err)
				}
			})
		}
		switch {
		case l.hush.mesh:
			sleep(ctx, l.r.lookEvery) // it does not wait at the node
		case len(lines) > 0 && len(lines) < collectLimit:
			l.seen.rest(ctx, time.Duration(len(l.Nodes))*time.Second/answersPerS)
		}
	}
}

// copyRecords copies what follows a position, waiting at most so long for it,
// and gives the position after it.
func (l *openLane) copyRecords(ctx context.Context, name string, c source, at wire.SpoolPosition, wait time.Duration) ([][]byte, wire.SpoolPosition, error) {
	lines, epoch, last, err := c.Records(ctx, at.Epoch, at.Seq, collectLimit, wait)
	next := wire.SpoolPosition{Epoch: epoch, Seq: last}
	if err != nil {
		return nil, next, fmt.Errorf("%s is out of reach: %w", name, err)
	}
	if len(lines) == 0 {
		return nil, next, nil
	}
	if err := l.r.Archive.Append(name, lines); err != nil {
		return nil, next, err
	}
	return lines, next, l.r.Archive.Reached(name, next)
}

func sleep(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}

// sightings is what has been seen go by on its way into the archive: which
// nodes have kept which attempt, and where the windows are.
type sightings struct {
	run     string // records of another run, which the spool may still hold, are not looked at
	mu      sync.Mutex
	changed chan struct{}
	hear    func(wire.Record) // told what people noted
	kept    map[wire.TrialKey]map[string]wire.TrialState
	windows map[wire.TrialKey]map[string]wire.Window
	late    map[string]error // nodes whose records do not get here, and why
	ending  chan struct{}    // closed when a node has ended an attempt
	ended   time.Time        // when one last did
}

func newSightings(run string, hear func(wire.Record)) *sightings {
	return &sightings{run: run, hear: hear, changed: make(chan struct{}), ending: make(chan struct{}), kept: map[wire.TrialKey]map[string]wire.TrialState{},
		windows: map[wire.TrialKey]map[string]wire.Window{}, late: map[string]error{}}
}

// see looks at a line that is durable in the archive.
func (s *sightings) see(line []byte) {
	if uninteresting(line) {
		return
	}
	var head wire.Header
	if json.Unmarshal(line, &head) != nil || head.Run != s.run || head.Kind != "trial" && head.Kind != "window" && head.Kind != "note" {
		return
	}
	var rec wire.Record
	if json.Unmarshal(line, &rec) != nil {
		return
	}
	s.take(rec)
}

// uninteresting tells of a line that begins as nodes begin theirs that its kind
// is not looked at, as almost all are: they need not be decoded for that.
func uninteresting(line []byte) bool {
	kind, ok := bytes.CutPrefix(line, []byte(`{"kind":"`))
	return ok && !bytes.HasPrefix(kind, []byte(`trial"`)) && !bytes.HasPrefix(kind, []byte(`window"`)) && !bytes.HasPrefix(kind, []byte(`note"`))
}

// recall feeds the sightings with what the archive holds already of attempts
// that are not decided: a controller that was killed may have collected all of
// one and judged none of it.
func (s *sightings) recall(a *archive.Archive) error {
	attempts, err := a.Trials()
	if err != nil {
		return err
	}
	for _, at := range attempts {
		if at.Verdict != nil {
			continue
		}
		for rec, err := range a.Records(at.Trial, at.Attempt) {
			if err != nil {
				return fmt.Errorf("recall trial %d attempt %d: %w", at.Trial, at.Attempt, err)
			}
			if rec.Run == s.run {
				s.take(rec)
			}
		}
	}
	return nil
}

func (s *sightings) take(rec wire.Record) {
	s.hear(rec)
	k := wire.TrialKey{Trial: rec.Trial, Attempt: rec.Attempt}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch b := rec.Body.(type) {
	case *wire.TrialState:
		if b.State == wire.StateKept {
			put(s.kept, k, rec.Node, *b)
			s.end()
		}
	case *wire.Window:
		put(s.windows, k, rec.Node, *b)
		s.end()
	}
	s.wake()
}

// end notes that a node is at the end of an attempt. mu is held.
func (s *sightings) end() {
	close(s.ending)
	s.ending, s.ended = make(chan struct{}), time.Now()
}

// rest leaves a node alone for a while, unless an attempt is ending.
func (s *sightings) rest(ctx context.Context, d time.Duration) {
	s.mu.Lock()
	ending, ended := s.ending, s.ended
	s.mu.Unlock()
	if time.Since(ended) < endingFor {
		return
	}
	select {
	case <-time.After(d):
	case <-ending:
	case <-ctx.Done():
	}
}

func put[T any](m map[wire.TrialKey]map[string]T, k wire.TrialKey, node string, v T) {
	if m[k] == nil {
		m[k] = map[string]T{}
	}
	m[k][node] = v
}

func (s *sightings) wake() {
	close(s.changed)
	s.changed = make(chan struct{})
}

// behind notes why a node's records do not get into the archive at present.
func (s *sightings) behind(node string, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	was := s.late[node]
	if s.late[node] = err; was == nil {
		s.wake()
	}
}

func (s *sightings) upToDate(node string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.late[node] != nil {
		delete(s.late, node)
		s.wake()
	}
}

// window is the measuring window of an attempt on a node; 0, 0 when there was none.
func (s *sightings) window(k wire.TrialKey, node string) (openNs, closeNs int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	w := s.windows[k][node]
	return w.OpenBootNs, w.CloseBootNs
}

// lacking lists the nodes that have not kept the attempt, and why one that has
// kept it gave it up; trouble says whose records do not get here. A node that
// rejected what it had measured to the end did not give up: the others measure
// to the end too.
func (s *sightings) lacking(k wire.TrialKey, names []string) (missing []string, gaveUp, trouble string, changed chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var late []string
	for _, n := range names {
		st, ok := s.kept[k][n]
		_, measured := s.windows[k][n]
		switch {
		case !ok:
			missing = append(missing, n)
			if err := s.late[n]; err != nil {
				late = append(late, err.Error())
			}
		case st.Outcome == wire.Failed, st.Outcome == wire.Interrupted, st.Outcome == wire.Rejected && !measured:
			gaveUp = n + ": " + st.Reason.String()
		}
	}
	return missing, gaveUp, strings.Join(late, "; "), s.changed
}

// interrupted says what interrupted the attempt on a node; "" when nothing did.
func (s *sightings) interrupted(k wire.TrialKey) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, name := range slices.Sorted(maps.Keys(s.kept[k])) {
		if st := s.kept[k][name]; st.Outcome == wire.Interrupted {
			return name + ": " + st.Reason.String()
		}
	}
	return ""
}

// awaitKept waits until every named node has kept the attempt. When one has
// given it up, the others are told to abort, again and again while they cannot
// be told: a peer that waits for GO would wait long.
func (l *openLane) awaitKept(ctx context.Context, t wire.Trial, k wire.TrialKey, names []string, show func(phase, detail string)) error {
	ctx, cancel := context.WithCancel(ctx)
	var watching sync.WaitGroup
	watch := l.watch
	if l.hush.mesh {
		watch = l.watchOverMesh
	}
	watching.Go(func() { watch(ctx, t, k, names) })
	defer func() { cancel(); watching.Wait() }() // nothing is shown of an attempt that has ended
	aborted := false
	for {
		missing, gaveUp, trouble, changed := l.seen.lacking(k, names)
		if len(missing) == 0 {
			return nil
		}
		if trouble != "" {
			show("waiting", trouble)
		}
		var again <-chan time.Time
		if gaveUp != "" && !aborted {
			if aborted = l.follow(ctx, missing, k, gaveUp); aborted {
				continue
			}
			again = time.After(time.Second)
		}
		select {
		case <-changed:
		case <-again:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// watch shows the attempt as the nodes see it, until ctx ends, and looks for
// nodes whose word on it will never come.
func (l *openLane) watch(ctx context.Context, t wire.Trial, k wire.TrialKey, names []string) {
	suspects := map[string]bool{}
	compared := time.Now()
	for round := 1; ; round++ {
		sleep(ctx, l.r.lookEvery)
		if ctx.Err() != nil {
			return
		}
		if p, ok := l.look(ctx, t, k); ok {
			l.r.show(p)
			// While the car drives up: it is not begun in a window.
			if p.Phase == string(wire.StateArmed) && time.Since(compared) > compareEvery {
				compared = time.Now()
				if err := l.clocks(ctx, t, k); err != nil && ctx.Err() == nil {
					l.r.Log.Warn("clock exchange while armed", "trial", t.Number, "error", err)
				}
			}
		}
		if round%unrecordedEvery == 0 {
			l.writeOff(ctx, k, names, suspects)
		}
	}
}

// compareEvery is how often clocks are compared while the nodes wait for the
// gate: a drift is known the better the longer it is looked at.
const compareEvery = 10 * time.Second

// unrecordedEvery is after how many looks nodes are asked whether they are
// still at the attempt.
const unrecordedEvery = 5

// writeOff fails the attempt for nodes that have ended it and could not record
// that: their disk was full, or was replaced. A node is written off when it is
// found so twice, as its last records may still be on their way.
func (l *openLane) writeOff(ctx context.Context, k wire.TrialKey, names []string, suspects map[string]bool) {
	missing, _, _, _ := l.seen.lacking(k, names)
	for _, n := range missing {
		v, err := l.viewOnce(ctx, l.Nodes[n])
		if err != nil || underWay(map[string]wire.CampaignView{n: v}, k) || !l.r.Archive.Holds(n, v.Position) {
			delete(suspects, n)
			continue
		}
		if !suspects[n] {
			suspects[n] = true
			continue
		}
		st := wire.TrialState{State: wire.StateKept, Outcome: wire.Failed,
			Reason: wire.Reason{Code: wire.ReasonUnrecorded, Text: "node " + n + " ended the attempt without a record of it"}}
		if err := l.r.own(k, bootNs(), &st); err != nil {
			l.r.Log.Error("write off", "node", n, "error", err)
			continue
		}
		l.seen.take(wire.Record{Header: wire.Header{Node: n, Trial: k.Trial, Attempt: k.Attempt}, Body: &st})
	}
}

// look asks initiator and receiver how the attempt stands.
func (l *openLane) look(ctx context.Context, t wire.Trial, k wire.TrialKey) (Progress, bool) {
	p := Progress{Lane: l.Name, Trial: &t, Attempt: k.Attempt}
	v, err := l.Nodes[t.Initiator].View(ctx, l.r.Plan.Run, 0, 0)
	if err != nil || v.Current == nil || *v.Current != k {
		return p, false
	}
	p.Phase, p.Detail, p.Live = string(v.State), v.Detail, v.Live
	if t.Receiver != t.Initiator && v.Live != nil {
		if w, err := l.Nodes[t.Receiver].View(ctx, l.r.Plan.Run, 0, 0); err == nil && w.Live != nil {
			p.Live.ThroughputBps = w.Live.ThroughputBps
		}
	}
	return p, true
}

// bootNs is this machine's boot clock.
func bootNs() int64 {
	var ts unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_BOOTTIME, &ts) // cannot fail for a clock that every Linux has
	return ts.Nano()
}
