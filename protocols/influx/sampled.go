package influx

// sampled are the measurements that samplers make, ten times a second.
func sampled() []Measurement {
	return []Measurement{gps(), tcp(), networkInterface(), station(), survey(), truth(), loss(), mediumCount(), machine()}
}

func gps() Measurement {
	return Measurement{
		Name: "fm_gps", Kind: "gps",
		Meaning: "The GPS receiver's state. A fix is present only in the first tick after it came.",
		Fields: []Field{
			integer("mode", "", "0 unknown, 1 no fix, 2 2-D, 3 3-D"),
			boolean("connected", "gpsd answers"),
			float("fix_age_ms", "ms", "age of the newest fix by the node's clock"),
			integer("fix_boot_ns", "ns", "when the fix arrived, boot clock"),
			text("time_utc", "the receiver's own time of the fix"),
			float("lat_deg", "degree", "latitude, WGS 84"),
			float("lon_deg", "degree", "longitude, WGS 84"),
			float("alt_m", "m", "altitude"),
			float("speed_mps", "m/s", "speed over ground"),
			float("track_deg", "degree", "course over ground, from true north"),
			float("speed_err_mps", "m/s", "gpsd's estimate of the speed's error"),
			float("horiz_err_m", "m", "gpsd's estimate of the position's error"),
			integer("satellites_used", "", "satellites in the fix"),
			float("hdop", "", "horizontal dilution of precision"),
			float("rate_hz", "1/s", "how many fixes a second arrive"),
		},
	}
}

func tcp() Measurement {
	return Measurement{
		Name: "fm_tcp", Kind: "tcp",
		Meaning: "tcp_info of one socket. Throughput is the difference of `bytes_received` between the edges of the window, on the receiver.",
		Tags: []Tag{
			tag("flow", "the plan's name of the flow"),
			{Name: "stream", Meaning: "0-based stream, or `control` for iperf3's control connection", absent: "control"},
			tag("edge", "`open` or `close` at the edges of the window; absent between them"),
		},
		Fields: []Field{
			text("state", "ESTABLISHED …"),
			text("congestion", "congestion control in force"),
			integer("cwnd_segments", "segments", "congestion window"),
			integer("ssthresh_segments", "segments", "slow-start threshold; absent while infinite"),
			integer("mss_bytes", "B", "maximum segment size"),
			integer("rtt_us", "µs", "smoothed round-trip time"),
			integer("rttvar_us", "µs", "its variation"),
			integer("rto_us", "µs", "retransmission time-out"),
			integer("retransmits_total", "segments", "retransmitted so far"),
			integer("lost_segments", "segments", "thought lost and not yet retransmitted"),
			integer("bytes_acked", "B", "acknowledged by the peer so far"),
			integer("bytes_received", "B", "delivered by this kernel so far, unique payload"),
			integer("bytes_sent", "B", "sent so far, retransmissions included"),
			integer("bytes_retransmitted", "B", "retransmitted so far"),
			float("delivery_rate_bps", "bit/s", "the kernel's estimate of the delivery rate"),
			float("pacing_rate_bps", "bit/s", "pacing rate; absent when not paced"),
			text("congestion_state", "open, disorder, cwr, recovery or loss"),
			integer("rtos_in_a_row", "", "time-outs of the segment at the head that is still not acknowledged"),
			integer("rtos_total", "", "retransmission time-outs so far"),
			integer("unacked_segments", "segments", "sent and not acknowledged"),
			integer("sacked_segments", "segments", "of those, acknowledged selectively"),
			integer("reordering_segments", "segments", "how far out of order ACKs may be before a loss is believed"),
			integer("reorderings_seen", "", "times that ACKs came out of order so far"),
			integer("min_rtt_us", "µs", "least round-trip time"),
			integer("data_segments_out", "segments", "with data, sent so far, retransmissions included"),
			integer("data_segments_in", "segments", "with data, that came so far"),
			integer("dsacks", "segments", "duplicates that the peer told of so far"),
			integer("out_of_order_segments", "segments", "that came out of order so far"),
		},
		LeftOut: []LeftOut{
			{"local", "an address for every socket; flow and stream name it"},
			{"remote", "an address for every socket; flow and stream name it"},
			{"cookie", "names a kernel's socket; of no use in a chart"},
		},
	}
}

func networkInterface() Measurement {
	return Measurement{
		Name: "fm_interface", Kind: "interface",
		Meaning: "The kernel's counters of one interface, since it came up.",
		Tags:    []Tag{tag("interface", "its name")},
		Fields: []Field{
			integer("rx_bytes", "B", "received"),
			integer("tx_bytes", "B", "sent"),
			integer("rx_packets", "packets", "received"),
			integer("tx_packets", "packets", "sent"),
			integer("rx_dropped", "packets", "dropped on reception"),
			integer("tx_dropped", "packets", "dropped on sending"),
			integer("rx_errors", "packets", "bad on reception"),
			integer("tx_errors", "packets", "failed on sending"),
		},
	}
}

func station() Measurement {
	return Measurement{
		Name: "fm_station", Kind: "station",
		Meaning: "The radio's view of one peer.",
		Tags:    []Tag{tag("peer", "the peer's MAC address")},
		Fields: []Field{
			float("signal_dbm", "dBm", "signal of the peer's frames"),
			float("tx_bitrate_mbps", "Mbit/s", "rate of the last frame sent"),
			float("rx_bitrate_mbps", "Mbit/s", "rate of the last frame received"),
			integer("tx_retries", "frames", "retransmissions so far"),
			integer("tx_failed", "frames", "given up after all retries so far"),
			float("inactive_ms", "ms", "since the peer was last heard"),
		},
	}
}

func survey() Measurement {
	return Measurement{
		Name: "fm_survey", Kind: "survey",
		Meaning: "The radio's view of its channel.",
		Fields: []Field{
			integer("channel", "", "channel number"),
			float("noise_dbm", "dBm", "noise floor"),
			float("active_ms", "ms", "time on the channel, cumulative"),
			float("busy_ms", "ms", "time during which the channel was busy, cumulative"),
			integer("queue_drops", "frames", "dropped by the interface's queue so far"),
		},
	}
}

func truth() Measurement {
	return Measurement{
		Name: "fm_truth", Kind: "truth",
		Meaning: "Where the emulated field really had a node; rehearsal only.",
		Tags:    []Tag{tag("of", "the node that it is about")},
		Fields: []Field{
			float("x_m", "m", "place along the road"),
			float("y_m", "m", "place across the road"),
			float("speed_mps", "m/s", "true speed"),
			float("distance_m", "m", "distance to the roadside node"),
		},
	}
}

func loss() Measurement {
	return Measurement{
		Name: "fm_loss", Kind: "loss",
		Meaning: "A data frame that the emulated radio lost; rehearsal only.",
		Tags: []Tag{
			tag("cause", "collision, channel_error, out_of_range, radio_dead, queue_full, bad_frame, host_refused, no_route or no_neighbour"),
			tag("of", "the node that sent it, or could not"),
			tag("peer", "the node that should have had it"),
		},
		Fields: []Field{
			text("frame_flow", "addresses, ports and protocol of the packet in it"),
			integer("frame_seq", "", "TCP sequence number, or IP id for the others"),
			boolean("retry_limit", "given up after all retries"),
		},
	}
}

func mediumCount() Measurement {
	return Measurement{
		Name: "fm_medium", Kind: "medium",
		Meaning: "What the emulated radio did with one node's frames since the nodes were placed for the trial; rehearsal only.",
		Tags:    []Tag{tag("of", "the node that it is about")},
		Fields: []Field{
			integer("enqueued", "frames", "taken into its queue"),
			integer("delivered", "frames", "handed up at it"),
			integer("duplicate", "frames", "received again after a lost ACK"),
			integer("attempts", "frames", "data frames that it put on the air"),
			integer("retries", "frames", "of those, beyond a frame's first"),
			integer("tx_failed", "frames", "unicast frames given up"),
			integer("losses_untold", "frames", "losses of the whole field that have no record of their own"),
		},
		LeftOut: []LeftOut{
			{"lost", "by cause; records of kind loss tell them one by one"},
			{"attempts_failed", "by cause; the archive has them"},
			{"frames_per_s", "by class; the archive has them"},
		},
	}
}

func machine() Measurement {
	return Measurement{
		Name: "fm_machine", Kind: "machine",
		Meaning: "The node's battery, temperature and disk, every ten seconds and at every change of state.",
		Fields: []Field{
			float("battery_percent", "%", "of all its batteries together"),
			text("battery_state", "charging, discharging, full, not_charging or unknown"),
			float("battery_left_s", "s", "until it is empty, at the present draw"),
			boolean("on_mains", "it has external power"),
			float("temperature_c", "°C", "of the hottest zone"),
			text("hottest_zone", "which that is"),
			integer("disk_free_bytes", "B", "left on the disk that records go to"),
			integer("spool_bytes", "B", "records on the node's disk, delivered ones among them until their room is needed"),
			text("alarm", "why no trial can go on so"),
		},
	}
}
