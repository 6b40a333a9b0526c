//go:build e2e

package journeys

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"fieldmesh.dev/fieldmesh/test/testnet"
)

// theNotebookReadsTheExport executes the field guides' notebook on a run's
// export. FIELDMESH_PICTURES names a folder that gets the executed notebook.
func theNotebookReadsTheExport(t *testing.T, run string) {
	testnet.Need(t, "../../.tools/venv/bin/python")
	dir := t.TempDir()
	fieldmesh(t, "export", run, "--to", dir)
	python, err := filepath.Abs("../../.tools/venv/bin/python")
	if err != nil {
		t.Fatal(err)
	}
	done := filepath.Join(dir, "done.ipynb")
	c := exec.Command(python, "testdata/notebook.py", "../../field-guides/throughput.ipynb", done, dir)
	c.Env = append(os.Environ(), "FIELDMESH_EXPORT="+dir)
	if out, err := c.CombinedOutput(); err != nil {
		t.Fatalf("execute the notebook: %v\n%s", err, out)
	}
	text, err := os.ReadFile(done)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(text), `"image/png"`) {
		t.Error("the notebook draws nothing")
	}
	// One line a trial: its section, and numbers in every column.
	rows := regexp.MustCompile(`(?m)^\W*\d+ +\d+ +([AB]) +(\d+\.\d+) +(\d+\.\d+) +(\d+\.\d+)\b`).
		FindAllStringSubmatch(string(text), -1)
	if len(rows) != 2 {
		t.Errorf("of two trials the notebook tells %q:\n%s", rows, text)
	}
	if to := os.Getenv("FIELDMESH_PICTURES"); to != "" {
		if err := os.WriteFile(filepath.Join(to, "throughput.ipynb"), text, 0o644); err != nil {
			t.Error(err)
		}
	}
}
