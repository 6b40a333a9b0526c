//go:build e2e

package attacks

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"fieldmesh.dev/fieldmesh/controller/report"
	"fieldmesh.dev/fieldmesh/test/synthetic"
	"fieldmesh.dev/fieldmesh/test/testnet/browser"
)

// A real browser runs the report's own scripts, and nothing that was planted in it.
//
//attack:archive a script or a picture of a foreign server that gets into the report all the same | the page
//attack:and names its own scripts by their hashes, and loads nothing
func TestE2EAPlantedScriptDoesNotRun(t *testing.T) {
	a := synthetic.Run(t, synthetic.Options{Seed: 1, Speeds: []float64{2.8, 5.6}, Repetitions: 1})
	var page bytes.Buffer
	if _, err := report.Write(a, &page); err != nil {
		t.Fatal(err)
	}
	const planted = `<script>document.documentElement.dataset.planted = "1"</script>` +
		`<b onclick="document.documentElement.dataset.planted = '1'"></b><img src="http://127.0.0.1:9/x">` +
		`<script src="http://127.0.0.1:9/y"></script>`
	html := strings.Replace(page.String(), "<main>", "<main>"+planted, 1)
	file := filepath.Join(t.TempDir(), "report.html")
	if err := os.WriteFile(file, []byte(html), 0o644); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	cmd := browser.Script(ctx, t, "testdata/report.cjs", file)
	var problem bytes.Buffer
	cmd.Stderr = &problem
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v\n%s", err, problem.String())
	}
	var seen struct {
		Playback, Planted bool
		Buttons           int
	}
	if err := json.Unmarshal(out, &seen); err != nil {
		t.Fatalf("%v in %s", err, out)
	}
	if !seen.Playback || seen.Buttons == 0 || seen.Planted {
		t.Errorf("the browser says %s", out)
	}
}
