package influx

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Computed are the measurements that are made of more than one record: the
// controller computes them from the plan, and from whole attempts.
func Computed() []Measurement {
	return []Measurement{target(), result()}
}

// The computed measurements' names.
const (
	TargetName = "fm_target"
	ResultName = "fm_result"
)

func target() Measurement {
	return Measurement{
		Name: TargetName,
		Meaning: "The speed that the plan asks of the car: one point for each step of the trial's life on the car's " +
			"node, at the step's time, where the plan names a speed.",
		Tags: []Tag{
			tag("attempt", "attempt at the trial, from 1"),
			tag("run", "run"),
			tag("trial", "trial's place in the schedule, from 1"),
		},
		Fields: []Field{
			float("speed_target_mps", "m/s", "the plan's target speed of the car"),
			float("speed_low_mps", "m/s", "least speed within the band by which the trial is judged"),
			float("speed_high_mps", "m/s", "greatest speed within it"),
		},
	}
}

func result() Measurement {
	const captured = "; told where packets were captured and the attempt has one measured flow"
	return Measurement{
		Name: ResultName,
		Meaning: "The outcome of an attempt at a trial: one point for each that was judged. Its time is the opening " +
			"of the window, or of the first verdict where the sealed attempt does not tell the opening. Where " +
			"records came after it was sealed, the point is deleted before it is written again: it may have " +
			"fewer fields.",
		Tags: []Tag{
			tag("attempt", "attempt at the trial, from 1"),
			tag("direction", "outbound or inbound: heading along the course"),
			tag("factor_*", "level of a factor of the campaign; a tag for each factor, by its name"),
			tag("nodes", "how many nodes took part"),
			tag("routing", "the routing protocol"),
			tag("run", "run"),
			tag("section", "section of the campaign: A where the car sends, B where it receives, or the "+
				"campaign's own"),
			tag("speed", "the plan's target speed in m/s, as text to group by"),
			tag("trial", "trial's place in the schedule, from 1"),
			tag("unit", "hardware in the car"),
			tag("variant", "the TCP variant"),
		},
		Fields: []Field{
			integer("accepted", "", "1 when it was accepted, else 0: its sum counts the trials that are done"),
			integer("counts", "", "1 when it is a result of the campaign: accepted, no calibration pass, and driven "+
				"before the run had enough; else 0"),
			text("outcome", "accepted, rejected, failed or interrupted"),
			text("reason", "why not accepted; empty for an accepted one"),
			text("place", "rehearsal, road or bench"),
			text("begun", "when the run was begun, by the controller's clock, in UTC: tells runs of one name apart; "+
				"absent for a shard of a run"),
			text("pass", "calibration; absent for an attempt that answers the campaign's question"),
			integer("planned_trials", "", "trials of the plan, those of all shards together"),
			integer("window_ms", "ms", "length of the measuring window by the plan, rounded up"),
			float("speed_target_mps", "m/s", "the plan's target speed of the car"),
			float("speed_mean_mps", "m/s", "the car's GPS speed over the window, weighted by time"),
			float("in_band_share", "1", "share of the window in which a fresh fix had the car within the speed band"),
			float("distance_mean_m", "m", "distance of the two nodes' GPS positions, mean over the window"),
			float("throughput_bps", "bit/s", "what the receivers' kernels delivered in the window of the "+
				"measured flows together, over the time for which at least one of them was to send; 0 when there was "+
				"no connection"),
			float("transferred_mb", "MB", "what they delivered"),
			float("packet_loss_percent", "%", "data packets that the sender's socket handed on and that did not "+
				"reach the receiver"+captured),
			float("goodput_ratio", "1", "packets that brought a new byte ÷ packets sent"+captured),
			float("one_way_delay_mean_ms", "ms", "of data packets that arrived, from their leaving the socket"+
				captured),
			float("one_way_delay_uncertainty_ms", "ms", "the one-way delay may be wrong by ± this"),
			float("round_trip_mean_ms", "ms", "from a segment to its ACK at the sender"+captured),
			float("connect_time_ms", "ms", "from the client's asking for its first connection to the first SYN-ACK "+
				"that it got, the search for a way in it"+captured),
			float("connect_censored_ms", "ms", "in its place: for how long the client had asked in vain when the "+
				"window closed or it gave up"+captured),
			float("handshake_ms", "ms", "from a data connection's first SYN to the SYN-ACK at the sender"+captured),
			float("rtt_mean_ms", "ms", "the sender's smoothed round trip time by its kernel, mean over the window; "+
				"told where the attempt has one measured flow"),
			float("delay_round_trip_p50_ms", "ms", "median round trip of the datagrams of a flow of kind delay; told "+
				"where the attempt has one such flow"),
			float("delay_round_trip_p95_ms", "ms", "their 95th percentile"),
			float("delay_round_trip_p99_ms", "ms", "their 99th percentile"),
			float("datagrams_lost_percent", "%", "of that flow, those without an answer within 3 s"),
			float("retransmits", "segments", "that the sender's kernel retransmitted in the window, sum of the "+
				"measured flows"),
			float("routing_packets_per_s", "packets/s", "routing packets at IP that all nodes sent, by their captures"),
			float("routing_bytes_per_s", "B/s", "bytes at IP of those, and of the headers that routing put "+
				"before data"),
			float("daemon_packets_per_s", "packets/s", "routing packets that a daemon sent by its own count, mean of "+
				"the nodes"),
			float("route_outage_s", "s", "longest time in the window without a whole way from sender to receiver"),
			float("data_outage_s", "s", "longest time in the window in which no new byte came"),
			float("hops_mean", "hops", "length of the measured flow's way"),
			float("signal_mean_dbm", "dBm", "signal of the sender's frames at the receiver"),
			float("clock_error_ms", "ms", "uncertainty of the nodes' alignment"),
			float("lateness_share", "1", "summed lateness of the emulated medium ÷ the window; rehearsal only"),
		},
	}
}

// hasTag reports whether a point may have a tag. The name of one that ends in *
// stands for all that begin so.
func (m Measurement) hasTag(name string) bool {
	return slices.ContainsFunc(m.Tags, func(t Tag) bool {
		prefix, family := strings.CutSuffix(t.Name, "*")
		return name == t.Name || family && len(name) > len(prefix) && strings.HasPrefix(name, prefix)
	})
}

// AppendPoint adds a point of a computed measurement to dst. A tag that is
// empty and a field that is nil are absent. What the measurement does not name,
// or has with another type, is an error: a field's type never changes.
func (m Measurement) AppendPoint(dst []byte, tags map[string]string, fields map[string]any, at time.Time) ([]byte,
	error) {
	line := append(dst, m.Name...)
	for _, name := range slices.Sorted(maps.Keys(tags)) { // as the server wants them
		if !m.hasTag(name) {
			return dst, fmt.Errorf("make a point of %s: it has no tag %q", m.Name, name)
		}
		line = appendTag(line, name, tags[name])
	}
	seen, separator := 0, byte(' ')
	for name := range fields {
		if !slices.ContainsFunc(m.Fields, func(f Field) bool { return f.Name == name }) {
			return dst, fmt.Errorf("make a point of %s: it has no field %q", m.Name, name)
		}
	}
	for _, f := range m.Fields {
		value, ok := fields[f.Name]
		if !ok {
			continue
		}
		before := len(line)
		line = append(append(append(line, separator), f.Name...), '=')
		grown, there, err := appendGo(line, f.Type, value)
		if err != nil {
			return dst, fmt.Errorf("make a point of %s: %s: %w", m.Name, f.Name, err)
		}
		if !there {
			line = line[:before]
			continue
		}
		line, separator = grown, ','
		seen++
	}
	if seen == 0 {
		return dst, fmt.Errorf("make a point of %s: nothing is known of it", m.Name)
	}
	return append(strconv.AppendInt(append(line, ' '), at.UnixNano(), 10), '\n'), nil
}

// appendGo writes a Go value of a type; there is false for one that is absent.
func appendGo(line []byte, t Type, value any) (grown []byte, there bool, err error) {
	switch v := value.(type) {
	case *float64:
		if v == nil {
			return line, false, nil
		}
		if t != Float || math.IsNaN(*v) || math.IsInf(*v, 0) {
			return line, false, fmt.Errorf("%v is no %s", *v, t)
		}
		return strconv.AppendFloat(line, *v, 'g', -1, 64), true, nil
	case int:
		if t != Integer {
			return line, false, fmt.Errorf("%v is no %s", v, t)
		}
		return append(strconv.AppendInt(line, int64(v), 10), 'i'), true, nil
	case string:
		if t != Text {
			return line, false, fmt.Errorf("%q is no %s", v, t)
		}
		return appendText(line, v), v != "", nil
	case *string: // there even if it is empty, as it then takes the place of what a server has
		if v == nil {
			return line, false, nil
		}
		grown, _, err = appendGo(line, t, *v)
		return grown, true, err
	}
	return line, false, fmt.Errorf("%T is no %s", value, t)
}
