//go:build e2e

package journeys

import (
	"bytes"
	"encoding/json"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"fieldmesh.dev/fieldmesh/test/testnet"
)

// theRecordingHasTheReceiversTimes holds the times of a run's recording to something
// that no clock of the run's has set: what the GPS receivers say of their fixes.
func theRecordingHasTheReceiversTimes(t *testing.T, run string) {
	const python = "../../.tools/venv/bin/python"
	testnet.Need(t, python)
	dir := t.TempDir()
	fieldmesh(t, "export", run, "--mcap", "--to", dir)
	out, err := exec.Command(python, "../../controller/export/testdata/read_mcap.py",
		filepath.Join(dir, "run.mcap")).Output()
	if err != nil {
		t.Fatalf("read the recording: %v", err)
	}
	late := map[string][]time.Duration{}
	for line := range bytes.Lines(out) {
		var m struct {
			TimeNs int64 `json:"time_ns"`
			Data   struct {
				Node      string
				TBootNs   int64     `json:"t_boot_ns"`
				FixBootNs *int64    `json:"fix_boot_ns"`
				TimeUTC   time.Time `json:"time_utc"`
			}
		}
		if err := json.Unmarshal(line, &m); err != nil {
			t.Fatal(err)
		}
		if d := m.Data; d.FixBootNs != nil && !d.TimeUTC.IsZero() {
			arrived := time.Unix(0, m.TimeNs-(d.TBootNs-*d.FixBootNs))
			late[d.Node] = append(late[d.Node], arrived.Sub(d.TimeUTC))
		}
	}
	for _, node := range deskNodes {
		all := late[node]
		slices.Sort(all)
		if len(all) < 20 {
			t.Errorf("%s: the recording has %d fixes", node, len(all))
			continue
		}
		// A receiver tells a fix within 0.1 s, and not before its time.
		if middle := all[len(all)/2]; middle < 0 || middle > 100*time.Millisecond {
			t.Errorf("%s: half of the fixes arrive later than %v after their own time", node, middle)
		}
	}
}
