package report

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"fieldmesh.dev/fieldmesh/controller/archive"
	"fieldmesh.dev/fieldmesh/controller/metrics"
	"fieldmesh.dev/fieldmesh/controller/plan/environment"
	"fieldmesh.dev/fieldmesh/controller/report/evidence"
	"fieldmesh.dev/fieldmesh/controller/report/threats"
	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// calibrationRow is a parked pass at a marked distance.
type calibrationRow struct{ Trial, Mark, Distance, Section, Mbps, Signal, Outcome string }

func viewCalibration(d *evidence.Run) (any, error) {
	var rows []calibrationRow
	for _, a := range d.Attempts {
		if !a.Calibration() {
			continue
		}
		r := calibrationRow{
			Trial: fmt.Sprintf("%d.%d", a.Trial.Number, a.Attempt), Section: a.Section, Outcome: outcome(a), Mark: "—",
			Mbps:     maybe("%.2f", a.Mbps),
			Distance: maybe("%.0f", a.Number(metrics.DistanceMeanM)),
			Signal:   maybe("%.0f", a.Number(metrics.SignalMeanDbm)),
		}
		if a.Trial.Course.MarkM != nil {
			r.Mark = fmt.Sprintf("%g", *a.Trial.Course.MarkM)
		}
		rows = append(rows, r)
	}
	if len(rows) == 0 {
		return nil, nil
	}
	return rows, nil
}

func maybe(format string, v *float64) string {
	if v == nil {
		return "—"
	}
	return strings.Replace(fmt.Sprintf(format, *v), "-", "−", 1)
}

// verdictRow is one attempt with what it was judged by.
type verdictRow struct {
	Trial, Block, Cell, Direction, Outcome, Reason, Mbps string
	Checks                                               []checkView
}

type checkView struct {
	Text string
	Pass bool
}

func viewVerdicts(d *evidence.Run) (any, error) {
	var rows []verdictRow
	for _, a := range d.Attempts {
		r := verdictRow{
			Trial: fmt.Sprintf("%d.%d", a.Trial.Number, a.Attempt), Block: fmt.Sprint(a.Trial.Block), Cell: what(a),
			Direction: a.Trial.Direction, Outcome: outcome(a), Mbps: maybe("%.2f", a.Mbps),
		}
		if a.Verdict != nil {
			r.Reason = a.Verdict.Reason.String()
			if w := a.Verdict.Word; w != nil {
				r.Reason = strings.TrimPrefix(r.Reason+"; "+threats.WordText(*w), "; ")
			}
			for _, c := range a.Verdict.Checks {
				r.Checks = append(r.Checks, checkView{checkText(c), c.Pass})
			}
		}
		rows = append(rows, r)
	}
	if len(rows) == 0 {
		return nil, nil
	}
	return rows, nil
}

// checkText says what a rule measured against its limit.
func checkText(c wire.Check) string {
	names := map[string]string{
		"in_band_share_min": "in band", "fix_mode_min": "fix mode", "fix_age_ms_max": "fix age, ms",
		"clock_error_ms_max": "clock, ms", "lateness_share_max": "lateness",
	}
	name := names[c.Rule]
	if name == "" {
		name = c.Rule
	}
	if c.Node != "" {
		name += " on " + c.Node
	}
	sign := "≤"
	if strings.HasSuffix(c.Rule, "_min") {
		sign = "≥"
	}
	if c.Measured == nil {
		return fmt.Sprintf("%s: not measured (%s %g)", name, sign, c.Limit)
	}
	if v := *c.Measured; v > 0 && v < 0.0005 {
		return fmt.Sprintf("%s: < 0.001 (%s %g)", name, sign, c.Limit)
	}
	return fmt.Sprintf("%s: %.4g (%s %g)", name, *c.Measured, sign, c.Limit)
}

// pair is one line of a description.
type pair struct{ Name, Value string }

type setupView struct {
	Run        []pair
	Site       []pair
	Nodes      []string
	Provenance []provenanceRow
	Notes      []pair
}

// provenanceRow is one property of all nodes. What differed from trial to trial
// is listed with how often.
type provenanceRow struct {
	Name   string
	Values []string
	Differ bool // between the nodes, or within one
}

func viewSetup(d *evidence.Run) (any, error) {
	v := setupView{Run: runPairs(d), Nodes: d.Nodes, Provenance: provenance(d)}
	for _, k := range slices.Sorted(maps.Keys(d.Info.Site)) {
		v.Site = append(v.Site, pair{k, d.Info.Site[k]})
	}
	for _, n := range d.Notes {
		v.Notes = append(v.Notes, pair{n.Wall.UTC().Format("2 January 2006, 15:04:05"), n.Text})
	}
	return v, nil
}

// runPairs tell what all trials had in common, or the values that they had.
func runPairs(d *evidence.Run) []pair {
	all := d.Planned()
	of := func(f func(wire.Trial) string) string {
		return strings.Join(evidence.Levels(all, func(a evidence.Attempt) string { return f(a.Trial) }), ", ")
	}
	out := []pair{
		{"course", of(func(t wire.Trial) string { return courseText(t.Course) })},
		{"window", of(func(t wire.Trial) string { return fmt.Sprintf("%g s", t.DurationS) })},
		{"traffic", of(trafficText)},
		{"congestion control", of(func(t wire.Trial) string { return t.TCP.Variant })},
		{"routing", of(func(t wire.Trial) string { return t.Routing.Protocol })},
		{"radio", of(func(t wire.Trial) string { return radioText(t.Radio) })},
		{"campaign file, SHA-256", d.Info.Plan.CampaignSHA256},
		{"plan, sealed before the first trial, SHA-256", d.Sealed.SHA256},
		{"signed by key", d.Signed.Pin},
		{"seed of the order", fmt.Sprint(d.Info.Seed)},
		{"clock", clockText(d.Info.Clock)},
		{"nodes' radios", radiosText(d.Info)},
		{"not as on the road", strings.Join(d.Info.Deviations, " ")},
		{"channel", drawsText(d.Info)},
		{"fieldmesh", d.Info.Version},
		{"numbers computed by", computedBy(d)},
	}
	for _, n := range d.Info.Plan.Nodes {
		out = append(out, pair{"node " + n.Name, strings.TrimPrefix(n.Unit+", "+n.MeshPrefix, ", ")})
	}
	return slices.DeleteFunc(out, func(p pair) bool { return p.Value == "" })
}

// clockText is what time was in a rehearsal.
func clockText(c *archive.Clock) string {
	switch {
	case c == nil:
		return ""
	case c.Virtual():
		return fmt.Sprintf("virtual: Linux %s, configuration %s, %d ns a system call", c.Kernel, c.Configuration,
			c.CallNs)
	}
	return c.Kind
}

// radiosText is what the nodes of a rehearsal had for radios.
func radiosText(info archive.RunInfo) string {
	switch {
	case info.Place != archive.PlaceRehearsal:
		return ""
	case info.Radio == archive.RadioMAC80211:
		return "mac80211: the kernel's own 802.11 stack and rate control, over an emulated air"
	}
	return "interfaces of Ethernet at an emulated radio"
}

// drawsText says what a rehearsal's intervals hold for.
func drawsText(info archive.RunInfo) string {
	if info.Place != archive.PlaceRehearsal {
		return ""
	}
	return environment.DrawsText(cmp.Or(info.ChannelDraws, environment.DrawsPerCampaign))
}

func courseText(c wire.Course) string {
	switch c.Kind {
	case "depart":
		return "depart: from the roadside node outwards, so that a faster car is farther away"
	case "segment":
		if c.SegmentM != nil && c.LengthM != nil {
			return fmt.Sprintf("segment: the same stretch of road at every speed, from %g m for %g m", *c.SegmentM,
				*c.LengthM)
		}
		return "segment: the same stretch of road at every speed"
	case "pass":
		return "pass: past the roadside node"
	case "loop":
		return "loop: round a circuit"
	case "none":
		return "none: nobody moved"
	}
	return c.Kind
}

func trafficText(t wire.Trial) string {
	var out []string
	for _, f := range t.Traffic {
		text := fmt.Sprintf("%s: %s, %d streams, port %d", f.Name, f.Kind, f.Streams, f.Port)
		if f.WindowBytes != nil {
			text += fmt.Sprintf(", window %d bytes", *f.WindowBytes)
		}
		switch f.Kind {
		case wire.KindDelay:
			text = fmt.Sprintf("%s: %d bytes every %g ms from %s to %s, each answered, port %d", f.Name,
				*f.PayloadBytes, *f.IntervalMs, f.From, f.To, f.Port)
		case wire.KindCBR:
			text = fmt.Sprintf("%s: %s, %d bytes a datagram from %s to %s, port %d", f.Name, f.Kind, *f.PayloadBytes,
				f.From, f.To, f.Port)
		}
		if f.BitrateBps != nil {
			text += fmt.Sprintf(", %g kbit/s", *f.BitrateBps/1e3)
		}
		if f.Background {
			text += ", background"
		}
		out = append(out, text)
	}
	return strings.Join(out, "; ")
}

func radioText(r wire.Radio) string {
	if r.Mode == "none" {
		return "interface left as it was"
	}
	text := strings.TrimSpace(r.Mode + " " + r.Standard)
	if r.Channel != 0 {
		text += fmt.Sprintf(", channel %d", r.Channel)
	}
	if r.TxPowerDbm != nil {
		text += fmt.Sprintf(", %g dBm", *r.TxPowerDbm)
	}
	if r.RateMbps != nil {
		return text + fmt.Sprintf(", fixed at %g Mbit/s", *r.RateMbps)
	}
	return text
}

// properties of a provenance, flat.
func properties(p wire.Provenance) map[string]string {
	out := map[string]string{
		"agent": p.Agent, "kernel": p.Kernel, "architecture": p.Arch, "machine": p.Machine, "interface": p.Interface,
		"driver": p.Driver, "MAC": p.MAC, "addresses": strings.Join(p.Addresses, ", "),
		"routes":                      strings.Join(p.Routes, "; "),
		"congestion controls at hand": strings.Join(p.Congestion, ", "),
	}
	if r := p.Radio; r != nil && r.TxPowerDbm != nil && *r.TxPowerDbm != 0 { // a driver that knows none tells 0
		out["transmit power in force, as the radio tells"] = fmt.Sprintf("%g dBm", *r.TxPowerDbm)
	}
	if r := p.Radio; r != nil && r.PowerSave != nil {
		out["power save of the station"] = onOff(*r.PowerSave)
	}
	for k, v := range p.Tools {
		out["tool "+k] = v
	}
	for k, v := range p.Sysctls {
		out[k] = v
	}
	for k, v := range p.Offloads {
		out["offload "+k] = onOff(v)
	}
	return out
}

func onOff(is bool) string {
	if is {
		return "on"
	}
	return "off"
}

// propertyOrder puts what people ask for first; the rest follows by name.
var propertyOrder = []string{"machine", "kernel", "architecture", "interface", "driver", "MAC", "agent"}

func provenance(d *evidence.Run) []provenanceRow {
	counts := map[string]map[string]map[string]int{} // property → node → value → trials
	for _, a := range d.Attempts {
		for node, p := range a.Node {
			for name, value := range properties(p) {
				if value == "" {
					continue
				}
				if counts[name] == nil {
					counts[name] = map[string]map[string]int{}
				}
				if counts[name][node] == nil {
					counts[name][node] = map[string]int{}
				}
				counts[name][node][value]++
			}
		}
	}
	names := slices.Sorted(maps.Keys(counts))
	for i := len(propertyOrder) - 1; i >= 0; i-- {
		if at := slices.Index(names, propertyOrder[i]); at >= 0 {
			names = slices.Insert(slices.Delete(names, at, at+1), 0, propertyOrder[i])
		}
	}
	var out []provenanceRow
	for _, name := range names {
		row := provenanceRow{Name: name}
		distinct := map[string]bool{}
		for _, node := range d.Nodes {
			text := valuesText(counts[name][node])
			row.Values = append(row.Values, text)
			distinct[text] = true
		}
		own := name == "MAC" || name == "addresses" || name == "routes" // always each node's own
		row.Differ = len(distinct) > 1 && !own
		out = append(out, row)
	}
	return out
}

func valuesText(values map[string]int) string {
	switch len(values) {
	case 0:
		return "—"
	case 1:
		return slices.Collect(maps.Keys(values))[0]
	}
	var out []string
	for _, v := range slices.Sorted(maps.Keys(values)) {
		out = append(out, fmt.Sprintf("%s (%d attempts)", v, values[v]))
	}
	return strings.Join(out, "; ")
}

// methodsView states what was done, and defines every number.
type methodsView struct {
	Prose       []string
	Rules       []pair
	Definitions []metrics.Row
	Attempts    int
}

func viewMethods(d *evidence.Run) (any, error) {
	v := methodsView{Prose: prose(d), Attempts: d.Info.Plan.AttemptsMax}
	seen := map[string]bool{}
	for _, a := range d.Attempts {
		for _, r := range a.Rows {
			if !seen[r.Name] {
				seen[r.Name] = true
				v.Definitions = append(v.Definitions, r)
			}
		}
	}
	v.Rules = rules(d)
	return v, nil
}

// rules are the acceptance rules of the planned trials. Where trials differ in one, each of its
// values is named.
func rules(d *evidence.Run) []pair {
	var out []pair
	told := map[pair]bool{}
	for _, p := range d.Planned() {
		for _, r := range rulesOf(p.Trial.Acceptance) {
			switch i := slices.IndexFunc(out, func(o pair) bool { return o.Name == r.Name }); {
			case i < 0:
				out = append(out, r)
			case !told[r]:
				out[i].Value += " or " + r.Value
			}
			told[r] = true
		}
	}
	return out
}

func rulesOf(a wire.Acceptance) []pair {
	var out []pair
	add := func(name, format string, v *float64) {
		if v != nil {
			out = append(out, pair{name, fmt.Sprintf(format, *v)})
		}
	}
	if a.InBandShareMin != nil { // without it nothing is judged by the band
		add("speed band", "target ± %g m/s", a.SpeedBandMps)
		add("time in the band", "at least %g of the window", a.InBandShareMin)
	}
	if a.FixModeMin != nil {
		out = append(out, pair{"GPS fix", fmt.Sprintf("mode %d or better throughout", *a.FixModeMin)})
	}
	add("age of the fix", "never above %g ms", a.FixAgeMsMax)
	add("clock error", "at most %g ms", a.ClockErrorMsMax)
	add("lateness of an emulated medium", "at most %g of the window", a.LatenessShareMax)
	return out
}
