package wire

import (
	"cmp"
	"math"
	"slices"
	"strconv"
	"time"
)

// RunPlan is the whole of a run as every node holds it: with it a node can do
// every trial without a controller. It is pushed once, before the first trial.
type RunPlan struct {
	Run            string     `json:"run"`      // unique name of the run, [a-z0-9-]{1,64}
	Campaign       string     `json:"campaign"` // the campaign's name
	CampaignSHA256 string     `json:"campaign_sha256"`
	Seed           uint64     `json:"seed"` // what the order of trials was drawn from
	Key            []byte     `json:"key"`  // 32 random bytes that authenticate GO; secret
	Nodes          []PlanNode `json:"nodes"`
	Trials         []Trial    `json:"trials"` // in the order in which they are to be driven
	AttemptsMax    int        `json:"attempts_max"`
	Control        string     `json:"control,omitempty"` // ControlOwn | ControlMesh; absent: either will do
}

// Ways by which a controller reaches its nodes.
const (
	ControlOwn  = "own"  // a link of its own: cable, USB, Bluetooth, cellular
	ControlMesh = "mesh" // the mesh under test, on which the controller is silent while measuring
)

// DefaultGoPort is the UDP port on which nodes listen for GO.
const DefaultGoPort = 7446

// PlanNode is one node as the others need to know it.
type PlanNode struct {
	Name        string `json:"name"`
	Unit        string `json:"unit,omitempty"`         // which hardware carries the node
	MeshPrefix  string `json:"mesh_prefix"`            // address on the tested interface, "10.77.0.1/24"
	ControlAddr string `json:"control_addr,omitempty"` // host of the control link; absent when there is none
	GoPort      int    `json:"go_port"`                // UDP port on which the node listens for GO
}

// Trial is one cell of the schedule, expanded: nothing in it refers elsewhere.
type Trial struct {
	Number     int               `json:"number"` // 1-based place in the schedule; with run and attempt the trial's key
	Block      int               `json:"block"`
	Repetition int               `json:"repetition"`
	Pass       string            `json:"pass,omitempty"` // "calibration" for a parked pass; absent for an ordinary one
	Factors    map[string]string `json:"factors"`        // factor name → level's label, for tables and models

	Car       string   `json:"car,omitempty"`      // node that moves; absent when nobody does
	Roadside  string   `json:"roadside,omitempty"` // node that stands
	Sender    string   `json:"sender"`             // node that sends the measured data
	Receiver  string   `json:"receiver"`           // node that receives it
	Initiator string   `json:"initiator"`          // node whose gate opens the trial
	Relays    []string `json:"relays,omitempty"`

	SpeedMps  *float64 `json:"speed_mps,omitempty"` // target; absent when nobody moves
	Direction string   `json:"direction,omitempty"` // "outbound" or "inbound": heading along the course
	Course    Course   `json:"course"`
	Gate      Gate     `json:"gate"`
	DurationS float64  `json:"duration_s"` // of the measuring window
	// Still keeps the nodes of a rehearsal where their movement begins.
	Still bool `json:"still,omitempty"`
	// Conditions are what a rehearsal's field is to be like in this trial, where
	// that is not as the campaign's field section says.
	Conditions *Conditions `json:"conditions,omitempty"`

	Radio      Radio      `json:"radio"`
	Routing    Routing    `json:"routing"`
	TCP        TCP        `json:"tcp"`
	Traffic    []Flow     `json:"traffic"`
	Acceptance Acceptance `json:"acceptance"`

	SampleHz *int `json:"sample_hz,omitempty"` // how often tcp_info is sampled, 10 to 100 times a second; absent: 10
	// RelaySampleHz is how often a node that only relays is sampled, 1 to 10 times
	// a second; absent: 10.
	RelaySampleHz *int         `json:"relay_sample_hz,omitempty"`
	Capture       *CapturePlan `json:"capture,omitempty"` // absent: no packets are captured
}

// CapturePlan says how packets of the trial's flows and of routing are captured
// at every node.
type CapturePlan struct {
	SnapBytes int `json:"snap_bytes"` // of each frame, from its link-layer header on
	// Offloads of the tested interface, which merge or split segments before a
	// capture sees them, are turned off for the trial, or only recorded: off |
	// recorded. Absent: recorded.
	Offloads string `json:"offloads,omitempty"`
}

// What becomes of the tested interface's offloads while packets are captured.
const (
	OffloadsOff      = "off"
	OffloadsRecorded = "recorded"
)

// Bounds of what is recorded of TCP.
const (
	SampleHzMin  = 10 // of everything else that is sampled, too
	SampleHzMax  = 100
	SnapBytesMin = 94 // Ethernet 14, IPv4 with no options 20, TCP with all its options 60
	SnapBytesMax = 65535
)

// Duration is the length of the measuring window.
func (t Trial) Duration() time.Duration { return time.Duration(t.DurationS * float64(time.Second)) }

// WarmupS is how long before its window the first of the trial's flows begins.
func (t Trial) WarmupS() float64 {
	warmup := 0.0
	for _, f := range t.Traffic {
		warmup = max(warmup, -f.StartS)
	}
	return warmup
}

// EndsTCP tells whether a TCP flow of the trial begins or ends at a node. The
// others have no use for its transport profile.
func (t Trial) EndsTCP(node string) bool {
	return slices.ContainsFunc(t.Traffic, func(f Flow) bool { return f.Kind == "iperf3_tcp" && (f.From == node || f.To == node) })
}

// Measured are the flows that the trial's result is made of: those of TCP that
// are not in the background. Of UDP the receiver's kernel counts nothing.
func (t Trial) Measured() []Flow {
	return slices.DeleteFunc(slices.Clone(t.Traffic), func(f Flow) bool { return f.Background || f.Kind != "iperf3_tcp" })
}

// Ends reports whether a flow of the trial begins or ends at a node.
func (t Trial) Ends(node string) bool {
	return slices.ContainsFunc(t.Traffic, func(f Flow) bool { return f.From == node || f.To == node })
}

// OnlyRelays tells whether a node does nothing in the trial but forward what
// others send each other.
func (t Trial) OnlyRelays(node string) bool {
	return !slices.Contains([]string{t.Initiator, t.Sender, t.Receiver, t.Car, t.Roadside}, node) && !t.Ends(node)
}

// Nodes lists every node that takes part, each once, the initiator first.
func (t Trial) Nodes() []string {
	seen := map[string]bool{}
	var out []string
	for _, n := range append([]string{t.Initiator, t.Sender, t.Receiver, t.Car, t.Roadside}, t.Relays...) {
		if n != "" && !seen[n] {
			seen[n] = true
			out = append(out, n)
		}
	}
	return out
}

// Course says where the car drives relative to the roadside node. Distances
// are along the road from the roadside node's mark, positive outbound.
type Course struct {
	Kind      string   `json:"kind"`                // depart | pass | loop | segment | parked | none
	StartM    float64  `json:"start_m"`             // where the car stands before it sets off
	OffsetM   float64  `json:"offset_m"`            // lateral distance of the road from the roadside node
	SegmentM  *float64 `json:"segment_m,omitempty"` // segment: its first metre; the window opens here
	LengthM   *float64 `json:"length_m,omitempty"`  // segment: its length; duration_s = length / speed. loop: circumference
	AccelMps2 float64  `json:"accel_mps2"`          // a car's ordinary acceleration
	BrakeMps2 float64  `json:"brake_mps2"`          // a car's ordinary braking
	MarkM     *float64 `json:"mark_m,omitempty"`    // parked: the distance at which the car stands
	// Site of the roadside node; lets a plan say where on Earth it is. Absent in a rehearsal: the field chooses one.
	SiteLatDeg *float64 `json:"site_lat_deg,omitempty"`
	SiteLonDeg *float64 `json:"site_lon_deg,omitempty"`
	HeadingDeg float64  `json:"heading_deg"` // true bearing of "outbound"
}

// Gate says when the initiator may open the window. Every part that is
// present must hold at once.
type Gate struct {
	SpeedBand bool     `json:"speed_band,omitempty"` // GPS speed within the acceptance band for HoldS
	HoldS     float64  `json:"hold_s,omitempty"`     // how long the band must have held
	PlaceM    *float64 `json:"place_m,omitempty"`    // the car has crossed this distance from the roadside node's site along its direction
	AfterS    *float64 `json:"after_s,omitempty"`    // this long since the trial was armed
	TimeoutS  float64  `json:"timeout_s"`            // give up: the trial is rejected(gate_timeout)
	LeadS     float64  `json:"lead_s"`               // from the first GO to the window's opening
}

// Radio is what the tested interface is to be.
type Radio struct {
	Mode            string   `json:"mode"`               // adhoc | mesh | infrastructure | none (leave the interface as it is)
	Standard        string   `json:"standard,omitempty"` // 802.11a | 802.11b | 802.11g
	Channel         int      `json:"channel,omitempty"`
	SSID            string   `json:"ssid,omitempty"`
	BSSID           string   `json:"bssid,omitempty"`
	LegacyRatesOnly bool     `json:"legacy_rates_only,omitempty"` // no HT or VHT
	TxPowerDbm      *float64 `json:"tx_power_dbm,omitempty"`
	RateMbps        *float64 `json:"rate_mbps,omitempty"` // fixed rate; absent: the driver's rate control
	// Frames longer than this are announced by RTS; 2347, longer than any, is never. Absent: as the driver has it.
	RTSThresholdBytes *int `json:"rts_threshold_bytes,omitempty"`
	// How often a frame is sent at most, announced by RTS or not (dot11ShortRetryLimit and dot11LongRetryLimit). Absent: as the driver has it.
	RetryLimit *int `json:"retry_limit,omitempty"`
	// AccessPoint is the node that is the access point of an infrastructure; the others are its stations.
	AccessPoint string `json:"access_point,omitempty"`
}

// ModeInfrastructure is the radio mode of an access point and its stations:
// for radios that can be nothing else. All frames go by way of the access point.
const ModeInfrastructure = "infrastructure"

// ModeAt is the mode of one node's interface, as the kernel names it.
func (r Radio) ModeAt(node string) string {
	switch {
	case r.Mode != ModeInfrastructure:
		return r.Mode
	case node == r.AccessPoint:
		return "ap"
	}
	return "managed"
}

// Routing names the routing protocol of the trial.
type Routing struct {
	Protocol string   `json:"protocol"`           // one of RoutingProtocols
	HelloS   *float64 `json:"hello_s,omitempty"`  // interval of the daemon's hellos; absent: its own
	Ready    string   `json:"ready,omitempty"`    // what arming waits for, one of RoutingReadiness; absent: as Readiness has it
	ReadyS   *float64 `json:"ready_s,omitempty"`  // how long it waits at most; absent: RoutingReadyS
	ProbeHz  *float64 `json:"probe_hz,omitempty"` // small packets a second there and back between the ends of the measured flow; absent: none
}

// TCP is the transport profile, the same on every node of the trial. What is
// absent stays as the node's kernel has it.
type TCP struct {
	// Variant is tahoe, reno, newreno, sack, fack, vegas, westwood, reference
	// (rehearsal only), or the kernel's name of another congestion control.
	// "reno" is the kernel's own unless Classic is set; "sack" is that with SACK on.
	Variant string `json:"variant"`
	// Classic turns off what the papers' TCPs did not have (RACK, tail loss
	// probes, F-RTO, timestamps, D-SACK, ECN), and makes "reno" that of RFC 2581.
	Classic    bool  `json:"classic,omitempty"`
	SACK       *bool `json:"sack,omitempty"`
	DelayedACK *bool `json:"delayed_ack,omitempty"` // false: every segment is acknowledged at once
	FixedRTO   bool  `json:"fixed_rto,omitempty"`   // from the second timeout in a row on the RTO is not doubled
	// RTOMinMs is the least RTO: the least that the kernel adds to the smoothed
	// round trip. Absent: the kernel's own, or what FixedRTO or reference needs.
	RTOMinMs *int `json:"rto_min_ms,omitempty"`
	// WindowPackets is the most that a sender has in the network, in segments.
	WindowPackets *int `json:"window_packets,omitempty"`
}

// Conditions are a rehearsal's, of one trial. What is absent is as in the
// campaign's field section.
type Conditions struct {
	ChannelErrorMean        *float64 `json:"channel_error_mean,omitempty"`         // share of frames lost; 0: none
	ChannelErrorBurstFrames *float64 `json:"channel_error_burst_frames,omitempty"` // mean length of a burst
	QueueFrames             *int     `json:"queue_frames,omitempty"`               // of every node's interface queue
	SpeedMinMps             *float64 `json:"speed_min_mps,omitempty"`              // of nodes in random_waypoint
	SpeedMaxMps             *float64 `json:"speed_max_mps,omitempty"`
}

// Flow is one flow of traffic between two nodes.
type Flow struct {
	Name         string   `json:"name"`
	Kind         string   `json:"kind"`                 // iperf3_tcp | iperf3_udp
	Background   bool     `json:"background,omitempty"` // loads the network; not what is measured
	From         string   `json:"from"`                 // node that sends the data
	To           string   `json:"to"`                   // node that receives it
	Reverse      bool     `json:"reverse,omitempty"`    // true: the receiver is iperf3's client (iperf3 -R)
	Port         int      `json:"port"`
	Streams      int      `json:"streams"`
	WindowBytes  *int     `json:"window_bytes,omitempty"`
	PayloadBytes *int     `json:"payload_bytes,omitempty"` // UDP: datagram payload. TCP: MSS
	BitrateBps   *float64 `json:"bitrate_bps,omitempty"`   // UDP: constant bit rate
	StartS       float64  `json:"start_s"`                 // after the window opens; below 0 for a flow that warms the network up
	DurationS    float64  `json:"duration_s"`
	ClientPort   int      `json:"client_port"` // first of Streams consecutive ports of the client's data sockets
}

// Client is the node on which iperf3 runs as the client.
func (f Flow) Client() string {
	if f.Reverse {
		return f.To
	}
	return f.From
}

// Server is the node on which iperf3 runs as the server.
func (f Flow) Server() string {
	if f.Reverse {
		return f.From
	}
	return f.To
}

// SendS is for how many seconds iperf3 is told to send: it takes whole ones only.
func (f Flow) SendS() float64 { return math.Ceil(f.DurationS) }

// Acceptance is judged on covariates only, never on the trial's result. A
// rule that is absent is not applied.
type Acceptance struct {
	SpeedBandMps     *float64 `json:"speed_band_mps,omitempty"`     // half width of the band about the target
	InBandShareMin   *float64 `json:"in_band_share_min,omitempty"`  // share of the window's time
	FixModeMin       *int     `json:"fix_mode_min,omitempty"`       // 2 or 3
	FixAgeMsMax      *float64 `json:"fix_age_ms_max,omitempty"`     // oldest fix in the window
	ClockErrorMsMax  *float64 `json:"clock_error_ms_max,omitempty"` // uncertainty of the nodes' alignment
	LatenessShareMax *float64 `json:"lateness_share_max,omitempty"` // summed lateness of the emulated medium ÷ window
	// HopsMin is how long a way a measured flow must have taken in some accepted
	// trial of the cell: a run is judged by it at its end, no trial is.
	HopsMin *int `json:"hops_min,omitempty"`
}

// CompareLevels orders the labels of a factor's levels: numbers by their value,
// all else as text.
func CompareLevels(a, b string) int {
	x, errX := strconv.ParseFloat(a, 64)
	y, errY := strconv.ParseFloat(b, 64)
	if errX == nil && errY == nil {
		return cmp.Compare(x, y)
	}
	return cmp.Compare(a, b)
}
