//go:build e2e

package bench

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"fieldmesh.dev/fieldmesh/controller/archive"
	"fieldmesh.dev/fieldmesh/protocols/wire"
	"fieldmesh.dev/fieldmesh/test/synthetic"
	"fieldmesh.dev/fieldmesh/test/testnet"
)

// deskRun is a run that nobody judged, of so many trials of each section.
func deskRun(t *testing.T, o synthetic.Options) (dir string, size int64) {
	t.Helper()
	dir = filepath.Join(testnet.Folder(t), "run")
	size, err := synthetic.Long(dir, o)
	if err != nil {
		t.Fatal(err)
	}
	return dir, size
}

// timed runs a command to its end; it tells how long that took and the largest
// memory of the process.
func timed(t *testing.T, name string, args ...string) (took time.Duration, peakBytes int64) {
	t.Helper()
	c := exec.Command(name, args...)
	begun := time.Now()
	if out, err := c.CombinedOutput(); err != nil {
		t.Fatalf("%s %v: %v\n%s", name, args, err, out)
	}
	return time.Since(begun), c.ProcessState.SysUsage().(*syscall.Rusage).Maxrss * 1024
}

// TestBenchReportOfAThousandTrials writes the report of 1,000 judged trials.
func TestBenchReportOfAThousandTrials(t *testing.T) {
	begin(t)
	const repetitions = 84 // by six speeds and two sections: 1,008 trials
	dir, size := deskRun(t, synthetic.Options{Seed: 11, Repetitions: repetitions})
	a, err := archive.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, trial := range a.Info().Plan.Trials {
		if err := a.Decide(wire.Verdict{TrialKey: wire.TrialKey{Trial: trial.Number, Attempt: 1}, Outcome: "accepted",
			Final: true}); err != nil {
			t.Fatal(err)
		}
	}
	trials := len(a.Info().Plan.Trials)
	if err := a.Close(); err != nil {
		t.Fatal(err)
	}
	took, peak := timed(t, filepath.Join(programs, "fieldmesh"), "report", dir)
	report(row{
		goal:      "report of 1,000 trials",
		measured:  fmt.Sprintf("%.1f s, %.0f MB of memory", took.Seconds(), float64(peak)/1e6),
		reference: fmt.Sprintf("%d trials, %.0f MB of records", trials, float64(size)/1e6),
		figure:    fmt.Sprintf("%.1f s, %.0f MB", took.Seconds(), float64(peak)/1e6), limit: "≤ 20 s, ≤ 500 MB",
		met: took <= 20*time.Second && peak <= 500e6,
	}, "`fieldmesh report` of a run of two nodes, six speeds, two sections, six streams and windows of 10 s, with "+
		"every attempt accepted; largest resident memory of the process.")
}

// TestBenchExportToParquet takes turns between the export and pyarrow, which
// make the same tables of the same records.
func TestBenchExportToParquet(t *testing.T) {
	begin(t)
	python, err := filepath.Abs("../../.tools/venv/bin/python")
	if err != nil {
		t.Fatal(err)
	}
	testnet.Need(t, python)
	dir, size := deskRun(t, synthetic.Options{Seed: 12, Speeds: []float64{8.3}, Repetitions: 60})
	records := filepath.Join(dir, "export", "records.ndjson")
	timed(t, filepath.Join(programs, "fieldmesh"), "export", dir)
	if _, err := os.Stat(records); err != nil {
		t.Fatal(err)
	}
	var ours, theirs []float64
	var peak, theirPeak int64
	for i := range 3 {
		turns := []func(){
			func() {
				took, p := timed(t, filepath.Join(programs, "fieldmesh"), "export", dir, "--to",
					filepath.Join(dir, fmt.Sprint("export", i)))
				ours, peak = append(ours, float64(size)/1e6/took.Seconds()), max(peak, p)
			},
			func() {
				took, p := timed(t, python, "testdata/parquet.py", records, filepath.Join(dir, fmt.Sprint("pandas", i)))
				theirs, theirPeak = append(theirs, float64(size)/1e6/took.Seconds()), max(theirPeak, p)
			},
		}
		if i%2 == 1 {
			slices.Reverse(turns)
		}
		for _, turn := range turns {
			turn()
		}
	}
	report(row{
		goal:      "export of a run",
		measured:  fmt.Sprintf("%.1f MB/s, %.0f MB of memory", median(ours), float64(peak)/1e6),
		reference: fmt.Sprintf("pandas and pyarrow: %.1f MB/s, %.0f MB", median(theirs), float64(theirPeak)/1e6),
		figure:    fmt.Sprintf("%.1f MB/s, %.0f MB", median(ours), float64(peak)/1e6), limit: "≥ 20 MB/s, ≤ 200 MB",
		met: median(ours) >= 20 && peak <= 200e6,
	}, "%.0f MB of records, each program started again, median of three in turns. Ours writes the whole export: "+
		"Parquet tables, two tables of numbers, tracks in two "+
		"formats, the records again, checksums; pandas and pyarrow make the Parquet tables alone (zstd, one a kind) "+
		"of the same records, held in memory.", float64(size)/1e6)
}

// liveNodes is what the live page is measured with.
const liveNodes = 200

// TestBenchLivePage appends what 200 nodes record to an archive, as time goes,
// and looks at what `fieldmesh live` takes for it with one viewer.
func TestBenchLivePage(t *testing.T) {
	begin(t)
	o := synthetic.Options{Seed: 13, Speeds: []float64{8.3}, Repetitions: 1, Relays: liveNodes - 2,
		WindowS: func(wire.Trial) float64 { return 30 }}
	dir := filepath.Join(testnet.Folder(t), "run")
	info := synthetic.Info(o)
	a, err := archive.Create(dir, info)
	if err != nil {
		t.Fatal(err)
	}
	testnet.CloseAtEnd(t, a)
	server, url := testnet.Live(t, filepath.Join(programs, "fieldmesh"), dir)
	v := view(t, url)
	begun, written := time.Now(), grow(t, dir, info.Plan)
	took := time.Since(begun).Seconds()
	load := testnet.ProcessorTime(t, server.Cmd.Process.Pid).Seconds() / took
	memory, _ := testnet.Memory(t, server.Cmd.Process.Pid)
	bytes, states := v.end(t)
	if states < 5 {
		t.Fatalf("the viewer saw %d states", states)
	}
	report(row{
		goal:      fmt.Sprintf("live page at %d nodes", liveNodes),
		measured:  fmt.Sprintf("%.0f kB/s to a viewer, %.0f MB of memory", float64(bytes)/1e3/took, memory),
		reference: fmt.Sprintf("%.0f kB/s of new records", float64(written)/1e3/took),
		figure:    fmt.Sprintf("%.1f %% of a processor", 100*load), limit: "≤ 15 %", met: load <= 0.15,
	}, "%d nodes at 10 Hz through a window of 30 s, appended once a second; one viewer, who got %d states. A "+
		"processor's share is that of one core.", liveNodes, states)
}

// grow appends the records of a trial to their files, each in its second, and
// tells how many bytes those were.
func grow(t *testing.T, dir string, p wire.RunPlan) (written int) {
	t.Helper()
	folder := filepath.Join(dir, "trials", "0001-a1", "records")
	if err := os.MkdirAll(folder, 0o755); err != nil {
		t.Fatal(err)
	}
	told := synthetic.Attempt(p, p.Trials[0], 1, synthetic.Conditions{MB: 60}, map[string]*uint64{})
	next := time.NewTicker(time.Second)
	defer next.Stop()
	for left := true; left; {
		left = false
		for node, records := range told {
			n := slices.IndexFunc(records, func(r wire.Record) bool {
				return r.TBootNs > records[0].TBootNs+int64(time.Second)
			})
			if n < 0 {
				n = len(records)
			}
			lines, err := synthetic.Lines(records[:n])
			if err != nil {
				t.Fatal(err)
			}
			told[node], left = records[n:], left || n < len(records)
			if n == len(records) {
				delete(told, node)
			}
			written += appendLines(t, filepath.Join(folder, node+".ndjson"), lines)
		}
		<-next.C
	}
	return written
}

func appendLines(t *testing.T, path string, lines [][]byte) (written int) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		t.Fatal(err)
	}
	w := bufio.NewWriter(f)
	for _, l := range lines {
		n, err := w.Write(append(l, '\n'))
		if written += n; err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(w.Flush(), f.Close()); err != nil {
		t.Fatal(err)
	}
	return written
}

// viewer counts what it is sent.
type viewer struct {
	body io.Closer
	got  chan [2]int // bytes, states
}

func view(t *testing.T, url string) viewer {
	t.Helper()
	r, err := http.Get(strings.TrimSuffix(url, "/") + "/events")
	if err != nil {
		t.Fatal(err)
	}
	v := viewer{r.Body, make(chan [2]int, 1)}
	go func() {
		in, n, states := bufio.NewReaderSize(r.Body, 1<<20), 0, 0
		for {
			line, err := in.ReadString('\n')
			if n += len(line); err != nil {
				v.got <- [2]int{n, states}
				return
			}
			if data, ok := strings.CutPrefix(line, "data: "); ok && strings.Contains(line, `"timeline":`) &&
				json.Valid([]byte(data)) {
				states++
			}
		}
	}()
	return v
}

func (v viewer) end(t *testing.T) (bytes, states int) {
	t.Helper()
	if err := v.body.Close(); err != nil {
		t.Error(err)
	}
	got := <-v.got
	return got[0], got[1]
}
