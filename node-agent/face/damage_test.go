package face

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"fieldmesh.dev/fieldmesh/node-agent/config"
	"fieldmesh.dev/fieldmesh/node-agent/spool"
	"fieldmesh.dev/fieldmesh/protocols/wire"
	"fieldmesh.dev/fieldmesh/test/testnet"
)

// A node that starts with records lost and a torn tail says so in its log, and the former in its records, too: the
// controller collects them.
func TestLostRecordsAreToldAtTheStart(t *testing.T) {
	cfg := config.Config{Node: "car", Interface: "lo", Privileges: config.NoPrivileges, GPSD: config.NoGPSD,
		StateDir: t.TempDir(), QuotaBytes: 1 << 30}
	sp, err := spool.Open(cfg.SpoolDir(), cfg.Node, spool.Options{MinFreeBytes: -1})
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		h := wire.Header{Run: "r", Trial: 7, Attempt: 2}
		if _, err := sp.Append(h, &wire.Event{Level: "info", Text: "as it was"}); err != nil {
			t.Fatal(err)
		}
	}
	if err := sp.Close(); err != nil {
		t.Fatal(err)
	}
	segments, err := filepath.Glob(filepath.Join(cfg.SpoolDir(), "*.seg"))
	if err != nil || len(segments) != 1 {
		t.Fatal(segments, err)
	}
	text, err := os.ReadFile(segments[0])
	if err != nil {
		t.Fatal(err)
	}
	text = append(bytes.Replace(text, []byte("as it was"), []byte("as it is!"), 1), "torn"...)
	if err := os.WriteFile(segments[0], text, 0o600); err != nil {
		t.Fatal(err)
	}
	var log strings.Builder
	f, err := open(t.Context(), cfg, testnet.Identity(t, "car"), slog.New(slog.NewTextHandler(&log, nil)))
	if err != nil {
		t.Fatal(err)
	}
	defer f.close()
	const lost = "records after 0 and before 2 are lost"
	for _, said := range []string{lost, "its last 4 bytes were no whole record and have been cut off; they are in "} {
		if !strings.Contains(log.String(), said) {
			t.Errorf("the log does not say %q:\n%s", said, log.String())
		}
	}
	if err := f.spool.Sync(t.Context()); err != nil {
		t.Fatal(err)
	}
	lines, _, err := f.spool.Read(3, 100)
	if err != nil {
		t.Fatal(err)
	}
	var told []wire.Header
	for _, line := range lines {
		var r wire.Record
		if err := json.Unmarshal(line, &r); err != nil {
			t.Fatal(err)
		}
		if e, is := r.Body.(*wire.Event); is && e.Level == "error" && strings.Contains(e.Text, lost) {
			told = append(told, r.Header)
		}
	}
	if len(told) != 1 || told[0].Run != "r" || told[0].Trial != 7 || told[0].Attempt != 2 || told[0].TBootNs == 0 {
		t.Errorf("recorded is %+v", told)
	}
}
