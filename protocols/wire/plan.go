package wire

import (
	"cmp"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"time"
)

// RunPlan is the whole of a run as every node holds it: with it a node can do
// every trial without a controller. It is pushed once, before the first trial.
type RunPlan struct {
	Run            string     `json:"run" form:"runForm"`                  // unique name of the run
	Campaign       string     `json:"campaign" min:"1" max:"maxTextRunes"` // the campaign's name
	CampaignSHA256 string     `json:"campaign_sha256" form:"shaForm"`
	Seed           uint64     `json:"seed" max:"1<<64-1"`   // what the order of trials was drawn from
	Key            []byte     `json:"key" max:"GoKeyBytes"` // 32 random bytes that authenticate GO; secret
	Nodes          []PlanNode `json:"nodes" min:"1" max:"MaxNodes"`
	Trials         []Trial    `json:"trials" min:"1" max:"MaxTrials"` // in the order in which they are to be driven
	AttemptsMax    int        `json:"attempts_max" min:"1" max:"MaxAttempts"`
	// how the controller reaches the nodes: own | mesh; absent: either will do
	Control string `json:"control,omitempty"`
	// the part of the schedule that these nodes drive; absent: all of it
	Shard *Shard `json:"shard,omitempty"`
}

// Shard is a part of a campaign that one machine drives: of every Of trials in
// the schedule's order, the one at Number. So each shard has its share of every
// block, and a difference between machines spreads over the cells.
type Shard struct {
	Number int `json:"number" min:"1" max:"MaxTrials"` // 1 to of
	Of     int `json:"of" min:"1" max:"MaxTrials"`
}

// Has reports whether a trial is in the shard; every trial is in none.
func (s *Shard) Has(trial int) bool { return s == nil || (trial-1)%s.Of == s.Number-1 }

// String is the shard as people write it.
func (s *Shard) String() string { return fmt.Sprintf("%d/%d", s.Number, s.Of) }

// Ways by which a controller reaches its nodes.
const (
	ControlOwn  = "own"  // a link of its own: cable, USB, Bluetooth, cellular
	ControlMesh = "mesh" // the mesh under test, on which the controller is silent while measuring
)

// DefaultGoPort is the UDP port on which nodes listen for GO.
const DefaultGoPort = 7446

// DefaultControlPort is the TCP port on which nodes listen for their controller.
const DefaultControlPort = 7443

// DefaultMeshNetwork is where a node may be given addresses and routes whose agent.yaml does not say.
const DefaultMeshNetwork = "10.77.0.0/16"

// DefaultChannel is what a rehearsal takes for a trial that names no channel.
const DefaultChannel = 6

// PlanNode is one node as the others need to know it.
type PlanNode struct {
	Name       string `json:"name" form:"nodeForm"`
	Unit       string `json:"unit,omitempty" max:"maxTextRunes"` // which hardware carries the node
	MeshPrefix string `json:"mesh_prefix" form:"prefixForm"`     // address on the tested interface, "10.77.0.1/24"
	// host of the control link; absent when there is none
	ControlAddr string `json:"control_addr,omitempty" form:"hostForm"`
	// UDP port on which the node listens for GO
	GoPort int `json:"go_port" min:"minOpenPort" max:"maxPort"`
}

// Trial is one cell of the schedule, expanded: nothing in it refers elsewhere.
type Trial struct {
	// 1-based place in the schedule; with run and attempt the trial's key
	Number     int `json:"number" min:"1" max:"MaxTrials" campaign:"-"`
	Block      int `json:"block" min:"0" max:"MaxTrials" campaign:"-"`
	Repetition int `json:"repetition" min:"0" max:"MaxTrials" campaign:"-"`
	// calibration, for a parked pass; absent for an ordinary one
	Pass string `json:"pass,omitempty" words:"passes" campaign:"-"`
	// factor name → level's label, for tables and models
	Factors map[string]string `json:"factors" max:"64" campaign:"-"`

	// the node that moves; absent when nobody does
	Car string `json:"car,omitempty" campaign:"rule=s.node()"`
	// the node that stands beside the road
	Roadside string `json:"roadside,omitempty" campaign:"rule=s.node()"`
	// the node that sends the measured data; a campaign may name it by its role
	Sender string `json:"sender" campaign:"rule=s.carOrRoadside()"`
	// the node that receives the measured data; a campaign may name it by its role
	Receiver string `json:"receiver" campaign:"rule=s.carOrRoadside()"`
	// the node whose gate opens the window; a campaign may name it by its role; absent there: the car's, without a car
	// the sender's
	Initiator string `json:"initiator" campaign:"rule=s.anyRole()"`
	// the nodes that only forward
	Relays []string `json:"relays,omitempty" campaign:"rule=s.relays()"`

	// target speed of the car; absent when nobody moves
	SpeedMps *float64 `json:"speed_mps,omitempty" unit:"m/s" min:"0" max:"maxSpeedMps" campaign:"above=0,max=maxSpeedMps"`
	// direction of the drive along the course: outbound | inbound
	Direction string `json:"direction,omitempty" campaign:"default=\"outbound\""`
	// where the car drives relative to the roadside node
	Course Course `json:"course"`
	// when the window opens: all that is given here must hold at once
	Gate Gate `json:"gate"`
	// length of the measuring window; absent in the segment of a campaign: its length over the speed
	DurationS float64 `json:"duration_s" unit:"s" above:"0" max:"maxSeconds" campaign:"min=1,max=3600"`
	// whether the nodes of a rehearsal stay where their movement begins
	Still bool `json:"still,omitempty"`
	// what a rehearsal's field is like in this trial, where not as the campaign's section field says
	Conditions *Conditions `json:"conditions,omitempty" campaign:"rule=s.conditions()"`

	Radio      Radio      `json:"radio"`                                                      // what the interface under test is to be
	Routing    Routing    `json:"routing"`                                                    // the routing protocol
	TCP        TCP        `json:"tcp" campaign:"rule=s.transport()"`                          // the transport profile, the same on every node
	Traffic    []Flow     `json:"traffic" min:"1" max:"MaxFlows" campaign:"rule=s.traffic()"` // the flows
	Acceptance Acceptance `json:"acceptance" campaign:"-"`

	// how often TCP is sampled; absent: 10
	SampleHz *int `json:"sample_hz,omitempty" unit:"samples of tcp_info a second" min:"SampleHzMin" max:"SampleHzMax" campaign:"default=wire.SampleHzMin"`
	// how often a node that only relays is sampled; absent: 10
	RelaySampleHz *int `json:"relay_sample_hz,omitempty" unit:"samples a second" min:"1" max:"SampleHzMin" campaign:"default=wire.SampleHzMin"`
	// packet captures at every node; absent: none
	Capture *CapturePlan `json:"capture,omitempty"`
}

func passes() []string { return []string{PassCalibration} }

// PassCalibration is a parked pass, which is no trial of the campaign's question.
const PassCalibration = "calibration"

// CapturePlan says how packets of the trial's flows and of routing are captured
// at every node.
type CapturePlan struct {
	// how much of a frame is kept, from its link-layer header on
	SnapBytes int `json:"snap_bytes" unit:"bytes of each frame" min:"SnapBytesMin" max:"SnapBytesMax" campaign:"required"`
	// whether the tested interface's offloads, which merge or split segments before a capture sees them, are turned
	// off or only recorded: off | recorded; absent in a trial: recorded
	Offloads string `json:"offloads,omitempty" campaign:"default=wire.OffloadsOff"`
}

// What happens to the tested interface's offloads while packets are captured.
const (
	OffloadsOff      = "off"
	OffloadsRecorded = "recorded"
)

// Bounds of what is recorded of TCP.
const (
	SampleHzMin  = 10 // of everything else that is sampled, too
	SampleHzMax  = 100
	SnapBytesMin = 94 // Ethernet 14, IPv4 with no options 20, TCP with all its options 60
	// SnapBytesDSR is the least with DSR: Ethernet 14, IPv4 20, a source route of 16 hops and a request for an
	// acknowledgement 72, TCP with no options 20.
	SnapBytesDSR = 126
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

// EndsTCP reports whether a TCP flow of the trial begins or ends at a node. The
// others have no use for its transport profile.
func (t Trial) EndsTCP(node string) bool {
	return slices.ContainsFunc(t.Traffic,
		func(f Flow) bool { return f.Kind == "iperf3_tcp" && (f.From == node || f.To == node) })
}

// Measured are the flows that the trial's result is made of: those of TCP that
// are not in the background. Of UDP the receiver's kernel counts nothing.
func (t Trial) Measured() []Flow {
	return slices.DeleteFunc(slices.Clone(t.Traffic),
		func(f Flow) bool { return f.Background || f.Kind != "iperf3_tcp" })
}

// MeasuredS is for how much of the window at least one of the flows that Measured gives is to send.
func (t Trial) MeasuredS() (seconds float64) {
	flows, until := t.Measured(), 0.0
	slices.SortFunc(flows, func(a, b Flow) int { return cmp.Compare(a.StartS, b.StartS) })
	for _, f := range flows {
		from := max(f.StartS, 0)
		to := from + f.WindowS(t.DurationS)
		seconds += max(0, to-max(from, until))
		until = max(until, to)
	}
	return seconds
}

// MeasuresDelay reports whether a flow of the trial is of kind delay.
func (t Trial) MeasuresDelay() bool {
	return slices.ContainsFunc(t.Traffic, func(f Flow) bool { return f.Kind == KindDelay })
}

// Timed reports whether a flow of the trial is timed. The trial then lasts
// DelayGrace longer than its window.
func (t Trial) Timed() bool { return slices.ContainsFunc(t.Traffic, Flow.Timed) }

// Ends reports whether a flow of the trial begins or ends at a node.
func (t Trial) Ends(node string) bool {
	return slices.ContainsFunc(t.Traffic, func(f Flow) bool { return f.From == node || f.To == node })
}

// OnlyRelays reports whether a node does nothing in the trial but forward what
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
	// kind of the drive: depart | pass | loop | segment | parked | none
	Kind string `json:"kind"`
	// where the car stands before it sets off
	StartM float64 `json:"start_m" unit:"m along the road from the roadside node's mark" min:"-maxMetres" max:"maxMetres" campaign:"min=-5000,max=5000"`
	// how far the road is from the roadside node
	OffsetM float64 `json:"offset_m" unit:"m beside the roadside node" min:"-maxMetres" max:"maxMetres" campaign:"min=0,max=1000,default=0"`
	// where the segment begins, at whose edge the window opens
	SegmentM *float64 `json:"segment_m,omitempty" unit:"m along the road from the roadside node's mark" min:"-maxMetres" max:"maxMetres" campaign:"min=-5000,max=5000"`
	// length of the segment, or round the loop
	LengthM *float64 `json:"length_m,omitempty" unit:"m" above:"0" max:"maxMetres" campaign:"min=1,max=10000"`
	// how the car gathers speed
	AccelMps2 float64 `json:"accel_mps2" unit:"m/s²" min:"0" max:"100" campaign:"above=0,max=maxCarMps2"`
	// how the car brakes
	BrakeMps2 float64 `json:"brake_mps2" unit:"m/s²" min:"0" max:"100" campaign:"above=0,max=maxCarMps2"`
	// where the parked car stands
	MarkM *float64 `json:"mark_m,omitempty" unit:"m along the road from the roadside node's mark" min:"-maxMetres" max:"maxMetres" campaign:"min=-5000,max=5000"`
	// latitude of the roadside node; absent: a rehearsal chooses
	SiteLatDeg *float64 `json:"site_lat_deg,omitempty" unit:"degrees" min:"-90" max:"90"`
	// longitude of the roadside node; absent: a rehearsal chooses
	SiteLonDeg *float64 `json:"site_lon_deg,omitempty" unit:"degrees" min:"-180" max:"180"`
	// bearing of the outbound drive
	HeadingDeg float64 `json:"heading_deg" unit:"degrees from true north" min:"0" max:"360"`
}

// Gate says when the initiator may open the window. Every part that is
// present must hold at once.
type Gate struct {
	// whether the car must have stood at its start since the trial was armed, or stand at its mark; absent from a
	// campaign: where the course is depart, pass or segment, and where it is parked and has a site
	AtStart bool `json:"at_start,omitempty" campaign:"default=none"`
	// whether the GPS speed must be in acceptance.speed_band_mps
	SpeedBand bool `json:"speed_band,omitempty"`
	// how long the speed must have been in the band
	HoldS float64 `json:"hold_s,omitempty" unit:"s" min:"0" max:"maxSeconds" campaign:"max=60,default=0"`
	// where the car must have passed
	PlaceM *float64 `json:"place_m,omitempty" unit:"m along the road from the roadside node's mark" min:"-maxMetres" max:"maxMetres" campaign:"min=-5000,max=5000"`
	// when the window opens at the earliest; with at_start so long after the car set off, or came to stand at its mark
	AfterS *float64 `json:"after_s,omitempty" unit:"s" min:"0" max:"maxSeconds" campaign:"max=3600"`
	// when the attempt is given up and rejected, from when the trial was armed, or the car stood at its start
	TimeoutS float64 `json:"timeout_s" unit:"s" above:"0" max:"maxSeconds" campaign:"min=1,max=3600"`
	// how much earlier than the window the first GO is sent; a new campaign has 0.3 s at least
	LeadS float64 `json:"lead_s" unit:"s from the first GO to the window" min:"0" max:"MaxLeadS" campaign:"min=0.1,max=10"`
}

// Radio is what the tested interface is to be.
type Radio struct {
	// kind of the network: adhoc | mesh | infrastructure | hotspot | none, which leaves the interface as it is
	Mode string `json:"mode"`
	// standard of the radio, 802.11n and 802.11ac in a rehearsal only: 802.11a | 802.11b | 802.11g | 802.11n | 802.11ac
	Standard string `json:"standard,omitempty"`
	// channel, one of the standard's
	Channel int `json:"channel,omitempty" min:"0" max:"maxChannel" campaign:"min=1,max=maxChannel"`
	// name of the network
	SSID string `json:"ssid,omitempty" max:"maxSSIDBytes"`
	// BSSID of the ad hoc network
	BSSID string `json:"bssid,omitempty" form:"bssidForm" campaign:"rule=ownBSSID()"`
	// transmit power; absent: as the driver has it
	TxPowerDbm *float64 `json:"tx_power_dbm,omitempty" unit:"dBm" min:"-50" max:"50" campaign:"min=0,max=maxTxPowerDbm"`
	// fixed rate; absent: the driver's rate control
	RateMbps *float64 `json:"rate_mbps,omitempty" above:"0" max:"10000" campaign:"rule=anyRate()"`
	// longer frames are announced by RTS, 2347 is never; absent: as the driver has it
	RTSThresholdBytes *int `json:"rts_threshold_bytes,omitempty" unit:"bytes" min:"1" max:"RTSNever"`
	// how often a frame is sent at most, announced by RTS or not; absent: as the driver has it
	RetryLimit *int `json:"retry_limit,omitempty" min:"1" max:"255"`
	// the node that is the infrastructure's access point or keeps the hotspot; the others are its stations
	AccessPoint string `json:"access_point,omitempty" campaign:"rule=s.anyRole()"`
}

// Emulated reports whether a radio's standard is one that only the emulated radio of a rehearsal has.
func (r Radio) Emulated() bool { return r.Standard == "802.11n" || r.Standard == "802.11ac" }

// ModeInfrastructure is the radio mode of an access point and its stations:
// for radios that can be nothing else. All frames go by way of the access point.
const ModeInfrastructure = "infrastructure"

// ModeHotspot is the radio mode of phones: one keeps its own hotspot, the others join
// it, both through Android, which is the master of standard, rates, power and limits.
const ModeHotspot = "hotspot"

var hotspotSSID = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._ -]{0,30}[A-Za-z0-9]$`)

// HotspotSSID reports whether a hotspot may have a name: of 2 to 32 letters, digits,
// dots, hyphens, underscores and blanks between them, none of which can be taken for
// an option of Android's command.
func HotspotSSID(name string) bool { return hotspotSSID.MatchString(name) }

// HasAccessPoint reports whether all frames go by way of one of the nodes.
func (r Radio) HasAccessPoint() bool { return r.Mode == ModeInfrastructure || r.Mode == ModeHotspot }

// ModeAt is the mode of one node's interface, as the kernel names it.
func (r Radio) ModeAt(node string) string {
	switch {
	case !r.HasAccessPoint():
		return r.Mode
	case node == r.AccessPoint:
		return "ap"
	}
	return "managed"
}

// Routing names the routing protocol of the trial.
type Routing struct {
	// the protocol, or the daemon that speaks it
	Protocol string `json:"protocol" words:"RoutingProtocols" campaign:"default=noRouting"`
	// interval of the daemon's hellos; absent: its own; not for aodv and aomdv where the radio's reports stand for them
	HelloS *float64 `json:"hello_s,omitempty" unit:"s" min:"0.1" max:"60"`
	// whether a lost frame, as the radio or the kernel's neighbour table has it, breaks a route; absent: not with dsdv
	// and OLSR
	LinkFeedback *bool `json:"link_feedback,omitempty" campaign:"rule=toggle{}"`
	// what arming waits for; absent: what suits the protocol
	Ready string `json:"ready,omitempty" words:"RoutingReadiness"`
	// how long arming waits at most; with dsdv 240 s, if nothing is said
	ReadyS *float64 `json:"ready_s,omitempty" unit:"s" min:"1" max:"RoutingReadyMaxS" campaign:"default=wire.RoutingReadyS"`
	// how often a small packet goes there and back between the ends of the measured flow; absent: never
	ProbeHz *float64 `json:"probe_hz,omitempty" unit:"packets a second" min:"ProbeHzMin" max:"ProbeHzMax"`
	// whether a sender for whose packet no route is found hears "host unreachable" (ICMP), which ends a connect;
	// absent: not with aodv-ns2, aodv-p3, adv and dsr-ns2
	HostUnreachable *bool `json:"host_unreachable,omitempty" campaign:"rule=toggle{}"`
}

// TCP is the transport profile, the same on every node of the trial. What is
// absent stays as the node's kernel has it.
type TCP struct {
	// the congestion control: tahoe, reno, newreno, sack, fack, vegas, vegas1995, westwood, westwood2001, reference
	// (rehearsal only), or the kernel's name of another
	//
	// Reno is the kernel's own unless classic is set; sack is that with SACK on. Vegas and westwood are Linux's, of
	// which westwood is Westwood+; those with a year are as their authors published them.
	Variant string `json:"variant" form:"variantForm" campaign:"rule=tcpVariants()"`
	// whether what the papers' TCPs did not have is off: RACK, tail loss probes, F-RTO, SYNs a second apart,
	// timestamps, D-SACK, ECN; but RACK stays where SACK is on, from Linux 6.17 on
	//
	// It makes reno that of RFC 2581.
	Classic bool `json:"classic,omitempty" campaign:"rule=toggle{}"`
	// selective acknowledgements
	SACK *bool `json:"sack,omitempty" campaign:"rule=toggle{}"`
	// delayed acknowledgements; off: every segment is acknowledged at once
	DelayedACK *bool `json:"delayed_ack,omitempty" campaign:"rule=toggle{}"`
	// whether from the second timeout in a row on the RTO is not doubled
	FixedRTO bool `json:"fixed_rto,omitempty" campaign:"rule=toggle{}"`
	// the least RTO: the least that the kernel adds to the smoothed round trip; absent: the kernel's own, or what
	// fixed_rto or reference needs
	RTOMinMs *int `json:"rto_min_ms,omitempty" unit:"ms" min:"RTOMinMsLeast" max:"RTOMinMsMost"`
	// the largest RTO, to which timeouts in a row double it; absent: the kernel's own, 120 s as Linux comes
	RTOMaxMs *int `json:"rto_max_ms,omitempty" unit:"ms" min:"RTOMaxMsLeast" max:"RTOMaxMsMost"`
	// the most that a sender has in the network
	WindowPackets *int `json:"window_packets,omitempty" unit:"segments" min:"1" max:"MaxWindowPackets"`
}

// Conditions are a rehearsal's, of one trial. What is absent is as in the
// campaign's field section.
type Conditions struct {
	// share of frames lost on top of all else; 0: none
	ChannelErrorMean *float64 `json:"channel_error_mean,omitempty" min:"0" max:"0.95" campaign:"-"`
	// mean length of a burst of losses
	ChannelErrorBurstFrames *float64 `json:"channel_error_burst_frames,omitempty" min:"1" max:"1e6" campaign:"-"`
	// frames that the queue of a node's interface holds
	QueueFrames *int `json:"queue_frames,omitempty" min:"1" max:"10_000"`
	// width of the area, in random_waypoint and setdest
	WidthM *float64 `json:"width_m,omitempty" unit:"m" above:"0" max:"maxMetres" campaign:"rule=side()"`
	// height of the area, in random_waypoint and setdest
	HeightM *float64 `json:"height_m,omitempty" unit:"m" above:"0" max:"maxMetres" campaign:"rule=side()"`
	// least speed of a trip, in random_waypoint and setdest
	SpeedMinMps *float64 `json:"speed_min_mps,omitempty" unit:"m/s" min:"0" max:"maxSpeedMps" campaign:"above=0,max=maxSpeedMps"`
	// greatest speed of a trip, in random_waypoint and setdest
	SpeedMaxMps *float64 `json:"speed_max_mps,omitempty" unit:"m/s" min:"0" max:"maxSpeedMps" campaign:"above=0,max=maxSpeedMps"`
}

// Flow is one flow of traffic between two nodes.
type Flow struct {
	Name string `json:"name" form:"flowForm" campaign:"-"`
	// what is sent, the first two by iperf3: iperf3_tcp | iperf3_udp | delay | cbr
	//
	// Delay is small datagrams at fixed times, each of which is answered. Cbr is datagrams at a constant bit rate, in
	// the background, which nobody answers: its sender sends on whether there is a way or not.
	Kind string `json:"kind" campaign:"rule=flowKinds()"`
	// whether the flow only loads the network and is not measured
	Background bool `json:"background,omitempty"`
	// the node that sends the data; a campaign may name it by its role, or have it drawn by the seed
	From string `json:"from" campaign:"rule=s.flowEnds(),default=\"sender\""`
	// the node that receives it; a campaign may name it by its role, or have it drawn by the seed
	To string `json:"to" campaign:"rule=s.flowEnds(),default=\"receiver\""`
	// whether ends that are drawn by the seed are of no other flow with this key
	UniqueEnds bool `json:"unique_ends,omitempty"`
	// whether the receiver is iperf3's client (iperf3 -R)
	Reverse bool `json:"reverse,omitempty"`
	// port of iperf3's server, or to which datagrams of kinds delay and cbr are sent
	Port int `json:"port" min:"minOpenPort" max:"maxPort" campaign:"rule=serverPort(),default=iperf3Port"`
	// parallel streams
	Streams int `json:"streams" min:"1" max:"MaxStreams" campaign:"default=oneStream"`
	// socket buffer; absent in a campaign: tcp.window_bytes
	WindowBytes *int `json:"window_bytes,omitempty" unit:"bytes" min:"1" max:"1<<30" campaign:"min=1024,max=maxWindowBytes"`
	// payload of a datagram, or TCP's MSS
	PayloadBytes *int `json:"payload_bytes,omitempty" unit:"bytes" min:"16" max:"maxUDPBytes" campaign:"max=maxPayloadBytes"`
	// constant bit rate of a UDP flow's payload; with payload_bytes it sets how far apart datagrams of kind cbr are
	BitrateBps *float64 `json:"bitrate_bps,omitempty" unit:"bit/s" above:"0" max:"1e12" campaign:"min=100,max=1e9"`
	// time from one datagram of kind delay to the next
	IntervalMs *float64 `json:"interval_ms,omitempty" unit:"ms" min:"5" max:"1000"`
	// when the flow begins, after the window opens; below 0 for a flow that warms the network up
	StartS float64 `json:"start_s" unit:"s after the window opens" min:"-MaxLeadS" max:"maxSeconds" campaign:"min=-maxWarmupS,max=3600"`
	// how much later than start_s the flow begins at most: when is drawn by the seed, but of kind cbr the first begins
	// at start_s; absent: at start_s
	StartWithinS *float64 `json:"start_within_s,omitempty" unit:"s" above:"0" max:"maxSeconds" campaign:"max=3600"`
	// the flow over one of whose relays this one is led, as the links of a rehearsal are when it begins; absent: none,
	// which a campaign may say too
	Across string `json:"across,omitempty" max:"maxTextRunes" campaign:"rule=flowName()"`
	// that relay
	AcrossNode string `json:"across_node,omitempty" form:"nodeForm" campaign:"-"`
	// how long the flow lasts; absent in a campaign: to the window's end
	DurationS float64 `json:"duration_s" unit:"s" above:"0" max:"maxSeconds" campaign:"min=0.1,max=3600"`
	// first of as many consecutive ports of the client's data sockets as there are streams
	ClientPort int `json:"client_port" min:"0" max:"maxPort" campaign:"-"`
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

// The kinds of timed flows: of datagrams at fixed times, which the agents
// themselves send.
const (
	KindDelay = "delay" // small ones, each of which its receiver answers
	KindCBR   = "cbr"   // at a constant bit rate, which nobody answers
)

// Timed reports whether a flow is of datagrams at fixed times.
func (f Flow) Timed() bool { return f.Kind == KindDelay || f.Kind == KindCBR }

// Bounds of a timed flow's datagram: what its fields and its authentication
// take, and what an MTU of 1500 bytes leaves beside the headers of IPv4 and UDP.
const (
	DelayBytesMin = 48
	DelayBytesMax = 1472
)

// Bounds of the time from one datagram of kind cbr to the next: each has a record
// at both ends, and a flow without any in its window tells nothing.
const (
	CBRMsMin = 5
	CBRMsMax = 60_000
)

// DelayGrace is how long an answer to a datagram of kind delay is waited for, and
// how long after the window's close datagrams of kind cbr are: what comes later is
// lost. The choice is ours: longer than the queues of one hop, and short beside a
// trial.
const DelayGrace = 3 * time.Second

// ApartMs is the time from one datagram of a timed flow to the next.
func (f Flow) ApartMs() float64 {
	if f.Kind == KindCBR {
		return float64(*f.PayloadBytes) * 8e3 / *f.BitrateBps
	}
	return *f.IntervalMs
}

// Datagrams is how many datagrams a timed flow has.
func (f Flow) Datagrams() int {
	const rounding = 1e-9
	return int(math.Ceil(f.DurationS*1e3/f.ApartMs() - rounding))
}

// DatagramDueNs is when a timed flow's datagram is to be sent, on the clock on
// which the window opens at openNs. The first is due when the flow begins.
func (f Flow) DatagramDueNs(openNs int64, n int) int64 {
	return openNs + int64(f.StartS*1e9) + int64(float64(n)*f.ApartMs()*1e6)
}

// SendS is for how many seconds iperf3 is told to send: it takes whole ones only.
func (f Flow) SendS() float64 { return math.Ceil(f.DurationS) }

// WindowS is for how many seconds of a window that is so long iperf3 sends, or to its close. What the
// flow does before the window, to warm the network up, is in no figure.
func (f Flow) WindowS(longS float64) float64 {
	left := longS - max(f.StartS, 0)
	if f.DurationS > 0 {
		return min(left, f.SendS()+min(f.StartS, 0))
	}
	return left
}

// Acceptance is judged on covariates only, never on the trial's result. A
// rule that is absent is not applied.
type Acceptance struct {
	// how far the car's speed may be off
	SpeedBandMps *float64 `json:"speed_band_mps,omitempty" unit:"m/s either side of the target" min:"0" max:"maxSpeedMps" campaign:"above=0,max=10"`
	// least share of the window with the speed in the band
	InBandShareMin *float64 `json:"in_band_share_min,omitempty" min:"0" max:"1" campaign:"above=0"`
	// least mode of the GPS fix: two or three dimensions
	FixModeMin *int `json:"fix_mode_min,omitempty" min:"0" max:"3" campaign:"rule=fixModes()"`
	// greatest age of a GPS fix in the window
	FixAgeMsMax *float64 `json:"fix_age_ms_max,omitempty" unit:"ms" min:"0" max:"maxSeconds*1000" campaign:"min=50,max=60000"`
	// greatest uncertainty of the clocks' offset
	ClockErrorMsMax *float64 `json:"clock_error_ms_max,omitempty" unit:"ms" min:"0" max:"maxSeconds*1000" campaign:"above=0,max=10000"`
	// greatest share of frames that a rehearsal's radio handled late: their summed lateness over the window
	LatenessShareMax *float64 `json:"lateness_share_max,omitempty" min:"0" max:"1" campaign:"above=0"`
	// least hops between sender and receiver, as the forwarding showed in some accepted trial of the cell: a run is
	// judged by it at its end, no trial is
	HopsMin *int `json:"hops_min,omitempty" unit:"hops" min:"1" max:"MaxNodes-1"`
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
