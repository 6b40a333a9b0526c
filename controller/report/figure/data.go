package figure

import (
	"encoding/csv"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"fieldmesh.dev/fieldmesh/controller/metrics"
)

// CSV is what the plot is drawn from, one mark a line: every trial, and every mean
// with its interval and the number of its trials. x is the name of the x column. A
// cell without a value is empty.
func (p Plot) CSV(x string) string {
	var b strings.Builder
	w := csv.NewWriter(&b)
	line := func(cells ...string) {
		_ = w.Write(cells) // a strings.Builder takes everything
	}
	y, low, high := p.yNames()
	line("series", "mark", "trial", metrics.Cell(x), "x_low", "x_high", y, low, high, "n")
	for _, s := range p.Series {
		for _, m := range s.Points {
			line(metrics.Cell(s.Name), "trial", strconv.Itoa(m.Trial), p.xText(m.X), number(m.XLow), number(m.XHigh),
				metrics.Number(m.Y), number(m.YLow), number(m.YHigh), "1")
		}
		for _, m := range s.Means {
			line(metrics.Cell(s.Name), "mean", "", p.xText(m.X), number(m.XLow), number(m.XHigh),
				metrics.Number(m.Y), number(m.YLow), number(m.YHigh), strconv.Itoa(m.N))
		}
	}
	w.Flush()
	return b.String()
}

// yNames are the columns of y and of its interval.
func (p Plot) yNames() (y, low, high string) {
	return p.YName + "_" + p.YUnit, p.YName + "_low_" + p.YUnit, p.YName + "_high_" + p.YUnit
}

// xText is an x as the axis has it.
func (p Plot) xText(x float64) string {
	for _, t := range p.Ticks {
		if t.X == x {
			return metrics.Cell(t.Text)
		}
	}
	return metrics.Number(x)
}

func number(v *float64) string {
	if v == nil {
		return ""
	}
	return metrics.Number(*v)
}

// Script is a Python program that draws the plot's CSV, which lies beside it as
// NAME.csv, with matplotlib, and saves it as NAME.pdf.
func (p Plot) Script(name, x string) string {
	var levels []string
	for _, t := range p.Ticks {
		levels = append(levels, metrics.Cell(t.Text))
	}
	colours := make([]string, len(styles))
	for i, s := range styles {
		colours[i] = s.Colour
	}
	dodge := 0.0
	if p.Dodge {
		dodge = 0.01
	}
	y, low, high := p.yNames()
	return fmt.Sprintf(script, name, quoted(name), quoted(levels), dodge, quoted(metrics.Cell(x)), quoted(colours),
		quoted(p.XLabel), quoted(p.YLabel), quoted([]string{y, low, high}))
}

// quoted is a text or a list of texts as Python has it.
func quoted(v any) string {
	b, err := json.Marshal(v)
	if err != nil || string(b) == "null" {
		return "[]"
	}
	return string(b)
}

const script = `# Draws %[1]s.csv, which lies beside this file. Needs matplotlib.
import csv

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt

NAME, LEVELS, DODGE, X = %[2]s, %[3]s, %[4]g, %[5]s
COLOURS, MARKERS = %[6]s, "os^DP"
Y, LOW, HIGH = %[9]s

with open(NAME + ".csv", newline="", encoding="utf-8") as f:
    rows = list(csv.DictReader(f))


def at(row):
    return LEVELS.index(row[X]) if LEVELS else float(row[X])


def ends(row, middle):
    if row[LOW] == "" or row[HIGH] == "":
        return [0], [0]
    return [middle - float(row[LOW])], [float(row[HIGH]) - middle]


fig, ax = plt.subplots(figsize=(5.5, 3.6), layout="constrained")
names = list(dict.fromkeys(r["series"] for r in rows))
reach = max([at(r) for r in rows] or [1]) or 1
for i, name in enumerate(names):
    colour, marker = COLOURS[i %% len(COLOURS)], MARKERS[i %% len(MARKERS)]
    shift = DODGE * reach * (i - (len(names) - 1) / 2)
    own = [r for r in rows if r["series"] == name]
    label = name
    for r in (r for r in own if r["mark"] == "trial"):
        ax.plot(at(r) + shift, float(r[Y]), color=colour, marker=marker, fillstyle="none", alpha=0.6,
                linestyle="none", label=label)
        if r["x_low"] != "" and r["x_high"] != "":  # which x need not lie between
            ax.hlines(float(r[Y]), float(r["x_low"]) + shift, float(r["x_high"]) + shift, colors=colour,
                      alpha=0.6, linewidth=0.7)
        label = None
    means = [r for r in own if r["mark"] == "mean"]
    ax.plot([at(r) + shift for r in means], [float(r[Y]) for r in means], color=colour, linewidth=1)
    for r in means:
        y = float(r[Y])
        ax.errorbar(at(r) + shift, y, yerr=ends(r, y), color=colour,
                    marker="_", markersize=10, capsize=3)
if LEVELS:
    ax.set_xticks(range(len(LEVELS)), LEVELS)
ax.set(xlabel=%[7]s, ylabel=%[8]s, ylim=(0, None))
ax.grid(alpha=0.3)
ax.legend(frameon=False, fontsize="small")
fig.savefig(NAME + ".pdf")
`
