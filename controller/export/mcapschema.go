package export

import "fieldmesh.dev/fieldmesh/internal/influx"

// schema is a part of a JSON Schema, from which viewers know what a message has.
type schema map[string]any

func members(title string, of schema) schema {
	return schema{"title": title, "type": "object", "properties": of}
}

func number(meaning, unit string) schema { return typed("number", meaning, unit) }

func typed(kind, meaning, unit string) schema {
	if unit != "" {
		meaning += " [" + unit + "]"
	}
	return schema{"type": kind, "description": meaning}
}

// recordSchema describes the records of a kind. One that no table is made of, of a
// newer node for instance, has what every record has.
func recordSchema(kind string) schema {
	of := schema{
		"kind":      typed("string", "what the record is", ""),
		"version":   typed("integer", "version of the records' format", ""),
		"run":       typed("string", "run", ""),
		"trial":     typed("integer", "trial's place in the schedule, from 1", ""),
		"attempt":   typed("integer", "attempt at the trial, from 1", ""),
		"node":      typed("string", "node that made the record", ""),
		"epoch":     typed("string", "the spool that numbers the record", ""),
		"seq":       typed("integer", "the record's number in its spool", ""),
		"t_boot_ns": typed("integer", "the node's boot clock", "ns"),
	}
	title := "record of kind " + kind
	for _, m := range influx.Schema() {
		if m.Kind != kind {
			continue
		}
		title = m.Meaning
		for _, c := range m.Members() {
			types := map[influx.Type]string{influx.Integer: "integer", influx.Float: "number",
				influx.Boolean: "boolean", influx.Text: "string"}
			of[c.Name] = typed(types[c.Type], c.Meaning, c.Unit)
			if c.Type == influx.Text { // in the record some of these are numbers: a stream's, a channel's
				of[c.Name] = schema{"description": c.Meaning}
			}
		}
	}
	return members(title, of)
}

// Foxglove's schemas, by https://docs.foxglove.dev/docs/sdk/schemas.

func stampSchema() schema {
	return members("time", schema{"sec": schema{"type": "integer", "minimum": 0},
		"nsec": schema{"type": "integer", "minimum": 0, "maximum": 999999999}})
}

func locationFix() schema {
	return members("foxglove.LocationFix", schema{
		"timestamp":                stampSchema(),
		"frame_id":                 typed("string", "the node", ""),
		"latitude":                 number("WGS 84", "degree"),
		"longitude":                number("WGS 84", "degree"),
		"altitude":                 number("as the receiver tells it", "m"),
		"position_covariance_type": typed("integer", "0: unknown", ""),
	})
}

func logLine() schema {
	return members("foxglove.Log", schema{
		"timestamp": stampSchema(),
		"level":     typed("integer", "2 info, 3 warning, 4 error", ""),
		"message":   typed("string", "a step of a trial, a warning, a person's note", ""),
		"name":      typed("string", "the node", ""),
	})
}

func attemptSchema() schema {
	return members("an attempt at a trial: its plan and its outcome", schema{
		"trial":            typed("integer", "trial's place in the schedule, from 1", ""),
		"attempt":          typed("integer", "attempt at the trial, from 1", ""),
		"outcome":          typed("string", "accepted, rejected, failed or interrupted; absent when undecided", ""),
		"reason":           typed("string", "why not accepted", ""),
		"speed_target_mps": number("the plan's target speed of the car", "m/s"),
		"tcp_variant":      typed("string", "congestion control", ""),
		"routing_protocol": typed("string", "routing protocol", ""),
		"factors":          typed("object", "level of each factor", ""),
	})
}

func timelineSchema() schema {
	return members("an attempt's window at 10 Hz, as timelines.csv has it", schema{
		"trial":           typed("integer", "trial's place in the schedule, from 1", ""),
		"attempt":         typed("integer", "attempt at the trial, from 1", ""),
		"s":               number("since the window opened", "s"),
		"throughput_bps":  number("at the receiver's kernel, over the tenth of a second before", "bit/s"),
		"speed_mps":       number("of the car, by its GPS", "m/s"),
		"distance_m":      number("of the two GPS positions", "m"),
		"signal_dbm":      number("at the receiver", "dBm"),
		"cwnd_segments":   number("sum over the sender's data sockets", "segments"),
		"truth_speed_mps": number("of the car in the emulated field", "m/s"),
		"wifi_signal_dbm": number("of the access point's frames at the car, or at the receiver where none drives, as "+
			"Android told it; in the tenth of a second in which it was found", "dBm"),
	})
}
