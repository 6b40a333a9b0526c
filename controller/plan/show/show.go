// Package show writes what a campaign file expands to, for people.
package show

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"fieldmesh.dev/fieldmesh/controller/design"
	"fieldmesh.dev/fieldmesh/controller/plan"
	"fieldmesh.dev/fieldmesh/controller/plan/drive"
	"fieldmesh.dev/fieldmesh/controller/plan/environment"
	"fieldmesh.dev/fieldmesh/controller/plan/site"
	"fieldmesh.dev/fieldmesh/controller/report/words"
	"fieldmesh.dev/fieldmesh/controller/stats"
	"fieldmesh.dev/fieldmesh/controller/stopping"
	"fieldmesh.dev/fieldmesh/internal/screen"
	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// Rehearsal is what a rehearsal makes of a campaign.
type Rehearsal struct {
	Refused    error    // why none drives it; nil: one does
	Flags      string   // without which it is refused; "": none are needed
	Deviations []string // in what it would not be as the road
}

// Plan writes the trials of a campaign with the time and the road that they need, and
// what they can tell.
func Plan(w io.Writer, c *plan.Campaign, r Rehearsal) error {
	trials, err := c.Schedule()
	if err != nil {
		return err
	}
	estimate, columns := c.Estimate(), screen.Columns(w)
	out := &strings.Builder{}
	fmt.Fprintf(out, "%s: %s\n", c.Name, c.Title)
	if c.Scale != nil {
		fmt.Fprintf(out, "scale %s: %s\n", c.Scale.Name, c.Scale.Why)
	}
	fmt.Fprintf(out, "sha256 %s\n\n", c.SHA256)
	deviations(out, c.Paper)
	head := screen.Fold(out.String(), columns)
	out.Reset()
	if err := trialTable(out, c, trials, estimate, columns); err != nil {
		return err
	}
	if err := summary(out, c, trials, r, columns); err != nil {
		return err
	}
	_, err = io.WriteString(w, head+out.String())
	return err
}

// Summary writes what Plan does of a campaign that a rehearsal drives, without the trials.
func Summary(w io.Writer, c *plan.Campaign) error {
	trials, err := c.Schedule()
	if err != nil {
		return err
	}
	return summary(w, c, trials, Rehearsal{}, screen.Columns(w))
}

func summary(w io.Writer, c *plan.Campaign, trials []wire.Trial, r Rehearsal, columns int) error {
	text := &strings.Builder{}
	totals(text, c, trials, c.Estimate(), r)
	if _, err := io.WriteString(w, screen.Fold(text.String(), columns)); err != nil {
		return err
	}
	return effects(w, Estimable(c, trials), columns)
}

// deviations says in what the campaign is not as its paper has it.
func deviations(w io.Writer, of *plan.Paper) {
	if of == nil || len(of.Deviations) == 0 {
		return
	}
	fmt.Fprintf(w, "not as in %s, or read into it:\n", strings.ToUpper(of.Name))
	for _, d := range of.Deviations {
		fmt.Fprintf(w, "- %s\n", strings.TrimSpace(d))
	}
	fmt.Fprintln(w)
}

// trialTable is a row per trial; what a trial has not is a dash.
func trialTable(w io.Writer, c *plan.Campaign, trials []wire.Trial, e drive.Estimate,
	columns int) error {
	labels := factorLabels(c, trials)
	var table screen.Table
	head := append([]string{"trial", "block"}, labels...)
	head = append(head, "car", "sends", "receives", "speed m/s", "direction", "course", "window s", "drive s", "road m")
	crosses := c.Crosses()
	if crosses {
		head = append(head, "flows across others")
	}
	table.Row(head...)
	for i, t := range trials {
		row := []string{fmt.Sprint(t.Number), fmt.Sprint(t.Block)}
		for _, l := range labels {
			row = append(row, cmp.Or(t.Factors[l], "-"))
		}
		x := e.Trials[i]
		speed, road := "-", "-"
		if t.SpeedMps != nil {
			speed = fmt.Sprintf("%.1f", *t.SpeedMps)
		}
		if x.ToM > x.FromM {
			road = fmt.Sprintf("%.0f..%.0f", x.FromM, x.ToM)
		}
		row = append(row, cmp.Or(t.Car, "-"), t.Sender, t.Receiver, speed, cmp.Or(t.Direction, "-"), t.Course.Kind,
			fmt.Sprintf("%.1f", x.WindowS), fmt.Sprintf("%.1f", x.DriveS()), road)
		if crosses {
			row = append(row, cmp.Or(across(t), "-"))
		}
		table.Row(row...)
	}
	return table.Write(w, columns)
}

// across are a trial's flows that are led over relays of others.
func across(t wire.Trial) string {
	var out []string
	for _, f := range t.Traffic {
		if f.Across != "" {
			out = append(out, fmt.Sprintf("%s %s to %s over %s of %s", f.Name, f.From, f.To,
				cmp.Or(f.AcrossNode, "no relay"), f.Across))
		}
	}
	return strings.Join(out, "; ")
}

// factorLabels is the factors in the file's order, then what only calibration passes have.
func factorLabels(c *plan.Campaign, trials []wire.Trial) []string {
	var labels []string
	for _, f := range c.Factors {
		labels = append(labels, f.Name)
	}
	for _, t := range trials {
		for _, l := range slices.Sorted(maps.Keys(t.Factors)) {
			if !slices.Contains(labels, l) {
				labels = append(labels, l)
			}
		}
	}
	return labels
}

func totals(w io.Writer, c *plan.Campaign, trials []wire.Trial, e drive.Estimate, r Rehearsal) {
	calibration := 0
	for _, t := range trials {
		if t.Pass != "" {
			calibration++
		}
	}
	fmt.Fprintf(w, "\n%s", words.Count(len(trials), "trial"))
	if calibration > 0 {
		fmt.Fprintf(w, ", %d of them parked for calibration", calibration)
	}
	fmt.Fprintf(w, "; order %s", c.Design.Order)
	if c.Design.Order != "as_listed" {
		fmt.Fprintf(w, ", seed %d", c.Design.Seed)
	}
	fmt.Fprintf(w, "; at most %s a trial", words.Count(c.AttemptsMax, "attempt"))
	if room := c.AttemptsInAll(); room > 0 {
		fmt.Fprintf(w, ", and %d in all, for which an archive has room", room)
	}
	fmt.Fprintln(w)
	stopWhen(w, c, trials)
	fmt.Fprintf(w, "windows %s, drives %s (run-up, hold, lead, window, braking)\n", Span(e.WindowS), Span(e.DriveS))
	fmt.Fprintf(w, "on a road %s, taking %.0f s between trials", Span(e.RoadTotalS), e.Road.TrialS)
	swaps := len(e.SwapsBefore)
	if swaps > 0 {
		fmt.Fprintf(w, " and %.0f s for each of %d changes of the node in the car", e.Road.SwapS, swaps)
	}
	fmt.Fprintf(w, ", every trial accepted at once\n")
	if swaps > 0 {
		before := strings.ReplaceAll(strings.Trim(fmt.Sprint(e.SwapsBefore), "[]"), " ", ", ")
		fmt.Fprintf(w, "the node in the car changes before trial %s; the run does not wait: to exchange laptops, stop "+
			"it before, and resume it after\n", before)
	}
	inRehearsal(w, c, e, r)
	if e.LongestM > 0 {
		fmt.Fprintf(w, "road from %.0f m to %.0f m of the roadside node's mark, %.0f m in all; the longest strip is "+
			"%.0f m, in trial %d\n", e.FromM, e.ToM, e.SpanM(), e.LongestM, e.LongestAt)
	}
	_, swapped := site.Roadside(trials)
	switch {
	case c.NeedsSite():
		fmt.Fprintf(w, "on a road the gate needs trial.course.site_lat_deg and site_lon_deg, which this file does "+
			"not give\n")
	case swapped != nil:
		fmt.Fprintf(w, "no road run drives it without trial.course.site_lat_deg and site_lon_deg: %v\n", swapped)
	case c.Any(site.Unplaced):
		fmt.Fprintf(w, "on a road a window waits until the car has stood at its start, which is measured from where "+
			"the roadside node's receiver says that it stands, or trial.course.site_lat_deg and site_lon_deg\n")
	}
}

// inRehearsal says how long a rehearsal takes and in what it is not as the road, or why there is none.
func inRehearsal(w io.Writer, c *plan.Campaign, e drive.Estimate, r Rehearsal) {
	if r.Refused != nil {
		fmt.Fprintf(w, "no rehearsal drives it: %v\n", r.Refused)
		return
	}
	if r.Flags != "" {
		fmt.Fprintf(w, "in rehearsal only with %s\n", r.Flags)
	}
	fmt.Fprintf(w, "in rehearsal %s in one field, taking %.0f s and %g s a node between trials\n", Span(e.RehearsalS),
		e.Rehearsal.TrialS, e.Rehearsal.NodeS)
	fmt.Fprintf(w, "in rehearsal %s\n", environment.DrawsText(c.ChannelDraws()))
	if len(r.Deviations) > 0 {
		fmt.Fprintf(w, "in rehearsal not as on the road:\n- %s\n", strings.Join(r.Deviations, "\n- "))
	}
}

// stopWhen says when the run would stop by itself.
func stopWhen(w io.Writer, c *plan.Campaign, trials []wire.Trial) {
	e := c.Design.StopWhen
	if e == nil {
		return
	}
	wish := ""
	if e.HalfWidthMbps != nil {
		wish = fmt.Sprintf("%g Mbit/s", *e.HalfWidthMbps)
	} else {
		wish = fmt.Sprintf("%g %% of the mean", *e.HalfWidthPercent)
	}
	what := "the mean"
	if e.Of != plan.StopOfMean {
		what = "every difference between levels of " + e.Of
	}
	looks := stopping.Plan(*e, wire.RunPlan{Trials: trials})
	fmt.Fprintf(w, "stops once %s is known to ± %s: %s from block %d to block %d, together at %g %% confidence, "+
		"which makes %.4g %% of each interval\n",
		what, wish, words.Count(looks.Count(), "look"), looks.First, looks.Last, 100*e.Confidence, 100*looks.Each())
}

// Estimable is what a campaign's trials can tell.
func Estimable(c *plan.Campaign, trials []wire.Trial) design.Estimable {
	var nodes []wire.PlanNode
	for _, n := range c.Nodes {
		nodes = append(nodes, wire.PlanNode{Name: n.Name, Unit: n.Unit})
	}
	confidence := stats.Confidence
	if e := c.Design.StopWhen; e != nil {
		confidence = stopping.Plan(*e, wire.RunPlan{Trials: trials}).PerLook()
	}
	return design.Judge(nodes, trials, c.Asks, confidence)
}

// effects says what the trials can tell, a row an effect.
func effects(w io.Writer, e design.Estimable, columns int) error {
	fmt.Fprintln(w)
	if e.Trials > 0 {
		if err := effectTable(w, e, columns); err != nil {
			return err
		}
	}
	for _, warning := range e.Warnings {
		fmt.Fprint(w, screen.Fold(fmt.Sprintf("warning: %s\n", warning), columns))
	}
	return nil
}

func effectTable(w io.Writer, e design.Estimable, columns int) error {
	fmt.Fprint(w, screen.Fold(fmt.Sprintf("what %s can tell, if each is accepted: %s, %s\n",
		words.Count(e.Trials, "trial"), sessionsText(e), words.Count(e.ResidualDF, "residual degree")+" of freedom"),
		columns))
	var table screen.Table
	table.Row("effect", "contrasts", "df", "least found", "confounded with")
	for _, f := range e.Effects {
		df := "no interval"
		switch {
		case !f.Own:
			df = "no estimate of its own"
		case f.DFMin == nil:
		case fmt.Sprintf("%.0f", *f.DFMin) == fmt.Sprintf("%.0f", *f.DFMax):
			df = fmt.Sprintf("%.0f", *f.DFMin)
		default:
			df = fmt.Sprintf("%.0f to %.0f", *f.DFMin, *f.DFMax)
		}
		least := "-"
		if f.LeastFoundSD != nil {
			least = fmt.Sprintf("%.2g SD", *f.LeastFoundSD)
		}
		table.Row(f.Name, fmt.Sprint(f.Contrasts), df, least, cmp.Or(strings.Join(f.ConfoundedWith, ", "), "-"))
	}
	if err := table.Write(w, columns); err != nil {
		return err
	}
	if slices.ContainsFunc(e.Effects, func(f design.Effect) bool { return f.LeastFoundSD != nil }) {
		note := fmt.Sprintf("least found: an effect so large is found %.0f times in 100, in standard deviations "+
			"between trials that differ in nothing, if sessions are alike; speed's is over all speeds\n",
			100*stats.WishedPower)
		fmt.Fprint(w, screen.Fold(note, columns))
	}
	return nil
}

// sessionsText says how the model would take the plan's sessions.
func sessionsText(e design.Estimable) string {
	how := map[string]string{
		stats.GroupsInside: " that differ only as the effects do", stats.GroupsFixed: " with an effect each",
		stats.GroupsRandom: " as a random effect", stats.GroupsNoise: " that cannot be separated from noise",
	}
	return words.Count(e.Sessions, "session") + how[e.SessionsAs]
}

// Span is a time in minutes and seconds, or hours and minutes.
func Span(s float64) string {
	d := time.Duration(s * float64(time.Second)).Round(time.Second)
	if d >= time.Hour {
		return fmt.Sprintf("%d h %02d min", int(d.Hours()), int(d.Minutes())%60)
	}
	return fmt.Sprintf("%d min %02d s", int(d.Minutes()), int(d.Seconds())%60)
}
