//go:build e2e

package cmd

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"fieldmesh.dev/fieldmesh/test/synthetic"
	"fieldmesh.dev/fieldmesh/test/testnet"
)

// A report is printed whole, page by page, and what was printed goes with the report
// that it was printed of.
func TestE2EAReportIsPrinted(t *testing.T) {
	testnet.Need(t, "chromium")
	a := synthetic.Run(t, synthetic.Options{Seed: 3, Speeds: []float64{2.8, 8.3}, Repetitions: 3})
	printed := filepath.Join(a.Dir(), "report.pdf")
	if out, err := typed(t, ReportCommand(), a.Dir(), "--pdf"); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	pdf, err := os.ReadFile(printed)
	if err != nil {
		t.Fatal(err)
	}
	pages := len(regexp.MustCompile(`/Type /Page\b`).FindAll(pdf, -1))
	if !bytes.HasPrefix(pdf, []byte("%PDF-")) || pages < 3 {
		t.Errorf("report.pdf has %d bytes and %d pages, want at least 3", len(pdf), pages)
	}
	t.Setenv("PATH", t.TempDir())
	if out, err := typed(t, ReportCommand(), a.Dir(), "--pdf"); err == nil {
		t.Errorf("without a browser it said\n%s", out)
	}
	if _, err := os.Stat(printed); !os.IsNotExist(err) {
		t.Errorf("a report.pdf of an earlier report is left: %v", err)
	}
}
