package influx

import (
	"strconv"

	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// sampled are the measurements that samplers make, ten times a second.
func sampled() []Measurement {
	return []Measurement{gps(), tcp(), networkInterface(), station(), survey(), truth()}
}

func gps() Measurement {
	type B = *wire.GPS
	return Measurement{
		Name: "fm_gps", Kind: "gps",
		Meaning: "The GPS receiver's state. A fix is present only in the first tick after it came.",
		Fields: []Field{
			integer("mode", "", "0 unknown, 1 no fix, 2 2-D, 3 3-D", func(b B) *int { return &b.Mode }),
			boolean("connected", "gpsd answers", func(b B) *bool { return &b.Connected }),
			float("fix_age_ms", "ms", "age of the newest fix by the node's clock", func(b B) *float64 { return b.FixAgeMs }),
			integer("fix_boot_ns", "ns", "when the fix arrived, boot clock", func(b B) *int64 { return b.FixBootNs }),
			text("time_utc", "the receiver's own time of the fix", func(b B) *string { return &b.TimeUTC }),
			float("lat_deg", "degree", "latitude, WGS 84", func(b B) *float64 { return b.LatDeg }),
			float("lon_deg", "degree", "longitude, WGS 84", func(b B) *float64 { return b.LonDeg }),
			float("alt_m", "m", "altitude", func(b B) *float64 { return b.AltM }),
			float("speed_mps", "m/s", "speed over ground", func(b B) *float64 { return b.SpeedMps }),
			float("track_deg", "degree", "course over ground, from true north", func(b B) *float64 { return b.TrackDeg }),
			float("speed_err_mps", "m/s", "gpsd's estimate of the speed's error", func(b B) *float64 { return b.SpeedErrMps }),
			float("horiz_err_m", "m", "gpsd's estimate of the position's error", func(b B) *float64 { return b.HorizErrM }),
			integer("satellites_used", "", "satellites in the fix", func(b B) *int { return b.SatellitesUsed }),
			float("hdop", "", "horizontal dilution of precision", func(b B) *float64 { return b.HDOP }),
		},
	}
}

func tcp() Measurement {
	type B = *wire.TCPSample
	return Measurement{
		Name: "fm_tcp", Kind: "tcp",
		Meaning: "tcp_info of one socket. Throughput is the difference of `bytes_received` between the edges of the window, on the receiver.",
		Tags: []Tag{
			tag("flow", "the plan's name of the flow", func(b B) string { return b.Flow }),
			tag("stream", "0-based stream, or `control` for iperf3's control connection", func(b B) string {
				if b.Stream == nil {
					return "control"
				}
				return strconv.Itoa(*b.Stream)
			}),
			tag("edge", "`open` or `close` at the edges of the window; absent between them", func(b B) string { return b.Edge }),
		},
		Fields: []Field{
			text("state", "ESTABLISHED …", func(b B) *string { return &b.State }),
			text("congestion", "congestion control in force", func(b B) *string { return &b.Congestion }),
			integer("cwnd_segments", "segments", "congestion window", func(b B) *uint32 { return &b.CwndSegments }),
			integer("ssthresh_segments", "segments", "slow-start threshold; absent while infinite", func(b B) *uint32 { return b.SsthreshSegments }),
			integer("mss_bytes", "B", "maximum segment size", func(b B) *uint32 { return &b.MSSBytes }),
			integer("rtt_us", "µs", "smoothed round-trip time", func(b B) *uint32 { return &b.RTTUs }),
			integer("rttvar_us", "µs", "its variation", func(b B) *uint32 { return &b.RTTVarUs }),
			integer("rto_us", "µs", "retransmission time-out", func(b B) *uint32 { return &b.RTOUs }),
			integer("retransmits_total", "segments", "retransmitted so far", func(b B) *uint32 { return &b.Retransmits }),
			integer("lost_segments", "segments", "thought lost and not yet retransmitted", func(b B) *uint32 { return &b.Lost }),
			integer("bytes_acked", "B", "acknowledged by the peer so far", func(b B) *uint64 { return &b.BytesAcked }),
			integer("bytes_received", "B", "delivered by this kernel so far, unique payload", func(b B) *uint64 { return &b.BytesReceived }),
			integer("bytes_sent", "B", "sent so far, retransmissions included", func(b B) *uint64 { return b.BytesSent }),
			integer("bytes_retransmitted", "B", "retransmitted so far", func(b B) *uint64 { return b.BytesRetrans }),
			float("delivery_rate_bps", "bit/s", "the kernel's estimate of the delivery rate", func(b B) *float64 { return b.DeliveryRateBps }),
			float("pacing_rate_bps", "bit/s", "pacing rate; absent when not paced", func(b B) *float64 { return b.PacingRateBps }),
		},
		LeftOut: []LeftOut{
			{"local", "an address for every socket; flow and stream name it"},
			{"remote", "an address for every socket; flow and stream name it"},
			{"cookie", "names a kernel's socket; of no use in a chart"},
		},
	}
}

func networkInterface() Measurement {
	type B = *wire.Interface
	return Measurement{
		Name: "fm_interface", Kind: "interface",
		Meaning: "The kernel's counters of one interface, since it came up.",
		Tags:    []Tag{tag("interface", "its name", func(b B) string { return b.Name })},
		Fields: []Field{
			integer("rx_bytes", "B", "received", func(b B) *uint64 { return &b.RxBytes }),
			integer("tx_bytes", "B", "sent", func(b B) *uint64 { return &b.TxBytes }),
			integer("rx_packets", "packets", "received", func(b B) *uint64 { return &b.RxPackets }),
			integer("tx_packets", "packets", "sent", func(b B) *uint64 { return &b.TxPackets }),
			integer("rx_dropped", "packets", "dropped on reception", func(b B) *uint64 { return &b.RxDropped }),
			integer("tx_dropped", "packets", "dropped on sending", func(b B) *uint64 { return &b.TxDropped }),
			integer("rx_errors", "packets", "bad on reception", func(b B) *uint64 { return &b.RxErrors }),
			integer("tx_errors", "packets", "failed on sending", func(b B) *uint64 { return &b.TxErrors }),
		},
	}
}

func station() Measurement {
	type B = *wire.Station
	return Measurement{
		Name: "fm_station", Kind: "station",
		Meaning: "The radio's view of one peer.",
		Tags:    []Tag{tag("peer", "the peer's MAC address", func(b B) string { return b.Peer })},
		Fields: []Field{
			float("signal_dbm", "dBm", "signal of the peer's frames", func(b B) *float64 { return b.SignalDbm }),
			float("tx_bitrate_mbps", "Mbit/s", "rate of the last frame sent", func(b B) *float64 { return b.TxBitrateMbps }),
			float("rx_bitrate_mbps", "Mbit/s", "rate of the last frame received", func(b B) *float64 { return b.RxBitrateMbps }),
			integer("tx_retries", "frames", "retransmissions so far", func(b B) *uint64 { return b.TxRetries }),
			integer("tx_failed", "frames", "given up after all retries so far", func(b B) *uint64 { return b.TxFailed }),
			float("inactive_ms", "ms", "since the peer was last heard", func(b B) *float64 { return b.InactiveMs }),
		},
	}
}

func survey() Measurement {
	type B = *wire.Survey
	return Measurement{
		Name: "fm_survey", Kind: "survey",
		Meaning: "The radio's view of its channel.",
		Fields: []Field{
			integer("channel", "", "channel number", func(b B) *int { return &b.Channel }),
			float("noise_dbm", "dBm", "noise floor", func(b B) *float64 { return b.NoiseDbm }),
			float("active_ms", "ms", "time on the channel, cumulative", func(b B) *float64 { return b.ActiveMs }),
			float("busy_ms", "ms", "time during which the channel was busy, cumulative", func(b B) *float64 { return b.BusyMs }),
			integer("queue_drops", "frames", "dropped by the interface's queue so far", func(b B) *uint64 { return b.QueueDrops }),
		},
	}
}

func truth() Measurement {
	type B = *wire.Truth
	return Measurement{
		Name: "fm_truth", Kind: "truth",
		Meaning: "Where the emulated field really had a node; rehearsal only.",
		Tags:    []Tag{tag("of", "the node that it is about", func(b B) string { return b.Of })},
		Fields: []Field{
			float("x_m", "m", "place along the road", func(b B) *float64 { return &b.XM }),
			float("y_m", "m", "place across the road", func(b B) *float64 { return &b.YM }),
			float("speed_mps", "m/s", "true speed", func(b B) *float64 { return &b.SpeedMps }),
			float("distance_m", "m", "distance to the roadside node", func(b B) *float64 { return &b.DistanceM }),
		},
	}
}
