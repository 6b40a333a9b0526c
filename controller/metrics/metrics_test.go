package metrics_test

import (
	"bytes"
	"encoding/csv"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"fieldmesh.dev/fieldmesh/controller/archive"
	"fieldmesh.dev/fieldmesh/controller/metrics"
	"fieldmesh.dev/fieldmesh/controller/metrics/track"
	"fieldmesh.dev/fieldmesh/internal/verdict"
	"fieldmesh.dev/fieldmesh/protocols/wire"
	"fieldmesh.dev/fieldmesh/test/synthetic"
	"fieldmesh.dev/fieldmesh/test/testnet"
)

// run is one speed, both sections, with a mishap.
func run(t *testing.T, mb float64, mishap func(*synthetic.Conditions)) *archive.Archive {
	t.Helper()
	return synthetic.Run(t, synthetic.Options{
		Seed: 11, Speeds: []float64{8.3}, Repetitions: 1,
		MB: func(wire.Trial, *rand.Rand) float64 { return mb },
		Mishap: func(_ wire.Trial, _ int, c *synthetic.Conditions) {
			if mishap != nil {
				mishap(c)
			}
		},
	})
}

func rowsOf(t *testing.T, a *archive.Archive, trial int) []metrics.Row {
	t.Helper()
	rows, err := metrics.Of(a, wire.TrialKey{Trial: trial, Attempt: 1})
	if err != nil {
		t.Fatal(err)
	}
	return rows
}

func timeline(t *testing.T, a *archive.Archive, trial int) []metrics.Point {
	t.Helper()
	at, err := metrics.Load(a, wire.TrialKey{Trial: trial, Attempt: 1})
	if err != nil {
		t.Fatal(err)
	}
	return at.Timeline()
}

func near(t *testing.T, rows []metrics.Row, flow, name string, want, within float64) {
	t.Helper()
	got := metrics.Value(rows, flow, name)
	if got == nil || math.Abs(*got-want) > within {
		text := "absent"
		if got != nil {
			text = metrics.Number(*got)
		}
		t.Errorf("%s is %s, want %g ± %g", name, text, want, within)
	}
}

func TestThroughputIsExactInBothDirections(t *testing.T) {
	a := run(t, 17.123457, nil) // not divisible by six streams
	for trial := 1; trial <= 2; trial++ {
		rows := rowsOf(t, a, trial)
		near(t, rows, "bulk", metrics.TransferredMB, 17.123457, 0)
		near(t, rows, "bulk", metrics.ThroughputBps, 17.123457*8e5, 1e-6)
		near(t, rows, "bulk", "streams_connected", 6, 0)
		near(t, rows, "bulk", metrics.FirstByteS, 0.1, 1e-9)
		near(t, rows, "bulk", metrics.RetransmitsName, 30, 0)
		near(t, rows, "bulk", metrics.Iperf3MB, 17.123457, 1e-9)
		near(t, rows, "bulk", "iperf3_sent_mb", 17.193457, 1e-9)
	}
}

// A result is that of the whole computation, and needs no record but those of the
// nodes that receive a measured flow.
func TestAResultNeedsTheReceiversOnly(t *testing.T) {
	a := run(t, 17.123457, nil)
	k := wire.TrialKey{Trial: 1, Attempt: 1}
	trial, _ := a.Trial(1)
	for _, other := range []string{"relay", trial.Traffic[0].From} {
		file := filepath.Join(a.Dir(), "trials", "0001-a1", "records", other+".ndjson")
		if err := os.WriteFile(file, []byte("no record\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := metrics.Load(a, k); err == nil {
		t.Fatal("the others' files can be read")
	}
	mb, mbps, err := metrics.Result(a, k)
	if err != nil || mb == nil || *mb != 17.123457 || math.Abs(*mbps-17.123457*0.8) > 1e-9 {
		t.Errorf("%v MB, %v Mbit/s: %v", mb, mbps, err)
	}
}

func TestNoConnectionIsZeroAndNotAbsent(t *testing.T) {
	a := run(t, 17, func(c *synthetic.Conditions) { c.NoConnection = true })
	rows := rowsOf(t, a, 1)
	near(t, rows, "bulk", metrics.TransferredMB, 0, 0)
	near(t, rows, "bulk", "streams_connected", 0, 0)
	for _, name := range []string{metrics.FirstByteS, metrics.RetransmitsName, metrics.Iperf3MB} {
		if v := metrics.Value(rows, "bulk", name); v != nil {
			t.Errorf("%s is %g without a connection, want absent", name, *v)
		}
	}
	if v := a.Decisions()[0]; v.Outcome != "accepted" {
		t.Errorf("no connection is %s, want accepted", v.Outcome)
	}
}

func TestReceiversRecordsCutAreAbsentAndNotZero(t *testing.T) {
	a := run(t, 17, func(c *synthetic.Conditions) { c.ReceiverCutS = 4 })
	rows := rowsOf(t, a, 1)
	if v := metrics.Value(rows, "bulk", metrics.TransferredMB); v != nil {
		t.Errorf("transferred_mb is %g, but nobody knows what came after 4 s", *v)
	}
	if v := metrics.Value(rows, "bulk", metrics.RetransmitsName); v == nil {
		t.Error("the sender's records are whole, its retransmits are absent")
	}
}

func TestMotion(t *testing.T) {
	a := run(t, 17, nil)
	rows := rowsOf(t, a, 1)
	near(t, rows, "", metrics.SpeedTargetMps, 8.3, 0)
	near(t, rows, "", metrics.SpeedMeanMps, 8.3, 1e-9)
	near(t, rows, "", metrics.InBandShare, 1, 0)
	// v²/2a + v·1.5 s along the road, 5 m beside it.
	open := math.Hypot(8.3*8.3/3+8.3*1.5, 5)
	near(t, rows, "", "truth_distance_open_m", open, 1e-9)
	near(t, rows, "", metrics.DistanceOpenM, open, 0.01)
	closing := math.Hypot(8.3*8.3/3+8.3*11.5, 5)
	near(t, rows, "", "truth_distance_close_m", closing, 1e-9)
	near(t, rows, "", metrics.DistanceCloseM, closing, 0.01)
	near(t, rows, "", metrics.ClockErrorMs, 0.8+0.9, 1e-5)
	near(t, rows, "", metrics.LatenessShare, 0.001, 1e-9)
}

func TestHaversine(t *testing.T) {
	for _, c := range []struct{ latA, lonA, latB, lonB, want float64 }{
		{0, 0, 0, 0, 0},
		{0, 0, 0, 1, 2 * math.Pi * 6371008.8 / 360},
		{0, 0, 90, 0, math.Pi / 2 * 6371008.8},
		{0, 179.5, 0, -179.5, 2 * math.Pi * 6371008.8 / 360},
		{52.5, 13.4, 52.5, 13.4 + 1e-3, 6371008.8 * math.Cos(52.5*math.Pi/180) * 1e-3 * math.Pi / 180},
	} {
		if got := track.HaversineM(c.latA, c.lonA, c.latB, c.lonB); math.Abs(got-c.want) > 1e-3 {
			t.Errorf("%+v: got %g m", c, got)
		}
	}
}

func TestTimelineAddsUpToWhatWasTransferred(t *testing.T) {
	a := run(t, 17.123457, nil)
	for trial := 1; trial <= 2; trial++ { // the receiver's clock differs by hours from the sender's
		points := timeline(t, a, trial)
		if len(points) != 101 {
			t.Fatalf("%d points for 10 s at 10 Hz, want 101", len(points))
		}
		var bits float64
		for i, p := range points {
			if p.ThroughputBps != nil {
				bits += *p.ThroughputBps / metrics.TickHz
			}
			if i > 0 && (p.ThroughputBps == nil || p.SpeedMps == nil || p.DistanceM == nil || p.SignalDbm == nil ||
				p.CwndSegments == nil) {
				t.Fatalf("trial %d: point %d lacks a number: %+v", trial, i, p)
			}
		}
		if math.Abs(bits/8e6-17.123457) > 1e-6 {
			t.Errorf("trial %d: the timeline adds up to %g MB", trial, bits/8e6)
		}
	}
}

// A flow counts where it ends, also when that is the trial's sender; of a trial without measured flows nothing is told.
func TestTimelineHasFlowsWhereTheyEnd(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*wire.Flow)
		wantMB float64
	}{
		"to the sender": {func(f *wire.Flow) { f.From, f.To = f.To, f.From }, 17},
		"background":    {func(f *wire.Flow) { f.Background = true }, 0},
	} {
		info := synthetic.Info(synthetic.Options{Seed: 11, Speeds: []float64{8.3}, Repetitions: 1,
			Change: func(x *wire.Trial) { c.change(&x.Traffic[0]) }})
		a, err := archive.Create(filepath.Join(t.TempDir(), "run"), info)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = a.Close() })
		for node, records := range synthetic.Attempt(info.Plan, info.Plan.Trials[0], 1, synthetic.Conditions{MB: 17},
			map[string]*uint64{}) {
			for _, r := range records {
				if b, ok := r.Body.(*wire.TCPSample); ok {
					b.BytesReceived, b.BytesAcked = b.BytesAcked, b.BytesReceived
				}
			}
			if err := synthetic.Store(a, node, records); err != nil {
				t.Fatal(err)
			}
		}
		var bits float64
		told := 0
		for _, p := range timeline(t, a, 1) {
			if p.ThroughputBps != nil {
				bits, told = bits+*p.ThroughputBps/metrics.TickHz, told+1
			}
		}
		if want := map[bool]int{true: 100, false: 0}[c.wantMB > 0]; told != want || math.Abs(bits/8e6-c.wantMB) > 1e-6 {
			t.Errorf("%s: %d points add up to %g MB, want %d and %g", name, told, bits/8e6, want, c.wantMB)
		}
	}
}

func TestTimelineShowsNoStaleSpeed(t *testing.T) {
	a := run(t, 17, func(c *synthetic.Conditions) { c.GPSGapFromS, c.GPSGapToS = 3, 6 })
	points := timeline(t, a, 1)
	// The last fix before the gap came at 2.96 s and is fresh until 4.46 s; the
	// first after it at 6.16 s.
	for _, p := range points {
		if stale := p.S > 4.45 && p.S < 6.15; stale != (p.SpeedMps == nil) {
			t.Errorf("at %.1f s: speed %v", p.S, p.SpeedMps)
		}
	}
}

func TestCSVReadsBack(t *testing.T) {
	a := run(t, 17.123457, nil)
	rows, err := metrics.Table(a)
	if err != nil {
		t.Fatal(err)
	}
	var whole, streamed bytes.Buffer
	if err := metrics.WriteCSV(&whole, rows); err != nil {
		t.Fatal(err)
	}
	if _, err := metrics.StreamCSV(&streamed, nil, a); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(whole.Bytes(), streamed.Bytes()) {
		t.Error("streamed and whole CSV differ")
	}
	lines, err := csv.NewReader(&whole).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	if len(lines) != len(rows)+1 || lines[1][4] != metrics.TransferredMB || lines[1][6] != "17.123457" {
		t.Errorf("%d lines for %d rows; the first is %q", len(lines), len(rows), lines[1])
	}
	for _, r := range rows {
		if r.Unit == "" || r.Definition == "" || math.IsNaN(r.Value) {
			t.Errorf("row without unit, definition or value: %+v", r)
		}
	}
}

// A radio goes on telling the signal of the last frame that it heard.
func TestSignalOfASilentPeerIsNotThePresentOne(t *testing.T) {
	o := synthetic.Options{Seed: 11, Speeds: []float64{8.3}, Repetitions: 1}
	info := synthetic.Info(o)
	a, err := archive.Create(t.TempDir()+"/run", info)
	if err != nil {
		t.Fatal(err)
	}
	testnet.CloseAtEnd(t, a)
	first := info.Plan.Trials[0]
	all := synthetic.Attempt(info.Plan, first, 1, synthetic.Conditions{MB: 1}, map[string]*uint64{})
	told := all[first.Receiver]
	n := 0.0
	for _, r := range told {
		if s, ok := r.Body.(*wire.Station); ok {
			s.SignalDbm, s.InactiveMs = new(-50.0), new(5.0)
			if r.TBootNs < synthetic.OpenBootNs[first.Receiver]+4e9 {
				s.SignalDbm, s.InactiveMs = new(-90.0), new(400+n)
			}
			n++
		}
	}
	for _, node := range []string{first.Receiver, first.Sender} {
		if err := synthetic.Store(a, node, all[node]); err != nil {
			t.Fatal(err)
		}
	}
	near(t, rowsOf(t, a, 1), "", metrics.SignalMeanDbm, -50, 0)
	points := timeline(t, a, 1)
	if points[20].SignalDbm != nil || points[50].SignalDbm == nil || *points[50].SignalDbm != -50 {
		t.Errorf("at 2 s: %v, at 5 s: %v; want nothing and -50 dBm", points[20].SignalDbm, points[50].SignalDbm)
	}
}

// On a busy machine the answer to a sample that was due before the window's
// open may come long after it; its time is that before the question.
func TestASampleAnsweredLateIsNoBase(t *testing.T) {
	info := synthetic.Info(synthetic.Options{Seed: 11, Speeds: []float64{8.3}, Repetitions: 1})
	a, err := archive.Create(filepath.Join(t.TempDir(), "run"), info)
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	trial := info.Plan.Trials[0]
	seqs := map[string]*uint64{}
	told := synthetic.Attempt(info.Plan, trial, 1, synthetic.Conditions{MB: 17}, seqs)
	at := told[trial.Receiver]
	w := verdict.WindowOf(trial.Receiver, at)
	for _, r := range at {
		b, ok := r.Body.(*wire.TCPSample)
		if !ok || r.TBootNs > w.OpenBootNs+1e9 {
			continue
		}
		*seqs[trial.Receiver]++
		r.Seq, r.TBootNs = *seqs[trial.Receiver], w.OpenBootNs-1e6
		told[trial.Receiver] = append(told[trial.Receiver], r)
		if b.BytesReceived > 0 {
			break
		}
	}
	for node, records := range told {
		if err := synthetic.Store(a, node, records); err != nil {
			t.Fatal(err)
		}
	}
	near(t, rowsOf(t, a, 1), "bulk", metrics.TransferredMB, 17, 1e-9)
}

// stored is an archive of one attempt, whose receiver's records are changed.
func stored(t *testing.T, change func(w wire.Window, records []wire.Record) []wire.Record) *archive.Archive {
	t.Helper()
	info := synthetic.Info(synthetic.Options{Seed: 11, Speeds: []float64{8.3}, Repetitions: 1})
	a, err := archive.Create(filepath.Join(t.TempDir(), "run"), info)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = a.Close() })
	trial := info.Plan.Trials[0]
	told := synthetic.Attempt(info.Plan, trial, 1, synthetic.Conditions{MB: 17}, map[string]*uint64{})
	at := change(*verdict.WindowOf(trial.Receiver, told[trial.Receiver]), told[trial.Receiver])
	for i := range at {
		at[i].Seq = uint64(i + 1)
	}
	told[trial.Receiver] = at
	for node, records := range told {
		if err := synthetic.Store(a, node, records); err != nil {
			t.Fatal(err)
		}
	}
	return a
}

// What a socket had at the window's close is known by a sample at the close or
// by the kernel's word of its end, and by nothing older or later.
func TestAThroughputIsOfTheEdgesOrAbsent(t *testing.T) {
	isClose := func(r wire.Record) bool {
		b, ok := r.Body.(*wire.TCPSample)
		return ok && b.Edge == "close" && *b.Stream == 0
	}
	// moved has the close's sample of one stream come at another time, as another.
	moved := func(lateNs int64, make func(*wire.TCPSample)) func(wire.Window, []wire.Record) []wire.Record {
		return func(w wire.Window, records []wire.Record) []wire.Record {
			for i, r := range records {
				if isClose(r) {
					b := *r.Body.(*wire.TCPSample)
					make(&b)
					records[i].TBootNs, records[i].Body = w.CloseBootNs+lateNs, &b
				}
			}
			return records
		}
	}
	ended := func(b *wire.TCPSample) { b.Edge, b.State = "", "CLOSE" }
	edges := func(closing wire.Edge) func(w wire.Window, records []wire.Record) []wire.Record {
		return func(w wire.Window, records []wire.Record) []wire.Record {
			h := records[0].Header
			closing.Edge, h.TBootNs = "close", w.CloseBootNs
			for _, e := range []wire.Edge{{Edge: "open"}, closing} {
				records = append(records, wire.Record{Header: h, Body: &e})
			}
			return records
		}
	}
	// held has the node be late at the close, having sampled one stream before it.
	held := func(earlyMs float64) func(w wire.Window, records []wire.Record) []wire.Record {
		return func(w wire.Window, records []wire.Record) []wire.Record {
			for _, r := range records {
				if isClose(r) {
					b := *r.Body.(*wire.TCPSample)
					b.Edge = wire.BeforeEdge + "close"
					r.TBootNs, r.Body = w.CloseBootNs-int64(earlyMs*1e6), &b
					records = append(records, r)
				}
			}
			records = edges(wire.Edge{LateMs: 200, EarlyMs: &earlyMs})(w, records)
			return moved(200e6, func(b *wire.TCPSample) { b.BytesReceived += 1e6 })(w, records)
		}
	}
	for name, c := range map[string]struct {
		change func(wire.Window, []wire.Record) []wire.Record
		known  bool
	}{
		"sampled shortly before": {held(3), true},
		"not sampled since the open": {func(w wire.Window, records []wire.Record) []wire.Record {
			for i, r := range records { // a tick of stream 0 becomes the sample before the open: nothing came since
				b, ok := r.Body.(*wire.TCPSample)
				if ok && b.Stream != nil && *b.Stream == 0 && b.Edge == "" {
					before := *b
					before.Edge, before.BytesReceived = wire.BeforeEdge+"open", 0
					records[i].TBootNs, records[i].Body = w.OpenBootNs-1e6, &before
				}
			}
			return edges(wire.Edge{LateMs: 2, EarlyMs: new(1.0)})(w, records)
		}, true},
		"sampled long before":         {held(70), false},
		"sampled at the close":        {moved(1e6, func(*wire.TCPSample) {}), true},
		"sampled late":                {moved(300e6, func(*wire.TCPSample) {}), false},
		"only sampled before":         {moved(-50e6, func(b *wire.TCPSample) { b.Edge = "" }), false},
		"ended before, by the kernel": {moved(-50e6, ended), true},
		"ended beside the close":      {moved(20e6, ended), true},
		"its end heard of late":       {moved(900e6, ended), false},
		"the node says so":            {edges(wire.Edge{LateMs: 2}), true},
		"the node was late":           {edges(wire.Edge{LateMs: 200}), false},
		"the node lost a socket":      {edges(wire.Edge{Unknown: 1}), false},
	} {
		t.Run(name, func(t *testing.T) {
			rows := rowsOf(t, stored(t, c.change), 1)
			if c.known {
				near(t, rows, "bulk", metrics.TransferredMB, 17, 1e-9)
				return
			}
			for _, name := range []string{metrics.TransferredMB, metrics.ThroughputBps, "streams_connected"} {
				if got := metrics.Value(rows, "bulk", name); got != nil {
					t.Errorf("%s is %g, want none", name, *got)
				}
			}
		})
	}
}

// Of a time in which the receiver's samplers did not ask nothing is told: what
// lies between the samples around it is a guess.
func TestTimelineTellsNoThroughputWhereNobodyLooked(t *testing.T) {
	a := stored(t, func(w wire.Window, records []wire.Record) []wire.Record {
		return slices.DeleteFunc(records, func(r wire.Record) bool {
			return r.TBootNs > w.OpenBootNs+4e9 && r.TBootNs < w.OpenBootNs+6e9
		})
	})
	points := timeline(t, a, 1)
	for tick, told := range map[int]bool{20: true, 38: true, 45: false, 55: false, 62: true, 100: true} {
		if got := points[tick].ThroughputBps; (got != nil) != told {
			t.Errorf("at %.1f s: %v, want it told: %v", float64(tick)/10, got, told)
		}
	}
}

// The GPS goes on while nobody samples the sockets: of their bytes it tells nothing.
func TestTimelineTellsNoThroughputWhereNobodySampledTheSockets(t *testing.T) {
	for name, c := range map[string]struct {
		toS     float64 // until when from 4 s on
		streams int     // so many of the six
		closed  bool    // the sample at 4 s is the kernel's word of the end
		told    map[int]bool
	}{
		"a hole":               {6, 6, false, map[int]bool{20: true, 38: true, 45: false, 55: false, 62: true}},
		"a hole in one stream": {6, 1, false, map[int]bool{20: true, 38: true, 45: false, 55: false, 62: true}},
		"stopped for good":     {99, 6, false, map[int]bool{20: true, 38: true, 45: false, 70: false, 100: false}},
		"one stream stopped":   {99, 1, false, map[int]bool{20: true, 38: true, 45: false, 70: false, 100: false}},
		"one stream closed":    {99, 1, true, map[int]bool{20: true, 38: true, 45: true, 70: true, 100: true}},
		"all closed":           {99, 6, true, map[int]bool{20: true, 38: true, 45: true, 70: true, 99: true}},
	} {
		t.Run(name, func(t *testing.T) {
			a := stored(t, func(w wire.Window, records []wire.Record) []wire.Record {
				for i, r := range records {
					b, ok := r.Body.(*wire.TCPSample)
					at := float64(r.TBootNs-w.OpenBootNs) / 1e9
					if ok && c.closed && *b.Stream < c.streams && at > 3.95 && at <= 4 {
						end := *b
						end.State = "CLOSE"
						records[i].Body = &end
					}
				}
				return slices.DeleteFunc(records, func(r wire.Record) bool {
					b, ok := r.Body.(*wire.TCPSample)
					at := float64(r.TBootNs-w.OpenBootNs) / 1e9
					return ok && *b.Stream < c.streams && at > 4 && at < c.toS
				})
			})
			points := timeline(t, a, 1)
			for tick, told := range c.told {
				if got := points[tick].ThroughputBps; (got != nil) != told {
					t.Errorf("at %.1f s: %v, want it told: %v", float64(tick)/10, got, told)
				}
			}
		})
	}
}
