package wire

import (
	"fmt"
	"math"
	"net/netip"
	"slices"
)

// Bounds of a plan. They keep out what no campaign needs and a node could not
// carry; a campaign's own sense is the planner's to check.
const (
	MaxNodes    = 200
	MaxTrials   = 12000 // more would be more than the 24 MiB that a node takes of a plan
	MaxAttempts = 1000
	MaxFlows    = 128
	MaxLeadS    = 600 // from GO to the window: what warms the network up lies there
	// ReturnS is how long a car may take from one trial's end to the next one's start, where its gate waits for that.
	ReturnS = 1200.0
	// AtStartM is how far from its start a car may stand, along the road and across. A receiver that augments GPS by
	// nothing is off by 5 m under an open sky (GPS.gov, GPS accuracy), by some times that beside trees and walls, and
	// the roadside's mark may come from such a receiver too.
	AtStartM   = 25.0
	MaxStreams = 128 // iperf3's own limit of parallel streams
	GoKeyBytes = 32  // RunPlan.Key
	// MaxWindowPackets is what a window of 1 GiB holds, in segments of 1 KiB.
	MaxWindowPackets = 1 << 20
	// Bounds of a least RTO: a kernel's tick is 1 to 10 ms, and RFC 6298 wants a
	// longest RTO of at least a minute.
	RTOMinMsLeast, RTOMinMsMost = 10, 60_000
	// Bounds of a largest RTO: those of the kernel's tcp_rto_max_ms.
	RTOMaxMsLeast, RTOMaxMsMost = 1000, 120_000
	maxSeconds                  = 24 * 3600. // of anything in a trial
	maxMetres                   = 1e6
	maxSpeedMps                 = 150.
	minOpenPort                 = 1024 // the agent's network face has no right to lower ones
	maxPort                     = 65535
	maxTextRunes                = 256
	maxChannel                  = 196
	maxSSIDBytes                = 32        // IEEE 802.11-2020, 9.4.2.2
	maxUDPBytes                 = 65507     // RFC 768 over RFC 791: 65535 − 20 − 8
	maxSeq                      = 1<<63 - 1 // of a spool
)

var (
	runForm    = formOf(`^[a-z0-9-]{1,64}$`, "1 to 64 characters of a to z, 0 to 9 and -")
	nodeForm   = formOf(`^[a-z0-9-]{1,32}$`, "1 to 32 characters of a to z, 0 to 9 and -")
	flowForm   = formOf(`^[A-Za-z0-9_-]{1,32}$`, "1 to 32 letters, digits, _ and -")
	shaForm    = formOf(`^[0-9a-f]{64}$`, "64 lower-case hexadecimal digits")
	hostForm   = formOf(`^[A-Za-z0-9.:%_-]{1,253}$`, "an address or a host name")
	prefixForm = formOf(`^[0-9A-Fa-f:.]{2,45}/[0-9]{1,3}$`, "an address with a prefix length, as 10.77.0.1/24")
	bssidForm  = formOf(`^([0-9A-Fa-f]{2}:){5}[0-9A-Fa-f]{2}$`, "a MAC address, as 02:11:22:33:44:55")
	epochForm  = formOf(`^[A-Za-z0-9_-]{1,64}$`, "1 to 64 letters, digits, _ and -")
	noteForm   = formOf(`^[A-Za-z0-9_-]{1,64}$`, "1 to 64 letters, digits, _ and -")
	timeForm   = formOf(`^[0-9TZ:.+-]{0,40}$`, "a time")
	// TCP_CA_NAME_MAX is 16 with the final zero
	variantForm = formOf(`^[A-Za-z0-9_-]{1,15}$`, "the kernel's name of a congestion control, as reno")
)

// CheckRunName refuses what cannot be a run's name: [a-z0-9-], 1 to 64 characters.
func CheckRunName(run string) error {
	if !runForm.MatchString(run) {
		return Errorf(CodeBadRequest, "run name %.80q is not %s", run, runForm.words)
	}
	return nil
}

// CheckEpoch refuses what cannot name a spool: letters, digits, _ and -, 1 to 64 of them.
func CheckEpoch(epoch string) error {
	if !epochForm.MatchString(epoch) {
		return Errorf(CodeBadRequest, "epoch %.80q is not %s", epoch, epochForm.words)
	}
	return nil
}

// Validate refuses a plan that no node could run: the first fault that it
// finds, an *Error with code bad_request whose message names the field. What a
// field may hold by itself its tags say (bounds.go); here is what goes together.
func (p RunPlan) Validate() error {
	c := &checker{of: "plan: "}
	p.bounds(c)
	if s := p.Shard; s != nil {
		c.that(s.Number <= s.Of, "shard", "there is no shard %s", s)
	}
	nodes := map[string]bool{}
	addresses := map[netip.Addr]string{}
	for i, n := range p.Nodes {
		c.element("nodes", i)
		n.check(c, nodes, addresses)
		c.leave()
	}
	for i := range p.Trials {
		if c.fault != nil {
			break
		}
		c.element("trials", i)
		t := &p.Trials[i]
		c.that(t.Number == i+1, "number", "%d, want %d: trials are numbered from 1 in their order", t.Number, i+1)
		t.check(c, nodes)
		one := t.Radio.sameHotspot(p.Trials[0].Radio)
		c.that(one, "radio", "with mode %s all trials of a run have one radio", ModeHotspot)
		c.leave()
	}
	return c.err()
}

func (n PlanNode) check(c *checker, nodes map[string]bool, addresses map[netip.Addr]string) {
	c.that(!nodes[n.Name], "name", "%q is there twice", n.Name)
	nodes[n.Name] = true
	prefix, err := netip.ParsePrefix(n.MeshPrefix)
	c.that(err == nil, "mesh_prefix", "%.80q is not %s", n.MeshPrefix, prefixForm.words)
	address := prefix.Addr()
	one := err != nil || address.IsGlobalUnicast() || address.IsLinkLocalUnicast()
	c.that(one, "mesh_prefix", "%s is not the address of one node", address)
	c.that(addresses[address] == "", "mesh_prefix", "%s is %q's already", address, addresses[address])
	addresses[address] = n.Name
}

func (t *Trial) check(c *checker, nodes map[string]bool) {
	for name, level := range t.Factors {
		c.text("factors", name, 1, maxTextRunes)
		c.text("factors", level, 0, maxTextRunes)
	}
	t.checkRoles(c, nodes)
	t.Course.check(c)
	if t.Gate.SpeedBand {
		c.that(t.SpeedMps != nil, "gate.speed_band", "true needs speed_mps")
		c.that(t.Acceptance.SpeedBandMps != nil, "gate.speed_band", "true needs acceptance.speed_band_mps")
	}
	t.Radio.check(c)
	r := t.Routing
	daemon := r.Protocol != "none" && r.Protocol != "static"
	c.that(r.Ready == "" || daemon, "routing.ready", "routing %s has no daemon to wait for", r.Protocol)
	t.checkTraffic(c)
}

func (t *Trial) checkRoles(c *checker, nodes map[string]bool) {
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

// ReturnS is how long the gate waits for the car to come to its start.
func (g Gate) ReturnS() float64 {
	if g.AtStart {
		return ReturnS
	}
	return 0
}

// ReturnArmingS is how much longer the initiator may take to arm, because the car comes back into reach meanwhile:
// there it joins the network of another, and routing has its time once more.
func (t *Trial) ReturnArmingS() float64 {
	ready := t.Routing.ReadyLimit().Seconds()
	if t.Gate.AtStart && (ready > 0 || t.Radio.HasAccessPoint() && t.Radio.AccessPoint != t.Initiator) {
		return ReturnS + ready
	}
	return 0
}

// FromM is where the car stands before it sets off, or parked: in m along the road from the roadside node's mark.
// Inbound, a course is its mirror image: about the roadside node, or for a segment about the segment.
func (o Course) FromM(inbound bool) float64 {
	sign := 1.0
	if inbound {
		sign = -1
	}
	switch {
	case o.Kind == "parked" && o.MarkM != nil:
		return *o.MarkM
	case o.Kind == "pass": // whatever side start_m names, the car has the node before it
		return -sign * math.Abs(o.StartM)
	case o.Kind != "segment":
		return sign * o.StartM
	case inbound && o.SegmentM != nil && o.LengthM != nil:
		return 2**o.SegmentM + *o.LengthM - o.StartM
	}
	return o.StartM
}

// Begins reports whether a gate waits until the car has stood where it begins, unless a campaign says otherwise.
// Without that the drive back from the trial before, at the right speed, would open it. A car that is parked needs no
// site otherwise.
func (o Course) Begins() bool {
	return o.Kind == "depart" || o.Kind == "pass" || o.Kind == "segment" || o.Kind == "parked" && o.SiteLatDeg != nil
}

func (o Course) check(c *checker) {
	c.that(o.Kind != "segment" || o.SegmentM != nil, "course.segment_m", "missing; a segment needs it")
	c.that(o.Kind != "segment" && o.Kind != "loop" || o.LengthM != nil, "course.length_m",
		"missing; a %s needs it", o.Kind)
	c.that(o.Kind != "parked" || o.MarkM != nil, "course.mark_m", "missing; a parked pass needs it")
	c.that((o.SiteLatDeg == nil) == (o.SiteLonDeg == nil), "course.site_lat_deg", "latitude and longitude go together")
}

// sameHotspot reports whether two radios are one hotspot, or neither is one.
func (r Radio) sameHotspot(o Radio) bool {
	if r.Mode != ModeHotspot && o.Mode != ModeHotspot {
		return true
	}
	return r.Mode == o.Mode && r.SSID == o.SSID && r.Channel == o.Channel && r.AccessPoint == o.AccessPoint
}

func (r Radio) check(c *checker) {
	fits := r.HasAccessPoint() == (r.AccessPoint != "")
	c.that(fits, "radio.access_point", "goes with modes %s and %s, which need it", ModeInfrastructure, ModeHotspot)
	c.that(r.Mode == "none" || r.Channel > 0, "radio.channel", "%d is not within 1 to %d", r.Channel, maxChannel)
	c.that(len(r.SSID) <= maxSSIDBytes, "radio.ssid", "%d bytes; at most %d", len(r.SSID), maxSSIDBytes)
}

func (t *Trial) checkTraffic(c *checker) {
	taking := t.Nodes()
	measured, main := 0, false
	for i, f := range t.Traffic {
		c.element("traffic", i)
		f.check(c, taking)
		for _, other := range t.Traffic[:i] {
			c.that(f.Name != other.Name, "name", "%q is there twice", f.Name)
			c.that(!f.sharesServer(other), "port", "%d on %q is flow %q's already", f.Port, f.Server(), other.Name)
			c.that(!f.sharesClientPorts(other), "client_port", "%d to %d on %q meet those of flow %q", f.ClientPort,
				f.ClientPort+f.Streams-1, f.Client(), other.Name)
		}
		if !f.Background {
			measured++
			main = main || f.From == t.Sender && f.To == t.Receiver
		}
		c.leave()
	}
	c.that(measured > 0, "traffic", "every flow is in the background; one must be measured")
	c.that(measured == 0 || main, "traffic", "no measured flow goes from the sender %q to the receiver %q",
		t.Sender, t.Receiver)
}

func (f Flow) check(c *checker, taking []string) {
	c.that(slices.Contains(taking, f.From), "from", "%.80q has no part in this trial", f.From)
	c.that(slices.Contains(taking, f.To), "to", "%.80q has no part in this trial", f.To)
	c.that(f.From != f.To, "to", "%q is the flow's other end too", f.To)
	if f.Kind != "iperf3_udp" || f.ClientPort != 0 {
		c.integer("client_port", f.ClientPort, minOpenPort, maxPort+1-f.Streams)
	}
	c.that(f.Kind != "iperf3_udp" && f.Kind != KindCBR || f.BitrateBps != nil, "bitrate_bps", "missing; UDP needs it")
	c.that((f.Kind == KindDelay) == (f.IntervalMs != nil), "interval_ms", "goes with kind delay, which needs it")
	if !f.Timed() {
		return
	}
	c.that(f.PayloadBytes != nil, "payload_bytes", "missing; kind %s needs it", f.Kind)
	if f.PayloadBytes != nil {
		c.integer("payload_bytes", *f.PayloadBytes, DelayBytesMin, DelayBytesMax)
	}
	if f.Kind == KindCBR && f.PayloadBytes != nil && f.BitrateBps != nil {
		apart := f.ApartMs()
		c.that(apart >= CBRMsMin && apart <= CBRMsMax, "bitrate_bps", "with payload_bytes it has a datagram every %g "+
			"ms; kind cbr has one every %d to %d ms", apart, CBRMsMin, CBRMsMax)
	}
	c.that(f.Streams == 1, "streams", "%d; kind %s has one", f.Streams, f.Kind)
	c.that(!f.Reverse, "reverse", "true; kind %s sends from its sender", f.Kind)
	fits := f.Background == (f.Kind == KindCBR)
	c.that(fits, "background", "%t; kind delay is measured, kind cbr is not", f.Background)
}

// sharesServer reports whether two iperf3 servers would listen on one port.
func (f Flow) sharesServer(o Flow) bool { return f.Port == o.Port && f.Server() == o.Server() }

func (f Flow) tcp() bool { return f.Kind == "iperf3_tcp" }

func (f Flow) sharesClientPorts(o Flow) bool {
	return f.ClientPort != 0 && o.ClientPort != 0 && f.tcp() == o.tcp() && f.Client() == o.Client() &&
		f.ClientPort < o.ClientPort+o.Streams && o.ClientPort < f.ClientPort+f.Streams
}
