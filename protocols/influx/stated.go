package influx

// stated are the measurements of what happened once: states, estimates, events.
func stated() []Measurement {
	return []Measurement{trialState(), window(), iperf3(), clock(), lateness(), hostChange(), provenance(), event(), tcpEvent(), capture(), note(), wallClock()}
}

func trialState() Measurement {
	return Measurement{
		Name: "fm_trial", Kind: "trial",
		Meaning: "A step of a trial's life on a node: loaded, armed, running, restoring, kept.",
		Fields: []Field{
			text("state", "the state that was entered"),
			text("outcome", "accepted, rejected or failed; provisional, with state kept"),
			text("reason", "why rejected or failed"),
		},
	}
}

func window() Measurement {
	return Measurement{
		Name: "fm_window", Kind: "window",
		Meaning: "The measuring window by the node's clock.",
		Fields: []Field{
			integer("open_boot_ns", "ns", "when it opens, boot clock"),
			integer("close_boot_ns", "ns", "when it closes, boot clock"),
			text("go_path", "how GO reached the node: control, mesh or self"),
			float("go_uncertainty_us", "µs", "half the round trip of GO and its acknowledgement"),
		},
	}
}

func iperf3() Measurement {
	return Measurement{
		Name: "fm_iperf3", Kind: "iperf3",
		Meaning: "One iperf3 process as it ended.",
		Tags: []Tag{
			tag("flow", "the plan's name of the flow"),
			tag("side", "client or server"),
		},
		Fields: []Field{
			integer("exit_code", "", "its exit status"),
			text("killed", "why it was ended, when it did not end by itself"),
			text("error", "what went wrong"),
		},
		LeftOut: []LeftOut{
			{"output", "iperf3's whole JSON; a file of its own in the archive"},
			{"raw_output", "what it printed when that was not JSON"},
		},
	}
}

func clock() Measurement {
	return Measurement{
		Name: "fm_clock", Kind: "clock",
		Meaning: "An estimate of a peer's clocks against the node's own.",
		Tags:    []Tag{tag("peer", "the other node")},
		Fields: []Field{
			integer("offset_ns", "ns", "peer's boot clock minus own"),
			integer("uncertainty_ns", "ns", "the offset is within ± this"),
			integer("rtt_ns", "ns", "round trip of the exchange"),
			integer("wall_offset_ns", "ns", "peer's wall clock minus own"),
			integer("own_wall_offset_ns", "ns", "own wall clock minus own boot clock"),
			integer("exchanges", "", "exchanges of which this is the best"),
		},
	}
}

func lateness() Measurement {
	return Measurement{
		Name: "fm_lateness", Kind: "lateness",
		Meaning: "How late a timed loop was over the trial's window.",
		Tags:    []Tag{tag("source", "medium or sampler")},
		Fields: []Field{
			float("window_s", "s", "length of the window"),
			integer("events", "", "turns of the loop"),
			float("sum_s", "s", "time during which the loop was behind"),
			float("mean_us", "µs", "mean lateness"),
			float("p99_us", "µs", "99th percentile"),
			float("worst_us", "µs", "worst"),
		},
	}
}

func hostChange() Measurement {
	return Measurement{
		Name: "fm_change", Kind: "change",
		Meaning: "The host process changed the machine or put it back.",
		Fields: []Field{
			text("scope", "run or trial"),
			text("action", "applied or undone"),
			text("what", "the change, in words"),
		},
	}
}

func provenance() Measurement {
	const lists = "a list; whole in the archive and the report"
	return Measurement{
		Name: "fm_provenance", Kind: "provenance",
		Meaning: "What was in force on a node, read back.",
		Fields: []Field{
			text("agent", "version and commit"),
			text("kernel", "release"),
			text("arch", "machine architecture"),
			text("machine", "model"),
			{Name: "tested_interface", Type: Text, Meaning: "the tested interface's name (`interface` in the record: that name is a tag elsewhere)", from: "interface"},
			text("driver", "its driver"),
			text("mac", "its MAC address"),
		},
		LeftOut: []LeftOut{
			{"tools", lists}, {"sysctls", lists}, {"offloads", lists},
			{"addresses", lists}, {"routes", lists}, {"congestion_available", lists}, {"radio", lists}, {"tcp", lists},
		},
	}
}

func event() Measurement {
	return Measurement{
		Name: "fm_event", Kind: "event",
		Meaning: "Something that a reader of the run wants to know.",
		Tags:    []Tag{tag("level", "info, warning or error")},
		Fields:  []Field{text("text", "in words")},
	}
}

func tcpEvent() Measurement {
	return Measurement{
		Name: "fm_tcp_event", Kind: "tcp_event",
		Meaning: "Something that a connection's sender did. Seen by tcp_info it happened after `from_boot_ns` and not later than the point's time.",
		Tags: []Tag{
			tag("flow", "the plan's name of the flow"),
			{Name: "stream", Meaning: "0-based stream, or `control` for iperf3's control connection", absent: "control"},
			tag("tcp_event", "retransmission, failed_retransmission, rto, recovery or recovery_end"),
			tag("seen_by", "tcp_info or tracepoint"),
		},
		Fields: []Field{
			integer("count", "", "times it happened"),
			integer("from_boot_ns", "ns", "it happened after this, boot clock"),
			integer("cwnd_segments", "segments", "congestion window after it"),
			integer("cwnd_before_segments", "segments", "congestion window before it"),
			integer("ssthresh_segments", "segments", "slow-start threshold after it"),
		},
		LeftOut: []LeftOut{
			{"local", "an address for every socket; flow and stream name it"},
			{"remote", "an address for every socket; flow and stream name it"},
			{"cookie", "names a kernel's socket; of no use in a chart"},
		},
	}
}

func capture() Measurement {
	return Measurement{
		Name: "fm_capture", Kind: "capture",
		Meaning: "A packet capture of an attempt on a node as it ended.",
		Fields: []Field{
			text("name", "of the file"),
			text("captured_interface", "whose packets they are"),
			integer("snap_bytes", "B", "of each frame at most"),
			text("filter", "in words"),
			integer("packets", "packets", "in the file"),
			integer("kernel_drops", "packets", "that found no room in the kernel's ring"),
			integer("file_drops", "packets", "beyond the largest size of a file"),
			integer("file_bytes", "B", "size of the file"),
			integer("open_boot_ns", "ns", "the capture's first moment, boot clock"),
			integer("close_boot_ns", "ns", "its last moment, boot clock"),
			integer("wall_offset_open_ns", "ns", "wall clock minus boot clock at its first moment"),
			integer("wall_offset_close_ns", "ns", "wall clock minus boot clock at its last moment"),
			text("error", "what ended or spoilt it"),
		},
		LeftOut: []LeftOut{
			{"file_sha256", "names the file in the archive"},
			{"offloads", "a list; whole in the archive and the report"},
		},
	}
}

func note() Measurement {
	return Measurement{
		Name: "fm_note", Kind: "note",
		Meaning: "What a person saw, or wants to become of an attempt.",
		Tags:    []Tag{tag("by", "the peer that sent it, by the name of its key")},
		Fields: []Field{
			text("note", "mark, accept, repeat or skip"),
			text("id", "the sender's own name for it"),
			text("text", "in the person's words"),
			integer("noted_boot_ns", "ns", "when it was noted, boot clock"),
			float("lat_deg", "degree", "latitude of where, WGS 84"),
			float("lon_deg", "degree", "longitude of where, WGS 84"),
		},
	}
}

func wallClock() Measurement {
	return Measurement{
		Name: "fm_wall_clock", Kind: "wall_clock",
		Meaning: "Where the node's wall clock stands against its boot clock, GPS time and what keeps it.",
		Fields: []Field{
			integer("own_wall_offset_ns", "ns", "wall clock minus boot clock"),
			boolean("unset", "it is before the program was built"),
			integer("stepped_ns", "ns", "by how much it was put forward at this moment"),
			integer("gps_offset_ns", "ns", "GPS time minus wall clock"),
			integer("gps_uncertainty_ns", "ns", "the GPS offset is within ± this"),
			text("sync", "synchronised or unsynchronised, as chrony says"),
			text("sync_source", "what chrony follows"),
			integer("sync_offset_ns", "ns", "chrony's estimate of true time minus wall clock"),
			integer("sync_uncertainty_ns", "ns", "chrony's offset is within ± this"),
			float("sync_drift_ppm", "ppm", "by which the clock would gain, were it left alone"),
		},
	}
}
