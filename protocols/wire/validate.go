package wire

import (
	"fmt"
	"math"
	"net/netip"
	"slices"
	"strings"
	"unicode/utf8"
)

// Bounds of a plan. They keep out what no campaign needs and a node could not
// carry; a campaign's own sense is the planner's to check.
const (
	MaxNodes    = 200
	MaxTrials   = 12000
	MaxAttempts = 1000
	MaxFlows    = 128
	MaxLeadS    = 600 // from GO to the window: what warms the network up lies there
	MaxStreams  = 128 // iperf3's own limit of parallel streams
	GoKeyBytes  = 32  // RunPlan.Key
	// MaxWindowPackets is what a window of 1 GiB holds, in segments of 1 KiB.
	MaxWindowPackets = 1 << 20
	// Bounds of a least RTO: a kernel's tick is 1 to 10 ms, and RFC 6298 wants a
	// longest RTO of at least a minute.
	RTOMinMsLeast, RTOMinMsMost = 10, 60_000
	maxSeconds                  = 24 * 3600. // of anything in a trial
	maxMetres                   = 1e6
	maxSpeedMps                 = 150.
	minOpenPort                 = 1024 // the agent's network face has no right to lower ones
	maxPort                     = 65535
	maxTextRunes                = 256
)

var (
	runForm     = formOf(`^[a-z0-9-]{1,64}$`)
	nodeForm    = formOf(`^[a-z0-9-]{1,32}$`)
	flowForm    = formOf(`^[A-Za-z0-9_-]{1,32}$`)
	shaForm     = formOf(`^[0-9a-f]{64}$`)
	hostForm    = formOf(`^[A-Za-z0-9.:%_-]{1,253}$`)
	bssidForm   = formOf(`^([0-9A-Fa-f]{2}:){5}[0-9A-Fa-f]{2}$`)
	epochForm   = formOf(`^[A-Za-z0-9_-]{1,64}$`)
	variantForm = formOf(`^[A-Za-z0-9_-]{1,15}$`) // TCP_CA_NAME_MAX is 16 with the final zero
)

// CheckRunName refuses what cannot be a run's name: [a-z0-9-], 1 to 64 characters.
func CheckRunName(run string) error {
	if !runForm.MatchString(run) {
		return Errorf(CodeBadRequest, "run name %.80q is not 1 to 64 characters of a to z, 0 to 9 and -", run)
	}
	return nil
}

// CheckEpoch refuses what cannot name a spool: letters, digits, _ and -, 1 to 64 of them.
func CheckEpoch(epoch string) error {
	if !epochForm.MatchString(epoch) {
		return Errorf(CodeBadRequest, "epoch %.80q is not 1 to 64 letters, digits, _ and -", epoch)
	}
	return nil
}

// Validate refuses a plan that no node could run: the first fault that it
// finds, an *Error with code bad_request whose message names the field.
func (p RunPlan) Validate() error {
	c := &checker{}
	c.match("run", p.Run, runForm, "1 to 64 characters of a to z, 0 to 9 and -")
	c.text("campaign", p.Campaign, 1)
	c.match("campaign_sha256", p.CampaignSHA256, shaForm, "64 lower-case hexadecimal digits")
	c.that(len(p.Key) == GoKeyBytes, "key", "%d bytes, want %d", len(p.Key), GoKeyBytes)
	c.integer("attempts_max", p.AttemptsMax, 1, MaxAttempts)
	c.that(p.Control == "" || p.Control == ControlOwn || p.Control == ControlMesh, "control", "%.80q is neither own nor mesh", p.Control)
	c.integer("nodes", len(p.Nodes), 1, MaxNodes)
	c.integer("trials", len(p.Trials), 1, MaxTrials)
	nodes := map[string]bool{}
	addresses := map[netip.Addr]string{}
	for i, n := range p.Nodes {
		c.at("nodes[%d].", i)
		n.check(c, nodes, addresses)
	}
	for i, t := range p.Trials {
		c.at("trials[%d].", i)
		c.that(t.Number == i+1, "number", "%d, want %d: trials are numbered from 1 in their order", t.Number, i+1)
		t.check(c, nodes)
		if c.fault != nil {
			break
		}
	}
	if c.fault != nil {
		return c.fault
	}
	return nil
}

func (n PlanNode) check(c *checker, nodes map[string]bool, addresses map[netip.Addr]string) {
	c.match("name", n.Name, nodeForm, "1 to 32 characters of a to z, 0 to 9 and -")
	c.that(!nodes[n.Name], "name", "%q is there twice", n.Name)
	nodes[n.Name] = true
	c.text("unit", n.Unit, 0)
	prefix, err := netip.ParsePrefix(n.MeshPrefix)
	c.that(err == nil, "mesh_prefix", "%.80q is not an address with a prefix length, as 10.77.0.1/24", n.MeshPrefix)
	address := prefix.Addr()
	c.that(err != nil || address.IsGlobalUnicast() || address.IsLinkLocalUnicast(), "mesh_prefix", "%s is not the address of one node", address)
	c.that(addresses[address] == "", "mesh_prefix", "%s is %q's already", address, addresses[address])
	addresses[address] = n.Name
	if n.ControlAddr != "" {
		c.match("control_addr", n.ControlAddr, hostForm, "an address or a host name")
	}
	c.integer("go_port", n.GoPort, minOpenPort, maxPort)
}

func (t Trial) check(c *checker, nodes map[string]bool) {
	c.integer("block", t.Block, 0, MaxTrials)
	c.integer("repetition", t.Repetition, 0, MaxTrials)
	c.oneOf("pass", t.Pass, "", "calibration")
	c.integer("factors", len(t.Factors), 0, 64)
	for name, level := range t.Factors {
		c.text("factors", name, 1)
		c.text("factors", level, 0)
	}
	t.checkRoles(c, nodes)
	c.optional("speed_mps", t.SpeedMps, 0, maxSpeedMps)
	c.oneOf("direction", t.Direction, "", "outbound", "inbound")
	c.positive("duration_s", t.DurationS, maxSeconds)
	t.Course.check(c)
	t.checkGate(c)
	t.Radio.check(c)
	t.Routing.check(c)
	c.match("tcp.variant", t.TCP.Variant, variantForm, "the kernel's name of a congestion control, as reno")
	c.wholes("tcp.window_packets", t.TCP.WindowPackets, 1, MaxWindowPackets)
	c.wholes("tcp.rto_min_ms", t.TCP.RTOMinMs, RTOMinMsLeast, RTOMinMsMost)
	t.Conditions.check(c)
	t.Acceptance.check(c)
	t.checkRecording(c)
	t.checkTraffic(c)
}

func (r Routing) check(c *checker) {
	c.oneOf("routing.protocol", r.Protocol, RoutingProtocols()...)
	c.optional("routing.hello_s", r.HelloS, 0.1, 60)
	c.oneOf("routing.ready", r.Ready, append([]string{""}, RoutingReadiness()...)...)
	c.that(r.Ready == "" || r.Protocol != "none" && r.Protocol != "static", "routing.ready", "routing %s has no daemon to wait for", r.Protocol)
	c.optional("routing.ready_s", r.ReadyS, 1, RoutingReadyMaxS)
	c.optional("routing.probe_hz", r.ProbeHz, ProbeHzMin, ProbeHzMax)
}

func (o *Conditions) check(c *checker) {
	if o == nil {
		return
	}
	c.optional("conditions.channel_error_mean", o.ChannelErrorMean, 0, 0.95)
	c.optional("conditions.channel_error_burst_frames", o.ChannelErrorBurstFrames, 1, 1e6)
	c.wholes("conditions.queue_frames", o.QueueFrames, 1, 10_000)
	c.optional("conditions.speed_min_mps", o.SpeedMinMps, 0, maxSpeedMps)
	c.optional("conditions.speed_max_mps", o.SpeedMaxMps, 0, maxSpeedMps)
}

func (t Trial) checkRecording(c *checker) {
	if t.SampleHz != nil {
		c.integer("sample_hz", *t.SampleHz, SampleHzMin, SampleHzMax)
	}
	if t.RelaySampleHz != nil {
		c.integer("relay_sample_hz", *t.RelaySampleHz, 1, SampleHzMin)
	}
	if t.Capture != nil {
		c.integer("capture.snap_bytes", t.Capture.SnapBytes, SnapBytesMin, SnapBytesMax)
		if t.Capture.Offloads != "" {
			c.oneOf("capture.offloads", t.Capture.Offloads, OffloadsOff, OffloadsRecorded)
		}
	}
}

func (t Trial) checkRoles(c *checker, nodes map[string]bool) {
	role := func(field, node string, needed bool) {
		c.that(nodes[node] || node == "" && !needed, field, "%.80q is not a node of this plan", node)
	}
	role("sender", t.Sender, true)
	role("receiver", t.Receiver, true)
	role("initiator", t.Initiator, true)
	role("car", t.Car, false)
	role("roadside", t.Roadside, false)
	c.that(t.Sender != t.Receiver, "receiver", "%q is the sender too", t.Receiver)
	c.that(t.Car == "" || t.Car != t.Roadside, "roadside", "%q is the car too", t.Roadside)
	for i, relay := range t.Relays {
		role(fmt.Sprintf("relays[%d]", i), relay, true)
		c.that(!slices.Contains(t.Relays[:i], relay), fmt.Sprintf("relays[%d]", i), "%q is there twice", relay)
	}
}

func (o Course) check(c *checker) {
	c.oneOf("course.kind", o.Kind, "depart", "pass", "loop", "segment", "parked", "none")
	c.number("course.start_m", o.StartM, -maxMetres, maxMetres)
	c.number("course.offset_m", o.OffsetM, -maxMetres, maxMetres)
	c.number("course.accel_mps2", o.AccelMps2, 0, 100)
	c.number("course.brake_mps2", o.BrakeMps2, 0, 100)
	c.number("course.heading_deg", o.HeadingDeg, 0, 360)
	c.optional("course.segment_m", o.SegmentM, -maxMetres, maxMetres)
	c.optional("course.mark_m", o.MarkM, -maxMetres, maxMetres)
	if o.LengthM != nil {
		c.positive("course.length_m", *o.LengthM, maxMetres)
	}
	c.that(o.Kind != "segment" || o.SegmentM != nil, "course.segment_m", "missing; a segment needs it")
	c.that(o.Kind != "segment" && o.Kind != "loop" || o.LengthM != nil, "course.length_m", "missing; a %s needs it", o.Kind)
	c.that(o.Kind != "parked" || o.MarkM != nil, "course.mark_m", "missing; a parked pass needs it")
	c.optional("course.site_lat_deg", o.SiteLatDeg, -90, 90)
	c.optional("course.site_lon_deg", o.SiteLonDeg, -180, 180)
	c.that((o.SiteLatDeg == nil) == (o.SiteLonDeg == nil), "course.site_lat_deg", "latitude and longitude go together")
}

func (t Trial) checkGate(c *checker) {
	g := t.Gate
	c.number("gate.hold_s", g.HoldS, 0, maxSeconds)
	c.optional("gate.place_m", g.PlaceM, -maxMetres, maxMetres)
	c.optional("gate.after_s", g.AfterS, 0, maxSeconds)
	c.positive("gate.timeout_s", g.TimeoutS, maxSeconds)
	c.number("gate.lead_s", g.LeadS, 0, MaxLeadS)
	if g.SpeedBand {
		c.that(t.SpeedMps != nil, "gate.speed_band", "true needs speed_mps")
		c.that(t.Acceptance.SpeedBandMps != nil, "gate.speed_band", "true needs acceptance.speed_band_mps")
	}
}

func (r Radio) check(c *checker) {
	c.oneOf("radio.mode", r.Mode, "adhoc", "mesh", ModeInfrastructure, "none")
	c.that((r.Mode == ModeInfrastructure) == (r.AccessPoint != ""), "radio.access_point", "goes with mode %s, which needs it", ModeInfrastructure)
	c.oneOf("radio.standard", r.Standard, "", "802.11a", "802.11b", "802.11g")
	least := 1
	if r.Mode == "none" {
		least = 0
	}
	c.integer("radio.channel", r.Channel, least, 196)
	c.that(len(r.SSID) <= 32, "radio.ssid", "%d bytes; at most 32 (IEEE 802.11-2020, 9.4.2.2)", len(r.SSID))
	if r.BSSID != "" {
		c.match("radio.bssid", r.BSSID, bssidForm, "a MAC address, as 02:11:22:33:44:55")
	}
	c.wholes("radio.rts_threshold_bytes", r.RTSThresholdBytes, 1, RTSNever)
	c.wholes("radio.retry_limit", r.RetryLimit, 1, 255)
	c.optional("radio.tx_power_dbm", r.TxPowerDbm, -50, 50)
	if r.RateMbps != nil {
		c.positive("radio.rate_mbps", *r.RateMbps, 10000)
	}
}

func (a Acceptance) check(c *checker) {
	c.optional("acceptance.speed_band_mps", a.SpeedBandMps, 0, maxSpeedMps)
	c.optional("acceptance.in_band_share_min", a.InBandShareMin, 0, 1)
	c.optional("acceptance.fix_age_ms_max", a.FixAgeMsMax, 0, maxSeconds*1000)
	c.optional("acceptance.clock_error_ms_max", a.ClockErrorMsMax, 0, maxSeconds*1000)
	c.optional("acceptance.lateness_share_max", a.LatenessShareMax, 0, 1)
	c.wholes("acceptance.hops_min", a.HopsMin, 1, MaxNodes-1)
	if a.FixModeMin != nil {
		c.integer("acceptance.fix_mode_min", *a.FixModeMin, 0, 3)
	}
}

func (t Trial) checkTraffic(c *checker) {
	c.integer("traffic", len(t.Traffic), 1, MaxFlows)
	taking := t.Nodes()
	measured, main := 0, false
	for i, f := range t.Traffic {
		c.field = fmt.Sprintf("traffic[%d].", i)
		f.check(c, taking)
		for _, other := range t.Traffic[:i] {
			c.that(f.Name != other.Name, "name", "%q is there twice", f.Name)
			c.that(!f.sharesServer(other), "port", "%d on %q is flow %q's already", f.Port, f.Server(), other.Name)
			c.that(!f.sharesClientPorts(other), "client_port", "%d to %d on %q meet those of flow %q", f.ClientPort, f.ClientPort+f.Streams-1, f.Client(), other.Name)
		}
		if !f.Background {
			measured++
			main = main || f.From == t.Sender && f.To == t.Receiver
		}
	}
	c.field = ""
	c.that(measured > 0, "traffic", "every flow is in the background; one must be measured")
	c.that(measured == 0 || main, "traffic", "no measured flow goes from the sender %q to the receiver %q", t.Sender, t.Receiver)
}

func (f Flow) check(c *checker, taking []string) {
	c.match("name", f.Name, flowForm, "1 to 32 letters, digits, _ and -")
	c.oneOf("kind", f.Kind, "iperf3_tcp", "iperf3_udp")
	c.that(slices.Contains(taking, f.From), "from", "%.80q has no part in this trial", f.From)
	c.that(slices.Contains(taking, f.To), "to", "%.80q has no part in this trial", f.To)
	c.that(f.From != f.To, "to", "%q is the flow's other end too", f.To)
	c.integer("port", f.Port, minOpenPort, maxPort)
	c.integer("streams", f.Streams, 1, MaxStreams)
	if f.Kind == "iperf3_tcp" || f.ClientPort != 0 {
		c.integer("client_port", f.ClientPort, minOpenPort, maxPort+1-f.Streams)
	}
	if f.WindowBytes != nil {
		c.integer("window_bytes", *f.WindowBytes, 1, 1<<30)
	}
	if f.PayloadBytes != nil {
		c.integer("payload_bytes", *f.PayloadBytes, 16, 65507) // RFC 768 over RFC 791: 65535 − 20 − 8
	}
	if f.BitrateBps != nil {
		c.positive("bitrate_bps", *f.BitrateBps, 1e12)
	}
	c.that(f.Kind != "iperf3_udp" || f.BitrateBps != nil, "bitrate_bps", "missing; UDP needs it")
	c.number("start_s", f.StartS, -MaxLeadS, maxSeconds)
	c.positive("duration_s", f.DurationS, maxSeconds)
}

// sharesServer says whether two iperf3 servers would listen on one port.
func (f Flow) sharesServer(o Flow) bool { return f.Port == o.Port && f.Server() == o.Server() }

func (f Flow) sharesClientPorts(o Flow) bool {
	return f.ClientPort != 0 && o.ClientPort != 0 && f.Kind == o.Kind && f.Client() == o.Client() &&
		f.ClientPort < o.ClientPort+o.Streams && o.ClientPort < f.ClientPort+f.Streams
}

// checker keeps the first fault; after it every check passes.
type checker struct {
	place string // e.g. "trials[3]."
	field string // e.g. "traffic[0]."
	fault *Error
}

func (c *checker) at(format string, args ...any) {
	if c.fault == nil {
		c.place, c.field = fmt.Sprintf(format, args...), ""
	}
}

func (c *checker) that(ok bool, field, format string, args ...any) {
	if !ok && c.fault == nil {
		c.fault = Errorf(CodeBadRequest, "plan: %s%s%s: %s", c.place, c.field, field, fmt.Sprintf(format, args...))
	}
}

func (c *checker) match(field, value string, form *form, want string) {
	c.that(form.MatchString(value), field, "%.80q is not %s", value, want)
}

func (c *checker) oneOf(field, value string, allowed ...string) {
	if !slices.Contains(allowed, value) {
		c.that(false, field, "%.80q is not one of %s", value, strings.TrimPrefix(strings.Join(allowed, ", "), ", "))
	}
}

func (c *checker) text(field, value string, least int) {
	n := utf8.RuneCountInString(value)
	c.that(n >= least && n <= maxTextRunes, field, "%d characters long, want %d to %d", n, least, maxTextRunes)
}

func (c *checker) integer(field string, value, least, most int) {
	c.that(value >= least && value <= most, field, "%d is not within %d to %d", value, least, most)
}

// number fails for NaN too, which no comparison holds for.
func (c *checker) number(field string, value, least, most float64) {
	c.that(value >= least && value <= most, field, "%v is not within %v to %v", value, least, most)
}

func (c *checker) optional(field string, value *float64, least, most float64) {
	if value != nil {
		c.number(field, *value, least, most)
	}
}

func (c *checker) wholes(field string, value *int, least, most int) {
	if value != nil {
		c.integer(field, *value, least, most)
	}
}

func (c *checker) positive(field string, value, most float64) {
	c.that(value > 0 && value <= most && !math.IsInf(value, 0), field, "%v is not above 0 and at most %v", value, most)
}
