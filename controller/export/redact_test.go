package export

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// texts calls do with every text of a JSON value.
func texts(path string, v any, do func(path string, text string) string) any {
	switch v := v.(type) {
	case map[string]any:
		for name, member := range v {
			v[name] = texts(strings.TrimPrefix(path+"."+name, "."), member, do)
		}
	case []any:
		for i := range v {
			v[i] = texts(path, v[i], do)
		}
	case string:
		return do(path, v)
	}
	return v
}

// withheld are texts that hold what a person wrote, where somebody is, or what a
// program printed: none of them may leave, whatever a tag says.
var withheld = []string{"capture.error", "change.what", "edge.error", "event.text", "iperf3.killed", "iperf3.error",
	"iperf3.raw_output", "iperf3.output", "machine.alarm", "note.attachment.media_type", "note.attachment.sha256",
	"note.id", "note.text", "note.by", "provenance.addresses",
	"provenance.routes", "routing_event.note", "trial.reason", "wall_clock.sync_source"}

// A secret in any text of any kind of record leaves only where the text has the
// tag of those that do, and not as a radio's address or a network's name.
//
//attack:archive whoever is given a redacted export looks for bystanders | texts leave by a list, for each kind of
//attack:and record; radios and networks have made-up names
func TestSecretsStayBehind(t *testing.T) {
	files, err := filepath.Glob("../../protocols/wire/golden/record_*.json")
	if err != nil || len(files) < 20 {
		t.Fatalf("%d golden records: %v", len(files), err)
	}
	r := blankRedactor()
	leaves := map[string]bool{}
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var record map[string]any
		if err := json.Unmarshal(raw, &record); err != nil {
			t.Fatal(err)
		}
		kind := record["kind"].(string)
		planted := map[string]string{}
		texts("", record, func(path, text string) string {
			if slices.Contains([]string{"kind", "node", "epoch", "run"}, path) {
				return text
			}
			mark := "Ahornweg-" + strings.ReplaceAll(path, ".", "-") + "!"
			planted[kind+"."+path] = mark
			return mark + " DE-AD-BE-EF-00-01"
		})
		line, err := json.Marshal(record)
		if err != nil {
			t.Fatal(err)
		}
		in := map[string]wire.Window{record["node"].(string): {CloseBootNs: 1 << 62}}
		out, err := r.line(line, in)
		if err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		if bytes.Contains(bytes.ToUpper(out), []byte("DE-AD")) {
			t.Errorf("%s: an address leaves: %s", kind, out)
		}
		for path, mark := range planted {
			if bytes.Contains(out, []byte(mark)) {
				leaves[path] = true
			}
		}
	}
	for path := range leaves {
		below := strings.SplitN(path, ".", 3)
		if slices.Contains(withheld, below[0]+"."+below[1]) || strings.HasSuffix(path, ".ssid") {
			t.Errorf("%s leaves", path)
		}
	}
	for _, path := range []string{"tcp.flow", "provenance.kernel", "provenance.tools.iperf3", "routing.neighbors.addr",
		"window.go_path", "loss.cause"} {
		if !leaves[path] {
			t.Errorf("%s stays behind: nobody could work with the export", path)
		}
	}
}

// Where a node was cannot be rebuilt from what is told about the time outside the
// windows.
//
//attack:archive whoever is given a redacted export looks for where somebody lives or was | outside the windows there
//attack:and is no place and no movement
func TestNoMovementIsToldOutsideWindows(t *testing.T) {
	r := blankRedactor()
	in := map[string]wire.Window{"car": {OpenBootNs: 100, CloseBootNs: 200}}
	for atNs, want := range map[string]bool{"99": false, "100": true, "200": true, "201": false} {
		line := `{"kind":"gps","version":1,"node":"car","epoch":"e","seq":1,"t_boot_ns":` + atNs +
			`,"run":"r","mode":3,"fix_boot_ns":1,"lat_deg":50,"lon_deg":8,"speed_mps":5,"track_deg":90,"connected":true}`
		out, err := r.line([]byte(line), in)
		if err != nil || (out != nil) != want {
			t.Errorf("a fix at %s ns is told: %q, %v", atNs, out, err)
		}
	}
	alone := `{"kind":"routing","version":1,"node":"car","epoch":"e","seq":1,"t_boot_ns":99,"run":"r",` +
		`"protocol":"olsr","neighbors":[]}`
	if out, err := r.line([]byte(alone), in); err != nil || !bytes.Contains(out, []byte(`"neighbors":[]`)) {
		t.Errorf("a node without neighbours is told as %s, %v", out, err)
	}
	note := `{"kind":"note","version":1,"node":"car","epoch":"e","seq":1,"t_boot_ns":99,"run":"r","id":"1","note":"mark",` +
		`"text":"at home","by":"anna","lat_deg":50,"lon_deg":8,"at_boot_ns":5}`
	out, err := r.line([]byte(note), in)
	if err != nil || bytes.Contains(out, []byte("deg")) || bytes.Contains(out, []byte("home")) {
		t.Errorf("a note outside the window is told as %s, %v", out, err)
	}
}
