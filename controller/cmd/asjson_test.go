package cmd

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"fieldmesh.dev/fieldmesh/controller/cmd/document"
	"fieldmesh.dev/fieldmesh/test/synthetic"
)

// printed runs a command with --json and reads what it prints, which is JSON whatever
// the outcome.
func printed(t *testing.T, into any, args ...string) error {
	t.Helper()
	c := Root()
	var out, errs strings.Builder
	c.SetOut(&out)
	c.SetErr(&errs)
	c.SetArgs(append(args, "--json"))
	err := c.Execute()
	if jerr := json.Unmarshal([]byte(out.String()), into); jerr != nil {
		t.Fatalf("%v: %v, %v:\n%s%s", args, err, jerr, &out, &errs)
	}
	return err
}

func TestResultsAsJSON(t *testing.T) {
	a := synthetic.Run(t, synthetic.Options{Seed: 2, Speeds: []float64{2.8, 16.7}, Repetitions: 3})
	dir := a.Dir()
	var verified document.Verify
	if err := printed(t, &verified, "verify", dir); err != nil || !verified.OK || len(verified.Findings) != 0 {
		t.Errorf("verify: %v, %+v", err, verified)
	}
	var numbers struct{ Numbers []document.Number }
	if err := printed(t, &numbers, "metrics", dir); err != nil {
		t.Error(err)
	}
	found := 0
	for _, n := range numbers.Numbers {
		if n.Name == "throughput_bps" && n.Unit == "bit/s" && n.Value > 1e6 && n.Definition != "" && n.Flow == "bulk" {
			found++
		}
	}
	if found != 12 {
		t.Errorf("metrics: the throughput of %d attempts, want 12", found)
	}
	var compared struct {
		Confidence float64
		Cells      []document.Cell
	}
	if err := printed(t, &compared, "compare", dir, dir); err != nil || compared.Confidence != 0.95 {
		t.Errorf("compare: %v, %+v", err, compared)
	}
	for _, c := range compared.Cells {
		if c.Road == nil || c.Road.N != 3 || c.Difference == nil || *c.Difference != 0 {
			t.Errorf("a run compared with itself: %+v", c)
		}
	}
	var reported document.Report
	if err := printed(t, &reported, "report", dir); err != nil || reported.Report != filepath.Join(dir, "report.html") {
		t.Errorf("report: %v, %+v", err, reported)
	}
	if err := os.WriteFile(filepath.Join(dir, "schedule.json"), []byte("{}"), 0o600); err != nil {
		t.Fatal(err)
	}
	err := printed(t, &verified, "verify", dir)
	if err == nil || verified.OK || len(verified.Findings) != 1 || verified.Findings[0].Path != "schedule.json" {
		t.Errorf("verify of an altered run: %v, %+v", err, verified)
	}
}

func TestPlanCheckAsJSON(t *testing.T) {
	var fine document.Check
	if err := printed(t, &fine, "plan", "check", "../../campaigns/velocity.yaml"); err != nil || !fine.OK ||
		fine.Campaign != "velocity" || fine.Trials != 24 || len(fine.Problems) != 0 || len(fine.Warnings) == 0 {
		t.Errorf("%v, %+v", err, fine)
	}
	raw, err := os.ReadFile("../../campaigns/velocity.yaml")
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "faulty.yaml")
	text := strings.Replace(string(raw), "duration_s: 10", "duration_s: soon", 1)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	var faulty document.Check
	err = printed(t, &faulty, "plan", "check", path)
	if err == nil || faulty.OK || len(faulty.Problems) != 1 || faulty.Problems[0].Line == 0 ||
		!strings.Contains(faulty.Problems[0].Message, "duration_s") {
		t.Errorf("%v, %+v", err, faulty)
	}
}
