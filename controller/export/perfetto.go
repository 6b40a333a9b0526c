package export

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math"
	"path/filepath"
	"slices"
	"strings"

	"fieldmesh.dev/fieldmesh/controller/archive"
	"fieldmesh.dev/fieldmesh/controller/metrics"
	"fieldmesh.dev/fieldmesh/controller/report/words"
	"fieldmesh.dev/fieldmesh/internal/influx"
	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// perfettoFile is an attempt's trace for Perfetto.
func perfettoFile(k wire.TrialKey) string {
	return filepath.Join("perfetto", fmt.Sprintf("%04d-a%d.json", k.Trial, k.Attempt))
}

// Kinds of records whose numbers are drawn as counters, and those that are drawn
// as moments. Windows and routes last for some time. Others are left out.
var (
	countedKinds = []string{"gps", "tcp", "interface", "station", "survey", "truth", "routing", "probe", "delay",
		"machine", "wifi"}
	momentKinds = []string{"tcp_event", "loss", "routing_event", "event", "note", "trial", "edge", "change"}
)

// unnamed are tags that do not name a track.
var unnamed = []string{"edge", "level", "seen_by"}

// trace writes an attempt in the Trace Event Format, which Perfetto reads. Each
// node is a process. Numbers are its counters; what happens to a connection, to
// frames and to routes are its threads. Times are the controller's clock, to which
// each node's boot clock is brought by the comparisons of the attempt; 0 is when
// the first record's event happened.
type trace struct {
	w        io.Writer
	clocks   clocks
	encoder  *influx.Encoder
	tables   map[string]drawnTable // by measurement
	cells    []influx.Cell
	beginsNs uint64            // time 0 of the file
	endsNs   map[string]uint64 // by process, its last record
	places   map[string]int    // numbers of processes, and of their threads
	routes   map[[2]string]lasting
	numbers  map[[2]string]map[string]any // by process and track, as they were last written
	written  int
	undated  int
	err      error // the first of writing
}

// drawnTable is where a measurement's tags and fields begin among its columns.
type drawnTable struct {
	columns      []influx.Column
	tags, fields int
}

// lasting is something that has begun.
type lasting struct {
	sinceNs uint64
	name    string
	args    map[string]any
}

// traceEvent is one line of the Trace Event Format. Times are in microseconds.
type traceEvent struct {
	Name     string         `json:"name"`
	Phase    string         `json:"ph"`
	At       json.Number    `json:"ts,omitempty"`
	Duration json.Number    `json:"dur,omitempty"`
	Process  int            `json:"pid"`
	Thread   int            `json:"tid"`
	Scope    string         `json:"s,omitempty"` // of a moment: t is its thread
	Args     map[string]any `json:"args,omitempty"`
}

// writePerfetto writes an attempt, and returns how many of its records are left out
// because nobody compared their node's clock.
func writePerfetto(w io.Writer, from lines, at archive.Attempt) (undated int, err error) {
	loaded, err := metrics.Load(from.a, at.TrialKey)
	if err != nil {
		return 0, err
	}
	t := &trace{w: w, clocks: clocksOf(loaded.Records()), encoder: influx.NewEncoder(),
		tables: map[string]drawnTable{}, beginsNs: math.MaxUint64, endsNs: map[string]uint64{},
		places: map[string]int{}, routes: map[[2]string]lasting{}, numbers: map[[2]string]map[string]any{}}
	for _, m := range influx.Schema() {
		columns := m.Columns()
		fields := len(columns) - len(m.Fields)
		t.tables[m.Name] = drawnTable{columns, fields - len(m.Tags), fields}
	}
	for _, r := range loaded.Records() {
		if when, dated := t.when(r); dated && drawn(r.Body.Kind()) {
			t.beginsNs, t.endsNs[r.Node] = min(t.beginsNs, when), max(t.endsNs[r.Node], when)
		}
	}
	t.text(`{"displayTimeUnit":"ms","traceEvents":[`)
	if err := from.each(at.TrialKey, t.record); err != nil {
		return 0, err
	}
	inOrder := func(a, b [2]string) int { return slices.Compare(a[:], b[:]) }
	for _, key := range slices.SortedFunc(maps.Keys(t.routes), inOrder) {
		t.endRoute(key, t.endsNs[key[0]])
	}
	about, err := json.Marshal(map[string]any{"run": from.a.Info().Run, "trial": at.Trial, "attempt": at.Attempt,
		"records_undated": t.undated})
	if err != nil {
		return 0, err
	}
	t.text("\n],\"otherData\":" + string(about) + "}\n")
	return t.undated, t.err
}

// createPerfetto writes the traces of all attempts.
func createPerfetto(from lines, dir string) (files []file, err error) {
	attempts, err := from.a.Trials()
	if err != nil {
		return nil, err
	}
	for _, at := range attempts {
		f := file{perfettoFile(at.TrialKey), fmt.Sprintf("Trial %d, attempt %d for ui.perfetto.dev: connections, "+
			"routes, lost frames and numbers on one time axis.", at.Trial, at.Attempt), "application/json", nil}
		undated := 0
		err := create(filepath.Join(dir, f.name), func(w io.Writer) (err error) {
			undated, err = writePerfetto(w, from, at)
			return err
		})
		if err != nil {
			return nil, err
		}
		f.about += from.lacks(undated)
		files = append(files, f)
	}
	return files, nil
}

// drawn reports whether records of a kind are in a trace.
func drawn(kind string) bool {
	return kind == "window" || kind == "route" || slices.Contains(countedKinds, kind) ||
		slices.Contains(momentKinds, kind)
}

// happenedNs is when what a record reports happened, or began, by its node's boot
// clock; false: it is not known.
func happenedNs(r wire.Record) (int64, bool) {
	switch b := r.Body.(type) {
	case *wire.RouteChange:
		return b.AtBootNs, true
	case *wire.RoutingEvent:
		return b.AtBootNs, true
	case *wire.Noted:
		if b.NotedBootNs == nil {
			return 0, false
		}
		return *b.NotedBootNs, true
	case *wire.Window:
		return b.OpenBootNs, true
	case *wire.TCPEvent:
		if b.FromBootNs != nil {
			return *b.FromBootNs, true
		}
	}
	return r.TBootNs, true
}

// when is the moment that happenedNs says, by the wall clock.
func (t *trace) when(r wire.Record) (uint64, bool) {
	bootNs, known := happenedNs(r)
	if !known {
		return 0, false
	}
	return t.clocks.wall(r.Node, bootNs)
}

func (t *trace) record(line []byte) error {
	p, err := t.encoder.Parse(line)
	if err != nil {
		return err
	}
	kind, node := p.Header.Kind, p.Header.Node
	if !drawn(kind) {
		return nil
	}
	var whole wire.Record
	if err := whole.UnmarshalJSON(line); err != nil {
		return err
	}
	when, dated := t.when(whole)
	if !dated {
		t.undated++
		return nil
	}
	var measurement string
	if t.cells, measurement, err = t.encoder.Row(t.cells, p); err != nil {
		return err
	}
	track, of, values := t.read(measurement, node, kind)
	if slices.Contains(countedKinds, kind) {
		t.counters(of, track, when, values)
		return t.err
	}
	switch b := whole.Body.(type) {
	case *wire.Window:
		t.slice(of, track, lasting{when, "window", values}, t.wall(node, b.CloseBootNs))
	case *wire.RouteChange:
		t.route(of, b, when)
	case *wire.TCPEvent:
		if b.FromBootNs != nil {
			t.slice(of, track, lasting{when, b.Event, values}, t.wall(node, whole.TBootNs))
			break
		}
		t.moment(of, track, b.Event, when, values)
	default:
		t.moment(of, track, titleOf(kind, values), when, values)
	}
	return t.err
}

// wall is a moment of a node whose clock was compared.
func (t *trace) wall(node string, bootNs int64) uint64 {
	at, _ := t.clocks.wall(node, bootNs)
	return at
}

// read returns the track of the record whose cells were read, the node that it is
// about, and its values. Texts that name the track are none of them.
func (t *trace) read(measurement, node, kind string) (track, of string, values map[string]any) {
	table := t.tables[measurement]
	of, values = node, map[string]any{}
	names := []string{kind}
	for i := table.tags; i < len(table.columns); i++ {
		c, cell := table.columns[i], t.cells[i]
		switch {
		case !cell.Present:
		case c.Name == "of":
			of = cell.Text
		case i < table.fields && !slices.Contains(unnamed, c.Name):
			names = append(names, cell.Text)
		default:
			values[c.Name] = plain(c.Type, cell)
		}
	}
	return strings.Join(names, " "), of, values
}

// plain is a cell's value.
func plain(t influx.Type, c influx.Cell) any {
	switch t {
	case influx.Integer:
		return c.Integer
	case influx.Float:
		return c.Float
	case influx.Boolean:
		return c.Boolean
	}
	return c.Text
}

// titleOf is the name of a moment.
func titleOf(kind string, values map[string]any) string {
	for _, column := range []string{"text", "note", "state", "edge"} {
		if text, ok := values[column].(string); ok && text != "" {
			return text
		}
	}
	return kind
}

// counters adds each number that has changed. Perfetto draws it until the next: the
// format has no word for a number that is not known any more.
func (t *trace) counters(of, track string, when uint64, values map[string]any) {
	key := [2]string{of, track}
	held := t.numbers[key]
	if held == nil {
		held = map[string]any{}
		t.numbers[key] = held
	}
	changed := map[string]any{}
	for name, value := range values {
		switch value.(type) {
		case int64, float64:
			if held[name] != value {
				held[name], changed[name] = value, value
			}
		}
	}
	if len(changed) > 0 {
		t.event(traceEvent{Name: track, Phase: "C", At: t.since(when), Process: t.process(of), Args: changed})
	}
}

func (t *trace) moment(of, track, name string, when uint64, values map[string]any) {
	t.event(traceEvent{Name: name, Phase: "i", At: t.since(when), Process: t.process(of), Thread: t.thread(of, track),
		Scope: "t", Args: values})
}

// route ends the route that a node had to a destination, and begins the next.
func (t *trace) route(node string, r *wire.RouteChange, when uint64) {
	key := [2]string{node, r.Destination}
	t.endRoute(key, when)
	if r.Action == "delete" {
		return
	}
	name, args := "via "+strings.Join(r.NextHops, ", "), map[string]any{}
	if r.Hops != nil {
		name += ", " + words.Count(*r.Hops, "hop")
	}
	if r.Metric != nil {
		args["metric"] = *r.Metric
	}
	if r.Cause != "" {
		args["cause"] = r.Cause
	}
	t.routes[key] = lasting{when, name, args}
}

func (t *trace) endRoute(key [2]string, when uint64) {
	if route, ok := t.routes[key]; ok {
		delete(t.routes, key)
		t.slice(key[0], "route to "+key[1], route, when)
	}
}

// slice adds what lasted until a time.
func (t *trace) slice(of, track string, l lasting, untilNs uint64) {
	t.event(traceEvent{Name: l.name, Phase: "X", At: t.since(l.sinceNs),
		Duration: microseconds(max(untilNs, l.sinceNs) - l.sinceNs), Process: t.process(of),
		Thread: t.thread(of, track), Args: l.args})
}

// process is the number of a node, which is named when it is first used.
func (t *trace) process(of string) int {
	return t.place(of, func(n int) traceEvent {
		return traceEvent{Name: "process_name", Phase: "M", Process: n, Args: map[string]any{"name": of}}
	})
}

// thread is the number of a node's track, likewise.
func (t *trace) thread(of, track string) int {
	process := t.process(of)
	return t.place(of+"\x00"+track, func(n int) traceEvent {
		return traceEvent{Name: "thread_name", Phase: "M", Process: process, Thread: n,
			Args: map[string]any{"name": track}}
	})
}

func (t *trace) place(key string, begin func(n int) traceEvent) int {
	n, ok := t.places[key]
	if !ok {
		n = len(t.places) + 1
		t.places[key] = n
		t.event(begin(n))
	}
	return n
}

// since is a time as the file has it.
func (t *trace) since(when uint64) json.Number { return microseconds(when - min(when, t.beginsNs)) }

// microseconds keeps the nanoseconds behind the point.
func microseconds(ns uint64) json.Number {
	return json.Number(fmt.Sprintf("%d.%03d", ns/1000, ns%1000))
}

// event writes an event, each on a line of its own.
func (t *trace) event(e traceEvent) {
	line, err := json.Marshal(e)
	if err != nil {
		panic(err) // it is made of numbers and texts
	}
	if t.written++; t.written > 1 {
		t.text(",")
	}
	t.text("\n" + string(line))
}

func (t *trace) text(s string) {
	if t.err == nil {
		_, t.err = io.WriteString(t.w, s)
	}
}
