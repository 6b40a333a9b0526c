package wire

import "strings"

// GPS is the GPS receiver's state. A fix is present only in the first tick after it came.
//
// There are ten ticks a second, and no stale speed passes as fresh.
type GPS struct {
	Mode int `json:"mode" min:"0" max:"3"` // 0 unknown, 1 no fix, 2 2-D, 3 3-D
	// age of the newest fix by the node's clock; absent before the first
	FixAgeMs       *float64 `json:"fix_age_ms,omitempty" unit:"ms"`
	FixBootNs      *int64   `json:"fix_boot_ns,omitempty" unit:"ns"`    // when the fix arrived, boot clock
	TimeUTC        string   `json:"time_utc,omitempty" redact:"keep"`   // the receiver's own time of the fix
	LatDeg         *float64 `json:"lat_deg,omitempty" unit:"degree"`    // latitude, WGS 84
	LonDeg         *float64 `json:"lon_deg,omitempty" unit:"degree"`    // longitude, WGS 84
	AltM           *float64 `json:"alt_m,omitempty" unit:"m"`           // altitude
	SpeedMps       *float64 `json:"speed_mps,omitempty" unit:"m/s"`     // speed over ground
	TrackDeg       *float64 `json:"track_deg,omitempty" unit:"degree"`  // course over ground, from true north
	SpeedErrMps    *float64 `json:"speed_err_mps,omitempty" unit:"m/s"` // gpsd's estimate of the speed's error (eps)
	HorizErrM      *float64 `json:"horiz_err_m,omitempty" unit:"m"`     // gpsd's estimate of the position's error (eph)
	SatellitesUsed *int     `json:"satellites_used,omitempty"`          // satellites in the fix
	HDOP           *float64 `json:"hdop,omitempty"`                     // horizontal dilution of precision
	Connected      bool     `json:"connected" influx:"after=mode"`      // gpsd answers
	RateHz         *float64 `json:"rate_hz,omitempty" unit:"1/s"`       // how many fixes a second arrive
}

func (*GPS) Kind() string { return "gps" }

// TCPSample is tcp_info of one socket. Throughput is the difference of `bytes_received` between the edges of the
// window, on the receiver.
type TCPSample struct {
	Flow string `json:"flow" influx:"tag" redact:"keep"` // the plan's name of the flow
	// 0-based stream, of all but iperf3's control connection
	Stream *int `json:"stream,omitempty" influx:"tag,absent=control"`
	// open | close at the edges of the window; before_open | before_close, the last before such an edge that is sure to
	// be before it; absent between them
	Edge string `json:"edge,omitempty" influx:"tag" redact:"keep"`
	// addr:port
	Local string `json:"local" archive:"an address for every socket; flow and stream name it" redact:"keep"`
	// addr:port
	Remote string `json:"remote" archive:"an address for every socket; flow and stream name it" redact:"keep"`
	// the kernel's number of the socket
	Cookie     uint64 `json:"cookie" archive:"names a kernel's socket; of no use in a chart"`
	State      string `json:"state" redact:"keep"`                // ESTABLISHED …
	Congestion string `json:"congestion,omitempty" redact:"keep"` // congestion control in force
	// congestion window, as the kernel has it: never more than window_packets, and in a recovery what a variant's
	// program lets go, which may be more or less than the variant's own window
	CwndSegments uint32 `json:"cwnd_segments" unit:"segments"`
	// slow-start threshold; absent while infinite
	SsthreshSegments *uint32 `json:"ssthresh_segments,omitempty" unit:"segments"`
	MSSBytes         uint32  `json:"mss_bytes" unit:"B"`                // maximum segment size
	RTTUs            uint32  `json:"rtt_us" unit:"µs"`                  // smoothed round-trip time
	RTTVarUs         uint32  `json:"rttvar_us" unit:"µs"`               // its variation
	RTOUs            uint32  `json:"rto_us" unit:"µs"`                  // retransmission time-out
	Retransmits      uint32  `json:"retransmits_total" unit:"segments"` // retransmitted so far
	Lost             uint32  `json:"lost_segments" unit:"segments"`     // thought lost and not yet retransmitted
	BytesAcked       uint64  `json:"bytes_acked" unit:"B"`              // acknowledged by the peer so far
	// delivered by this kernel so far, unique payload
	BytesReceived uint64  `json:"bytes_received" unit:"B"`
	BytesSent     *uint64 `json:"bytes_sent,omitempty" unit:"B"`          // sent so far, retransmissions included
	BytesRetrans  *uint64 `json:"bytes_retransmitted,omitempty" unit:"B"` // retransmitted so far
	// the kernel's estimate of the delivery rate
	DeliveryRateBps *float64 `json:"delivery_rate_bps,omitempty" unit:"bit/s"`
	// the kernel's pacing rate, which a connection has whether it is paced or not; absent before the first
	PacingRateBps *float64 `json:"pacing_rate_bps,omitempty" unit:"bit/s"`
	// open | disorder | cwr | recovery | loss (tcpi_ca_state)
	CongestionState string `json:"congestion_state,omitempty" redact:"keep"`
	// time-outs of the segment at the head that is still not acknowledged
	RTOsInARow *uint32 `json:"rtos_in_a_row,omitempty"`
	// retransmission time-outs so far; from Linux 6.7 on
	RTOsTotal *uint32 `json:"rtos_total,omitempty"`
	Unacked   *uint32 `json:"unacked_segments,omitempty" unit:"segments"` // sent and not acknowledged
	Sacked    *uint32 `json:"sacked_segments,omitempty" unit:"segments"`  // of those, acknowledged selectively
	// how far out of order ACKs may be before a loss is believed
	Reordering *uint32 `json:"reordering_segments,omitempty" unit:"segments"`
	// times that ACKs came out of order so far; from Linux 4.19 on
	ReorderSeen *uint32 `json:"reorderings_seen,omitempty"`
	// least round-trip time; absent before the first; from Linux 4.6 on
	MinRTTUs *uint32 `json:"min_rtt_us,omitempty" unit:"µs"`
	// with data, sent so far, retransmissions included; from Linux 4.6 on
	DataSegsOut *uint32 `json:"data_segments_out,omitempty" unit:"segments"`
	// with data, that came so far; from Linux 4.6 on
	DataSegsIn *uint32 `json:"data_segments_in,omitempty" unit:"segments"`
	// duplicates that the peer reported so far; from Linux 4.19 on
	DSACKs *uint32 `json:"dsacks,omitempty" unit:"segments"`
	// that came out of order so far; from Linux 5.4 on
	OutOfOrder *uint32 `json:"out_of_order_segments,omitempty" unit:"segments"`
	// it reached the flow's server from an address that is not the flow's client's
	Stranger bool `json:"stranger,omitempty"`
	// at the window's close and at a socket's end: the longest time of the window in which iperf3 here left data
	// unread, or gave nothing to send though its flow was to go on
	StillMs *float64 `json:"still_ms,omitempty" unit:"ms"`
}

// Before reports whether a sample is one of those that come shortly before an
// edge of the window, and no tick of the sampler.
func (s *TCPSample) Before() bool { return strings.HasPrefix(s.Edge, BeforeEdge) }

// Unconnected reports whether a sample is of a socket whose connection has not come about, or never did: of the window
// that it has nothing is sent.
func (s *TCPSample) Unconnected() bool {
	return s.State == "SYN_SENT" || s.State == "CLOSE" && s.BytesAcked == 0 && s.BytesReceived == 0
}

// BeforeEdge stands before the name of an edge in samples shortly before it.
const BeforeEdge = "before_"

func (*TCPSample) Kind() string { return "tcp" }

// Interface holds the kernel's counters of one interface, since it came up; from Linux 4.7 on.
type Interface struct {
	Name      string `json:"interface" influx:"tag" redact:"keep"` // its name
	RxBytes   uint64 `json:"rx_bytes" unit:"B"`                    // received
	TxBytes   uint64 `json:"tx_bytes" unit:"B"`                    // sent
	RxPackets uint64 `json:"rx_packets" unit:"packets"`            // received
	TxPackets uint64 `json:"tx_packets" unit:"packets"`            // sent
	RxDropped uint64 `json:"rx_dropped" unit:"packets"`            // dropped on reception
	TxDropped uint64 `json:"tx_dropped" unit:"packets"`            // dropped on sending
	RxErrors  uint64 `json:"rx_errors" unit:"packets"`             // bad on reception
	TxErrors  uint64 `json:"tx_errors" unit:"packets"`             // failed on sending
}

func (*Interface) Kind() string { return "interface" }

// Station is the radio's view of one peer.
type Station struct {
	Peer          string   `json:"peer" influx:"tag" redact:"keep"`         // the peer's MAC address
	SignalDbm     *float64 `json:"signal_dbm,omitempty" unit:"dBm"`         // of the peer's last frame; see inactive_ms
	TxBitrateMbps *float64 `json:"tx_bitrate_mbps,omitempty" unit:"Mbit/s"` // rate of the last frame sent
	RxBitrateMbps *float64 `json:"rx_bitrate_mbps,omitempty" unit:"Mbit/s"` // rate of the last frame received
	TxRetries     *uint64  `json:"tx_retries,omitempty" unit:"frames"`      // retransmissions so far
	TxFailed      *uint64  `json:"tx_failed,omitempty" unit:"frames"`       // given up after all retries so far
	InactiveMs    *float64 `json:"inactive_ms,omitempty" unit:"ms"`         // since the peer was last heard
}

func (*Station) Kind() string { return "station" }

// HeardMs is how long ago a peer may have been heard for its signal to be the
// present one. A radio tells the signal of the last frame for as long as it
// knows the peer, however long that has been silent.
const HeardMs = 300

// SignalNow is the present signal of the peer; nil where it is silent, or where the
// radio does not tell when it heard the peer.
func (s *Station) SignalNow() *float64 {
	if s.InactiveMs == nil || *s.InactiveMs > HeardMs {
		return nil
	}
	return s.SignalDbm
}

// WiFi is what Android told the phone's own app of the Wi-Fi that it is in. It is of the access point's frames.
//
// The access point is outside the plan. Android renews the values about every 3 s while the screen is on; there is a
// record each time that the app found other ones, and its time is when it found them. How old they were when Android
// took them over is not known.
type WiFi struct {
	Source string `json:"source" influx:"tag" redact:"keep"` // android
	// the access point's MAC address; only in a log that the phone keeps by itself
	Peer string `json:"peer,omitempty" influx:"tag,absent=untold"`
	// how long before the record's time the app had found the values before: Android renewed them since
	RenewedWithinMs float64  `json:"renewed_within_ms" unit:"ms"`
	SignalDbm       *float64 `json:"signal_dbm,omitempty" unit:"dBm"`         // of the access point's frames
	TxBitrateMbps   *float64 `json:"tx_bitrate_mbps,omitempty" unit:"Mbit/s"` // rate at which the phone sends
	RxBitrateMbps   *float64 `json:"rx_bitrate_mbps,omitempty" unit:"Mbit/s"` // rate at which it receives
	FrequencyMHz    *int     `json:"frequency_mhz,omitempty" unit:"MHz"`      // of the channel
}

func (*WiFi) Kind() string { return "wifi" }

// SourceAndroid is the one source of a WiFi.
const SourceAndroid = "android"

// Survey is the radio's view of its channel.
type Survey struct {
	Channel  int      `json:"channel"`                        // channel number
	NoiseDbm *float64 `json:"noise_dbm,omitempty" unit:"dBm"` // noise floor
	ActiveMs *float64 `json:"active_ms,omitempty" unit:"ms"`  // time on the channel, cumulative
	// time during which the channel was busy, cumulative
	BusyMs     *float64 `json:"busy_ms,omitempty" unit:"ms"`
	QueueDrops *uint64  `json:"queue_drops,omitempty" unit:"frames"` // dropped by the interface's queue so far
}

func (*Survey) Kind() string { return "survey" }

// Truth is where the emulated field really had a node; rehearsal only.
type Truth struct {
	Of        string  `json:"of" influx:"tag" redact:"keep"` // the node that it is about
	XM        float64 `json:"x_m" unit:"m"`                  // place along the road
	YM        float64 `json:"y_m" unit:"m"`                  // place across the road
	SpeedMps  float64 `json:"speed_mps" unit:"m/s"`          // true speed
	DistanceM float64 `json:"distance_m" unit:"m"`           // distance to the roadside node
}

func (*Truth) Kind() string { return "truth" }

// Loss is a data frame that the emulated radio lost, or that its node's kernel gave up before the radio (no_route,
// no_neighbour); rehearsal only.
type Loss struct {
	Of   string `json:"of" influx:"tag" redact:"keep"`             // the node that sent it, or could not
	Peer string `json:"peer,omitempty" influx:"tag" redact:"keep"` // the node that should have had it
	// "src:port>dst:port/proto" of the packet in it; absent when it held no IPv4
	Flow string `json:"frame_flow,omitempty" redact:"keep"`
	Seq  uint32 `json:"frame_seq" max:"4294967295"` // TCP sequence number, or IP id for the others
	// bytes behind the header of TCP or UDP, also of a packet that DSR carries; absent when the headers do not tell
	PayloadBytes *uint64 `json:"frame_payload_bytes,omitempty" unit:"B"`
	// collision | channel_error | out_of_range | radio_dead | queue_full | bad_frame | host_refused | no_route |
	// no_neighbour
	Cause      string `json:"cause" influx:"tag" redact:"keep"`
	RetryLimit bool   `json:"retry_limit,omitempty"` // given up after all retries; the cause is that of the last
}

func (*Loss) Kind() string { return "loss" }

// MediumCount is what the emulated radio did with one node's frames since the nodes were placed for the trial;
// rehearsal only.
//
// Nodes that neither sent nor got a frame have none. Of what is lost for no_route it counts, besides, what the kernel
// refused before there was a packet: connects and datagrams.
type MediumCount struct {
	Of        string `json:"of" influx:"tag" redact:"keep"` // the node that it is about
	Enqueued  uint64 `json:"enqueued" unit:"frames"`        // taken into its queue
	Delivered uint64 `json:"delivered" unit:"frames"`       // handed up at it
	Duplicate uint64 `json:"duplicate" unit:"frames"`       // received again after a lost ACK
	Attempts  uint64 `json:"attempts" unit:"frames"`        // data frames that it put on the air
	Retries   uint64 `json:"retries" unit:"frames"`         // beyond a frame's first, RTS that nobody answered included
	TxFailed  uint64 `json:"tx_failed" unit:"frames"`       // unicast frames given up
	// its frames that were lost, by cause
	Lost map[string]uint64 `json:"lost,omitempty" archive:"by cause; records of kind loss tell them one by one"`
	// its attempts that failed, by cause
	AttemptsFailed map[string]uint64 `json:"attempts_failed,omitempty" archive:"by cause; the archive has them"`
	// MAC frames that it put on the air a second within the window, RTS, CTS and ACK too, by what they were there for:
	// traffic | routing | arp; management where the kernel's own stack of 802.11 sends
	FramesPerS map[string]float64 `json:"frames_per_s,omitempty" archive:"by class; the archive has them"`
	// losses of the whole field without a record of their own, since the nodes were placed; absent where the window's
	// losses all have one
	LossesUntold uint64 `json:"losses_untold,omitempty" unit:"frames"`
}

func (*MediumCount) Kind() string { return "medium" }

// Machine is the node's battery, temperature and disk, every ten seconds and at every change of state.
//
// The kernel's classes power_supply and thermal tell it. What the machine has not is absent.
type Machine struct {
	BatteryPercent *float64 `json:"battery_percent,omitempty" unit:"%"` // of all its batteries together
	// charging | discharging | full | not_charging | unknown
	BatteryState string   `json:"battery_state,omitempty" redact:"keep"`
	BatteryLeftS *float64 `json:"battery_left_s,omitempty" unit:"s"`    // until it is empty, at the present draw
	OnMains      *bool    `json:"on_mains,omitempty"`                   // it has external power
	TemperatureC *float64 `json:"temperature_c,omitempty" unit:"°C"`    // of the hottest zone
	HottestZone  string   `json:"hottest_zone,omitempty" redact:"keep"` // which that is
	// left on the disk that records go to
	//
	// In a node's status it is absent: the spool's tells it.
	DiskFreeBytes *int64 `json:"disk_free_bytes,omitempty" unit:"B"`
	// records on the node's disk, delivered ones among them until their room is needed
	SpoolBytes *int64 `json:"spool_bytes,omitempty" unit:"B"`
	Alarm      Reason `json:"alarm,omitzero"` // why no trial can go on so; absent while all is well
}

func (*Machine) Kind() string { return "machine" }
