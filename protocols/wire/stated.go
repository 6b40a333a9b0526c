package wire

import "encoding/json"

// TrialState is a step of a trial's life on a node: loaded, armed, running, restoring, kept.
//
// A kept trial has an outcome; the agents' is provisional.
type TrialState struct {
	// the state that was entered: loaded | armed | running | restoring | kept
	State State `json:"state" redact:"keep"`
	// accepted | rejected | failed | interrupted; provisional, with state kept
	Outcome Outcome `json:"outcome,omitempty" redact:"keep"`
	// why not accepted: a word, then free text after ": "
	Reason Reason `json:"reason,omitzero" redact:"keep"`
}

func (*TrialState) Kind() string { return "trial" }

// Window is the measuring window by the node's clock, written when it opens.
type Window struct {
	OpenBootNs  int64 `json:"open_boot_ns" unit:"ns"`  // when it opens, boot clock
	CloseBootNs int64 `json:"close_boot_ns" unit:"ns"` // when it closes, boot clock
	// how GO reached the node: control | mesh | self
	GoPath string `json:"go_path,omitempty" redact:"keep"`
	// the round trip of GO and its acknowledgement: a peer opened later by at most so much
	GoUncertaintyUs *float64 `json:"go_uncertainty_us,omitempty" unit:"µs"`
}

func (*Window) Kind() string { return "window" }

// Iperf3 is one iperf3 process as it ended.
//
// What the agent saw of it is absent in records of agents that did not look.
type Iperf3 struct {
	Flow     string `json:"flow" influx:"tag" redact:"keep"` // the plan's name of the flow
	Side     string `json:"side" influx:"tag" redact:"keep"` // client | server
	ExitCode *int   `json:"exit_code,omitempty"`             // its exit status
	// why it was ended, when it did not end by itself
	Killed string `json:"killed,omitempty"`
	Error  string `json:"error,omitempty"` // what went wrong
	// iperf3's JSON, when it is JSON
	Output json.RawMessage `json:"output,omitempty" archive:"iperf3's whole JSON; a file of its own in the archive"`
	// what it printed, when that is not JSON
	RawText string `json:"raw_output,omitempty" archive:"a text of any length; whole in the archive"`
	// when the process began, boot clock; absent when it never did
	StartedBootNs *int64 `json:"started_boot_ns,omitempty" unit:"ns"`
	EndedBootNs   *int64 `json:"ended_boot_ns,omitempty" unit:"ns"` // when it had ended, boot clock
	// when a signal first stopped it, boot clock; absent when none did
	StoppedBootNs *int64 `json:"stopped_boot_ns,omitempty" unit:"ns"`
	// when its control group was first seen frozen, boot clock; absent when it was not, or does not tell
	FrozenBootNs *int64 `json:"frozen_boot_ns,omitempty" unit:"ns"`
	// how: itself | deadline | trial | signal | unstarted
	Ended string `json:"ended,omitempty" redact:"keep"`
	// that ended it and was not the agent's, such as SIGKILL
	Signal string `json:"signal,omitempty" redact:"keep"`
	// what its error comes from: refused | server_busy | timeout | unreachable | reset | peer_gone | tool
	Cause string `json:"error_cause,omitempty" redact:"keep"`
}

func (*Iperf3) Kind() string { return "iperf3" }

// How an iperf3 ended.
const (
	EndedItself    = "itself"
	EndedDeadline  = "deadline"  // its agent ended it, because its time was over
	EndedTrial     = "trial"     // its agent ended it, because the attempt was over
	EndedSignal    = "signal"    // somebody else's
	EndedUnstarted = "unstarted" // it never ran
)

// What an iperf3's error comes from.
const (
	CauseRefused     = "refused"     // the peer's machine answered: nobody listens
	CauseServerBusy  = "server_busy" // the server was at another's test
	CauseTimeout     = "timeout"     // silence
	CauseUnreachable = "unreachable"
	CauseReset       = "reset"     // a connection was broken off
	CausePeerGone    = "peer_gone" // the other end closed, or said that it ended
	CauseTool        = "tool"      // nothing of the network's: files, memory, options
)

// Clock is an estimate of a peer's clocks against the node's own.
//
// The peer's boot clock is the node's own + `offset_ns`, within ± `uncertainty_ns`.
type Clock struct {
	Peer          string `json:"peer" influx:"tag" redact:"keep"` // the other node
	OffsetNs      int64  `json:"offset_ns" unit:"ns"`             // peer's boot clock minus own
	UncertaintyNs int64  `json:"uncertainty_ns" unit:"ns"`        // the offset is within ± this
	RTTNs         int64  `json:"rtt_ns" unit:"ns"`                // round trip of the exchange
	WallOffsetNs  int64  `json:"wall_offset_ns" unit:"ns"`        // peer's wall clock minus own, with the same uncertainty
	// own wall clock minus own boot clock
	//
	// With `offset_ns` it dates the peer's records by the recorder's wall clock.
	OwnWallOffsetNs *int64 `json:"own_wall_offset_ns,omitempty" unit:"ns"`
	Exchanges       int    `json:"exchanges"` // exchanges of which this is the best
}

func (*Clock) Kind() string { return "clock" }

// Lateness is how late a timed loop was over the trial's window.
//
// The medium is the emulated radio, the sampler one of the agent's loops that sample, the agent a loop that does
// nothing else: what it is late by, the agent did not run for.
type Lateness struct {
	Source  string  `json:"source" influx:"tag" redact:"keep"` // medium | sampler | agent
	WindowS float64 `json:"window_s" unit:"s"`                 // length of the window
	Events  uint64  `json:"events"`                            // turns of the loop
	SumS    float64 `json:"sum_s" unit:"s"`                    // time during which the loop was behind
	MeanUs  float64 `json:"mean_us" unit:"µs"`                 // mean lateness
	P99Us   float64 `json:"p99_us" unit:"µs"`                  // 99th percentile
	WorstUs float64 `json:"worst_us" unit:"µs"`                // worst
	// of the agent's: for how long the machine was suspended; absent where that is not known
	SuspendedMs *float64 `json:"suspended_ms,omitempty" unit:"ms"`
	// of the agent's: how far the boot clock went, fast or slow, from one that nothing adjusts; absent where that is
	// not known
	SlewedMs *float64 `json:"slewed_ms,omitempty" unit:"ms"`
}

func (*Lateness) Kind() string { return "lateness" }

// HostChange is what the host process changed on the machine, or put back.
type HostChange struct {
	Scope  string `json:"scope" redact:"keep"`  // run | trial
	Action string `json:"action" redact:"keep"` // applied | undone
	What   string `json:"what"`                 // the change, in words
}

func (*HostChange) Kind() string { return "change" }

// Provenance is what was in force on a node, read back.
type Provenance struct {
	Agent   string `json:"agent" redact:"keep"`             // version and commit
	Kernel  string `json:"kernel" redact:"keep"`            // release
	Arch    string `json:"arch" redact:"keep"`              // machine architecture
	Machine string `json:"machine,omitempty" redact:"keep"` // model, when the firmware tells
	// the tested interface's name
	Interface  string            `json:"interface" influx:"name=tested_interface" redact:"keep"`
	Driver     string            `json:"driver,omitempty" redact:"keep"` // its driver
	MAC        string            `json:"mac,omitempty" redact:"keep"`    // its MAC address
	Tools      map[string]string `json:"tools" redact:"keep"`            // iperf3, gpsd … → version
	Sysctls    map[string]string `json:"sysctls" redact:"keep"`          // those that shape TCP
	Offloads   map[string]bool   `json:"offloads"`                       // gro, gso, tso …
	Addresses  []string          `json:"addresses"`                      // of the tested interface
	Routes     []string          `json:"routes"`
	Congestion []string          `json:"congestion_available" redact:"keep"`
	// what stands for the trial's variant on this node; absent outside of a trial
	TCP   *TCPInForce `json:"tcp,omitempty" redact:"keep"`
	Radio *Caps       `json:"radio,omitempty"` // how a real radio was set
	// what the network face is confined by, and what the kernel lacks for it; absent from an agent that does not tell
	Confined []string `json:"confined,omitempty" redact:"keep"`
	// none: the agent runs without root and changes nothing; absent: it has a privileged half
	Privileges string `json:"privileges,omitempty" redact:"keep"`
	// how TCP's sockets are read: sock_diag, by which the kernel lists them, or descriptors, of iperf3's own sockets;
	// absent from an agent that does not tell
	SocketsBy string `json:"sockets_by,omitempty" redact:"keep"`
	// the interface to which the phone app's node binds its trials' sockets, or they are not opened; what iperf3's
	// server accepts of a flow with window_bytes or payload_bytes has Android's mark of its network instead; absent:
	// packets go as the system's routes have it
	BoundTo string `json:"bound_to,omitempty" redact:"keep"`
}

func (*Provenance) Kind() string { return "provenance" }

// TCPInForce is how a node has made a trial's transport profile.
type TCPInForce struct {
	Variant  string `json:"variant"`           // as the plan has it
	Kernel   string `json:"kernel"`            // what sockets name: the kernel's own, or a program's name with a suffix
	Provider string `json:"provider"`          // native | bpf | compiled, into the kernel for virtual time
	Program  string `json:"program,omitempty"` // bpf, compiled: which
	SHA256   string `json:"sha256,omitempty"`  // bpf: of the program's object; compiled: of the list of all programs' sources
	// as the plan has it
	FixedRTO bool `json:"fixed_rto,omitempty"`
	// the least RTO as read back from the kernel; absent where it does not tell, or a route has one of its own
	RTOMinUs *int `json:"rto_min_us,omitempty"`
	// the largest RTO as read back from the kernel; absent where it does not tell, or the timer is held
	RTOMaxMs *int `json:"rto_max_ms,omitempty"`
	// as the plan has it: the bound that every sending socket is given
	WindowPackets *int     `json:"window_packets,omitempty"`
	Notes         []string `json:"notes,omitempty"` // where this kernel is not what the variant's definition says
}

// Event is something that a reader of the run wants to know.
type Event struct {
	Level string `json:"level" influx:"tag" redact:"keep"` // info | warning | error
	Text  string `json:"text"`                             // in words
}

func (*Event) Kind() string { return "event" }

// TCPEvent is something that a connection's sender did. Seen by tcp_info it happened after `from_boot_ns` and not
// later than the point's time.
//
// It was then found between two samples, and happened `count` times. Seen by a tracepoint it happened at the record's
// own time, and the windows are those of that moment: at the beginning of a recovery the congestion window has not
// been reduced yet, and ssthresh has. A fast retransmit within a recovery, as classic Reno has it, is another recovery
// by tcp_info, and none by a tracepoint. A failed_retransmission never left; a tracepoint reports it from Linux 6.17
// on.
type TCPEvent struct {
	Flow string `json:"flow" influx:"tag" redact:"keep"` // the plan's name of the flow
	// 0-based stream, of all but iperf3's control connection
	Stream *int `json:"stream,omitempty" influx:"tag,absent=control"`
	// the kernel's number of the socket
	Cookie uint64 `json:"cookie,omitempty" archive:"names a kernel's socket; of no use in a chart"`
	// addr:port
	Local string `json:"local" archive:"an address for every socket; flow and stream name it" redact:"keep"`
	// addr:port
	Remote string `json:"remote" archive:"an address for every socket; flow and stream name it" redact:"keep"`
	// retransmission | failed_retransmission | rto | recovery | recovery_end
	Event  string `json:"tcp_event" influx:"tag" redact:"keep"`
	Source string `json:"seen_by" influx:"tag" redact:"keep"` // tcp_info | tracepoint
	// it happened after this, boot clock
	FromBootNs *int64 `json:"from_boot_ns,omitempty" unit:"ns" influx:"after=count"`
	Count      uint32 `json:"count"` // times it happened
	// congestion window after it; by a tracepoint at its moment, and absent at the beginning of a recovery
	CwndSegments     *uint32 `json:"cwnd_segments,omitempty" unit:"segments"`
	CwndBefore       *uint32 `json:"cwnd_before_segments,omitempty" unit:"segments"` // congestion window before it
	SsthreshSegments *uint32 `json:"ssthresh_segments,omitempty" unit:"segments"`    // slow-start threshold after it
}

func (*TCPEvent) Kind() string { return "tcp_event" }

// Capture is a packet capture of an attempt on a node as it ended.
//
// The file itself is fetched apart from the records.
type Capture struct {
	Name      string `json:"name" redact:"keep"`               // of the file
	Interface string `json:"captured_interface" redact:"keep"` // whose packets they are
	// through which the routing daemon gets and gives data, in the file too; absent where there is none or it was not
	// captured
	Above     string `json:"above_interface,omitempty" redact:"keep"`
	SnapBytes int    `json:"snap_bytes" unit:"B"`    // of each frame at most
	Filter    string `json:"filter" redact:"keep"`   // in words, as tcpdump would take it
	Packets   uint64 `json:"packets" unit:"packets"` // in the file
	// that found no room in the kernel's ring
	KernelDrops uint64 `json:"kernel_drops" unit:"packets"`
	FileDrops   uint64 `json:"file_drops" unit:"packets"`                                         // beyond the largest size of a file
	FileBytes   int64  `json:"file_bytes" unit:"B"`                                               // size of the file
	SHA256      string `json:"file_sha256" archive:"names the file in the archive" redact:"keep"` // of the file
	// the capture's first moment, boot clock
	OpenBootNs  int64 `json:"open_boot_ns" unit:"ns"`
	CloseBootNs int64 `json:"close_boot_ns" unit:"ns"` // its last moment, boot clock
	// wall clock minus boot clock at its first moment: packets carry the wall clock
	WallOffsetOpen  int64 `json:"wall_offset_open_ns" unit:"ns"`
	WallOffsetClose int64 `json:"wall_offset_close_ns" unit:"ns"` // wall clock minus boot clock at its last moment
	// those that merge or split segments where a capture sees them
	Offloads map[string]bool `json:"offloads,omitempty"`
	Error    string          `json:"error,omitempty"` // what ended or spoilt it
}

func (*Capture) Kind() string { return "capture" }

// Noted is what a person saw, or wants to happen to an attempt.
//
// It is made of a Note. A decision is a wish; the controller decides what happens to the attempt.
type Noted struct {
	ID   string `json:"id" influx:"after=note"` // the sender's own name for it
	Note string `json:"note" redact:"keep"`     // mark | accept | repeat | skip
	Text string `json:"text,omitempty"`         // in the person's words
	// when it was noted, boot clock: below 0 before the node's boot; absent: not known
	NotedBootNs *int64   `json:"noted_boot_ns,omitempty" unit:"ns"`
	By          string   `json:"by" influx:"tag"`                 // the peer that sent it, by the name of its key
	LatDeg      *float64 `json:"lat_deg,omitempty" unit:"degree"` // latitude of where, WGS 84
	LonDeg      *float64 `json:"lon_deg,omitempty" unit:"degree"` // longitude of where, WGS 84
	// the photo or recording that belongs to it; absent: none
	Attachment *Attachment `json:"attachment,omitempty"`
}

func (*Noted) Kind() string { return "note" }

// WallClock is where the node's wall clock stands against its boot clock, GPS time and what keeps it.
//
// All records are placed by the boot clock. Nothing is set by this record.
type WallClock struct {
	OwnWallOffsetNs int64 `json:"own_wall_offset_ns" unit:"ns"` // wall clock minus boot clock
	Unset           bool  `json:"unset"`                        // it is before the program was built: nobody has set it
	// by how much it was put forward at this moment; absent when it was not
	SteppedNs   *int64 `json:"stepped_ns,omitempty" unit:"ns"`
	GPSOffsetNs *int64 `json:"gps_offset_ns,omitempty" unit:"ns"` // GPS time minus wall clock
	// the GPS offset is within ± this: NMEA's sentences come some time after their moment
	GPSUncertaintyNs *int64 `json:"gps_uncertainty_ns,omitempty" unit:"ns"`
	// synchronised | unsynchronised, as chrony says; absent where nothing is known
	Sync       string `json:"sync,omitempty" redact:"keep"`
	SyncSource string `json:"sync_source,omitempty"` // what chrony follows
	// chrony's estimate of true time minus wall clock
	SyncOffsetNs      *int64 `json:"sync_offset_ns,omitempty" unit:"ns"`
	SyncUncertaintyNs *int64 `json:"sync_uncertainty_ns,omitempty" unit:"ns"` // chrony's offset is within ± this
	// by which the clock would gain, were it left alone
	SyncDriftPpm *float64 `json:"sync_drift_ppm,omitempty" unit:"ppm"`
}

func (*WallClock) Kind() string { return "wall_clock" }

// NMEATimeUncertaintyNs is how far the time of NMEA sentences without a pulse
// per second may be from GPS time, at the fastest of many.
const NMEATimeUncertaintyNs = 100_000_000

// Edge is a moment at which a node had to act on time: the window's edges, a client's start, the attempt's end.
//
// At open and close the node samples the data sockets of its flows, at start it starts a flow's client, and at end it
// destroys what sockets the attempt has left. The record's own time is when that was done.
type Edge struct {
	Edge string `json:"edge" influx:"tag" redact:"keep"` // open | start | close | end
	// with start: the plan's name of the flow
	Flow string `json:"flow,omitempty" influx:"tag,absent=none" redact:"keep"`
	// when it should have been, boot clock; at the end, when it began
	DueBootNs int64   `json:"due_boot_ns" unit:"ns"`
	LateMs    float64 `json:"late_ms" unit:"ms"` // by how much it was later
	// at open and close: how long before it the sockets were sampled that were last sure to be before; absent: not
	// shortly before it
	EarlyMs *float64 `json:"early_ms,omitempty" unit:"ms"`
	Sockets int      `json:"sockets" min:"0"` // data sockets sampled, or at the end destroyed
	// data sockets that are gone and of whose end the kernel has not told: what they carried is not known
	Unknown int `json:"sockets_unknown" min:"0"`
	// to the flows' ports from other addresses, dropped during the attempt; at the end; absent where nothing refuses
	// any
	Refused *uint64 `json:"refused_packets,omitempty" unit:"packets"`
	Error   string  `json:"error,omitempty"` // why sockets could not be destroyed
	// of the flows', that this node's own packet filter let neither in nor out; at the end; absent where nothing counts
	// them
	Filtered *uint64 `json:"filtered_packets,omitempty" unit:"packets"`
	// the plan's name of a flow of which it let nothing in, or nothing out
	FilteredFlow string `json:"filtered_flow,omitempty" redact:"keep"`
	// connections from other addresses to the flows' ports, beyond those that are sampled
	Unwatched int `json:"strangers_unwatched,omitempty" min:"0"`
}

// Sources of a Lateness.
const (
	LateMedium  = "medium"
	LateSampler = "sampler"
	LateAgent   = "agent"
)

func (*Edge) Kind() string { return "edge" }

// Early reports whether the samples before the edge are nearer to it than its own.
func (e *Edge) Early() bool { return e.EarlyMs != nil && *e.EarlyMs < e.LateMs }

// OffMs returns how far from the edge the nearer of its samples are.
func (e *Edge) OffMs() float64 {
	if e.Early() {
		return *e.EarlyMs
	}
	return e.LateMs
}
