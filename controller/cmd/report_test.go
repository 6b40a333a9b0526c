package cmd

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"fieldmesh.dev/fieldmesh/controller/archive"
	"fieldmesh.dev/fieldmesh/controller/fleet"
	"fieldmesh.dev/fieldmesh/internal/keys"
	"fieldmesh.dev/fieldmesh/test/synthetic"
	"fieldmesh.dev/fieldmesh/test/testnet"
)

// typed runs a command as a user types it and returns what he sees.
func typed(t *testing.T, c *cobra.Command, args ...string) (string, error) {
	t.Helper()
	var out bytes.Buffer
	c.SetOut(&out)
	c.SetErr(&out)
	c.SilenceErrors, c.SilenceUsage = true, true
	c.SetArgs(args)
	err := c.Execute()
	return out.String(), err
}

// Of a paper's run the report has the paper's figures beside it; they are derived,
// and a later report's take the place of theirs.
func TestReportWritesThePapersFigures(t *testing.T) {
	a := synthetic.Run(t, synthetic.Options{Seed: 2, Paper: "p1", Speeds: []float64{2.8, 16.7}, Repetitions: 1})
	folder := filepath.Join(a.Dir(), "figures")
	if err := os.Mkdir(folder, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"p1-figure-9.svg", "mine.svg"} {
		if err := os.WriteFile(filepath.Join(folder, name), nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if out, err := typed(t, ReportCommand(), a.Dir()); err != nil {
		t.Fatalf("report: %v\n%s", err, out)
	}
	entries, err := os.ReadDir(folder)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	if got := strings.Join(names, " "); got != "mine.svg p1-figures-2-and-3.csv p1-figures-2-and-3.svg" {
		t.Errorf("figures: %s", got)
	}
	if out, err := typed(t, VerifyCommand(), a.Dir()); err != nil {
		t.Errorf("verify: %v\n%s", err, out)
	}
}

func TestReportExportAndVerifyOfARun(t *testing.T) {
	a := synthetic.Run(t, synthetic.Options{Seed: 2, Speeds: []float64{2.8, 16.7}, Repetitions: 1})
	dir := a.Dir()

	out, err := typed(t, VerifyCommand(), dir)
	if err != nil || !strings.Contains(out, "OK: all files match the manifest") {
		t.Fatalf("verify: %v\n%s", err, out)
	}
	out, err = typed(t, ReportCommand(), "--runs", filepath.Dir(dir), filepath.Base(dir))
	if err != nil || !strings.Contains(out, "report.html") {
		t.Fatalf("report: %v\n%s", err, out)
	}
	reported, err := os.ReadFile(filepath.Join(dir, "metrics.csv"))
	if err != nil {
		t.Fatal(err)
	}
	out, err = typed(t, MetricsCommand(), dir)
	if err != nil || !strings.Contains(out, "metrics.csv (") || !strings.Contains(out, " numbers of 4 attempts)") {
		t.Fatalf("metrics: %v\n%s", err, out)
	}
	if computed, err := os.ReadFile(filepath.Join(dir, "metrics.csv")); err != nil || !bytes.Equal(computed, reported) {
		t.Errorf("metrics and report write two tables: %v", err)
	}
	if out, err = typed(t, MetricsCommand(), "--stdout", dir); err != nil || out != string(reported) {
		t.Errorf("metrics prints another table: %v", err)
	}
	out, err = typed(t, ExportCommand(), dir)
	if err != nil || !strings.Contains(out, "ro-crate-metadata.json") {
		t.Fatalf("export: %v\n%s", err, out)
	}
	records, err := os.ReadFile(filepath.Join(dir, "export", "records.ndjson"))
	if err != nil {
		t.Fatal(err)
	}
	var stored int
	for trial := 1; trial <= 4; trial++ {
		all, err := a.All(trial, 1)
		if err != nil {
			t.Fatal(err)
		}
		stored += len(all)
	}
	if got := bytes.Count(records, []byte("\n")); got != stored {
		t.Errorf("exported %d records of %d", got, stored)
	}
	timelines, err := os.ReadFile(filepath.Join(dir, "export", "timelines.csv"))
	if err != nil || bytes.Count(timelines, []byte("\n")) != 1+4*101 {
		t.Errorf("timelines have %d lines, want a header and 4 × 101: %v", bytes.Count(timelines, []byte("\n")), err)
	}
	if out, err := typed(t, VerifyCommand(), dir); err != nil {
		t.Fatalf("report and export changed the record of the run: %v\n%s", err, out)
	}
}

func TestVerifyNamesTheFileAndFails(t *testing.T) {
	a := synthetic.Run(t, synthetic.Options{Seed: 2, Speeds: []float64{2.8}, Repetitions: 1})
	path := filepath.Join(a.Dir(), "trials/0001-a1/records/car.ndjson")
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, raw[:len(raw)-10], 0o644); err != nil {
		t.Fatal(err)
	}
	out, err := typed(t, VerifyCommand(), a.Dir())
	if err == nil || !strings.Contains(err.Error(), "1 finding") ||
		!strings.Contains(out, "truncated trials/0001-a1/records/car.ndjson") {
		t.Errorf("got %v\n%s", err, out)
	}
	out, err = typed(t, ReportCommand(), a.Dir())
	if err != nil || !strings.Contains(out, "warning: 1 file changed or missing since the run; `fieldmesh verify ") {
		t.Errorf("report: %v\n%s", err, out)
	}
	page, err := os.ReadFile(filepath.Join(a.Dir(), "report.html"))
	if err != nil || !strings.Contains(string(page), "1 file changed or missing since the run") {
		t.Errorf("the report does not say that a file was changed: %v", err)
	}
	if _, err := typed(t, VerifyCommand(), filepath.Join(a.Dir(), "nothing-here")); err == nil {
		t.Error("a folder that is not there was verified")
	}
	if _, err := typed(t, ReportCommand(), filepath.Join(a.Dir(), "nothing-here")); err == nil {
		t.Error("a folder that is not there has a report")
	}
}

// Verify says who signed, and with a fleet whether those are its keys.
//
//attack:archive an archive that is signed by another key, or whose signatures are taken off | the keys are compared
//attack:and with the fleet's, with `verify --fleet`
func TestVerifySaysWhoSigned(t *testing.T) {
	dir := t.TempDir()
	mine, err := fleet.Init(filepath.Join(dir, "fleet"))
	if err != nil {
		t.Fatal(err)
	}
	signed := func(name string, by keys.Identity) string {
		a, err := archive.Create(filepath.Join(dir, name), synthetic.Info(synthetic.Options{Seed: 2,
			Speeds: []float64{2.8}, Repetitions: 1}))
		if err == nil {
			err = errors.Join(a.SignWith(by), a.Finish(), a.Close())
		}
		if err != nil {
			t.Fatal(err)
		}
		return a.Dir()
	}
	own, others := signed("own", mine), signed("others", testnet.Identity(t, "controller"))
	unsigned := synthetic.Run(t, synthetic.Options{Seed: 2, Speeds: []float64{2.8}, Repetitions: 1}).Dir()
	list := filepath.Join(dir, "fleet", "fleet.yaml")
	for _, c := range []struct {
		args []string
		want string // "": it is fine
		says string
	}{
		{[]string{own}, "", "the run is signed by key " + mine.Pin},
		{[]string{own}, "", "was sealed before the first trial by key " + mine.Pin},
		{[]string{own, "--fleet", list}, "", "OK"},
		{[]string{others}, "", "the run is signed by key "},
		{[]string{others, "--fleet", list}, "2 findings", "changed the run: it is signed by key "},
		{[]string{unsigned}, "", "the run is not signed"},
		{[]string{unsigned, "--fleet", list}, "4 findings", "missing records of car: it is not signed"},
	} {
		out, err := typed(t, VerifyCommand(), c.args...)
		if !strings.Contains(out, c.says) || (err == nil) != (c.want == "") ||
			err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("verify %q: %v, want %q; it says\n%s, want %q", c.args, err, c.want, out, c.says)
		}
	}
}
