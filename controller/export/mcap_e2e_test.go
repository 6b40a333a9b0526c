//go:build e2e

package export

import (
	"bytes"
	"encoding/json"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"fieldmesh.dev/fieldmesh/controller/archive"
	"fieldmesh.dev/fieldmesh/protocols/wire"
	"fieldmesh.dev/fieldmesh/test/synthetic"
	"fieldmesh.dev/fieldmesh/test/testnet"
)

// recorded is a message as the official library reads it.
type recorded struct {
	Topic, Schema string
	TimeNs        int64 `json:"time_ns"`
	Data          map[string]any
	Messages      int // of the last line, which is about the whole file
	InOrder       int `json:"in_order"`
	Chunks        int
	Metadata      map[string]map[string]string
}

// wallOpenNs is when the windows of comparedRun open, by the controller's wall clock.
const wallOpenNs = 1_790_000_000e9

// comparedRun is a synthetic run whose controller compared the nodes' clocks with its
// own in the first trial, and with the car's alone in the second.
func comparedRun(t *testing.T, windowS float64) *archive.Archive {
	t.Helper()
	a := synthetic.Run(t, synthetic.Options{Seed: 2, Speeds: []float64{2.8}, Repetitions: 1,
		WindowS: func(wire.Trial) float64 { return windowS }})
	for node, open := range synthetic.OpenBootNs {
		appendRecord(t, a, wire.Record{Header: wire.Header{Node: controllerNode, Epoch: "own", Seq: uint64(len(node)),
			TBootNs: synthetic.OpenBootNs["car"], Run: a.Info().Run, Trial: 1, Attempt: 1},
			Body: &wire.Clock{Peer: node, OffsetNs: open - synthetic.OpenBootNs["car"], UncertaintyNs: 1000,
				OwnWallOffsetNs: new(int64(wallOpenNs) - synthetic.OpenBootNs["car"]), Exchanges: 8}})
	}
	return a
}

func python(t *testing.T, args ...string) []byte {
	t.Helper()
	const interpreter = "../../.tools/venv/bin/python"
	testnet.Need(t, interpreter)
	c := exec.Command(interpreter, append([]string{"testdata/read_mcap.py"}, args...)...)
	var problem bytes.Buffer
	c.Stderr = &problem
	out, err := c.Output()
	if err != nil {
		t.Fatalf("read_mcap.py: %v\n%s", err, problem.String())
	}
	return out
}

// recordingOf exports a run, and returns the recording.
func recordingOf(t *testing.T, a *archive.Archive, o Options) (file string) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "export")
	if _, err := Run(a, dir, o); err != nil {
		t.Fatal(err)
	}
	return filepath.Join(dir, mcapFile)
}

// TestE2EARecordingIsReadByTheOfficialLibrary looks for every record of the attempts
// that can be dated, each once, at its time, and as it came; and for no other.
func TestE2EARecordingIsReadByTheOfficialLibrary(t *testing.T) {
	a := comparedRun(t, 10)
	file := recordingOf(t, a, Options{MCAP: true})
	records, others := map[string]map[string]any{}, map[string]int{}
	var last recorded
	var previous int64
	for line := range bytes.Lines(python(t, file)) {
		var m recorded
		if err := json.Unmarshal(line, &m); err != nil {
			t.Fatal(err)
		}
		if m.Topic == "" {
			last = m
			continue
		}
		if m.TimeNs < previous {
			t.Fatalf("%s at %d ns comes after %d ns", m.Topic, m.TimeNs, previous)
		}
		previous = m.TimeNs
		if kind, ok := m.Data["kind"]; ok {
			if want := "/" + m.Data["node"].(string) + "/" + kind.(string); m.Topic != want {
				t.Errorf("a record of %s is on %s", want, m.Topic)
			}
			records[nameOf(m.Data)] = m.Data
			atItsTime(t, m)
			continue
		}
		others[m.Schema]++
	}
	undated := 0
	for _, k := range mustKeys(t, a) {
		err := a.EachLine(k, func(line []byte) error {
			var want map[string]any
			if err := json.Unmarshal(line, &want); err != nil {
				return err
			}
			name := nameOf(want)
			if k.Trial != 1 {
				undated++
				if records[name] != nil {
					t.Errorf("%s is there, and nobody compared its clock", name)
				}
				return nil
			}
			if !reflect.DeepEqual(records[name], want) {
				t.Errorf("%s is %v, want %v", name, records[name], want)
			}
			delete(records, name)
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	for name := range records {
		t.Errorf("%s is in no archive", name)
	}
	if others["foxglove.LocationFix"] < 20 || others["fieldmesh.timeline"] < 20 || others["foxglove.Log"] < 4 ||
		others["fieldmesh.attempt"] != 1 {
		t.Errorf("beside the records: %v", others)
	}
	told := last.Metadata["fieldmesh"]
	want := map[string]string{"run": a.Info().Run, "campaign": a.Info().Campaign, "place": a.Info().Place,
		"version": told["version"], "times": "the controller's wall clock", "records_undated": told["records_undated"]}
	if !reflect.DeepEqual(told, want) || told["records_undated"] != jsonNumber(undated) || undated == 0 {
		t.Errorf("metadata %v, with %d records undated", told, undated)
	}
	if last.Messages == 0 || last.Messages != last.InOrder || last.Chunks == 0 {
		t.Errorf("the file says %d messages in %d chunks; %d were read", last.Messages, last.Chunks, last.InOrder)
	}
}

// atItsTime holds a message's time to the moment at which the synthetic run made it.
func atItsTime(t *testing.T, m recorded) {
	t.Helper()
	node := m.Data["node"].(string)
	open, ok := synthetic.OpenBootNs[node]
	if node == controllerNode {
		open, ok = synthetic.OpenBootNs["car"], true
	}
	const inexact = 2 * 1000 // ns: the comparisons' uncertainty, and that of a float of seconds
	boot := int64(m.Data["t_boot_ns"].(float64))
	if off := m.TimeNs - (wallOpenNs + boot - open); !ok || off < -inexact || off > inexact {
		t.Errorf("%s is %d ns off its time", nameOf(m.Data), off)
	}
}

func nameOf(record map[string]any) string {
	text, err := json.Marshal([]any{record["node"], record["epoch"], record["seq"], record["kind"]})
	if err != nil {
		panic(err)
	}
	return string(text)
}

func jsonNumber(n int) string {
	text, err := json.Marshal(n)
	if err != nil {
		panic(err)
	}
	return string(text)
}

func mustKeys(t *testing.T, a *archive.Archive) []wire.TrialKey {
	t.Helper()
	keys, err := lines{a: a}.keys()
	if err != nil {
		t.Fatal(err)
	}
	return keys
}

// TestE2EARecordingThatIsCutOffIsReadUpToThere cuts one off at random places, by a
// seed, as a full disk or a broken download does: every whole chunk is read, and
// nothing else than what the whole has.
func TestE2EARecordingThatIsCutOffIsReadUpToThere(t *testing.T) {
	a := comparedRun(t, 60)
	file := recordingOf(t, a, Options{MCAP: true})
	var got struct{ Chunks, Cuts, AmongChunks int }
	out := python(t, file, "20261126", "1000")
	if err := json.Unmarshal(out, &got); err != nil {
		t.Fatal(err)
	}
	t.Logf("%s", strings.TrimSpace(string(out)))
	if got.Cuts != 1000 || got.Chunks < 3 || got.AmongChunks < 300 {
		t.Errorf("%+v: too few chunks, or cuts behind the first of them", got)
	}
}

// Names that no campaign could have are topics like others.
func TestE2EARecordingOfHostileNamesIsRead(t *testing.T) {
	file := recordingOf(t, hostileRun(t), Options{MCAP: true})
	topics, words := map[string]int{}, 0
	for line := range bytes.Lines(python(t, file)) {
		var m recorded
		if err := json.Unmarshal(line, &m); err != nil {
			t.Fatal(err)
		}
		topics[m.Topic]++
		if m.Topic == "/log" && m.Data["message"] == hostile("mark") {
			words++
		}
	}
	if topics["/"+hostile("car")+"/gps"] == 0 || words != 1 {
		t.Errorf("topics %v, the mark is there %d times", topics, words)
	}
}

// A redacted recording has no word of a person's, and nobody's place outside the
// windows.
func TestE2EARedactedRecordingSaysNoMoreThanTheOtherFiles(t *testing.T) {
	a := comparedRun(t, 10)
	const secret = "left at the church of St. Mary"
	appendRecord(t, a, wire.Record{Header: wire.Header{Node: "car", Epoch: "own", Seq: 1,
		TBootNs: synthetic.OpenBootNs["car"], Run: a.Info().Run, Trial: 1, Attempt: 1},
		Body: &wire.Event{Level: "warning", Text: secret}})
	positions := func(o Options) (n int, outside bool, text string) {
		out := python(t, recordingOf(t, a, o))
		for line := range bytes.Lines(out) {
			var m recorded
			if err := json.Unmarshal(line, &m); err != nil {
				t.Fatal(err)
			}
			if m.Data["latitude"] != nil || m.Data["lat_deg"] != nil {
				n++
				// A fix is told up to a tick after it arrived.
				outside = outside || m.TimeNs < wallOpenNs-100e6 || m.TimeNs > wallOpenNs+int64(windowOf(t, a)*1e9)+1000
			}
		}
		return n, outside, string(out)
	}
	if n, outside, text := positions(Options{MCAP: true}); n == 0 || !outside || !strings.Contains(text, secret) {
		t.Fatalf("without redaction: %d positions, some outside the window %v", n, outside)
	}
	n, outside, text := positions(Options{MCAP: true, Redact: true})
	if n == 0 || outside || strings.Contains(text, secret) {
		t.Errorf("redacted: %d positions, some outside the window %v, the secret is there %v", n, outside,
			strings.Contains(text, secret))
	}
}

// windowOf is the length of the first trial's window in seconds.
func windowOf(t *testing.T, a *archive.Archive) float64 {
	t.Helper()
	trial, ok := a.Trial(1)
	if !ok {
		t.Fatal("the run has no trial 1")
	}
	return trial.DurationS
}
