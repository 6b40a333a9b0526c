package wire

import "fmt"

// The agent's API: HTTP + JSON over mutual TLS 1.3; openapi.yaml is its
// description. Every call is idempotent: repeated, it changes nothing more.
//
//	GET  /v1/node                      NodeStatus
//	GET  /v1/clock                     ClockReply
//	PUT  /v1/lease                     Lease → Lease
//	PUT  /v1/runs/{run}                RunPlan → CampaignView
//	GET  /v1/runs/{run}?known=N&wait_ms=M   CampaignView; waits while its version is N
//	GET  /v1/runs/{run}/schedule       Schedule
//	POST /v1/runs/{run}/arm            TrialKey → CampaignView   (needs the lease)
//	POST /v1/runs/{run}/abort          AbortRequest → CampaignView
//	PUT  /v1/runs/{run}/verdicts       []Verdict → CampaignView  (needs the lease)
//	POST /v1/runs/{run}/end            → RestoreReport           (needs the lease)
//	GET  /v1/runs/{run}/capture?trial=N&attempt=N&offset=B&bytes=N   part of an attempt's packet capture
//	POST /v1/restore                   → RestoreReport
//	POST /v1/gps                       Fix → GPS; where the configuration says gpsd none
//	POST /v1/wifi                      WiFiReading → WiFi; by the app that has started the agent
//	POST /v1/notes                     Note → SpoolPosition
//	GET  /v1/attachments?sha256=H      AttachmentHeld; busy while an attempt is under way, as the next two
//	PUT  /v1/attachments               AttachmentPut → AttachmentHeld
//	GET  /v1/attachments/data?sha256=H&offset=B&bytes=N   part of a whole attachment
//	POST /v1/attachments/archived      AttachmentName → AttachmentHeld; the node lets it go
//	GET  /v1/records?epoch=E&after=SEQ&limit=N&wait_ms=M   NDJSON of fsynced records
//	POST /v1/records/confirm           Confirmation → SpoolStatus

// Roles of a peer, by its pinned key.
const (
	RoleController = "controller"
	RoleApp        = "app"
	RoleNode       = "node"
)

// Error is the body of every answer that is not 2xx.
type Error struct {
	Code    string `json:"code" pattern:"^[a-z0-9_]{1,64}$"` // a word a program can branch on
	Message string `json:"message" min:"1"`                  // where, what
	Cure    string `json:"cure,omitempty"`                   // what to do
}

func (e *Error) Error() string {
	if e.Cure == "" {
		return fmt.Sprintf("%s (%s)", e.Message, e.Code)
	}
	return fmt.Sprintf("%s (%s): %s", e.Message, e.Code, e.Cure)
}

// Lease lets one controller at a time steer a node.
type Lease struct {
	Holder string  `json:"holder" min:"1" max:"maxTextRunes"`
	TTLS   float64 `json:"ttl_s" min:"0" max:"3600"` // 0 gives it up
	// asked: the other nodes', as the controller heard them; answered: the node's own
	Places []Place `json:"places,omitempty" max:"MaxNodes"`
}

// TrialKey names one attempt at one trial of a run.
type TrialKey struct {
	Trial   int `json:"trial" min:"1" max:"MaxTrials"`
	Attempt int `json:"attempt" min:"1" max:"MaxAttempts"`
}

// AbortRequest ends an attempt, whatever its state.
type AbortRequest struct {
	TrialKey
	Reason string `json:"reason" max:"maxReasonRunes"`
	// another node has ended the attempt, and this one is to leave it too
	//
	// Without it the abort is somebody's wish, and interrupts the attempt.
	Follows bool `json:"follows,omitempty"`
}

// Verdict is the outcome of one attempt.
type Verdict struct {
	TrialKey
	Outcome Outcome `json:"outcome"` // accepted | rejected | failed | interrupted
	Reason  Reason  `json:"reason,omitzero" max:"maxReasonRunes"`
	Checks  []Check `json:"checks,omitempty" max:"256"`
	Final   bool    `json:"final"` // the controller's; an agent's is provisional
	Word    *Word   `json:"word,omitempty"`
	// what an accepted attempt measured, for a person to look at, as the controller tells it; it is judged by
	// nobody, and the archive has none
	ThroughputBps *float64 `json:"throughput_bps,omitempty"`
}

// Check is one acceptance rule with what was measured against it.
type Check struct {
	Rule     string   `json:"rule"`           // the acceptance key, e.g. in_band_share_min
	Node     string   `json:"node,omitempty"` // whose GPS; absent: the rule is on the attempt
	Limit    float64  `json:"limit"`
	Measured *float64 `json:"measured,omitempty"` // absent: could not be measured, which fails the check
	Pass     bool     `json:"pass"`
	Detail   string   `json:"detail,omitempty"`
}

// CampaignView is what a node knows of a run.
type CampaignView struct {
	Version  uint64        `json:"version" max:"1<<64-1"` // rises with every change
	Run      string        `json:"run"`
	Campaign string        `json:"campaign"`
	State    State         `json:"state"` // of the present trial: idle | loaded | armed | running | restoring | kept
	Current  *TrialKey     `json:"current,omitempty"`
	Detail   string        `json:"detail,omitempty"` // what it waits for, in words
	Trials   []TrialView   `json:"trials"`
	Position SpoolPosition `json:"position"` // newest durable record
	Live     *Live         `json:"live,omitempty"`
	Places   []Place       `json:"places,omitempty"`   // of the other nodes, as the controller told last
	ToStart  bool          `json:"to_start,omitempty"` // it is armed or arms, and the car has yet to stand at its start
	Ended    bool          `json:"ended,omitempty"`    // paused or ended: nothing begins until a controller takes it up
}

// TrialView is one trial's standing.
type TrialView struct {
	Number   int       `json:"number"`
	Attempts []Verdict `json:"attempts"`
}

// Live is the present moment, for a person to look at; not a record.
type Live struct {
	SpeedMps      *float64 `json:"speed_mps,omitempty"`
	TrackDeg      *float64 `json:"track_deg,omitempty" min:"0" max:"360"` // course over ground, from true north
	FixMode       int      `json:"fix_mode" min:"0" max:"3"`
	ThroughputBps *float64 `json:"throughput_bps,omitempty"` // at the receiver, over the last second
	RemainingS    *float64 `json:"remaining_s,omitempty"`
}

// ClockReply is the agent's clocks at one instant.
type ClockReply struct {
	BootNs int64 `json:"boot_ns"`
	WallNs int64 `json:"wall_ns"`
}

// SpoolPosition names the newest record of a spool.
type SpoolPosition struct {
	Epoch string `json:"epoch" form:"epochForm"`
	Seq   uint64 `json:"seq" max:"maxSeq"`
}

// Confirmation tells a node which records of a run are safe elsewhere. Over with seq 0 is of a run of which nobody has
// any: the node refuses it while the run is under way there.
type Confirmation struct {
	Run   string `json:"run" form:"runForm"`
	Epoch string `json:"epoch" form:"epochForm"`
	Seq   uint64 `json:"seq" max:"maxSeq"` // all of the run's records up to this one
	Over  bool   `json:"over,omitempty"`   // and nobody waits for more of the run, unless it makes another attempt
}

// SpoolStatus is how full a spool is.
type SpoolStatus struct {
	Newest     SpoolPosition `json:"newest"`
	Oldest     uint64        `json:"oldest_seq"`
	UsedBytes  int64         `json:"used_bytes"`
	QuotaBytes int64         `json:"quota_bytes"`
	FreeBytes  int64         `json:"disk_free_bytes"`
	// What it can still take, by the quota and by the disk less what is left to others, once
	// it has dropped what the controller has confirmed.
	RoomBytes *int64 `json:"room_bytes,omitempty"`
	// The runs of which it has records that no controller has confirmed, oldest first; absent where there are none.
	UnconfirmedRuns []string `json:"unconfirmed_runs,omitempty"`
}

// GeneratorTryMaxS is how long a node's traffic generator may take to send to itself:
// a tenth of a second, but for a slow device that is busy.
const GeneratorTryMaxS = 16

// NodeStatus is what a node is, can and has at the moment.
type NodeStatus struct {
	Node        string            `json:"node"`
	Version     string            `json:"version"`
	Kernel      string            `json:"kernel"`
	Arch        string            `json:"arch"`
	Interface   string            `json:"interface"`
	InterfaceUp *bool             `json:"interface_up,omitempty"` // absent: no such interface
	MAC         string            `json:"mac,omitempty"`
	Tools       map[string]string `json:"tools"` // found, with versions
	Congestion  []string          `json:"congestion_available"`
	GPS         *GPS              `json:"gps,omitempty"`
	GPSRateHz   *float64          `json:"gps_rate_hz,omitempty"`
	Spool       SpoolStatus       `json:"spool"`
	Host        HostStatus        `json:"host"`
	Run         string            `json:"run,omitempty"` // that it holds
	Clock       ClockReply        `json:"clock"`
	Problems    []Problem         `json:"problems"`     // what stands in the way of a trial
	MemoryBytes int64             `json:"memory_bytes"` // resident, of the network face
	Radio       *Caps             `json:"radio,omitempty"`
	// the control link's own; absent: control goes over the mesh
	ControlInterface string `json:"control_interface,omitempty"`
	// that by which who asks has come; absent where that is not known
	ReachedBy string     `json:"reached_by,omitempty"`
	Machine   *Machine   `json:"machine,omitempty"`
	WallClock *WallClock `json:"wall_clock,omitempty"`
	// those in which a plan's addresses may lie here; absent from an agent that does not tell
	AllowedPrefixes []string `json:"allowed_prefixes,omitempty"`
	// none: the agent runs without root and changes nothing; absent: it has a privileged half
	Privileges string `json:"privileges,omitempty"`
	// what its records will lack, because the system does not let it be read
	Absent []string `json:"absent,omitempty"`
	// its gates wait for a car at its start; absent from an agent that opens them without
	AtStart bool `json:"at_start,omitempty"`
	// that it holds of the run; absent where the run is driven whole
	Shard *Shard `json:"shard,omitempty"`
	// the runs of which it has captures; absent where there are none
	CaptureRuns []string `json:"capture_runs,omitempty"`
}

// NoPrivileges is the privileges of a node whose agent runs without root.
const NoPrivileges = "none"

// HostStatus is what the privileged half says of itself.
type HostStatus struct {
	Reached bool     `json:"reached"`
	Pending []string `json:"pending"`          // changes in force that have an undo in the journal
	Failed  []string `json:"failed,omitempty"` // what a restore could not undo, with the reason
	// how many of failed, the last, are lines of a damaged journal, which no restore tries again
	Damaged int    `json:"damaged,omitempty"`
	Detail  string `json:"detail,omitempty"` // what it did by itself, such as a dead-man restore
	// random for each life of the privileged half: when it changes, everything that was in force before has been put
	// back
	Instance string `json:"instance,omitempty"`
	// random for each time that somebody at the machine has had everything put back, by `fieldmesh-agent restore`; it
	// outlives the privileged half; absent: nobody has
	ByHand string `json:"by_hand,omitempty"`
	// of each variant and knob of the transport, whether it can be had here; absent from an agent that does not tell
	TCP []Ability `json:"tcp,omitempty"`
	// level of the Android that runs on the node; absent: none does
	AndroidAPI int `json:"android_api,omitempty"`
	// what it goes by of the configuration that it began with; absent from an agent that does not tell
	Settings []string `json:"settings,omitempty"`
}

// DestroySockets is the feature that a trial's connections can be ended with it.
const DestroySockets = "destroy_sockets"

// RoutesInUse is the feature that the kernel tells a routing daemon which routes data uses.
const RoutesInUse = "routes_in_use"

// Ability is whether a machine can do something, and how.
type Ability struct {
	Feature string `json:"feature"`          // "variant tahoe", "fixed_rto", "destroy_sockets", "routes_in_use"
	How     string `json:"how"`              // native: the kernel's own; bpf: loaded into it; compiled: into it; none
	Reason  string `json:"reason,omitempty"` // none: what stands in the way
	Needs   string `json:"needs,omitempty"`  // none: what would do, such as "Linux 6.15"
}

// Problem is one need that is not met, with its cure.
type Problem struct {
	Need  string `json:"need"` // radio, gps, iperf3, clock, disk, host, journal, tcp …
	Found string `json:"found"`
	Cure  string `json:"cure"`
}

// NeedJournal is the need of a node whose journal was damaged: what a lost line has changed may be in force.
const NeedJournal = "journal"

// RestoreReport is what a restore did.
type RestoreReport struct {
	Undone []string `json:"undone"`
	Failed []string `json:"failed"` // what could not be undone, with the reason
	// how many of failed, the last, are lines of a damaged journal, which no restore tries again
	Damaged int `json:"damaged,omitempty"`
	// why what this restore did is not on disk, as on one that is read-only: the next one does it again
	Unrecorded []string `json:"unrecorded,omitempty"`
}

// NotUndone is what the next restore tries again, and what none can undo.
func (r RestoreReport) NotUndone() (again, damage []string) {
	n := len(r.Failed) - min(max(r.Damaged, 0), len(r.Failed))
	return r.Failed[:n], r.Failed[n:]
}

// Lines words the report, a line for each change.
func (r RestoreReport) Lines() []string {
	var out []string
	for _, what := range r.Undone {
		out = append(out, "undone: "+what)
	}
	for _, what := range r.Failed {
		out = append(out, "NOT undone: "+what)
	}
	for _, why := range r.Unrecorded {
		out = append(out, "not recorded, so that the next restore does it again: "+why)
	}
	if out == nil {
		return []string{"nothing to put back"}
	}
	return out
}
