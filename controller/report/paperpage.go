package report

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/template"

	"fieldmesh.dev/fieldmesh/controller/archive"
	"fieldmesh.dev/fieldmesh/controller/metrics"
	"fieldmesh.dev/fieldmesh/controller/papers"
	"fieldmesh.dev/fieldmesh/controller/plan"
	"fieldmesh.dev/fieldmesh/controller/plan/choice"
	"fieldmesh.dev/fieldmesh/controller/plan/drive"
	"fieldmesh.dev/fieldmesh/controller/plan/show"
	"fieldmesh.dev/fieldmesh/controller/plan/tree"
	"fieldmesh.dev/fieldmesh/controller/report/answers"
	"fieldmesh.dev/fieldmesh/controller/report/evidence"
	"fieldmesh.dev/fieldmesh/controller/report/figure"
	"fieldmesh.dev/fieldmesh/controller/report/threats"
	"fieldmesh.dev/fieldmesh/controller/report/words"
	"fieldmesh.dev/fieldmesh/controller/stats"
	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// PaperPage is what runs say beside a paper: a page in Markdown, and the drawings
// that it shows, SVG, by their paths from it.
type PaperPage struct {
	Markdown []byte
	Drawings map[string][]byte
	without  map[string]string // metrics of the run at hand that are not compared: why
}

// paperPageView is what the page is made of.
type paperPageView struct {
	papers.Paper
	Name string // P2
	Runs []runView
	Left []leftRow
	Not  []leftDeviations
	Rule string
	// Measures are what the paper measures, and ours beside it.
	Measures []papers.Measure
	// Simulated is what the paper's own simulator gives; nil where it was not driven.
	Simulated *simulatedView
}

// leftDeviations are in what a campaign is not its paper, of one that no run drove, and
// what its paper says of a scenario that no other campaign has.
type leftDeviations struct {
	Campaign   string
	Deviations []string
	Claims     []papers.Claim
}

// runView is what one run says.
type runView struct {
	Title              string
	About              [][2]string
	Means              string
	Doubts, Deviations []string
	NamedSince         []string // deviations that the campaign has as it ships, and the run's own file lacks
	Figures            []pageFigure
	Undrawn            []undrawn
	answers.View
}

// pageFigure is a figure or a table of the paper, with ours.
type pageFigure struct {
	Number, Caption string
	Drawings        []pageDrawing
	Head            []string
	Rows            [][]string
	Said            []string
}

type pageDrawing struct{ Label, Path string }

// leftRow is a campaign at a scale that no run of the page drove.
type leftRow struct {
	Campaign, Scale, Time string
	Trials                int
}

// leftTime is how long a campaign takes that was not driven: on the road, where only virtual
// time has its rehearsal. What has no schedule before its field is known is rehearsed.
func leftTime(c *plan.Campaign, e drive.Estimate) string {
	trials, err := c.Schedule()
	if err == nil && slices.ContainsFunc(trials, func(t wire.Trial) bool { return t.Radio.HasAccessPoint() }) {
		return show.Span(e.RoadTotalS) + " on the road"
	}
	return show.Span(e.RehearsalS)
}

// Tables is a run without its records.
type Tables struct {
	Dir     string                          // with run.json, schedule.json, campaign.yaml and journal.ndjson
	Numbers map[wire.TrialKey][]metrics.Row // of each accepted attempt
	Without map[string]string               // metrics that a fault of the run makes no measure: why
}

// notCompared says which metrics are not compared, together where for one reason.
func notCompared(without map[string]string) (out []string) {
	byReason := map[string][]string{}
	for _, metric := range slices.Sorted(maps.Keys(without)) {
		byReason[without[metric]] = append(byReason[without[metric]], "`"+metric+"`")
	}
	for _, why := range slices.Sorted(maps.Keys(byReason)) {
		is, it := "is", "it"
		if len(byReason[why]) > 1 {
			is, it = "are", "them"
		}
		out = append(out, fmt.Sprintf("Of this run %s %s not compared, and claims on %s count as not asked. %s",
			strings.Join(byReason[why], ", "), is, it, why))
	}
	return out
}

// Paper makes the page about a paper of those of the runs that put its question.
// Campaigns are those that may put it, each at each of its scales.
func Paper(id string, runs []Tables, campaigns []*plan.Campaign) (PaperPage, error) {
	paper, known := papers.Of(id)
	if !known {
		return PaperPage{}, fmt.Errorf("make a page about paper %q: it is one of %s", id,
			strings.Join(papers.IDs(), ", "))
	}
	out := PaperPage{Drawings: map[string][]byte{}}
	v := paperPageView{Paper: paper, Name: strings.ToUpper(id), Rule: papers.Rule(stats.Confidence),
		Measures: papers.Measures(id)}
	driven, named := map[[3]string]bool{}, map[string]bool{}
	for _, run := range runs {
		d, err := run.read()
		if err != nil {
			return out, fmt.Errorf("make a page about paper %q: %w", id, err)
		}
		if d.Info.Paper == nil || d.Info.Paper.Name != id {
			continue
		}
		driven[[3]string{d.Info.Campaign, scaleOf(d), d.Info.Plan.CampaignSHA256}] = true
		named[d.Info.Campaign] = true
		out.without = run.Without
		one, err := out.run(d)
		if err != nil {
			return out, fmt.Errorf("make a page about paper %q: %w", id, err)
		}
		one.Doubts = append(one.Doubts, notCompared(run.Without)...)
		asDriven, err := os.ReadFile(filepath.Join(run.Dir, "campaign.yaml"))
		if err != nil {
			return out, fmt.Errorf("make a page about paper %q: read the campaign of a run: %w", id, err)
		}
		for _, c := range campaigns {
			if c.Name == d.Info.Campaign && c.Paper != nil && tree.SameButForWords(asDriven, c.Raw) {
				one.Deviations = c.Paper.Deviations
				driven[[3]string{d.Info.Campaign, scaleOf(d), c.SHA256}] = true
				break
			}
			if c.Name == d.Info.Campaign && c.SHA256 != d.Info.Plan.CampaignSHA256 {
				doubt := "The campaign's file has changed since; what ships now was not driven. " +
					"What was mended stands in [Results](README.md#the-runs-that-are-here)."
				if choice.Is(d.Info.Scale) {
					doubt = "It was driven at a choice of the experimenter's, not as the campaign ships. " +
						d.Info.Scale.Why
				}
				one.Doubts = append(one.Doubts, doubt)
				if c.Paper != nil {
					one.NamedSince = slices.DeleteFunc(slices.Clone(c.Paper.Deviations), func(text string) bool {
						return slices.Contains(one.Deviations, text)
					})
				}
				break
			}
		}
		for _, c := range campaigns {
			if now, then := c.Scale, d.Info.Scale; c.Name == d.Info.Campaign && now != nil && then != nil &&
				now.Name == then.Name && now.Why != then.Why {
				one.Doubts = append(one.Doubts, "Of this scale the campaign's file says since the run: "+now.Why)
			}
		}
		v.Runs = append(v.Runs, one)
	}
	for _, c := range campaigns {
		scale := plan.FullScale
		if c.Scale != nil {
			scale = c.Scale.Name
		}
		if c.Paper == nil || c.Paper.Name != id || driven[[3]string{c.Name, scale, c.SHA256}] {
			continue
		}
		e := c.Estimate()
		v.Left = append(v.Left, leftRow{c.Name, scale, leftTime(c, e), len(e.Trials)})
		if !named[c.Name] && len(c.Paper.Deviations) > 0 {
			left := leftDeviations{Campaign: c.Name, Deviations: c.Paper.Deviations}
			if c.Paper.Scenario != "" {
				published, err := papers.Read()
				if err != nil {
					return out, fmt.Errorf("make a page about paper %q: %w", id, err)
				}
				left.Claims = slices.CompactFunc(published.Claims(id, c.Paper.Scenario), func(a, b papers.Claim) bool {
					return a.ID == b.ID
				})
			}
			v.Not, named[c.Name] = append(v.Not, left), true
		}
	}
	if id == "p2" {
		var err error
		if v.Simulated, err = simulatedChain(); err != nil {
			return out, fmt.Errorf("make a page about paper %q: %w", id, err)
		}
	}
	pages, err := template.New("").Funcs(template.FuncMap{"cell": markdownCell}).ParseFS(page, "page/paper.tmpl")
	if err != nil {
		return out, err
	}
	var b bytes.Buffer
	if err := pages.ExecuteTemplate(&b, "paper.tmpl", v); err != nil {
		return out, fmt.Errorf("make a page about paper %q: %w", id, err)
	}
	out.Markdown = []byte(wrapped(b.String()))
	return out, nil
}

// read reads the run. Whatever only records tell is absent.
func (r Tables) read() (*evidence.Run, error) {
	a, err := archive.Read(r.Dir)
	if err != nil {
		return nil, err
	}
	d := &evidence.Run{Info: a.Info(), Campaign: evidence.CampaignOf(a.Info()), Stop: a.Stopped()}
	decisions := a.Decisions()
	slices.SortFunc(decisions, func(x, y wire.Verdict) int {
		return cmp.Or(cmp.Compare(x.Trial, y.Trial), cmp.Compare(x.Attempt, y.Attempt))
	})
	for _, verdict := range decisions {
		t, planned := a.Trial(verdict.Trial)
		if !planned {
			return nil, fmt.Errorf("read run %q without its records: its journal decides trial %d, which its "+
				"schedule does not have", r.Dir, verdict.Trial)
		}
		at := d.AttemptOf(t)
		at.TrialKey, at.Verdict = verdict.TrialKey, &verdict
		own, there := r.Numbers[verdict.TrialKey]
		if there != at.Accepted() {
			return nil, fmt.Errorf("read run %q without its records: trial %d attempt %d is %s; there are numbers "+
				"of it: %v; they are of another run", r.Dir, verdict.Trial, verdict.Attempt, verdict.Outcome, there)
		}
		own = slices.DeleteFunc(slices.Clone(own), func(row metrics.Row) bool {
			return r.Without[row.Name] != "" ||
				row.Name == metrics.ConnectCensoredMs && r.Without[metrics.ConnectTimeMs] != ""
		})
		at.Rows, at.Packets = own, own
		_, at.Mbps = metrics.Measured(t, own)
		d.Attempts = append(d.Attempts, at)
	}
	return d, nil
}

func scaleOf(d *evidence.Run) string {
	if d.Info.Scale != nil {
		return d.Info.Scale.Name
	}
	return plan.FullScale
}

// run adds a run's drawings to the page, and returns what is said of it.
func (out *PaperPage) run(d *evidence.Run) (runView, error) {
	published, err := papers.Read()
	if err != nil {
		return runView{}, err
	}
	v := runView{Title: fmt.Sprintf("%s at the scale %s", d.Info.Campaign, scaleOf(d)), Means: ourMeans(d),
		About: aboutRun(d), Deviations: d.Info.Paper.Deviations}
	for _, c := range []threats.Check{threats.Emulated, threats.Reduced, threats.FewRepetitions, threats.Undriven,
		threats.NothingTransferred, threats.MediumLateness} {
		if t, clear := c(d); t != nil {
			v.Doubts = append(v.Doubts, t.Title+": "+t.Text)
		} else if clear != "" {
			v.Doubts = append(v.Doubts, clear)
		}
	}
	trials := paperTrials(d)
	figures, err := drawPaper(d)
	if err != nil {
		return v, err
	}
	tables := published.Tables(d.Info.Paper.Scenario, trials, intervalAt(d))
	for _, f := range figures {
		switch {
		case len(f.panels) > 0:
			v.Figures = append(v.Figures, out.drawn(d, f))
		case f.Kind == papers.Printed && f.Scenario == d.Info.Paper.Scenario && len(tables) > 0:
			v.Figures = append(v.Figures, out.table(d, f, tables[0]))
			tables = tables[1:]
		case f.Kind == papers.Printed && f.Scenario == "":
			v.Undrawn = append(v.Undrawn, undrawn{f.Number, f.Caption,
				"its numbers stand beside ours in the figures' tables"})
		default:
			v.Undrawn = append(v.Undrawn, undrawn{f.Number, f.Caption, strings.Join(f.missing, "; ")})
		}
	}
	v.View = answers.Of(published.Claims(d.Info.Paper.Name, d.Info.Paper.Scenario), trials, intervalsOf(d))
	return v, nil
}

// aboutRun says what was driven, with what and when.
func aboutRun(d *evidence.Run) [][2]string {
	out := [][2]string{
		{"campaign", fmt.Sprintf("%s, SHA-256 %.16s…", d.Info.Campaign, d.Info.Plan.CampaignSHA256)},
		{"scale", scaleOf(d)},
		{"driven", d.Info.CreatedWall.UTC().Format("2 January 2006") + ", by fieldmesh " + d.Info.Version},
		{"place", d.Info.Place},
	}
	clock := [2]string{"clock", "real; each node's kernel is in its trials' provenance, which is not in these tables"}
	if c := d.Info.Clock; c.Virtual() {
		clock[1] = fmt.Sprintf("virtual: Linux %s of configuration %s, %d ns a system call", c.Kernel, c.Configuration,
			c.CallNs)
	}
	out = append(out, clock, [2]string{"seed", fmt.Sprint(d.Info.Seed)}, [2]string{"trials", attemptsCounted(d)})
	if d.Info.Enough != nil {
		out = append(out, [2]string{"intervals", fmt.Sprintf("at %s instead of %s, for it could stop early",
			words.Percent(d.Level()), words.Percent(stats.Confidence))})
	}
	return out
}

// put adds a drawing of a figure to the page.
func (out *PaperPage) put(d *evidence.Run, f drawnFigure, p figure.Panel) pageDrawing {
	name := fmt.Sprintf("%s-%s-%s", d.Info.Campaign, scaleOf(d), strings.TrimPrefix(f.fileName(), f.Paper+"-"))
	path := fmt.Sprintf("%s/%s-%d.svg", f.Paper, name, len(out.Drawings)+1)
	out.Drawings[path] = []byte(figure.Sheet("", []figure.Panel{p}, ""))
	return pageDrawing{p.Label, path}
}

// drawn is a figure that the report draws, with its numbers.
func (out *PaperPage) drawn(d *evidence.Run, f drawnFigure) pageFigure {
	v := pageFigure{Number: f.Number, Caption: f.Caption, Said: f.said,
		Head: []string{"panel", "series", axisLabel(f.X.Label, f.X.Unit), "ours", "n", "paper"}}
	for _, p := range f.panels {
		v.Drawings = append(v.Drawings, out.put(d, f, p))
	}
	v.Rows = f.beside()
	for _, m := range f.missing {
		v.Said = append(v.Said, "Not drawn: "+m+".")
	}
	return v
}

// beside are the figure's numbers, a row for each place of a series, in the order of
// panels, series and places.
func (f drawnFigure) beside() (out [][]string) {
	type place struct {
		panel, series string
		x             float64
	}
	of := func(r figureRow) place {
		if r.of == "paper, all" {
			return place{r.panel, "all", 0}
		}
		return place{r.panel, r.series, r.x}
	}
	rows, order := map[place][]string{}, map[[2]string]int{}
	for _, r := range f.rows {
		k := of(r)
		if _, met := order[[2]string{k.panel, k.series}]; !met {
			order[[2]string{k.panel, k.series}] = len(order)
		}
		if rows[k] == nil {
			rows[k] = []string{k.panel, k.series, words.Digits(k.x), "—", "—", "—"}
		}
		switch r.of {
		case "ours":
			rows[k][3] = strings.TrimSpace(r.bound + " " + valueOf(papers.Mark{Y: r.y, High: r.high, N: r.n}, r.yUnit))
			rows[k][4] = fmt.Sprint(r.n)
		case "paper, all":
			rows[k][2], rows[k][5] = "all", r.printed
		default:
			rows[k][5] = r.printed
		}
	}
	places := slices.SortedFunc(maps.Keys(rows), func(a, b place) int {
		return cmp.Or(cmp.Compare(order[[2]string{a.panel, a.series}], order[[2]string{b.panel, b.series}]),
			cmp.Compare(a.x, b.x))
	})
	for _, k := range places {
		out = append(out, rows[k])
	}
	return out
}

// valueOf prints a mark's value with its interval and unit.
func valueOf(m papers.Mark, unit string) string {
	v := papers.Interval{Mean: m.Y, N: m.N}
	if m.High != nil {
		v.Half = new(*m.High - m.Y)
	}
	return answers.Interval(v, strings.TrimSuffix(unit, "1"))
}

// table is one of the paper's tables, a plot for those that stand and one for those
// that move, and a row a cell.
func (out *PaperPage) table(d *evidence.Run, f drawnFigure, t papers.Table) pageFigure {
	v := pageFigure{Number: f.Number, Caption: f.Caption,
		Head: []string{"routing, motion, variant", "ours, " + t.Unit, "paper", "ours ÷ paper", "n"}}
	var motions []string
	for _, r := range t.Rows {
		if !slices.Contains(motions, r.Motion) {
			motions = append(motions, r.Motion)
		}
		for i, c := range r.Cells {
			row := []string{r.Routing + ", " + r.Motion + ", " + t.Variants[i], answers.Interval(c.Ours, ""), c.Printed,
				"—", fmt.Sprint(c.Ours.N)}
			if c.Ratio != nil {
				row[3] = words.Digits(*c.Ratio)
			}
			v.Rows = append(v.Rows, row)
		}
	}
	if why := out.without[t.Metric]; why != "" {
		v.Said = []string{"Ours is not compared. " + why}
		return v
	}
	for _, motion := range motions {
		p := t.Plot(motion)
		panel := figure.Panel{Title: motion, Label: f.Number + ", " + motion, XLabel: "variant",
			YLabel: axisLabel(papers.Words(t.Metric), t.Unit), XNames: t.Variants,
			Confidence: words.Percent(d.Level())}
		for _, c := range p {
			panel.Curves = append(panel.Curves, curveOf(c, t.Unit))
		}
		v.Drawings = append(v.Drawings, out.put(d, f, panel))
	}
	w := tableView(t)
	for _, motion := range motions {
		if said := spread(t, motion); said != "" {
			v.Said = append(v.Said, said)
		}
	}
	if w.Pooled != "" {
		v.Said = append(v.Said, w.Pooled)
	}
	v.Said = append(append(v.Said, w.Orders), w.Remarks...)
	return v
}

// spread says from where to where the cells of a motion go, ours and the paper's, of
// those that both have; "" where there is none.
func spread(t papers.Table, motion string) string {
	var ours, theirs, ratios []float64
	for _, r := range t.Rows {
		for _, c := range r.Cells {
			if r.Motion != motion || c.Theirs == nil || c.Ours.N == 0 {
				continue
			}
			ours, theirs = append(ours, c.Ours.Mean), append(theirs, *c.Theirs)
			if c.Ratio != nil {
				ratios = append(ratios, *c.Ratio)
			}
		}
	}
	if len(ours) == 0 {
		return ""
	}
	between := func(v []float64) string { return words.Digits(slices.Min(v)) + " to " + words.Digits(slices.Max(v)) }
	out := fmt.Sprintf("%s: ours are %s %s, the paper's %s", strings.ToUpper(motion[:1])+motion[1:], between(ours),
		t.Unit, between(theirs))
	if len(ratios) > 0 {
		out += "; ours ÷ paper is " + between(ratios)
	}
	return out + "."
}

// markdownCell is a text within a table.
func markdownCell(text string) string {
	return strings.NewReplacer("|", `\|`, "<", "&lt;", "\n", " ").Replace(text)
}

// wrapped breaks paragraphs and lists into lines of the length that pages have.
func wrapped(text string) string {
	const most = 120
	var out strings.Builder
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "|") || len([]rune(line)) <= most {
			out.WriteString(line)
			continue
		}
		column := 0
		for _, part := range unbroken(line) {
			n := len([]rune(part))
			switch {
			case column > 0 && column+1+n > most:
				out.WriteByte('\n')
				column = 0
			case column > 0:
				out.WriteByte(' ')
				column++
			}
			out.WriteString(part)
			column += n
		}
		out.WriteByte('\n')
	}
	return out.String()
}

// unbroken are the words of a line, each with the signs that follow it: one at the
// beginning of a line would make a list or a heading of it.
func unbroken(line string) []string {
	var out []string
	for i, word := range strings.Fields(line) {
		if i > 1 && strings.ContainsAny(word[:1], "+-*#>") {
			out[len(out)-1] += " " + word
			continue
		}
		out = append(out, word)
	}
	return out
}
