// Package threats lists the reasons to doubt what a run seems to say: each is one
// question, put to the run.
package threats

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"fieldmesh.dev/fieldmesh/controller/archive"
	"fieldmesh.dev/fieldmesh/controller/design"
	"fieldmesh.dev/fieldmesh/controller/metrics"
	"fieldmesh.dev/fieldmesh/controller/papers"
	"fieldmesh.dev/fieldmesh/controller/report/evidence"
	"fieldmesh.dev/fieldmesh/controller/report/words"
	"fieldmesh.dev/fieldmesh/controller/stats"
	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// Threat is a reason to doubt what the run seems to say, computed from the run.
type Threat struct{ Title, Text string }

type threatsView struct {
	Threats []Threat
	Clear   []string // looked for and not found
}

// Check looks for one threat: it returns a threat, or a sentence on why there
// is none, or neither where the question does not arise.
type Check func(*evidence.Run) (*Threat, string)

// View is the report's section of all threats that this run has.
func View(d *evidence.Run) (any, error) {
	var v threatsView
	for _, c := range []Check{
		altered, Emulated, virtualTime, Reduced, confoundedUnit, oneSession, speedsUnheld, SpeedWithDistance,
		FewRepetitions, Undriven, unevenRejections, interruptions, peopleDecided, NothingTransferred, withoutNumbers,
		MediumLateness,
		samplerLateness, clockError, offloads, congestion, withoutRoot, leastRTOs, iperf3Differs, unsureAmounts,
		standstills, stationsSlept, strangersPackets, ownFilters, socketsLeft, IncompleteCaptures, nodesEvents,
		olderAgents, severalVersions, otherHardware, captureDrops, constantRates,
	} {
		t, clear := c(d)
		if t != nil {
			v.Threats = append(v.Threats, *t)
		} else if clear != "" {
			v.Clear = append(v.Clear, clear)
		}
	}
	return v, nil
}

// altered tells that the files which the report is made of are not those that the run wrote.
func altered(d *evidence.Run) (*Threat, string) {
	if len(d.Altered) == 0 {
		return nil, ""
	}
	var names []string
	for _, f := range d.Altered[:min(len(d.Altered), 5)] {
		names = append(names, f.String())
	}
	return &Threat{words.Count(len(d.Altered), "file") + " changed or missing since the run",
		"The manifests have other checksums: " + strings.Join(names, "; ") + ". fieldmesh verify lists all. " +
			"Whatever rests on them is in doubt; take the second copy of the run."}, ""
}

// Emulated is of a rehearsal: its radio was emulated.
func Emulated(d *evidence.Run) (*Threat, string) {
	if d.Info.Place != archive.PlaceRehearsal {
		return nil, ""
	}
	var paper papers.Paper
	if d.Info.Paper != nil {
		paper, _ = papers.Of(d.Info.Paper.Name)
	}
	said := []string{"A rehearsal is no evidence about velocity, only about the campaign: whether its trials can be " +
		"driven, its data come together and its analysis runs. What the emulated medium does with speed and distance " +
		"is what was put into it."}
	if paper.Simulated() {
		said[0] = "The paper's radio and movement were simulated, and these are emulated: neither is evidence about " +
			"real radios or real movement. What the emulated medium does with speed and distance is what was put " +
			"into it."
	}
	return &Threat{"The radio was emulated", strings.Join(append(said, d.Info.Deviations...), " ")}, ""
}

// virtualTime is of a rehearsal whose nodes were in one kernel in virtual time: what differs there
// from machines of their own.
func virtualTime(d *evidence.Run) (*Threat, string) {
	c := d.Info.Clock
	if !c.Virtual() {
		return nil, ""
	}
	return &Threat{"The nodes were in one kernel in virtual time", fmt.Sprintf("Computing took no time and a system "+
		"call %d ns, so what code costs is not in the results. The edges of all nodes' timers lay together (4 ms, and "+
		"32 ms for timers of a quarter of a second and more): nodes that wait by them sent in the same moment more "+
		"often than machines do. On the other hand frames that began within microseconds of each other collided too "+
		"seldom. Both matter most to what routing protocols send regularly. Frames that a node dropped for lack of a "+
		"route are counted, not told one by one.", c.CallNs)}, ""
}

// Reduced tells that the campaign was driven shorter than its file has it.
func Reduced(d *evidence.Run) (*Threat, string) {
	s := d.Info.Scale
	if s == nil {
		return nil, ""
	}
	return &Threat{fmt.Sprintf("The campaign was driven at scale %q", s.Name), "It is a declared reduction. What it " +
		"may change, in the campaign's words: " + s.Why}, ""
}

// confoundedUnit asks whether the hardware in the car can be distinguished from
// what the car does.
func confoundedUnit(d *evidence.Run) (*Threat, string) {
	results := d.Results()
	units := evidence.Levels(results, evidence.Unit)
	if len(units) == 0 {
		return nil, ""
	}
	confounded := stats.Confounded(design.TermsOf(evidence.PassesOf(results)).List)
	if len(units) == 1 {
		text := fmt.Sprintf("Only %q moved. Its own peculiarities as a moving sender and receiver are part of every "+
			"section and cannot be separated from those of moving.", units[0])
		if slices.Contains(confounded, design.Sender) {
			text += " Swapping the roles swaps the unit that sends as well: a difference between the sections may be " +
				"one between the units' transmitters, and the data cannot say which. A plan that crosses the unit in " +
				"the car with the section can."
		}
		return &Threat{"One hardware unit was in the car throughout", text}, ""
	}
	if slices.Contains(confounded, design.Unit) {
		return &Threat{"Hardware unit and design changed together", "Which unit was in the car is determined by the " +
			"other factors (section, block or direction). A difference between the sections may be one between the " +
			"units; the data cannot say which."}, ""
	}
	return nil, fmt.Sprintf("The units %s were in the car in turn, and not only with one section: unit and section "+
		"can be told apart.", strings.Join(units, " and "))
}

// oneSession asks whether what differs from one session to the next was seen.
func oneSession(d *evidence.Run) (*Threat, string) {
	sessions := evidence.Levels(d.Results(), func(a evidence.Attempt) string { return a.Session })
	switch len(sessions) {
	case 0:
		return nil, ""
	case 1:
		return &Threat{"All of it is one session", "One stretch of driving without a pause and with one set-up. How " +
				"much another day, other weather or nodes put down again would change is in no interval of this " +
				"report."},
			""
	}
	return nil, fmt.Sprintf("The results come from %d sessions: stretches of driving on one set of nodes, with one "+
		"unit in the car and without a pause of %d minutes.", len(sessions), int(evidence.Pause.Minutes()))
}

// highCorrelation is where a threat is called one. It has no statistical
// meaning: the coefficient is printed either way.
const highCorrelation = 0.5

// SpeedWithDistance is of a run in which faster trials were measured farther away, or nearer.
func SpeedWithDistance(d *evidence.Run) (*Threat, string) {
	var speed, distance []float64
	for _, a := range d.Results() {
		s, m := a.Number(metrics.SpeedMeanMps), a.Number(metrics.DistanceMeanM)
		if s != nil && m != nil {
			speed, distance = append(speed, *s), append(distance, *m)
		}
	}
	if len(evidence.Speeds(d.Results())) < 2 {
		return nil, ""
	}
	course := strings.Join(d.Courses(), ", ")
	r := stats.Correlation(speed, distance)
	if r == nil {
		return &Threat{"Speed and distance: not known", fmt.Sprintf("On course %q it could not be computed how far "+
			"speed went with distance (%d trials have both).", course, len(speed))}, ""
	}
	text := fmt.Sprintf("Over the accepted trials, course %q, the correlation of mean speed and mean distance is "+
		"%.2f (n = %d).", course, *r, len(speed))
	if math.Abs(*r) >= highCorrelation {
		return &Threat{"Speed goes with distance", text + " A faster car was on average elsewhere: what looks like " +
			"an effect of speed may be one of distance, and this run cannot separate them."}, ""
	}
	return nil, text
}

// FewRepetitions is of cells with too few trials for an interval of their own.
func FewRepetitions(d *evidence.Run) (*Threat, string) {
	cells := map[string]int{} // results by the combination of factors
	for _, a := range d.Planned() {
		if d.Info.Shard.Has(a.Trial.Number) {
			cells[fmt.Sprint(a.Trial.Factors)] = 0
		}
	}
	for _, a := range d.Results() {
		cells[fmt.Sprint(a.Trial.Factors)]++
	}
	few, least, most := 0, math.MaxInt, 0
	for _, n := range cells {
		least, most = min(least, n), max(most, n)
		if n < 3 {
			few++
		}
	}
	switch {
	case len(cells) == 0:
		return nil, ""
	case few == 0:
		return nil, fmt.Sprintf("Every cell has at least %d accepted trials with a result.", least)
	}
	text := fmt.Sprintf("In %d of %d cells fewer than three accepted trials have a result (least: %d). Their means "+
		"have no interval, and the model's intervals lean on all cells having the same spread.", few, len(cells), least)
	if most < 2 {
		text += " None has two: noise cannot be separated from what the model leaves out."
	}
	return &Threat{"Few repetitions", text}, ""
}

// Undriven is of planned trials without an accepted attempt.
func Undriven(d *evidence.Run) (*Threat, string) {
	done := map[int]bool{}
	for _, a := range d.Attempts {
		if a.Accepted() {
			done[a.Trial.Number] = true
		}
	}
	var open, passes []string
	for _, t := range d.Info.Plan.Trials {
		switch {
		case done[t.Number] || !d.Drives(t):
		case t.Pass == "":
			open = append(open, fmt.Sprint(t.Number))
		default:
			passes = append(passes, fmt.Sprint(t.Number))
		}
	}
	planned, calibrating := d.ToDrive()
	var text []string
	if len(open) > 0 {
		text = append(text, fmt.Sprintf("%d of %d planned trials have no accepted attempt: %s. The blocks are not "+
			"whole.", len(open), planned, shortList(open)))
	}
	if len(passes) > 0 {
		text = append(text, fmt.Sprintf("%d of %d calibration passes have no accepted attempt: %s.", len(passes),
			calibrating, shortList(passes)))
	}
	switch {
	case len(text) == 0:
		return nil, "Every trial that was to be driven has an accepted attempt."
	case len(open) == 0:
		return &Threat{"Calibration passes are missing", text[0]}, ""
	}
	return &Threat{"Planned trials are missing", strings.Join(text, " ")}, ""
}

func shortList(all []string) string {
	const most = 20
	if len(all) <= most {
		return strings.Join(all, ", ")
	}
	return strings.Join(all[:most], ", ") + fmt.Sprintf(" and %d more", len(all)-most)
}

func unevenRejections(d *evidence.Run) (*Threat, string) {
	tally := map[string][2]int{} // section → rejected or failed, all
	total := 0
	for _, a := range d.Attempts {
		if a.Verdict == nil || a.Calibration() || a.Interrupted() || !d.Drives(a.Trial) {
			continue
		}
		c := tally[a.Section]
		c[1]++
		if !a.Accepted() {
			c[0]++
			total++
		}
		tally[a.Section] = c
	}
	if total == 0 {
		return nil, "No attempt was rejected or failed, so nothing was selected."
	}
	var by []string
	for _, s := range evidence.Levels(d.Attempts, evidence.Section) {
		by = append(by, fmt.Sprintf("%d of %d in section %s", tally[s][0], tally[s][1], s))
	}
	text := fmt.Sprintf("%s rejected or failed (%s). Verdicts look at covariates only, never at throughput; but what "+
		"made a covariate fail may also act on throughput.", words.Count(total, "attempt"), strings.Join(by, ", "))
	if len(by) == 0 {
		text = strings.Replace(text, " ()", "", 1)
	}
	return &Threat{"Attempts were rejected", text}, ""
}

// interruptions reports what was ended from outside, which no covariate has
// judged: whoever ended it may have seen the throughput.
func interruptions(d *evidence.Run) (*Threat, string) {
	var all []string
	for _, a := range d.Attempts {
		if a.Interrupted() && !a.Calibration() && d.Drives(a.Trial) {
			all = append(all, fmt.Sprintf("%d.%d %s", a.Trial.Number, a.Attempt, a.Verdict.Reason.Code))
		}
	}
	if len(all) == 0 {
		return nil, ""
	}
	return &Threat{"Attempts were interrupted", fmt.Sprintf("%s ended from outside, by a person or a program that "+
		"was restarted (%s). No covariate failed in them, they are in no mean, and they use up no attempt of their "+
		"trials; but who ends an attempt by hand may have seen its throughput.",
		words.Count(len(all), "attempt"), shortList(all))}, ""
}

// peopleDecided reports where a person's word stands over the acceptance rules:
// a person in the car may have seen the throughput.
func peopleDecided(d *evidence.Run) (*Threat, string) {
	var all []string
	for _, a := range d.Attempts {
		if a.Verdict != nil && a.Verdict.Word != nil && d.Drives(a.Trial) {
			all = append(all, fmt.Sprintf("trial %d.%d, by the rules %s: %s", a.Trial.Number, a.Attempt,
				a.Verdict.Word.Judged, WordText(*a.Verdict.Word)))
		}
	}
	if len(all) == 0 {
		return nil, "No person decided about an attempt: all were judged by the acceptance rules alone."
	}
	return &Threat{"People decided about attempts", fmt.Sprintf("%s decided by people over the acceptance rules "+
		"(%s). Whoever decides may have seen the throughput, which the rules never do: look at the result without "+
		"these attempts too.",
		words.Count(len(all), "attempt"), shortList(all))}, ""
}

// WordText says who decided what, and why.
func WordText(w wire.Word) string {
	text := w.By + " said " + w.Decision
	if w.Text != "" {
		text += " (“" + w.Text + "”)"
	}
	return text
}

// NothingTransferred is of accepted trials that transferred nothing.
func NothingTransferred(d *evidence.Run) (*Threat, string) {
	n := evidence.Zeros(d)
	if n == 0 {
		return nil, ""
	}
	return &Threat{"Trials that transferred nothing count as 0", words.Count(n, "accepted trial") + " transferred " +
		"nothing. Such trials stay in every mean and in the model: leaving them out would keep the links that " +
		"survived. Their spread is not that of the others, which the model does not know."}, ""
}

// MediumLateness is of how late the emulated radio was.
func MediumLateness(d *evidence.Run) (*Threat, string) {
	values := evidence.NumbersOf(d.Results(), metrics.LatenessShare)
	if len(values) == 0 {
		return nil, ""
	}
	worst := slices.Max(values)
	text := fmt.Sprintf("The emulated medium was late for at most %.2f %% of an accepted trial's window (mean "+
		"%.2f %%).", 100*worst, 100*stats.Summarise(values).Mean)
	if worst >= 0.01 {
		return &Threat{"The emulated medium ran late", text + " While it is late, frames wait longer than the model " +
			"means them to."}, ""
	}
	return nil, text
}

// beat is the samplers' period.
const beatUs = 1e6 / metrics.TickHz

func samplerLateness(d *evidence.Run) (*Threat, string) {
	values := evidence.NumbersOf(d.Results(), metrics.SamplerP99Us)
	if len(values) == 0 {
		return nil, ""
	}
	worst := slices.Max(values)
	text := fmt.Sprintf("The samplers' 99th percentile of lateness was at worst %.1f ms.", worst/1e3)
	if worst > beatUs/4 {
		text += " Timelines are blurred by as much. "
		if len(evidence.NumbersOf(d.Results(), metrics.EdgeLateMaxMs)) == len(d.Results()) {
			return &Threat{"The samplers ran late", text + "Amounts are not: they are of the samples at the window's " +
				"edges, whose lateness fails an attempt."}, ""
		}
		return &Threat{"The samplers ran late", text + "So may amounts be: how late the samples at the window's " +
			"edges were is not recorded in every trial."}, ""
	}
	return nil, text
}

func clockError(d *evidence.Run) (*Threat, string) {
	values := evidence.NumbersOf(d.Results(), metrics.ClockErrorMs)
	if len(values) < len(d.Results()) && len(d.Results()) > 0 {
		return &Threat{"The nodes' alignment is not known everywhere",
			fmt.Sprintf("%d of %d accepted trials have no measured clock error.", len(d.Results())-len(values),
				len(d.Results()))}, ""
	}
	if len(values) == 0 {
		return nil, ""
	}
	return nil, fmt.Sprintf("The nodes' windows are aligned within %.1f ms in every accepted trial.",
		slices.Max(values))
}

func offloads(d *evidence.Run) (*Threat, string) {
	on := map[string]map[string]bool{} // node → names
	seen := false
	for _, a := range d.Results() {
		for node, p := range a.Node {
			for name, is := range p.Offloads {
				seen = true
				if is && slices.Contains([]string{"gro", "gso", "tso", "lro"}, name) {
					if on[node] == nil {
						on[node] = map[string]bool{}
					}
					on[node][name] = true
				}
			}
		}
	}
	if !seen {
		return nil, ""
	}
	if len(on) == 0 {
		return nil, "Segmentation offloads were off on every node."
	}
	var said []string
	for _, node := range slices.Sorted(maps.Keys(on)) {
		said = append(said, fmt.Sprintf("%s (%s)", node, strings.Join(slices.Sorted(maps.Keys(on[node])), ", ")))
	}
	return &Threat{"Segmentation offloads were on", fmt.Sprintf("On %s. Throughput is not affected; packets in a "+
		"capture, or counted on the interface, may be several merged into one.",
		strings.Join(said, " and "))}, ""
}

func congestion(d *evidence.Run) (*Threat, string) {
	other := map[string]bool{}
	for _, a := range d.Results() {
		for node, p := range a.Node {
			if !a.Trial.EndsTCP(node) || p.Privileges == wire.NoPrivileges { // where iperf3 chooses it for its sockets
				continue
			}
			in, want := p.Sysctls["net.ipv4.tcp_congestion_control"], a.Trial.TCP.Variant
			if p.TCP != nil {
				want = p.TCP.Kernel // what stands for the variant there
			}
			if in != "" && want != "" && in != want {
				other[fmt.Sprintf("%s ran %s where %s was asked", node, in, a.Trial.TCP.Variant)] = true
			}
		}
	}
	if len(other) == 0 {
		return nil, ""
	}
	return &Threat{"Congestion control was not what was asked for",
		strings.Join(slices.Sorted(maps.Keys(other)), "; ") + "."}, ""
}

// iperf3Differs compares the kernel's count with iperf3's own. Where iperf3 left
// none the comparison says so: those are the flows in which something happened.
func iperf3Differs(d *evidence.Run) (*Threat, string) {
	worst, both, without, most := 0.0, 0, 0, 0.0
	for _, a := range d.Results() {
		for _, f := range a.Trial.Traffic {
			kernel, own := metrics.Value(a.Rows, f.Name, metrics.TransferredMB),
				metrics.Value(a.Rows, f.Name, metrics.Iperf3MB)
			switch {
			case kernel == nil: // of UDP there is nothing to compare
			case own == nil:
				without, most = without+1, max(most, *kernel)
			case *kernel != 0:
				both++
				worst = max(worst, math.Abs(*own / *kernel - 1))
			}
		}
	}
	if both+without == 0 {
		return nil, ""
	}
	var text []string
	if both > 0 {
		text = append(text, fmt.Sprintf("iperf3's own amount differs from the receiving kernel's by at most %.1f %% "+
			"(%d flows have both; iperf3 also counts bytes after the window).", 100*worst, both))
	}
	if without > 0 {
		text = append(text, fmt.Sprintf("Of %s iperf3 left no amount of its own: it was cut off before its end. In "+
			"these the receiving kernel counted %.2f MB at most.", words.Count(without, "flow"), most))
	}
	if worst > 0.05 {
		return &Threat{"iperf3 and the kernel disagree", strings.Join(text, " ")}, ""
	}
	return nil, strings.Join(text, " ")
}

func nodesEvents(d *evidence.Run) (*Threat, string) {
	if len(d.Warnings) == 0 {
		return nil, ""
	}
	text := strings.Join(d.Warnings, ", ")
	if more := d.Warned - len(d.Warnings); more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return &Threat{"Nodes gave warnings", text + "."}, ""
}
