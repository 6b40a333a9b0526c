package wire

import "encoding/json"

// newBody returns an empty body of a kind, nil for a kind not known here.
func newBody(kind string) Body {
	switch kind {
	case "trial":
		return &TrialState{}
	case "window":
		return &Window{}
	case "gps":
		return &GPS{}
	case "tcp":
		return &TCPSample{}
	case "interface":
		return &Interface{}
	case "station":
		return &Station{}
	case "survey":
		return &Survey{}
	case "iperf3":
		return &Iperf3{}
	case "clock":
		return &Clock{}
	case "provenance":
		return &Provenance{}
	case "change":
		return &HostChange{}
	case "lateness":
		return &Lateness{}
	case "truth":
		return &Truth{}
	case "loss":
		return &Loss{}
	case "medium":
		return &MediumCount{}
	case "route":
		return &RouteChange{}
	case "routing":
		return &RoutingCount{}
	case "routing_event":
		return &RoutingEvent{}
	case "probe":
		return &Probe{}
	case "event":
		return &Event{}
	case "note":
		return &Noted{}
	case "tcp_event":
		return &TCPEvent{}
	case "capture":
		return &Capture{}
	case "machine":
		return &Machine{}
	case "wall_clock":
		return &WallClock{}
	}
	return nil
}

// TrialState is a step of a trial's life on a node:
// loaded → armed → running → restoring → kept. A kept trial has an outcome:
// accepted, rejected or failed; the agents' outcome is provisional.
type TrialState struct {
	State   string `json:"state"`
	Outcome string `json:"outcome,omitempty"` // accepted | rejected | failed, with state kept
	Reason  string `json:"reason,omitempty"`  // why rejected or failed: a word, then free text after ": "
}

// Window is the measuring window by this node's clock, written when it opens.
type Window struct {
	OpenBootNs      int64    `json:"open_boot_ns"`
	CloseBootNs     int64    `json:"close_boot_ns"`
	GoPath          string   `json:"go_path,omitempty"`           // control | mesh | self: how GO reached this node
	GoUncertaintyUs *float64 `json:"go_uncertainty_us,omitempty"` // half the round trip of GO and its acknowledgement
}

// GPS is the receiver's state at one tick (10 Hz). FixAgeMs is the age of the
// newest fix by the node's monotonic clock; the fix itself is present only in
// the first tick after it came, so that no stale speed passes as fresh.
type GPS struct {
	Mode           int      `json:"mode"`                  // 0 unknown, 1 no fix, 2 2-D, 3 3-D
	FixAgeMs       *float64 `json:"fix_age_ms,omitempty"`  // absent before the first fix
	FixBootNs      *int64   `json:"fix_boot_ns,omitempty"` // when the fix below arrived
	TimeUTC        string   `json:"time_utc,omitempty"`    // the receiver's own time of the fix
	LatDeg         *float64 `json:"lat_deg,omitempty"`
	LonDeg         *float64 `json:"lon_deg,omitempty"`
	AltM           *float64 `json:"alt_m,omitempty"`
	SpeedMps       *float64 `json:"speed_mps,omitempty"`
	TrackDeg       *float64 `json:"track_deg,omitempty"`
	SpeedErrMps    *float64 `json:"speed_err_mps,omitempty"` // gpsd's eps
	HorizErrM      *float64 `json:"horiz_err_m,omitempty"`   // gpsd's eph
	SatellitesUsed *int     `json:"satellites_used,omitempty"`
	HDOP           *float64 `json:"hdop,omitempty"`
	Connected      bool     `json:"connected"`         // gpsd answers
	RateHz         *float64 `json:"rate_hz,omitempty"` // how many fixes a second arrive
}

// TCPSample is tcp_info of one socket. Edge is "open" or "close" for the two
// samples at the edges of the window; throughput is the difference of
// BytesReceived between them on the receiver.
type TCPSample struct {
	Flow             string   `json:"flow"`             // the plan's flow name
	Stream           *int     `json:"stream,omitempty"` // 0-based; absent for iperf3's control connection
	Edge             string   `json:"edge,omitempty"`
	Local            string   `json:"local"`  // addr:port
	Remote           string   `json:"remote"` // addr:port
	Cookie           uint64   `json:"cookie"`
	State            string   `json:"state"` // ESTABLISHED …
	Congestion       string   `json:"congestion,omitempty"`
	CwndSegments     uint32   `json:"cwnd_segments"`
	SsthreshSegments *uint32  `json:"ssthresh_segments,omitempty"` // absent while infinite
	MSSBytes         uint32   `json:"mss_bytes"`
	RTTUs            uint32   `json:"rtt_us"`
	RTTVarUs         uint32   `json:"rttvar_us"`
	RTOUs            uint32   `json:"rto_us"`
	Retransmits      uint32   `json:"retransmits_total"`
	Lost             uint32   `json:"lost_segments"`
	BytesAcked       uint64   `json:"bytes_acked"`
	BytesReceived    uint64   `json:"bytes_received"`
	BytesSent        *uint64  `json:"bytes_sent,omitempty"`
	BytesRetrans     *uint64  `json:"bytes_retransmitted,omitempty"`
	DeliveryRateBps  *float64 `json:"delivery_rate_bps,omitempty"`
	PacingRateBps    *float64 `json:"pacing_rate_bps,omitempty"`

	CongestionState string  `json:"congestion_state,omitempty"`      // open | disorder | cwr | recovery | loss (tcpi_ca_state)
	RTOsInARow      *uint32 `json:"rtos_in_a_row,omitempty"`         // time-outs of the segment at the head that is still not acknowledged
	RTOsTotal       *uint32 `json:"rtos_total,omitempty"`            // time-outs so far; Linux 6.7
	Unacked         *uint32 `json:"unacked_segments,omitempty"`      // sent and not acknowledged
	Sacked          *uint32 `json:"sacked_segments,omitempty"`       // of those, acknowledged selectively
	Reordering      *uint32 `json:"reordering_segments,omitempty"`   // how far out of order ACKs may be before a loss is believed
	ReorderSeen     *uint32 `json:"reorderings_seen,omitempty"`      // Linux 4.19
	MinRTTUs        *uint32 `json:"min_rtt_us,omitempty"`            // Linux 4.6; absent before the first
	DataSegsOut     *uint32 `json:"data_segments_out,omitempty"`     // segments with data that were sent so far, retransmissions included; Linux 4.6
	DataSegsIn      *uint32 `json:"data_segments_in,omitempty"`      // segments with data that came so far; Linux 4.6
	DSACKs          *uint32 `json:"dsacks,omitempty"`                // duplicates that the peer told of; Linux 4.19
	OutOfOrder      *uint32 `json:"out_of_order_segments,omitempty"` // that came so far; Linux 5.4
}

// TCPEvent is something that a connection's sender did. Source "tcp_info" means
// that it was found between two samples: it happened after FromBootNs and not
// later than the record's own time, Count times. Source "tracepoint" means that
// the kernel told of it at the record's time; the windows are those of that moment.
type TCPEvent struct {
	Flow             string  `json:"flow"`
	Stream           *int    `json:"stream,omitempty"`
	Cookie           uint64  `json:"cookie,omitempty"`
	Local            string  `json:"local"`
	Remote           string  `json:"remote"`
	Event            string  `json:"tcp_event"` // retransmission | failed_retransmission (never left; tracepoint, Linux 6.17) | rto | recovery | recovery_end
	Source           string  `json:"seen_by"`   // tcp_info | tracepoint
	FromBootNs       *int64  `json:"from_boot_ns,omitempty"`
	Count            uint32  `json:"count"`
	CwndSegments     *uint32 `json:"cwnd_segments,omitempty"` // after it
	CwndBefore       *uint32 `json:"cwnd_before_segments,omitempty"`
	SsthreshSegments *uint32 `json:"ssthresh_segments,omitempty"` // after it
}

// Capture is a packet capture of one attempt on one node as it ended. The file
// itself is fetched apart from the records.
type Capture struct {
	Name            string          `json:"name"` // of the file: "0001-a1.pcapng"
	Interface       string          `json:"captured_interface"`
	SnapBytes       int             `json:"snap_bytes"`          // of each frame at most
	Filter          string          `json:"filter"`              // in words, as tcpdump would take it
	Packets         uint64          `json:"packets"`             // in the file
	KernelDrops     uint64          `json:"kernel_drops"`        // frames that matched and found no room in the ring
	FileDrops       uint64          `json:"file_drops"`          // frames beyond the largest size that a file may have
	FileBytes       int64           `json:"file_bytes"`          // size of the file
	SHA256          string          `json:"file_sha256"`         // of the file
	OpenBootNs      int64           `json:"open_boot_ns"`        // the capture's first moment
	CloseBootNs     int64           `json:"close_boot_ns"`       // and its last
	WallOffsetOpen  int64           `json:"wall_offset_open_ns"` // wall clock − boot clock then: packets carry the wall clock
	WallOffsetClose int64           `json:"wall_offset_close_ns"`
	Offloads        map[string]bool `json:"offloads,omitempty"` // those that merge or split segments where a capture sees them
	Error           string          `json:"error,omitempty"`    // what ended or spoilt it
}

// Interface is a sample of the kernel's counters of one interface.
type Interface struct {
	Name      string `json:"interface"`
	RxBytes   uint64 `json:"rx_bytes"`
	TxBytes   uint64 `json:"tx_bytes"`
	RxPackets uint64 `json:"rx_packets"`
	TxPackets uint64 `json:"tx_packets"`
	RxDropped uint64 `json:"rx_dropped"`
	TxDropped uint64 `json:"tx_dropped"`
	RxErrors  uint64 `json:"rx_errors"`
	TxErrors  uint64 `json:"tx_errors"`
}

// Station is the radio's view of one peer (the radio-feedback contract).
type Station struct {
	Peer          string   `json:"peer"` // MAC address
	SignalDbm     *float64 `json:"signal_dbm,omitempty"`
	TxBitrateMbps *float64 `json:"tx_bitrate_mbps,omitempty"`
	RxBitrateMbps *float64 `json:"rx_bitrate_mbps,omitempty"`
	TxRetries     *uint64  `json:"tx_retries,omitempty"`
	TxFailed      *uint64  `json:"tx_failed,omitempty"`
	InactiveMs    *float64 `json:"inactive_ms,omitempty"`
}

// Survey is the radio's view of its channel.
type Survey struct {
	Channel    int      `json:"channel"`
	NoiseDbm   *float64 `json:"noise_dbm,omitempty"`
	ActiveMs   *float64 `json:"active_ms,omitempty"`   // cumulative
	BusyMs     *float64 `json:"busy_ms,omitempty"`     // cumulative
	QueueDrops *uint64  `json:"queue_drops,omitempty"` // frames that the interface queue dropped, cumulative
}

// Iperf3 is one iperf3 process as it ended, with all that it printed.
type Iperf3 struct {
	Flow     string          `json:"flow"`
	Side     string          `json:"side"` // client | server
	ExitCode *int            `json:"exit_code,omitempty"`
	Killed   string          `json:"killed,omitempty"` // why it was ended, when it did not end by itself
	Error    string          `json:"error,omitempty"`
	Output   json.RawMessage `json:"output,omitempty"`     // iperf3's JSON, when it is JSON
	RawText  string          `json:"raw_output,omitempty"` // what it printed, when it is not
}

// Clock is an estimate of another node's boot clock against this one's:
// peer's time = own time + OffsetNs, within ± UncertaintyNs.
type Clock struct {
	Peer          string `json:"peer"`
	OffsetNs      int64  `json:"offset_ns"`
	UncertaintyNs int64  `json:"uncertainty_ns"`
	RTTNs         int64  `json:"rtt_ns"`
	WallOffsetNs  int64  `json:"wall_offset_ns"` // peer's wall clock minus own, same uncertainty
	// OwnWallOffsetNs is the recorder's own wall clock minus its own boot clock:
	// with OffsetNs it dates the peer's records by the recorder's wall clock.
	OwnWallOffsetNs *int64 `json:"own_wall_offset_ns,omitempty"`
	Exchanges       int    `json:"exchanges"`
}

// Provenance is what was in force on a node in a trial, read back.
type Provenance struct {
	Agent      string            `json:"agent"` // version and commit
	Kernel     string            `json:"kernel"`
	Arch       string            `json:"arch"`
	Machine    string            `json:"machine,omitempty"` // model, when the firmware tells
	Interface  string            `json:"interface"`
	Driver     string            `json:"driver,omitempty"`
	MAC        string            `json:"mac,omitempty"`
	Tools      map[string]string `json:"tools"`    // iperf3, gpsd … → version
	Sysctls    map[string]string `json:"sysctls"`  // those that shape TCP
	Offloads   map[string]bool   `json:"offloads"` // gro, gso, tso …
	Addresses  []string          `json:"addresses"`
	Routes     []string          `json:"routes"`
	Congestion []string          `json:"congestion_available"`
	// TCP is what stands for the trial's variant on this node; absent outside of a trial.
	TCP   *TCPInForce `json:"tcp,omitempty"`
	Radio *Caps       `json:"radio,omitempty"` // how a real radio was set
}

// TCPInForce is how a node has made a trial's transport profile.
type TCPInForce struct {
	Variant  string `json:"variant"`           // as the plan has it
	Kernel   string `json:"kernel"`            // what sockets name: the kernel's own, or a program's name with a suffix
	Provider string `json:"provider"`          // native | bpf
	Program  string `json:"program,omitempty"` // bpf: which
	SHA256   string `json:"sha256,omitempty"`  // of the program's object
	FixedRTO bool   `json:"fixed_rto,omitempty"`
	// WindowPackets is the bound that every sending socket was given.
	WindowPackets *int     `json:"window_packets,omitempty"`
	Notes         []string `json:"notes,omitempty"` // where this kernel is not what the variant's definition says
}

// HostChange says that the host process changed the machine or put it back.
type HostChange struct {
	Scope  string `json:"scope"`  // run | trial
	Action string `json:"action"` // applied | undone
	What   string `json:"what"`
}

// Lateness is how late a timed loop was over the trial's window. Source is
// "medium" (the emulated radio) or "sampler" (the agent's 10 Hz loop).
type Lateness struct {
	Source  string  `json:"source"`
	WindowS float64 `json:"window_s"`
	Events  uint64  `json:"events"`
	SumS    float64 `json:"sum_s"` // time during which the loop was behind
	MeanUs  float64 `json:"mean_us"`
	P99Us   float64 `json:"p99_us"`
	WorstUs float64 `json:"worst_us"`
}

// Truth is where the emulated field really had a node; rehearsal only.
type Truth struct {
	Of        string  `json:"of"` // the node
	XM        float64 `json:"x_m"`
	YM        float64 `json:"y_m"`
	SpeedMps  float64 `json:"speed_mps"`
	DistanceM float64 `json:"distance_m"` // to the roadside node
}

// Loss is a data frame that the emulated radio lost, or that its node's kernel
// gave up before the radio (no_route, no_neighbour); rehearsal only.
type Loss struct {
	Of         string `json:"of"`                    // the node that sent it, or could not
	Peer       string `json:"peer,omitempty"`        // the node that should have had it
	Flow       string `json:"frame_flow,omitempty"`  // "src:port>dst:port/proto"; absent when it held no IPv4
	Seq        uint32 `json:"frame_seq"`             // TCP sequence number, or IP id for the others
	Cause      string `json:"cause"`                 // collision | channel_error | out_of_range | radio_dead | queue_full | bad_frame | host_refused | no_route | no_neighbour
	RetryLimit bool   `json:"retry_limit,omitempty"` // given up after all retries; the cause is that of the last
}

// MediumCount is what the emulated radio did with one node's frames since the
// nodes were placed for the trial; rehearsal only. Nodes that neither sent nor
// got a frame have none. Of what is lost for no_route it counts, besides, what
// the kernel refused before there was a packet: connects and datagrams.
type MediumCount struct {
	Of             string             `json:"of"`                        // the node
	Enqueued       uint64             `json:"enqueued"`                  // frames taken into its queue
	Delivered      uint64             `json:"delivered"`                 // frames handed up at it
	Duplicate      uint64             `json:"duplicate"`                 // frames received again after a lost ACK
	Attempts       uint64             `json:"attempts"`                  // data frames that it put on the air
	Retries        uint64             `json:"retries"`                   // of those, beyond a frame's first
	TxFailed       uint64             `json:"tx_failed"`                 // unicast frames given up
	Lost           map[string]uint64  `json:"lost,omitempty"`            // its frames that were lost, by cause
	AttemptsFailed map[string]uint64  `json:"attempts_failed,omitempty"` // its attempts that failed, by cause
	FramesPerS     map[string]float64 `json:"frames_per_s,omitempty"`    // MAC frames that it put on the air a second within the window, RTS, CTS and ACK too, by what they were there for: traffic | routing | arp
	LossesUntold   uint64             `json:"losses_untold,omitempty"`   // losses of the whole field that have no record of their own
}

// Event is something that happened and that a reader of the run wants to know.
type Event struct {
	Level string `json:"level"` // info | warning | error
	Text  string `json:"text"`
}

// The kinds.
func (*TrialState) Kind() string  { return "trial" }
func (*Window) Kind() string      { return "window" }
func (*GPS) Kind() string         { return "gps" }
func (*TCPSample) Kind() string   { return "tcp" }
func (*Interface) Kind() string   { return "interface" }
func (*Station) Kind() string     { return "station" }
func (*Survey) Kind() string      { return "survey" }
func (*Iperf3) Kind() string      { return "iperf3" }
func (*Clock) Kind() string       { return "clock" }
func (*Provenance) Kind() string  { return "provenance" }
func (*HostChange) Kind() string  { return "change" }
func (*Lateness) Kind() string    { return "lateness" }
func (*Truth) Kind() string       { return "truth" }
func (*Loss) Kind() string        { return "loss" }
func (*MediumCount) Kind() string { return "medium" }
func (*Event) Kind() string       { return "event" }
func (*Noted) Kind() string       { return "note" }
func (*TCPEvent) Kind() string    { return "tcp_event" }
func (*Capture) Kind() string     { return "capture" }
