package influx

import "fieldmesh.dev/fieldmesh/protocols/wire"

// stated are the measurements of what happened once: states, estimates, events.
func stated() []Measurement {
	return []Measurement{trialState(), window(), iperf3(), clock(), lateness(), hostChange(), provenance(), event()}
}

func trialState() Measurement {
	type B = *wire.TrialState
	return Measurement{
		Name: "fm_trial", Kind: "trial",
		Meaning: "A step of a trial's life on a node: loaded, armed, running, restoring, kept.",
		Fields: []Field{
			text("state", "the state that was entered", func(b B) *string { return &b.State }),
			text("outcome", "accepted, rejected or failed; provisional, with state kept", func(b B) *string { return &b.Outcome }),
			text("reason", "why rejected or failed", func(b B) *string { return &b.Reason }),
		},
	}
}

func window() Measurement {
	type B = *wire.Window
	return Measurement{
		Name: "fm_window", Kind: "window",
		Meaning: "The measuring window by the node's clock.",
		Fields: []Field{
			integer("open_boot_ns", "ns", "when it opens, boot clock", func(b B) *int64 { return &b.OpenBootNs }),
			integer("close_boot_ns", "ns", "when it closes, boot clock", func(b B) *int64 { return &b.CloseBootNs }),
			text("go_path", "how GO reached the node: control, mesh or self", func(b B) *string { return &b.GoPath }),
			float("go_uncertainty_us", "µs", "half the round trip of GO and its acknowledgement", func(b B) *float64 { return b.GoUncertaintyUs }),
		},
	}
}

func iperf3() Measurement {
	type B = *wire.Iperf3
	return Measurement{
		Name: "fm_iperf3", Kind: "iperf3",
		Meaning: "One iperf3 process as it ended.",
		Tags: []Tag{
			tag("flow", "the plan's name of the flow", func(b B) string { return b.Flow }),
			tag("side", "client or server", func(b B) string { return b.Side }),
		},
		Fields: []Field{
			integer("exit_code", "", "its exit status", func(b B) *int { return b.ExitCode }),
			text("killed", "why it was ended, when it did not end by itself", func(b B) *string { return &b.Killed }),
			text("error", "what went wrong", func(b B) *string { return &b.Error }),
		},
		LeftOut: []LeftOut{
			{"output", "iperf3's whole JSON; a file of its own in the archive"},
			{"raw_output", "what it printed when that was not JSON"},
		},
	}
}

func clock() Measurement {
	type B = *wire.Clock
	return Measurement{
		Name: "fm_clock", Kind: "clock",
		Meaning: "An estimate of a peer's clocks against the node's own.",
		Tags:    []Tag{tag("peer", "the other node", func(b B) string { return b.Peer })},
		Fields: []Field{
			integer("offset_ns", "ns", "peer's boot clock minus own", func(b B) *int64 { return &b.OffsetNs }),
			integer("uncertainty_ns", "ns", "the offset is within ± this", func(b B) *int64 { return &b.UncertaintyNs }),
			integer("rtt_ns", "ns", "round trip of the exchange", func(b B) *int64 { return &b.RTTNs }),
			integer("wall_offset_ns", "ns", "peer's wall clock minus own", func(b B) *int64 { return &b.WallOffsetNs }),
			integer("own_wall_offset_ns", "ns", "own wall clock minus own boot clock", func(b B) *int64 { return b.OwnWallOffsetNs }),
			integer("exchanges", "", "exchanges of which this is the best", func(b B) *int { return &b.Exchanges }),
		},
	}
}

func lateness() Measurement {
	type B = *wire.Lateness
	return Measurement{
		Name: "fm_lateness", Kind: "lateness",
		Meaning: "How late a timed loop was over the trial's window.",
		Tags:    []Tag{tag("source", "medium or sampler", func(b B) string { return b.Source })},
		Fields: []Field{
			float("window_s", "s", "length of the window", func(b B) *float64 { return &b.WindowS }),
			integer("events", "", "turns of the loop", func(b B) *uint64 { return &b.Events }),
			float("sum_s", "s", "time during which the loop was behind", func(b B) *float64 { return &b.SumS }),
			float("mean_us", "µs", "mean lateness", func(b B) *float64 { return &b.MeanUs }),
			float("p99_us", "µs", "99th percentile", func(b B) *float64 { return &b.P99Us }),
			float("worst_us", "µs", "worst", func(b B) *float64 { return &b.WorstUs }),
		},
	}
}

func hostChange() Measurement {
	type B = *wire.HostChange
	return Measurement{
		Name: "fm_change", Kind: "change",
		Meaning: "The host process changed the machine or put it back.",
		Fields: []Field{
			text("scope", "run or trial", func(b B) *string { return &b.Scope }),
			text("action", "applied or undone", func(b B) *string { return &b.Action }),
			text("what", "the change, in words", func(b B) *string { return &b.What }),
		},
	}
}

func provenance() Measurement {
	type B = *wire.Provenance
	const lists = "a list; whole in the archive and the report"
	return Measurement{
		Name: "fm_provenance", Kind: "provenance",
		Meaning: "What was in force on a node, read back.",
		Fields: []Field{
			text("agent", "version and commit", func(b B) *string { return &b.Agent }),
			text("kernel", "release", func(b B) *string { return &b.Kernel }),
			text("arch", "machine architecture", func(b B) *string { return &b.Arch }),
			text("machine", "model", func(b B) *string { return &b.Machine }),
			text("tested_interface", "the tested interface's name (`interface` in the record: that name is a tag elsewhere)", func(b B) *string { return &b.Interface }),
			text("driver", "its driver", func(b B) *string { return &b.Driver }),
			text("mac", "its MAC address", func(b B) *string { return &b.MAC }),
		},
		LeftOut: []LeftOut{
			{"tools", lists}, {"sysctls", lists}, {"offloads", lists},
			{"addresses", lists}, {"routes", lists}, {"congestion_available", lists},
		},
	}
}

func event() Measurement {
	type B = *wire.Event
	return Measurement{
		Name: "fm_event", Kind: "event",
		Meaning: "Something that a reader of the run wants to know.",
		Tags:    []Tag{tag("level", "info, warning or error", func(b B) string { return b.Level })},
		Fields:  []Field{text("text", "in words", func(b B) *string { return &b.Text })},
	}
}
