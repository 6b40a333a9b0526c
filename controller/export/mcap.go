package export

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"path/filepath"
	"slices"
	"strconv"

	"fieldmesh.dev/fieldmesh/controller/archive"
	"fieldmesh.dev/fieldmesh/controller/metrics"
	"fieldmesh.dev/fieldmesh/internal/clockfit"
	"fieldmesh.dev/fieldmesh/internal/influx"
	"fieldmesh.dev/fieldmesh/internal/mcap"
	"fieldmesh.dev/fieldmesh/internal/verdict"
	"fieldmesh.dev/fieldmesh/internal/version"
	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// mcapFile is the run for Foxglove and Lichtblick.
const mcapFile = "run.mcap"

// heldBytes is how many bytes of messages are held to be sorted by time. An
// attempt with more is written in several parts, each sorted: readers then have
// to look into several chunks for one moment.
const heldBytes = 24 << 20

// controllerNode is the name under which the controller's own records stand.
const controllerNode = "controller"

// recording writes a run as MCAP: each record as it is, on a channel of its node
// and kind, and beside them what viewers draw: positions, lines of a log, and each
// attempt at 10 Hz. Times are the controller's wall clock, to which each node's
// boot clock is brought by the comparisons of the attempt.
type recording struct {
	from     lines
	w        *mcap.Writer
	encoder  *influx.Encoder
	schemas  map[string]uint16 // by name
	channels map[string]uint16 // by topic
	counts   map[uint16]uint32
	held     []message
	bytes    int
	undated  int // records without a common time
}

type message struct {
	channel uint16
	timeNs  uint64
	data    []byte
}

// writeMCAP writes the attempts of a run, and returns how many of its records are
// left out: those of no attempt, and those of nodes whose clock nobody compared in
// the attempt.
func writeMCAP(w io.Writer, from lines) (undated int, err error) {
	out, err := mcap.New(w, "fieldmesh "+version.Version)
	if err != nil {
		return 0, err
	}
	r := &recording{from: from, w: out, encoder: influx.NewEncoder(), schemas: map[string]uint16{},
		channels: map[string]uint16{}, counts: map[uint16]uint32{}}
	attempts, err := from.a.Trials()
	if err != nil {
		return 0, err
	}
	for _, at := range attempts {
		if err := r.attempt(at); err != nil {
			return 0, fmt.Errorf("write %s: %w", mcapFile, err)
		}
	}
	if err := from.each(wire.TrialKey{}, func([]byte) error { r.undated++; return nil }); err != nil {
		return 0, fmt.Errorf("write %s: %w", mcapFile, err)
	}
	r.w.Metadata("fieldmesh", map[string]string{
		"run": from.a.Info().Run, "campaign": from.a.Info().Campaign, "place": from.a.Info().Place,
		"version":         version.Version,
		"times":           "the controller's wall clock",
		"records_undated": strconv.Itoa(r.undated),
	})
	return r.undated, r.w.Close()
}

// createMCAP writes the file, and says what it holds and what it lacks.
func createMCAP(from lines, dir string) (file, error) {
	var undated int
	err := create(filepath.Join(dir, mcapFile), func(w io.Writer) (err error) {
		undated, err = writeMCAP(w, from)
		return err
	})
	about := "Every attempt for Foxglove and Lichtblick: records, positions, a log, and the window at 10 Hz."
	return file{mcapFile, about + from.lacks(undated), "application/octet-stream", nil}, err
}

// lacks says what is not in a file of records on one time axis.
func (l lines) lacks(undated int) (text string) {
	if undated > 0 {
		text = fmt.Sprintf(" %d records without a common time are left out.", undated)
	}
	if l.redact != nil {
		text += " Redacted."
	}
	return text
}

// clocks bring the boot clocks of an attempt's nodes to the controller's wall clock.
type clocks struct {
	ownWallNs *int64             // the controller's wall clock minus its boot clock
	fits      map[string]aligned // by node
}

// aligned is a node's clock against a boot of the controller.
type aligned struct {
	clockfit.Fit
	ownWallNs int64
}

// clocksOf goes by an attempt's comparisons. Each node's hold from its first to its last
// record. Of a controller that was rebooted the boot in which it compared most nodes counts,
// and another for those that it did not compare then.
func clocksOf(records []wire.Record) clocks {
	spans := map[string][2]int64{}
	for _, r := range records {
		span, seen := spans[r.Node]
		if !seen {
			span = [2]int64{r.TBootNs, r.TBootNs}
		}
		spans[r.Node] = [2]int64{min(span[0], r.TBootNs), max(span[1], r.TBootNs)}
	}
	var boots []clocks
	for _, o := range clockfit.Observers(records) {
		if o.Node != controllerNode || o.OwnWallNs == nil {
			continue
		}
		c := clocks{o.OwnWallNs, map[string]aligned{}}
		for node, span := range spans {
			if f, ok := o.Fit(node, span[0], span[1]); ok {
				c.fits[node] = aligned{f, *o.OwnWallNs}
			}
		}
		boots = append(boots, c)
	}
	if len(boots) == 0 {
		return clocks{}
	}
	slices.SortStableFunc(boots, func(a, b clocks) int { return cmp.Compare(len(b.fits), len(a.fits)) })
	for _, other := range boots[1:] {
		for node, f := range other.fits {
			if _, known := boots[0].fits[node]; !known {
				boots[0].fits[node] = f
			}
		}
	}
	return boots[0]
}

// wall is a moment of a node's boot clock in nanoseconds since 1970; false when its
// clock was not compared.
func (c clocks) wall(node string, bootNs int64) (uint64, bool) {
	if c.ownWallNs == nil {
		return 0, false
	}
	ownWallNs := *c.ownWallNs
	if node != controllerNode && node != archive.FieldNode {
		f, ok := c.fits[node]
		if !ok {
			return 0, false
		}
		bootNs, ownWallNs = f.Common(bootNs), f.ownWallNs
	}
	at := bootNs + ownWallNs
	overflow := ownWallNs > 0 && at < bootNs || ownWallNs < 0 && at > bootNs
	return uint64(at), at > 0 && !overflow
}

func (r *recording) attempt(at archive.Attempt) error {
	loaded, err := metrics.Load(r.from.a, at.TrialKey)
	if err != nil {
		return err
	}
	c := clocksOf(loaded.Records())
	begins := uint64(math.MaxUint64)
	err = r.from.each(at.TrialKey, func(line []byte) error {
		p, err := r.encoder.Parse(line)
		if err != nil {
			return err
		}
		when, dated := c.wall(p.Header.Node, p.Header.TBootNs)
		if !dated {
			r.undated++
			return nil
		}
		begins = min(begins, when)
		return r.record(p.Header, when, line, c)
	})
	if err != nil {
		return err
	}
	if begins < math.MaxUint64 {
		if err := r.outcome(at, begins); err != nil {
			return err
		}
	}
	if err := r.timeline(at.TrialKey, loaded, c); err != nil {
		return err
	}
	r.flush()
	return nil
}

// record adds a record, and what viewers draw of it.
func (r *recording) record(h wire.Header, when uint64, line []byte, c clocks) error {
	r.add(r.channel("/"+h.Node+"/"+h.Kind, "fieldmesh."+h.Kind, func() schema { return recordSchema(h.Kind) }), when,
		slices.Clone(line))
	switch h.Kind {
	case "gps", "event", "note", "trial":
	default:
		return nil
	}
	var whole wire.Record
	if err := whole.UnmarshalJSON(line); err != nil {
		return err
	}
	switch b := whole.Body.(type) {
	case *wire.GPS:
		return r.position(h.Node, b, c)
	case *wire.Event:
		level := map[string]int{"info": logInfo, "warning": logWarning, "error": logError}[b.Level]
		return r.log(h.Node, when, level, b.Text)
	case *wire.Noted:
		return r.log(h.Node, when, logInfo, fmt.Sprintf("%s %s", b.Note, b.Text))
	case *wire.TrialState:
		text := fmt.Sprintf("trial %d attempt %d: %s %s %s", h.Trial, h.Attempt, b.State, b.Outcome, b.Reason)
		return r.log(h.Node, when, logInfo, text)
	}
	return nil
}

// position adds a fix when it arrived, as foxglove.LocationFix. What the receiver did
// not tell is absent.
func (r *recording) position(node string, g *wire.GPS, c clocks) error {
	if g.LatDeg == nil || g.LonDeg == nil || g.FixBootNs == nil {
		return nil
	}
	when, dated := c.wall(node, *g.FixBootNs)
	if !dated {
		return nil
	}
	return r.json("/"+node+"/position", "foxglove.LocationFix", locationFix, when, struct {
		Timestamp stamp    `json:"timestamp"`
		Frame     string   `json:"frame_id"`
		LatDeg    float64  `json:"latitude"`
		LonDeg    float64  `json:"longitude"`
		AltM      *float64 `json:"altitude,omitempty"`
		Kind      int      `json:"position_covariance_type"` // 0: unknown
	}{stampOf(when), node, *g.LatDeg, *g.LonDeg, g.AltM, 0})
}

// The levels of foxglove.Log.
const (
	logInfo    = 2
	logWarning = 3
	logError   = 4
)

// log adds a line; one whose text was taken out is left out.
func (r *recording) log(node string, when uint64, level int, text string) error {
	if text == "" {
		return nil
	}
	return r.json("/log", "foxglove.Log", logLine, when, struct {
		Timestamp stamp  `json:"timestamp"`
		Level     int    `json:"level"`
		Message   string `json:"message"`
		Name      string `json:"name"`
	}{stampOf(when), level, text, node})
}

// outcome adds the outcome of an attempt, at its first record.
func (r *recording) outcome(at archive.Attempt, when uint64) error {
	t, _ := r.from.a.Trial(at.Trial)
	out := struct {
		Trial    int               `json:"trial"`
		Attempt  int               `json:"attempt"`
		Outcome  string            `json:"outcome,omitempty"`
		Reason   string            `json:"reason,omitempty"`
		SpeedMps *float64          `json:"speed_target_mps,omitempty"`
		Variant  string            `json:"tcp_variant,omitempty"`
		Routing  string            `json:"routing_protocol,omitempty"`
		Factors  map[string]string `json:"factors,omitempty"`
	}{Trial: at.Trial, Attempt: at.Attempt, SpeedMps: t.SpeedMps, Variant: t.TCP.Variant,
		Routing: t.Routing.Protocol, Factors: t.Factors}
	if v := at.Verdict; v != nil {
		out.Outcome, out.Reason = string(v.Outcome), v.Reason.String()
		if r.from.redact != nil {
			out.Reason = codeOf(v.Reason)
		}
	}
	return r.json("/attempts", "fieldmesh.attempt", attemptSchema, when, out)
}

// timeline adds the attempt at 10 Hz, on the receiver's clock.
func (r *recording) timeline(k wire.TrialKey, loaded metrics.Attempt, c clocks) error {
	t, _ := r.from.a.Trial(k.Trial)
	w := verdict.WindowOf(t.Receiver, loaded.Records())
	if w == nil {
		return nil
	}
	for _, p := range loaded.Timeline() {
		when, dated := c.wall(t.Receiver, w.OpenBootNs+int64(p.S*1e9))
		if !dated {
			return nil
		}
		err := r.json("/timeline", "fieldmesh.timeline", timelineSchema, when, struct {
			Trial         int      `json:"trial"`
			Attempt       int      `json:"attempt"`
			S             float64  `json:"s"`
			ThroughputBps *float64 `json:"throughput_bps,omitempty"`
			SpeedMps      *float64 `json:"speed_mps,omitempty"`
			DistanceM     *float64 `json:"distance_m,omitempty"`
			SignalDbm     *float64 `json:"signal_dbm,omitempty"`
			CwndSegments  *float64 `json:"cwnd_segments,omitempty"`
			TrueSpeedMps  *float64 `json:"truth_speed_mps,omitempty"`
			WiFiDbm       *float64 `json:"wifi_signal_dbm,omitempty"`
		}{k.Trial, k.Attempt, p.S, p.ThroughputBps, p.SpeedMps, p.DistanceM, p.SignalDbm, p.CwndSegments,
			p.TrueSpeedMps, p.WiFiDbm})
		if err != nil {
			return err
		}
	}
	return nil
}

// channel is that of a topic, which is begun with its schema when it is first used.
func (r *recording) channel(topic, name string, describe func() schema) uint16 {
	if id, ok := r.channels[topic]; ok {
		return id
	}
	of, ok := r.schemas[name]
	if !ok {
		text, err := json.Marshal(describe())
		if err != nil {
			panic(err) // a schema is made of maps and texts of ours
		}
		of = r.w.AddSchema(name, "jsonschema", text)
		r.schemas[name] = of
	}
	r.channels[topic] = r.w.AddChannel(of, topic, "json", nil)
	return r.channels[topic]
}

// json adds a value that is not a record.
func (r *recording) json(topic, name string, describe func() schema, when uint64, value any) error {
	text, err := json.Marshal(value)
	if err != nil {
		return fmt.Errorf("%s: %w", topic, err)
	}
	r.add(r.channel(topic, name, describe), when, text)
	return nil
}

func (r *recording) add(channel uint16, when uint64, data []byte) {
	r.held = append(r.held, message{channel, when, data})
	if r.bytes += len(data); r.bytes >= heldBytes {
		r.flush()
	}
}

// flush writes what is held, in the order of time.
func (r *recording) flush() {
	slices.SortStableFunc(r.held, func(a, b message) int { return cmp.Compare(a.timeNs, b.timeNs) })
	for _, m := range r.held {
		r.w.Message(m.channel, r.counts[m.channel], m.timeNs, m.data)
		r.counts[m.channel]++
	}
	clear(r.held)
	r.held, r.bytes = r.held[:0], 0
}

// stamp is a time as Foxglove's schemas have it.
type stamp struct {
	Sec  uint64 `json:"sec"`
	Nsec uint64 `json:"nsec"`
}

func stampOf(ns uint64) stamp { return stamp{ns / 1e9, ns % 1e9} }
