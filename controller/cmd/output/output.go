// Package output writes what a run has come to: the report and its files into the
// run's folder, and a table of results.
package output

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"fieldmesh.dev/fieldmesh/controller/archive"
	"fieldmesh.dev/fieldmesh/controller/metrics"
	"fieldmesh.dev/fieldmesh/controller/report"
	"fieldmesh.dev/fieldmesh/internal/screen"
	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// Report writes report.html, metrics.csv and a paper's figures into the run's
// folder and returns the report's path, and what it rests on.
func Report(a *archive.Archive) (path string, of report.Result, err error) {
	path = filepath.Join(a.Dir(), "report.html")
	err = ReplaceFile(path, func(w io.Writer) error {
		of, err = report.Write(a, w)
		return err
	})
	if err != nil {
		return "", of, err
	}
	if err := os.Remove(pdfOf(path)); err != nil && !errors.Is(err, fs.ErrNotExist) { // that of an earlier report
		return path, of, fmt.Errorf("write the report: %w", err)
	}
	if err := writeFigures(filepath.Join(a.Dir(), archive.FiguresFolder), of.Figures); err != nil {
		return path, of, err
	}
	return path, of, ReplaceFile(filepath.Join(a.Dir(), "metrics.csv"), func(w io.Writer) error {
		return metrics.WriteCSV(w, of.Rows)
	})
}

// writeFigures writes a paper's figures, and removes those of an earlier report.
func writeFigures(dir string, figures []report.FigureFile) error {
	for _, pattern := range []string{"p?-*.svg", "p?-*.csv"} {
		old, err := filepath.Glob(filepath.Join(dir, pattern))
		if err != nil {
			return fmt.Errorf("write figures: %w", err)
		}
		for _, path := range old {
			if err := os.Remove(path); err != nil {
				return fmt.Errorf("write figures: %w", err)
			}
		}
	}
	if len(figures) == 0 {
		return nil
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("write figures: %w", err)
	}
	for _, f := range figures {
		for ending, text := range map[string][]byte{".svg": f.SVG, ".csv": f.CSV} {
			if err := os.WriteFile(filepath.Join(dir, f.Name+ending), text, 0o644); err != nil {
				return fmt.Errorf("write figures: %w", err)
			}
		}
	}
	return nil
}

// ReplaceFile writes a derived file beside its place and renames it there, so
// that a reader never sees half of one.
func ReplaceFile(path string, write func(io.Writer) error) error {
	f, err := os.CreateTemp(filepath.Dir(path), ".new-")
	if err != nil {
		return fmt.Errorf("write %q: %w", path, err)
	}
	defer os.Remove(f.Name()) // nothing is left to remove after the rename
	err = write(f)
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err == nil {
		err = os.Chmod(f.Name(), 0o644)
	}
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return fmt.Errorf("write %q: %w", path, err)
	}
	return nil
}

// cell is one combination of factor levels with the results of its trials that count.
type cell struct {
	labels []string
	values []float64
}

// Table prints the throughput, a line per cell of the design.
func Table(out io.Writer, a *archive.Archive, rows []metrics.Row) error {
	of := map[wire.TrialKey][]metrics.Row{}
	for _, r := range rows {
		k := wire.TrialKey{Trial: r.Trial, Attempt: r.Attempt}
		of[k] = append(of[k], r)
	}
	var factors []string
	cells := map[string]*cell{}
	arrived, unit := measured(a.Info().Plan.Trials)
	decisions := a.Decisions()
	slices.SortStableFunc(decisions, func(x, y wire.Verdict) int { return cmp.Compare(x.Trial, y.Trial) })
	for _, v := range decisions {
		t, ok := a.Trial(v.Trial)
		if !ok || !archive.Counts(t, &v, a.Stopped()) {
			continue
		}
		value := arrived(t, of[v.TrialKey])
		if value == nil {
			continue
		}
		if factors == nil {
			factors = slices.Sorted(maps.Keys(t.Factors))
		}
		var labels []string
		for _, f := range factors {
			labels = append(labels, t.Factors[f])
		}
		key := strings.Join(labels, "\x00")
		if cells[key] == nil {
			cells[key] = &cell{labels: labels}
		}
		cells[key].values = append(cells[key].values, *value)
	}
	trials := a.Info().Plan.Trials
	if slices.ContainsFunc(trials, wire.Trial.MeasuresDelay) {
		_, err := fmt.Fprintln(out, "\ndelay: in the report, and delay_round_trip_p50_ms in results.csv")
		if err != nil {
			return err
		}
	}
	if len(cells) == 0 {
		return nil
	}
	if !measuresTCP(trials) {
		if _, err := fmt.Fprintln(out, "\nMB by iperf3's own count: the kernel keeps none for UDP"); err != nil {
			return err
		}
	}
	heads := make([]string, len(factors))
	for i, f := range factors {
		heads[i] = withUnit(f, trials)
	}
	return printCells(out, heads, cells, unit)
}

// withUnit is a factor's name, and the unit of one whose levels are the car's speeds.
func withUnit(factor string, trials []wire.Trial) string {
	if strings.HasSuffix(factor, "_mps") || slices.ContainsFunc(trials, func(t wire.Trial) bool {
		return t.SpeedMps == nil || t.Factors[factor] != fmt.Sprint(*t.SpeedMps)
	}) {
		return factor
	}
	return factor + " m/s"
}

func measuresTCP(trials []wire.Trial) bool {
	return slices.ContainsFunc(trials, func(t wire.Trial) bool { return len(t.Measured()) > 0 })
}

// measured reckons an attempt's throughput, by the receiver's kernel as in the report,
// or, where a campaign measures UDP alone, what arrived by iperf3's own count.
func measured(trials []wire.Trial) (of func(wire.Trial, []metrics.Row) *float64, unit string) {
	if measuresTCP(trials) {
		return func(t wire.Trial, rows []metrics.Row) *float64 {
			_, mbps := metrics.Measured(t, rows)
			return mbps
		}, "Mbit/s"
	}
	return func(t wire.Trial, rows []metrics.Row) *float64 {
		flows := slices.DeleteFunc(slices.Clone(t.Traffic), func(f wire.Flow) bool {
			return f.Background || f.Kind == wire.KindDelay
		})
		return metrics.Sum(rows, flows, metrics.Iperf3MB)
	}, "MB"
}

func printCells(out io.Writer, factors []string, cells map[string]*cell, unit string) error {
	sorted := make([]*cell, 0, len(cells))
	for _, c := range cells {
		sorted = append(sorted, c)
	}
	slices.SortFunc(sorted, func(x, y *cell) int {
		return slices.CompareFunc(x.labels, y.labels, compareLabels)
	})
	var t screen.Table
	t.Row(slices.Concat(factors, []string{"trials", "mean " + unit, "each"})...)
	for _, c := range sorted {
		var sum float64
		var each []string
		for _, v := range c.values {
			sum += v
			each = append(each, fmt.Sprintf("%.2f", v))
		}
		t.Row(slices.Concat(c.labels, []string{fmt.Sprint(len(c.values)),
			fmt.Sprintf("%.2f", sum/float64(len(c.values))), strings.Join(each, " ")})...)
	}
	if _, err := fmt.Fprintln(out); err != nil {
		return err
	}
	return t.Write(out, screen.Columns(out))
}

// compareLabels puts numbers in the order of their size and words in that of
// the alphabet.
func compareLabels(x, y string) int {
	var a, b float64
	if n, err := fmt.Sscan(x, &a); n == 1 && err == nil {
		if n, err := fmt.Sscan(y, &b); n == 1 && err == nil && a != b {
			if a < b {
				return -1
			}
			return 1
		}
	}
	return strings.Compare(x, y)
}
