package cmd

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"fieldmesh.dev/fieldmesh/controller/archive"
	"fieldmesh.dev/fieldmesh/controller/export"
	"fieldmesh.dev/fieldmesh/internal/sumline"
	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// logOf is what a phone that drove so many seconds at 10 m/s wrote.
func logOf(t *testing.T, node, epoch string, seconds int) []byte {
	t.Helper()
	var out []byte
	for i := range seconds {
		ns := int64(i+1) * 1e9
		line, err := json.Marshal(wire.Record{
			Header: wire.Header{Node: node, Epoch: epoch, Seq: uint64(i + 1), TBootNs: ns},
			Body: &wire.GPS{Mode: 3, Connected: true, FixBootNs: &ns, LatDeg: new(52 + float64(i)*9e-5),
				LonDeg:   new(13.0),
				SpeedMps: new(10.0), TimeUTC: fmt.Sprintf("2026-05-01T10:00:%02dZ", i)},
		})
		if err != nil {
			t.Fatal(err)
		}
		out = append(append(out, line...), '\n')
	}
	return out
}

func collect(t *testing.T, files map[string][]byte) (runs, printed string, err error) {
	t.Helper()
	dir := t.TempDir()
	var paths []string
	for name, data := range files {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		paths = append(paths, path)
	}
	runs = filepath.Join(dir, "runs")
	var out bytes.Buffer
	c := CollectCommand()
	c.SetOut(&out)
	c.SilenceErrors, c.SilenceUsage = true, true
	c.SetArgs(append([]string{"--runs", runs, "--name", "log"}, paths...))
	err = c.Execute()
	return runs, out.String(), err
}

// A log that ends in the middle of a line, where the phone's battery ended,
// loses no record: the run verifies and its track is exported.
func TestCollectMakesARunOfALog(t *testing.T) {
	log := append(logOf(t, "phone", "e1", 5), `{"kind":"gps","ver`...)
	runs, printed, err := collect(t, map[string][]byte{"log.ndjson": log})
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(printed, "5 records of [phone]; 1 lines are not records") {
		t.Errorf("printed %q", printed)
	}
	dir := filepath.Join(runs, "log")
	if findings, err := archive.Verify(dir); err != nil || len(findings) > 0 {
		t.Errorf("verify: %v %v", findings, err)
	}
	a, err := archive.Read(dir)
	if err != nil {
		t.Fatal(err)
	}
	to := t.TempDir()
	if err := exportRun(a, to, export.Options{}, &bytes.Buffer{}); err != nil {
		t.Fatal(err)
	}
	gpx, err := os.ReadFile(filepath.Join(to, "tracks.gpx"))
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(string(gpx), "<trkpt"); n != 5 ||
		!strings.Contains(string(gpx), "<name>outside trials phone</name>") {
		t.Errorf("%d points in %s", n, gpx)
	}
}

func TestCollectJoinsLogsOfOnePhone(t *testing.T) {
	runs, _, err := collect(t, map[string][]byte{"a": logOf(t, "phone", "e1", 3), "b": logOf(t, "phone", "e2", 4),
		"again": logOf(t, "phone", "e1", 3)})
	if err != nil {
		t.Fatal(err)
	}
	a, err := archive.Read(filepath.Join(runs, "log"))
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, err := range a.Between() {
		if err != nil {
			t.Fatal(err)
		}
		n++
	}
	if n != 7 {
		t.Errorf("%d records, want 7: the same record twice counts once", n)
	}
}

// A folder as `fieldmesh-agent log` keeps it: segments in which each line begins with its checksum.
func TestCollectReadsTheAgentsLog(t *testing.T) {
	dir := t.TempDir()
	var all []byte
	for line := range bytes.Lines(logOf(t, "car", "e1", 5)) {
		all = sumline.Append(all, bytes.TrimSuffix(line, []byte("\n")))
	}
	third := bytes.Index(all, []byte(`"seq":3`))
	all[third+6] = '8' // a disk's fault
	half := bytes.LastIndexByte(all[:len(all)/2], '\n') + 1
	for name, part := range map[string][]byte{"00000000000000000001.seg": all[:half],
		"00000000000000000003.seg": all[half:],
		"epoch":                    []byte("e1\n")} {
		if err := os.WriteFile(filepath.Join(dir, name), part, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var out bytes.Buffer
	c := CollectCommand()
	c.SetOut(&out)
	c.SetArgs([]string{"--runs", t.TempDir(), "--name", "log", dir})
	if err := c.Execute(); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(out.String(), "4 records of [car]; 1 lines are not records") {
		t.Errorf("printed %q", out.String())
	}
}

// A phone's log comes from its user, and from whoever has the phone.
//
//attack:file a log that is a pipe, a link to a device, or has a line without an end, to fill the memory | only a
//attack:and file is read, whose lines have 17 MiB at most
func TestCollectReadsNoLogWithoutAnEnd(t *testing.T) {
	for name, c := range map[string]struct {
		make func(path string) error
		want string
	}{
		"a line without an end": {func(path string) error {
			return errors.Join(os.WriteFile(path, nil, 0o600), os.Truncate(path, 1<<40))
		}, "a line has more than 17 MiB"},
		"a pipe":   {func(path string) error { return syscall.Mkfifo(path, 0o600) }, "is not a file"},
		"a device": {func(path string) error { return os.Symlink("/dev/zero", path) }, "is not a file"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			if err := c.make(filepath.Join(dir, "log.seg")); err != nil {
				t.Fatal(err)
			}
			for _, path := range []string{dir, filepath.Join(dir, "log.seg")} {
				err := archive.FromLogs(filepath.Join(t.TempDir(), "run"), "log", "v", []string{path}, nil)
				if err == nil || !strings.Contains(err.Error(), c.want) {
					t.Errorf("%v, want %q", err, c.want)
				}
			}
		})
	}
}

//attack:phone a log that names a folder elsewhere as its node | a node's name is checked before a file is made
//attack:phone a log with records of a run, which so would get round the run's own collection | they are refused
func TestCollectRefuses(t *testing.T) {
	of := func(node, run string) []byte {
		line, err := json.Marshal(wire.Record{Header: wire.Header{Node: node, Epoch: "e", Seq: 1, TBootNs: 1, Run: run},
			Body: &wire.Event{Level: "info", Text: "x"}})
		if err != nil {
			t.Fatal(err)
		}
		return append(line, '\n')
	}
	for want, data := range map[string][]byte{
		"its first line is not a record":          []byte("hello\n"),
		"it is empty: no log of the phone app":    nil,
		"fieldmesh pull brings those":             of("car", "monday"),
		`"../../etc", which is not a node's name`: of("../../etc", ""),
		"records of run \"monday\": fieldmesh p":  append(logOf(t, "phone", "e1", 2), of("car", "monday")...),
	} {
		runs, _, err := collect(t, map[string][]byte{"log": data})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.40q: %v, want %q", data, err, want)
		}
		if _, err := os.Stat(filepath.Join(runs, "log", "run.json")); err == nil {
			t.Errorf("%.40q: left a run behind", data)
		}
	}
}

// A log is published like any run: its node's own clock dates it, and it is found under the run's name.
func TestACollectedLogIsPublished(t *testing.T) {
	const wallNs = 1_790_000_000_000_000_000 // when the node was booted
	record := func(seq uint64, b wire.Body) []byte {
		line, err := json.Marshal(wire.Record{Header: wire.Header{Node: "car", Epoch: "e", Seq: seq,
			TBootNs: int64(seq) * 1e9}, Body: b})
		if err != nil {
			t.Fatal(err)
		}
		return append(line, '\n')
	}
	log := slices.Concat(record(1, &wire.Clock{Peer: "car", OwnWallOffsetNs: new(int64(wallNs))}),
		record(2, &wire.GPS{Mode: 3, Connected: true}))
	// A phone's has no clock but its receiver's.
	phone := logOf(t, "phone", "e1", 3)
	runs, _, err := collect(t, map[string][]byte{"car": log, "phone": phone})
	if err != nil {
		t.Fatal(err)
	}
	var points bytes.Buffer
	db := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/write" {
			return
		}
		body, err := gzip.NewReader(r.Body)
		if err == nil {
			_, err = io.Copy(&points, body)
		}
		if err != nil {
			t.Error(err)
		}
	}))
	defer db.Close()
	var out bytes.Buffer
	root := Root()
	root.SetArgs([]string{"publish", filepath.Join(runs, "log"), "--influx", db.URL})
	root.SetOut(&out)
	if err := root.ExecuteContext(t.Context()); err != nil || !strings.HasPrefix(out.String(), "5 records") {
		t.Errorf("%v, and it says\n%s", err, &out)
	}
	undated := map[string][]byte{"log": record(1, &wire.Event{Level: "info", Text: "x"})}
	if runs, _, err = collect(t, undated); err != nil {
		t.Fatal(err)
	}
	root = Root()
	root.SetArgs([]string{"publish", filepath.Join(runs, "log"), "--influx", db.URL})
	root.SetOut(io.Discard)
	if err := root.ExecuteContext(t.Context()); !errors.Is(err, errUnmet) {
		t.Errorf("of a log that nothing dates: %v", err)
	}
	for _, want := range []string{
		"fm_clock,node=car,peer=car,run=log seq=1i,t_boot_ns=1000000000i,offset_ns=0i,uncertainty_ns=0i,rtt_ns=0i," +
			"wall_offset_ns=0i,own_wall_offset_ns=1790000000000000000i,exchanges=0i 1790000001000000001\n",
		"fm_gps,node=car,run=log seq=2i,t_boot_ns=2000000000i,mode=3i,connected=true 1790000002000000002\n",
		"fm_gps,node=phone,run=log seq=3i,t_boot_ns=3000000000i,mode=3i,",
		fmt.Sprintf(" %d\n", time.Date(2026, 5, 1, 10, 0, 2, 3, time.UTC).UnixNano()),
	} {
		if !strings.Contains(points.String(), want) {
			t.Errorf("no point %s in\n%s", want, &points)
		}
	}
}
