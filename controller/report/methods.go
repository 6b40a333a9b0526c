package report

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"fieldmesh.dev/fieldmesh/controller/archive"
	"fieldmesh.dev/fieldmesh/controller/metrics"
	"fieldmesh.dev/fieldmesh/controller/report/evidence"
	"fieldmesh.dev/fieldmesh/controller/report/words"
	"fieldmesh.dev/fieldmesh/internal/version"
	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// prose is the methods paragraph of a paper on this run: what was really done,
// from the plan, the records and the model that was fitted.
func prose(d *evidence.Run) []string {
	return slices.DeleteFunc([]string{
		proseDesign(d), proseTrial(d), proseVerdicts(d), compare(d).Prose(), proseStopping(d), proseCertainty(d),
		proseSoftware(d),
	}, func(s string) bool { return s == "" })
}

func proseDesign(d *evidence.Run) string {
	all := d.Planned()
	if len(all) == 0 {
		return ""
	}
	var factors []string
	for _, name := range factorNames(all) {
		factors = append(factors, fmt.Sprintf("%s (%s)", name,
			strings.Join(evidence.Levels(all, func(a evidence.Attempt) string { return a.Trial.Factors[name] }), ", ")))
	}
	where := "on a road"
	switch d.Info.Place {
	case archive.PlaceRehearsal:
		where = "over an emulated radio, with real kernels, applications and GPS daemons"
		if d.Info.Radio == archive.RadioMAC80211 {
			where = "over an emulated air, with the kernel's own 802.11 stack, applications and GPS daemons"
		}
		if d.Info.Clock.Virtual() {
			where += ", in virtual time"
		}
	case archive.PlaceBench:
		where = "on a bench"
	}
	blocks := evidence.Levels(all, func(a evidence.Attempt) string { return fmt.Sprint(a.Trial.Block) })
	text := fmt.Sprintf("Campaign %s was driven %s, begun on %s. ", d.Info.Campaign, where,
		d.Info.CreatedWall.UTC().Format("2 January 2006"))
	if len(factors) > 0 {
		text += fmt.Sprintf("Its %s were planned in %s, each of which holds every combination of %s once. ",
			words.Count(len(all), "trial"), words.Count(len(blocks), "block"), strings.Join(factors, ", "))
	} else {
		text += fmt.Sprintf("Its %s were planned in %s. ", words.Count(len(all), "trial"),
			words.Count(len(blocks), "block"))
	}
	text += order(d)
	if s := d.Info.Scale; s != nil {
		text += fmt.Sprintf("It was driven at the scale %q, a declared reduction. ", s.Name)
	}
	return text
}

// factorNames are the factors that vary among attempts.
func factorNames(all []evidence.Attempt) []string {
	seen := map[string]bool{}
	for _, a := range all {
		for name := range a.Trial.Factors {
			if len(evidence.Levels(all, func(a evidence.Attempt) string { return a.Trial.Factors[name] })) > 1 {
				seen[name] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(seen))
}

// order says how the trials were put in order, as the campaign file has it.
func order(d *evidence.Run) string {
	c := d.Campaign
	if c == nil {
		return ""
	}
	if c.Design.Order == "as_listed" {
		return "Within a block trials were driven in the order of the file. "
	}
	text := fmt.Sprintf("Within each block their order was drawn at random (seed %d)", c.Design.Seed)
	if len(c.Design.WholePlots) > 0 {
		text += fmt.Sprintf(", in whole plots of %s", strings.Join(c.Design.WholePlots, ", "))
	}
	if len(c.Design.Balance) > 0 {
		text += fmt.Sprintf("; %s was balanced over the repetitions",
			strings.Join(slices.Sorted(maps.Keys(c.Design.Balance)), ", "))
	}
	return text + ". "
}

func proseTrial(d *evidence.Run) string {
	all := d.Planned()
	if len(all) == 0 {
		return ""
	}
	of := func(f func(wire.Trial) string) string {
		return strings.Join(evidence.Levels(all, func(a evidence.Attempt) string { return f(a.Trial) }), ", or ")
	}
	return fmt.Sprintf("In a trial traffic was %s; TCP %s; routing %s; radio: %s. Course: %s. The initiator opened a "+
		"window of %s when its gate's conditions held. "+
		"The response is throughput in Mbit/s: what the receiver's kernel delivered between the window's edges, "+
		"unique payload bytes, of each flow divided by the time for which it was to send; a trial without a "+
		"connection is 0. ",
		of(trafficText), of(func(t wire.Trial) string { return t.TCP.Variant }),
		of(func(t wire.Trial) string { return t.Routing.Protocol }),
		of(func(t wire.Trial) string {
			return radioText(t.Radio)
		}), of(func(t wire.Trial) string { return courseText(t.Course) }),
		of(func(t wire.Trial) string { return fmt.Sprintf("%g s", t.DurationS) }))
}

func proseVerdicts(d *evidence.Run) string {
	tally := map[wire.Outcome]int{}
	for _, a := range d.Attempts {
		if a.Verdict != nil && !a.Calibration() && d.Drives(a.Trial) { // one that was cut off is not decided yet
			tally[a.Verdict.Outcome]++
		}
	}
	total := 0
	for _, n := range tally {
		total += n
	}
	text := fmt.Sprintf("Of %s %d were accepted, %d rejected, %d failed and %d interrupted from outside; at most %d "+
		"a trial were made, those interrupted not counted. Attempts were judged by covariates, never by "+
		"what they transferred",
		words.Count(total, "attempt"), tally[wire.Accepted], tally[wire.Rejected], tally[wire.Failed],
		tally[wire.Interrupted], d.Info.Plan.AttemptsMax)
	var said []string
	for _, r := range rules(d) {
		said = append(said, r.Name+" "+r.Value)
	}
	if len(said) > 0 {
		text += ": " + strings.Join(said, "; ")
	}
	return text + ". "
}

func proseStopping(d *evidence.Run) string {
	if d.Info.Enough == nil {
		return ""
	}
	text := fmt.Sprintf("The run was to stop, by whole blocks and after %d at least, once %s was known, with the "+
		"error spent in equal shares over all planned looks (repeated confidence intervals, Jennison and Turnbull "+
		"1989). ",
		d.Info.Enough.MinBlocks, wishOf(d))
	if d.Stop != nil {
		text += fmt.Sprintf("It stopped after %d blocks: %s. ", d.Stop.Blocks, d.Stop.Reason)
	}
	return text
}

func proseCertainty(d *evidence.Run) string {
	text := ""
	if v := evidence.NumbersOf(d.Results(), metrics.ClockErrorMs); len(v) > 0 {
		text += fmt.Sprintf("The nodes' windows were aligned within %.2g ms (worst of %d accepted trials). ",
			slices.Max(v), len(v))
	}
	if from := compare(d).SpeedError(); from != "" {
		text += fmt.Sprintf("The car's GPS receiver gave its speed's error as %s on average. ", from)
	}
	if v := evidence.NumbersOf(d.Results(), metrics.LatenessShare); len(v) > 0 {
		text += fmt.Sprintf("The emulated medium was late for at most %.2g %% of a window. ", 100*slices.Max(v))
	}
	return text
}

// proseSoftware names what the attempts used, with the versions that were read back from the nodes.
func proseSoftware(d *evidence.Run) string {
	seen := map[string]map[string]bool{}
	add := func(what, version string) {
		if version == "" {
			return
		}
		if seen[what] == nil {
			seen[what] = map[string]bool{}
		}
		seen[what][version] = true
	}
	for _, a := range d.Attempts {
		for _, p := range a.Node {
			add("Linux", p.Kernel)
			for tool, version := range p.Tools {
				if used(tool, a.Trial, p) {
					add(tool, version)
				}
			}
		}
	}
	said := []string{"Fieldmesh " + cmp.Or(d.Info.Version, "of an unknown version")}
	if by := computedBy(d); by != "" {
		said[0] += ", numbers computed by " + by
	}
	for _, what := range slices.Sorted(maps.Keys(seen)) {
		var versions []string
		for _, v := range slices.Sorted(maps.Keys(seen[what])) {
			versions = append(versions, withoutName(what, v))
		}
		said = append(said, what+" "+strings.Join(versions, " and "))
	}
	return fmt.Sprintf("Software: %s. Campaign file SHA-256 %s.", strings.Join(said, "; "), d.Info.Plan.CampaignSHA256)
}

// used reports whether a trial had a use for a tool that is on a node: most nodes have more.
func used(tool string, t wire.Trial, p wire.Provenance) bool {
	switch {
	case slices.Contains(wire.RoutingProtocols(), tool):
		return t.Routing.Protocol == tool
	case tool == "iperf3":
		return slices.ContainsFunc(t.Traffic, func(f wire.Flow) bool { return strings.HasPrefix(f.Kind, tool) })
	case tool == "wpa_supplicant": // makes a real radio the access point
		return t.Radio.Mode == wire.ModeInfrastructure && p.Radio != nil
	}
	return true
}

// computedBy is this version, which computes the numbers, where another one drove the run.
func computedBy(d *evidence.Run) string {
	if d.Info.Version == version.String() {
		return ""
	}
	return version.String()
}

// withoutName is a version without the program's name, which many print before it.
func withoutName(program, version string) string {
	if number, of := strings.CutPrefix(version, program+"-"); of { // as babeld tells it
		return number
	}
	first, rest, more := strings.Cut(version, " ")
	if more && strings.HasPrefix(program, strings.ToLower(strings.TrimRight(first, ":"))) {
		return rest
	}
	return version
}
