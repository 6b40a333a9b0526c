//go:build e2e

package truth

import (
	"fmt"
	"math"
	"net/netip"
	"regexp"
	"slices"
	"strings"
	"testing"
	"text/tabwriter"
	"time"

	"fieldmesh.dev/fieldmesh/controller/archive"
	"fieldmesh.dev/fieldmesh/controller/metrics"
	"fieldmesh.dev/fieldmesh/protocols/wire"
	"fieldmesh.dev/fieldmesh/test/testnet"
)

const (
	// tolerance is how far an accepted figure may be from the count's bounds.
	tolerance = 0.01
	// widest is how far apart the bounds may be for the count to say something.
	widest = 0.05
	// fewBytes are below what one may be off: two segments.
	fewBytes = 3000
	// nothingBytes is less than a tenth of what any window here brings.
	nothingBytes = 100_000
	// edgeTime is how near to an edge a moment is neither in nor out.
	edgeTime = 20 * time.Millisecond
	// aftermath is how long a part that was killed takes to be there again.
	aftermath = 4 * time.Second
	// staleTime is beyond what the campaign lets a fix be old, and the receiver's period.
	staleTime = 1700 * time.Millisecond
)

// late reports whether a busy machine has spoiled an attempt, by its reason. A fault
// may keep nodes from answering, and slow their comparing of clocks, too.
func (j judged) late() bool {
	switch {
	case j.Outcome == wire.Accepted:
		return false
	case j.Reason.Code == wire.ReasonClock || j.Reason.Code == wire.ReasonGoUnanswered:
		return len(j.hits) == 0
	}
	return testnet.Late(j.Reason)
}

// rehearsed is what came of one rehearsal.
type rehearsed struct {
	attempts []judged
	struck   []struck
	watches  []*watch
	clocks   clocks
}

// judged is an attempt as it was decided, beside what is known of it.
type judged struct {
	wire.Verdict
	protocol         string
	beginNs, endNs   int64 // from the decision before to its own, boot clock
	openNs, closeNs  int64 // the receiver's window; 0 without one
	reportedMB       *float64
	count            counted
	covered          bool // by a capture at the receiver
	hits, aftermaths []struck
}

// innerCode is what a peer reported about an attempt that was aborted for it.
var innerCode = regexp.MustCompile(`: ([a-z]+_[a-z_]+): `)

// code is the first word of the reason; of an abort, that of its cause.
func (j judged) code() string {
	if m := innerCode.FindStringSubmatch(": " + j.Reason.Text); j.Reason.Code == wire.ReasonAborted && m != nil {
		return m[1]
	}
	return string(j.Reason.Code)
}

// errorShare is how far the figure is above the count's upper bound or below its
// lower one; 0 within them and for a few bytes.
func (j judged) errorShare() float64 {
	reported, least, most := *j.reportedMB*1e6, float64(j.count.leastBytes), float64(j.count.mostBytes)
	switch {
	case reported > most+fewBytes:
		return (reported - most) / max(most, 1)
	case reported < least-fewBytes:
		return (reported - least) / max(least, 1)
	}
	return 0
}

// widthShare is how far apart the count's bounds are; 0 for a few bytes.
func (j judged) widthShare() float64 {
	width := j.count.mostBytes - j.count.leastBytes
	if width <= fewBytes {
		return 0
	}
	return float64(width) / float64(j.count.mostBytes)
}

// read lists the attempts of the run with their counts.
func (r *run) read() rehearsed {
	a, err := archive.Read(r.runDir())
	if err != nil {
		r.t.Fatal(err)
	}
	journal, err := a.Journal()
	if err != nil {
		r.t.Fatal(err)
	}
	captured := map[*watch][]segment{}
	for _, w := range r.out.watches {
		captured[w] = segments(r.t, w.file)
	}
	begin := r.out.clocks[0].bootNs
	for _, e := range journal {
		if e.Verdict == nil {
			continue
		}
		wall := e.Wall.UnixNano()
		j := judged{Verdict: *e.Verdict, protocol: a.Info().Plan.Trials[0].Routing.Protocol, beginNs: begin}
		j.endNs = wall - r.out.clocks.aheadAt(wall-r.out.clocks[0].aheadNs)
		begin = j.endNs
		r.measure(a, captured, &j)
		r.out.attempts = append(r.out.attempts, j)
	}
	r.attribute()
	return r.out
}

// measure looks up an attempt's figure, and counts.
func (r *run) measure(a *archive.Archive, captured map[*watch][]segment, j *judged) {
	trial, _ := a.Trial(j.Trial)
	records, err := a.All(j.Trial, j.Attempt)
	if err != nil {
		r.t.Fatal(err)
	}
	for _, rec := range records {
		if w, ok := rec.Body.(*wire.Window); ok && rec.Node == trial.Receiver {
			j.openNs, j.closeNs = w.OpenBootNs, w.CloseBootNs
		}
	}
	rows, err := metrics.Of(a, j.TrialKey)
	if err != nil {
		r.t.Fatal(err)
	}
	for _, row := range rows {
		if row.Name == metrics.TransferredMB {
			j.reportedMB = &row.Value
		}
	}
	if j.openNs == 0 {
		return
	}
	address := func(node string, port int) netip.AddrPort {
		for _, n := range a.Info().Plan.Nodes {
			if n.Name == node {
				return netip.AddrPortFrom(netip.MustParsePrefix(n.MeshPrefix).Addr(), uint16(port))
			}
		}
		return netip.AddrPort{}
	}
	if j.Outcome == "accepted" && j.reportedMB == nil {
		r.told(trial, records)
	}
	ahead := r.out.clocks.aheadAt(j.closeNs)
	for w, all := range captured {
		if w.node != trial.Receiver || !w.covers(j.openNs, j.closeNs+edgeTime.Nanoseconds()) {
			continue
		}
		j.covered = true
		flow := trial.Traffic[0]
		for i := range flow.Streams {
			port := flow.ClientPort + (j.Attempt-1)*flow.Streams + i
			from, to := address(trial.Sender, port), address(trial.Receiver, flow.Port)
			j.count.add(count(all, from, to, j.openNs+ahead, j.closeNs+ahead))
		}
	}
}

// told logs what the receiver says of its sockets at the window's edges and at
// their ends, of which an attempt without a figure lacks something.
func (r *run) told(trial wire.Trial, records []wire.Record) {
	for _, rec := range records {
		if rec.Node != trial.Receiver {
			continue
		}
		switch b := rec.Body.(type) {
		case *wire.Edge:
			r.t.Logf("%s at %d: edge %+v", rec.Node, rec.TBootNs, *b)
		case *wire.Window:
			r.t.Logf("%s at %d: window %+v", rec.Node, rec.TBootNs, *b)
		case *wire.TCPSample:
			if b.Stream != nil && (b.Edge != "" || b.State == "CLOSE") {
				r.t.Logf("%s at %d: socket %d %s, edge %q, %d bytes", rec.Node, rec.TBootNs, b.Cookie, b.State, b.Edge,
					b.BytesReceived)
			}
		}
	}
}

// attribute finds the faults that hit each attempt, or the one before it.
func (r *run) attribute() {
	for i := range r.out.attempts {
		j := &r.out.attempts[i]
		for _, s := range r.out.struck {
			switch {
			case s.beginNs > j.endNs:
			case s.endNs >= j.beginNs:
				j.hits = append(j.hits, s)
			case s.endNs+aftermath.Nanoseconds() >= j.beginNs:
				j.aftermaths = append(j.aftermaths, s)
			}
		}
	}
}

// wrong says what is wrong with an attempt's verdict; empty when nothing is.
func (j judged) wrong() string {
	if j.Outcome != "accepted" {
		if j.late() {
			return ""
		}
		for _, s := range slices.Concat(j.hits, j.aftermaths) {
			if slices.Contains(s.allowed, j.code()) {
				return ""
			}
		}
		if len(j.hits) == 0 {
			return "nothing hit it, and it is not accepted"
		}
		return "the fault does not explain the reason"
	}
	if text := j.figure(); text != "" {
		return text
	}
	if j.count.mostBytes < nothingBytes {
		return "accepted as no connection, and the radio was there"
	}
	for _, s := range j.hits {
		if s.spoils(j.openNs, j.closeNs) {
			return "accepted, though " + s.String() + " in its window"
		}
	}
	return ""
}

// figure says what is wrong with an accepted attempt's figure.
func (j judged) figure() string {
	switch {
	case !j.covered:
		return "accepted, and no capture covers its window"
	case j.reportedMB == nil:
		return "accepted, without a figure"
	case math.Abs(j.errorShare()) > tolerance:
		return fmt.Sprintf("accepted, and off by %+.1f %%", 100*j.errorShare())
	case j.widthShare() > widest:
		return fmt.Sprintf("accepted, and the capture bounds it no nearer than %.1f %%", 100*j.widthShare())
	}
	return ""
}

// spoils reports whether a fault leaves nothing to be accepted of a window.
func (s struck) spoils(openNs, closeNs int64) bool {
	inWindow := s.beginNs > openNs+edgeTime.Nanoseconds() && s.beginNs < closeNs-edgeTime.Nanoseconds()
	switch {
	case s.how == frozen || s.how == stopped && strings.HasPrefix(s.what, "iperf3"):
		return s.voids && s.within(openNs, closeNs) > stillTime
	case s.how == overLoad:
		start := openNs + loadStart.Nanoseconds()
		return s.voids && s.beginNs < start-edgeTime.Nanoseconds() && s.endNs > start+4*edgeTime.Nanoseconds()
	case strings.HasPrefix(s.what, "iperf3"):
		return s.voids && s.beginNs < closeNs-edgeTime.Nanoseconds()
	case s.what == "gpsd" && s.how == stopped:
		return s.beginNs < closeNs && min(s.endNs, closeNs) > openNs && min(s.endNs, closeNs)-s.beginNs >
			staleTime.Nanoseconds()
	}
	return s.voids && inWindow
}

// tally is what all rehearsals of a test came to.
type tally struct{ attempts []judged }

func (y *tally) add(r rehearsed) { y.attempts = append(y.attempts, r.attempts...) }

// row of the table.
type row struct {
	name     string
	attempts int
	outcomes map[wire.Outcome]int
	codes    map[string]int
	worst    float64
	width    float64
	wrong    []string
}

// rows are the attempts by what hit them; those of which a busy machine made
// nothing are told apart.
func (y *tally) rows() []*row {
	by := map[string]*row{}
	for _, j := range y.attempts {
		var names []string
		for _, s := range j.hits {
			names = append(names, s.String())
		}
		name := strings.Join(names, " + ")
		switch {
		case j.late() && len(j.hits) == 0:
			name = "~ the machine was late"
		case name == "" && j.Outcome != "accepted" && len(j.aftermaths) > 0:
			name = "~ after " + j.aftermaths[0].String()
		case name == "":
			name = "~ nothing"
		}
		w := by[name]
		if w == nil {
			w = &row{name: name, outcomes: map[wire.Outcome]int{}, codes: map[string]int{}}
			by[name] = w
		}
		w.attempts++
		w.outcomes[j.Outcome]++
		if j.Outcome != "accepted" {
			w.codes[j.code()]++
		} else if j.reportedMB != nil && j.covered {
			w.worst, w.width = max(w.worst, math.Abs(j.errorShare())), max(w.width, j.widthShare())
		}
		if text := j.wrong(); text != "" {
			w.wrong = append(w.wrong, text)
		}
	}
	var out []*row
	for _, w := range by {
		out = append(out, w)
	}
	slices.SortFunc(out, func(a, b *row) int { return strings.Compare(a.name, b.name) })
	return out
}

// judge prints the table and fails the test for everything that is wrong. It returns
// how many attempts say something: those in which the machine was not late.
func (y *tally) judge(t *testing.T) int {
	t.Helper()
	var text strings.Builder
	w := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "what hit the attempt\tattempts\taccepted\tnot\treasons\tworst error\twidest count\twrong")
	late := 0
	for _, r := range y.rows() {
		if r.name == "~ the machine was late" {
			late = r.attempts
		}
		var codes []string
		for c, n := range r.codes {
			codes = append(codes, fmt.Sprintf("%s ×%d", c, n))
		}
		slices.Sort(codes)
		fmt.Fprintf(w, "%s\t%d\t%d\t%d\t%s\t%.2f %%\t%.2f %%\t%s\n", r.name, r.attempts, r.outcomes["accepted"],
			r.attempts-r.outcomes["accepted"], strings.Join(codes, ", "), 100*r.worst, 100*r.width,
			strings.Join(r.wrong, "; "))
	}
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	t.Logf("%d attempts:\n%s", len(y.attempts), text.String())
	for _, j := range y.attempts {
		if why := j.wrong(); why != "" {
			t.Errorf("%s: trial %d attempt %d: %s: %s", j.protocol, j.Trial, j.Attempt, why, j.describe())
		}
	}
	if late > max(4, len(y.attempts)/2) {
		t.Errorf("the machine was late in %d of %d attempts: they say nothing", late, len(y.attempts))
	}
	return len(y.attempts) - late
}

// describe tells all of an attempt in a line.
func (j judged) describe() string {
	text := fmt.Sprintf("%s %q", j.Outcome, j.Reason)
	if j.reportedMB != nil {
		text += fmt.Sprintf(", %.4f MB", *j.reportedMB)
	}
	text += ", counted " + j.count.String()
	for _, s := range slices.Concat(j.hits, j.aftermaths) {
		text += fmt.Sprintf("; %s from %+.2f s to %+.2f s of the window's open", s,
			float64(s.beginNs-j.openNs)/1e9, float64(s.endNs-j.openNs)/1e9)
	}
	return text
}
