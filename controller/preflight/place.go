package preflight

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// freshFixMs is the age up to which a fix counts as one.
const freshFixMs = 3000

// slowHz is below what a receiver's fixes come within a second of what they tell.
const slowHz = 1.5

// needsGPS reports whether the node's own GPS opens a window or is judged: the
// roadside node's is where it has had a fix. Where fixes are judged and no speed is
// planned, what is measured goes by the distance of both.
func (j *judge) needsGPS() bool {
	for _, t := range j.trials {
		rules := t.Acceptance.FixModeMin != nil || t.Acceptance.FixAgeMsMax != nil
		opens := t.SpeedMps != nil || t.Gate.AtStart
		if (t.Car == j.name || t.Initiator == j.name) && opens || t.Car == j.name && rules {
			return true
		}
		if t.Car != "" && t.Roadside == j.name && rules &&
			(t.SpeedMps == nil || j.st.GPS != nil && j.st.GPS.FixAgeMs != nil) {
			return true
		}
	}
	return false
}

func (j *judge) gps() {
	if !j.needsGPS() {
		j.problems("gps")
		if n := len(j.items); n > 0 && j.items[n-1].Need == "gps" {
			j.items[n-1].State, j.items[n-1].Cure = Unneeded, "" // told, though no trial goes by it
		} else {
			j.put("gps", Unneeded, gpsWords(j.st), "")
		}
		j.put("gps_rate", Unneeded, "no trial goes by its speed", "")
		return
	}
	if j.problems("gps") {
		j.put("gps_rate", Unknown, "there is no fix", "")
		return
	}
	least := 2
	for _, t := range j.trials {
		if m := t.Acceptance.FixModeMin; m != nil {
			least = max(least, *m)
		}
	}
	if g := j.st.GPS; g == nil || g.Mode < least || g.FixAgeMs == nil || *g.FixAgeMs > freshFixMs {
		j.unmet("gps", gpsWords(j.st)+fmt.Sprintf(", and the plan wants a %d-D one", least),
			"give the receiver a view of the sky and wait")
	} else {
		j.met("gps", "%s", gpsWords(j.st))
	}
	j.gpsRate()
}

func gpsWords(st wire.NodeStatus) string {
	if st.GPS == nil || !st.GPS.Connected {
		for _, p := range st.Problems { // it knows whether gpsd or an app would tell it
			if p.Need == "gps" {
				return p.Found
			}
		}
		return "gpsd does not answer"
	}
	if st.GPS.Mode < 2 {
		return "no fix"
	}
	words := fmt.Sprintf("a %d-D fix", st.GPS.Mode)
	if n := st.GPS.SatellitesUsed; n != nil {
		words += fmt.Sprintf(" of %d satellites", *n)
	}
	return words
}

func (j *judge) gpsRate() {
	rate := j.st.GPSRateHz
	if rate == nil {
		j.put("gps_rate", Unknown, "too few fixes have come to tell", "ask again in some seconds")
		return
	}
	strictest := 0.0
	for _, t := range j.trials {
		if m := t.Acceptance.FixAgeMsMax; m != nil && (strictest == 0 || *m < strictest) {
			strictest = *m
		}
	}
	between := 1000 / *rate
	switch {
	case strictest > 0 && between > strictest:
		j.unmet("gps_rate", fmt.Sprintf("%.3g fixes a second: the newest is up to %.0f ms old, the limit is %g ms",
			*rate, between, strictest),
			"set the receiver to a higher rate (gpsctl -c), or raise acceptance.fix_age_ms_max")
	case *rate < slowHz:
		j.met("gps_rate", "%.3g Hz: a speed stands for up to %.1f s, and such receivers smooth it besides", *rate,
			between/1000)
	default:
		j.met("gps_rate", "%.3g Hz", *rate)
	}
}

// clockLimitMs is the least uncertainty that a trial allows; 0: none asks.
func (j *judge) clockLimitMs() (limit float64) {
	for _, t := range j.plan.Trials {
		if m := t.Acceptance.ClockErrorMsMax; m != nil && (limit == 0 || *m < limit) {
			limit = *m
		}
	}
	return limit
}

// clock is how well the node's records can be put on one time axis with the others'.
func (j *judge) clock() {
	if j.told.Clock == nil { // where a trial needs it, reach has said that it is unmet
		p := Unreached(j.told.ClockErr)
		j.put("clock", Unknown, p.Found, p.Cure)
		return
	}
	got, limitMs := float64(j.told.Clock.UncertaintyNs)/1e6, j.clockLimitMs()
	if limitMs > 0 && got > limitMs {
		j.unmet("clock", fmt.Sprintf("its clock can be aligned only within ± %.3g ms, the limit is %g ms", got,
			limitMs), "use a faster control link, or raise acceptance.clock_error_ms_max")
		return
	}
	j.met("clock", "aligned within ± %.3g ms", got)
}

// wallLimit is how far a node's wall clock may be from the controller's.
// Alignment does not use wall clocks; file times, GPS dates and people do.
const wallLimit = 60 * time.Second

func (j *judge) wallClock() {
	if j.problems("wall_clock") || j.told.Clock == nil {
		return
	}
	off := time.Duration(j.told.Clock.WallOffsetNs)
	if off.Abs() > wallLimit {
		j.unmet("wall_clock", fmt.Sprintf("its wall clock is %s off the controller's, the limit is %s",
			off.Round(time.Second), wallLimit), "set the clock of the node or of the controller (chrony, or date)")
		return
	}
	words := fmt.Sprintf("%s off the controller's", off.Round(time.Millisecond))
	if w := j.st.WallClock; w != nil {
		if w.GPSOffsetNs != nil {
			words += fmt.Sprintf("; GPS time is %s ± %s from it", time.Duration(*w.GPSOffsetNs).Round(time.Millisecond),
				time.Duration(*w.GPSUncertaintyNs))
		}
		if w.Sync != "" {
			words += "; chrony: " + w.Sync
		}
	}
	j.met("wall_clock", "%s", words)
}

// disk: the neediest trial has to fit. How many fit before a controller collects
// matters only to nodes that go on alone. A run that is about to begin leaves
// the reckoning to the nodes, which know what they leave to others.
func (j *judge) disk() {
	if j.problems("disk") {
		return
	}
	if j.seconds <= 0 {
		j.met("disk", "%s free", megabytes(j.st.Spool.FreeBytes))
		return
	}
	var all, most int64
	for _, t := range j.trials {
		all, most = all+t.SpoolBytes(), max(most, t.SpoolBytes())
	}
	if j.st.Spool.RoomBytes == nil {
		j.put("disk", Unknown, "the node does not tell what room it has", "ask again, with an agent of this version")
		return
	}
	room := *j.st.Spool.RoomBytes
	switch {
	case room < most:
		j.unmet("disk", fmt.Sprintf("room for %s of records, a trial may take %s", megabytes(room), megabytes(most)),
			collectCure(j.st.Spool.UnconfirmedRuns)+
				"free disk space (`quota_free_bytes` of it are left to others), or raise `quota_bytes`")
	case room < all:
		j.met("disk", "room for %s; alone it can go on for %d of %d trials", megabytes(room),
			int64(len(j.trials))*room/all, len(j.trials))
	default:
		j.met("disk", "room for %s, the whole run takes at most %s", megabytes(room), megabytes(all))
	}
}

// collectCure says which runs' records fill a node, those of the oldest first; "" where none do.
func collectCure(runs []string) string {
	if len(runs) == 0 {
		return ""
	}
	return fmt.Sprintf("collect the records of %s (`fieldmesh pull %s`; `fieldmesh nodes forget %[2]s` drops them), ",
		strings.Join(runs, ", "), runs[0])
}

func megabytes(n int64) string { return fmt.Sprintf("%.0f MB", float64(n)/1e6) }

func (j *judge) battery() {
	if j.problems("battery") {
		return
	}
	m := j.st.Machine
	switch {
	case m == nil || m.BatteryPercent == nil:
		j.met("battery", "it has none")
	case m.BatteryState != "discharging":
		j.met("battery", "%.0f %%, %s", *m.BatteryPercent, cmp.Or(m.BatteryState, "not discharging"))
	case m.BatteryLeftS != nil && j.seconds > 0 && *m.BatteryLeftS < j.seconds:
		j.unmet("battery", fmt.Sprintf("%.0f %% last %s, the campaign takes %s", *m.BatteryPercent,
			span(*m.BatteryLeftS), span(j.seconds)), "charge it, bring a second one, or feed the node from the car")
	case m.BatteryLeftS != nil:
		j.met("battery", "%.0f %%, for %s", *m.BatteryPercent, span(*m.BatteryLeftS))
	default:
		j.met("battery", "%.0f %%, discharging", *m.BatteryPercent)
	}
}

// span is a time in hours and minutes.
func span(s float64) string {
	d := time.Duration(s * float64(time.Second)).Round(time.Minute)
	return fmt.Sprintf("%d h %02d min", int(d.Hours()), int(d.Minutes())%60)
}

func (j *judge) temperature() {
	if j.problems("temperature") {
		return
	}
	if m := j.st.Machine; m != nil && m.TemperatureC != nil {
		j.met("temperature", "%.0f °C at %s", *m.TemperatureC, m.HottestZone)
		return
	}
	j.put("temperature", Unknown, "it has no thermometer", "")
}

// address holds the node's address in the mesh against what the agent there
// may set: its privileged half would refuse another when the trial is armed.
func (j *judge) address() {
	if j.problems("address") || len(j.st.AllowedPrefixes) == 0 {
		return
	}
	i := slices.IndexFunc(j.plan.Nodes, func(n wire.PlanNode) bool { return n.Name == j.name })
	if i < 0 {
		return
	}
	own, err := netip.ParsePrefix(j.plan.Nodes[i].MeshPrefix)
	if err != nil {
		return // the plan's own check says so
	}
	for _, text := range j.st.AllowedPrefixes {
		if p, err := netip.ParsePrefix(text); err == nil && p.Contains(own.Addr()) && own.Bits() >= p.Bits() {
			j.met("address", "%s is within %s", own, p)
			return
		}
	}
	j.unmet("address", fmt.Sprintf("its address in the mesh, %s, is outside what its agent may set: %s", own,
		strings.Join(j.st.AllowedPrefixes, ", ")),
		fmt.Sprintf("add %s to `allow.prefixes` in the agent's configuration and start it again, or plan with "+
			"addresses inside", own.Masked()))
}

// meshOf is a node's address in the mesh, with its prefix length, and those of the
// nodes with which it takes part in a trial; empty for nobody.
func meshOf(plan wire.RunPlan, node wire.PlanNode) string {
	var out []string
	for _, n := range plan.Nodes {
		both := func(t wire.Trial) bool {
			return slices.Contains(t.Nodes(), node.Name) && slices.Contains(t.Nodes(), n.Name)
		}
		p, err := netip.ParsePrefix(n.MeshPrefix)
		if err == nil && n.Name != node.Name && slices.ContainsFunc(plan.Trials, both) {
			out = append(out, p.Addr().String())
		}
	}
	if out == nil {
		return ""
	}
	return strings.Join(slices.Insert(out, 0, node.MeshPrefix), ",")
}

// route asks whether packets to the other nodes will leave by the interface under
// test. By another one a trial would measure another network, or nothing.
func (j *judge) route() {
	switch {
	case j.problems("route"):
	case j.told.Ways:
		j.met("route", "nothing leads packets to the other nodes elsewhere than to %s", j.st.Interface)
	case j.told.WaysErr != nil:
		j.put("route", Unknown, Unreached(j.told.WaysErr).Found, "ask again, with an agent of this version")
	default:
		j.put("route", Unneeded, "it has no other node to reach", "")
	}
}

// control says which way the controller talks to the node, and whether that is
// the way that the plan wants.
func (j *judge) control() {
	overMesh := j.overMesh()
	switch {
	case overMesh && j.plan.Control == wire.ControlOwn:
		j.unmet("control", fmt.Sprintf("the fleet file's address %s is on the mesh, and the plan wants a control "+
			"link of its own", j.told.Entry.Address),
			"give the node a second interface (USB, Bluetooth, cellular) and put its address into the fleet file; or "+
				"say `control: mesh` in the campaign")
	case j.plan.Control == wire.ControlOwn && j.st.ControlInterface == "":
		j.unmet("control", "the agent knows of no control interface, and the plan wants one",
			"name it as `control_interface` in the agent's configuration")
	case j.plan.Control == wire.ControlMesh && !overMesh:
		j.met("control", "by %s until the run begins; the plan lets it go over the mesh",
			cmp.Or(j.st.ControlInterface, j.told.Entry.Address))
	case !overMesh && j.leavesFor(j.st.ReachedBy):
		j.unmet("control", fmt.Sprintf("it is reached by %s, and %[1]s leaves its own network for the run, on a phone "+
			"with the whole of Android's Wi-Fi", j.st.ReachedBy),
			"reach it by another interface (USB tethering, Ethernet, Bluetooth) and put that address into the fleet "+
				"file; or give it a radio of its own for the trials; or say `control: mesh` in the campaign")
	case overMesh:
		j.met("control", "over the mesh itself, silent while measuring")
	default:
		j.met("control", "a link of its own%s", prefixed(" by ", j.st.ControlInterface))
	}
}

// leavesFor reports whether an interface joins the plan's network and so leaves
// the one by which it may be reached.
func (j *judge) leavesFor(iface string) bool {
	caps := j.st.Radio
	if _, is := j.hotspot(); is { // the station leaves it; many phones with a hotspot, too
		return iface != "" && iface == j.st.Interface
	}
	return iface != "" && iface == j.st.Interface && len(j.radios()) > 0 && caps != nil && caps.Driver == settable &&
		caps.Beside == nil
}

func prefixed(before, word string) string {
	if word == "" {
		return ""
	}
	return before + word
}

// overMesh: the address by which we reach the node is within a mesh network.
func (j *judge) overMesh() bool {
	at, err := netip.ParseAddrPort(j.told.Entry.Address)
	if err != nil {
		return false // a name: the mesh has none
	}
	for _, n := range j.plan.Nodes {
		if p, err := netip.ParsePrefix(n.MeshPrefix); err == nil && p.Contains(at.Addr()) {
			return true
		}
	}
	return false
}
