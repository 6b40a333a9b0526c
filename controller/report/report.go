// Package report writes a run as one self-contained HTML file: an explicit list
// of sections over the metrics table. The numbers themselves come from package
// metrics, what they say of factors from package effects.
package report

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/base64"
	"fmt"
	"html/template"
	"io"
	"strings"

	"fieldmesh.dev/fieldmesh/controller/archive"
	"fieldmesh.dev/fieldmesh/controller/metrics"
	"fieldmesh.dev/fieldmesh/controller/report/evidence"
	"fieldmesh.dev/fieldmesh/controller/report/threats"
)

//go:embed page/*.html page/paper.tmpl page/style.css
var page embed.FS

// part is one section of the report. Its view is nil when the run has nothing
// to show in it.
type part struct {
	ID    string // also the template's name
	Title string
	view  func(*evidence.Run) (any, error)
}

// parts is the report, in order.
func parts() []part {
	return []part{
		{"threats", "Threats to validity in this run", threats.View},
		{"results", "Results", viewResults},
		{"figures", "Throughput by distance", viewFigures},
		{"delays", "Delay", viewDelays},
		{"comparison", "Comparison of the sections", viewComparison},
		{"published", "Beside the paper's figures", viewPublished},
		{"paperfigures", "The paper's figures, drawn by this run", viewPaperFigures},
		{"stopping", "Why it stopped", viewStopping},
		{"timelines", "Every trial over its window", viewTimelines},
		{"routing", "Routing", viewRouting},
		{"traces", "What TCP did in every trial", viewTraces},
		{"playback", "Playback", viewPlayback},
		{"calibration", "Calibration passes", viewCalibration},
		{"verdicts", "Verdicts", viewVerdicts},
		{"marks", "Noted on the way", viewMarks},
		{"setup", "What was driven and with what", viewSetup},
		{"methods", "Methods and definitions", viewMethods},
	}
}

// filled is a section with its HTML.
type filled struct {
	ID, Title string
	HTML      template.HTML
}

// whole is what the page's frame is made from.
type whole struct {
	Policy   string
	Head     head
	Style    template.CSS
	Sections []filled
}

// Write writes the report of a run, and returns the rows that it is made of,
// those of metrics.Table. The archive is only read.
func Write(a *archive.Archive, w io.Writer) (Result, error) { return writeOf(a, w, false) }

// WriteAlone does so for whoever gets the report without the run's folder.
func WriteAlone(a *archive.Archive, w io.Writer) (Result, error) { return writeOf(a, w, true) }

func writeOf(a *archive.Archive, w io.Writer, alone bool) (Result, error) {
	d, err := evidence.Gather(a)
	if err != nil {
		return Result{}, err
	}
	d.Alone = alone
	if err := write(d, w); err != nil {
		return Result{}, fmt.Errorf("write report of %q: %w", d.Info.Run, err)
	}
	figures, err := figureFiles(d)
	if err != nil {
		return Result{}, fmt.Errorf("draw the figures of %q: %w", d.Info.Run, err)
	}
	return Result{d.Table, d.Altered, figures}, nil
}

// Result is what a report rests on.
type Result struct {
	Rows    []metrics.Row
	Altered []archive.Finding // files that are not as the run wrote them
	Figures []FigureFile      // of the paper whose question the campaign puts
}

func write(d *evidence.Run, w io.Writer) error {
	pages, err := template.ParseFS(page, "page/*.html")
	if err != nil {
		return err
	}
	css, err := page.ReadFile("page/style.css")
	if err != nil {
		return err
	}
	out := whole{Head: viewHead(d), Style: template.CSS(css)}
	if out.Policy, err = policy(pages); err != nil {
		return err
	}
	for _, p := range parts() {
		view, err := p.view(d)
		if err != nil {
			return fmt.Errorf("section %q: %w", p.ID, err)
		}
		if view == nil {
			continue
		}
		var b bytes.Buffer
		if err := pages.ExecuteTemplate(&b, p.ID, view); err != nil {
			return fmt.Errorf("section %q: %w", p.ID, err)
		}
		out.Sections = append(out.Sections, filled{p.ID, p.Title, template.HTML(b.String())})
	}
	return pages.ExecuteTemplate(w, "frame", out)
}

// policy lets the page run its own three scripts, by their hashes, and load nothing but photos and
// recordings from where it lies itself. A text of an archive that got into the page as HTML could do neither.
func policy(pages *template.Template) (string, error) {
	allowed := ""
	for _, name := range []string{"player", "strips", "reader"} {
		var b strings.Builder
		if err := pages.ExecuteTemplate(&b, name, nil); err != nil {
			return "", err
		}
		code := strings.TrimSuffix(strings.TrimPrefix(strings.TrimSpace(b.String()), "<script>"), "</script>")
		sum := sha256.Sum256([]byte(code))
		allowed += " 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
	}
	return "default-src 'none'; style-src 'unsafe-inline'; img-src 'self' file:; media-src 'self' file:; script-src" +
		allowed, nil
}
