//go:build e2e

package bench

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"fieldmesh.dev/fieldmesh/controller/archive"
	"fieldmesh.dev/fieldmesh/protocols/wire"
	"fieldmesh.dev/fieldmesh/test/synthetic"
	"fieldmesh.dev/fieldmesh/test/testnet"
	"fieldmesh.dev/fieldmesh/test/testnet/browser"
)

// hours are two ways to spend an hour in windows. An archive has no room for one
// window of it: its records would have 595 MiB, and those of an attempt may have 512.
var hours = []struct {
	name        string
	windowS     float64
	repetitions int // of two sections
}{{"2 windows of 30 min", 1800, 1}, {"180 windows of 20 s", 20, 90}}

const (
	fluidPaintMs = 1000
	fluidFrames  = 30
)

// TestBenchPagesOfAnHour looks at the live page and the report of 200 nodes that move
// for an hour.
func TestBenchPagesOfAnHour(t *testing.T) {
	begin(t)
	for _, of := range hours {
		dir, size := deskRun(t, synthetic.Options{Seed: 17, Speeds: []float64{2.8}, Repetitions: of.repetitions,
			Relays: liveNodes - 2, Roam: true, WindowS: func(wire.Trial) float64 { return of.windowS }})
		a, err := archive.Open(dir)
		if err != nil {
			t.Fatal(err)
		}
		trials := a.Info().Plan.Trials
		decide := func(trials []wire.Trial) {
			for _, trial := range trials {
				if err := a.Decide(wire.Verdict{TrialKey: wire.TrialKey{Trial: trial.Number, Attempt: 1},
					Outcome: wire.Accepted, Final: true}); err != nil {
					t.Fatal(err)
				}
				if err := a.Seal(trial.Number, 1); err != nil {
					t.Fatal(err)
				}
			}
		}
		last := len(trials) - 1
		decide(trials[:last])
		fluidLive(t, of.name, dir, filepath.Join(dir, "trials", fmt.Sprintf("%04d-a1", trials[last].Number), "records"),
			of.windowS)
		decide(trials[last:])
		if err := a.Close(); err != nil {
			t.Fatal(err)
		}

		took, _ := timed(t, filepath.Join(programs, "fieldmesh"), "report", dir)
		f := use(t, "file://"+filepath.Join(dir, "report.html"), "drag")
		reportFluid("report, "+of.name, fmt.Sprintf("written in %.0f s", took.Seconds()),
			fmt.Sprintf("%.0f MB of records", float64(size)/1e6), f)
	}
}

// fluidLive looks at the live page while the records of the last trial come.
func fluidLive(t *testing.T, name, dir, records string, windowS float64) {
	t.Helper()
	const comesS = 40
	rest := cutRecords(t, records, 1-comesS/windowS)
	server, address := testnet.Live(t, filepath.Join(programs, "fieldmesh"), dir)
	v := view(t, address)
	var coming sync.WaitGroup
	coming.Go(func() { appendRest(t, rest, comesS) })
	f := use(t, address, "scroll") // which waits for the first state
	before, begun := testnet.ProcessorTime(t, server.Cmd.Process.Pid), time.Now()
	coming.Wait()
	load := (testnet.ProcessorTime(t, server.Cmd.Process.Pid) - before).Seconds() / time.Since(begun).Seconds()
	bytes, states := v.end(t)
	memory, _ := testnet.Memory(t, server.Cmd.Process.Pid)
	if states < 3 || load > 0.15 {
		t.Errorf("%s: the viewer saw %d states in %d s, for %.0f %% of a processor", name, states, comesS, 100*load)
	}
	reportFluid("live page, "+name, fmt.Sprintf("%.0f %% of a processor, %.0f MB of memory", 100*load, memory),
		fmt.Sprintf("%d states of %.0f kB in %d s", states, float64(bytes)/1e3/float64(max(states, 1)), comesS), f)
}

// cutRecords leaves a share of the lines of each file in a folder, and returns the others.
func cutRecords(t *testing.T, folder string, share float64) (rest map[string][][]byte) {
	t.Helper()
	rest = map[string][][]byte{}
	files, err := filepath.Glob(filepath.Join(folder, "*.ndjson"))
	if err != nil || len(files) == 0 {
		t.Fatalf("%s has no records: %v", folder, err)
	}
	for _, path := range files {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		lines := bytes.SplitAfter(text, []byte("\n"))
		keep := int(max(share, 0) * float64(len(lines)))
		if err := os.WriteFile(path, bytes.Join(lines[:keep], nil), 0o644); err != nil {
			t.Fatal(err)
		}
		rest[path] = lines[keep:]
	}
	return rest
}

// appendRest appends lines to their files in so many seconds.
func appendRest(t *testing.T, rest map[string][][]byte, seconds int) {
	next := time.NewTicker(time.Second)
	defer next.Stop()
	for left := seconds; left > 0; left-- {
		for path, lines := range rest {
			n := len(lines) / left
			f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
			if err == nil {
				_, err = f.Write(bytes.Join(lines[:n], nil))
				err = errors.Join(err, f.Close())
			}
			if err != nil {
				t.Error(err)
				return
			}
			rest[path] = lines[n:]
		}
		<-next.C
	}
}

// fluid is what testdata/fluid.cjs measures.
type fluid struct {
	FirstPaintMs float64  `json:"first_paint_ms"`
	Used         []frames `json:"used"` // in each way
}

type frames struct {
	Fewest    int     `json:"fewest"` // in a second
	LongestMs float64 `json:"longest_ms"`
}

// use looks at a page in a headless Chromium.
func use(t *testing.T, address, how string) (f fluid) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	out, err := browser.Script(ctx, t, "testdata/fluid.cjs", address, how).Output()
	if err == nil {
		err = json.Unmarshal(out, &f)
	}
	if err != nil || len(f.Used) == 0 {
		t.Fatalf("look at %s: %v\n%s", address, err, out)
	}
	return f
}

func reportFluid(goal, measured, reference string, f fluid) {
	worst := slices.MinFunc(f.Used, func(a, b frames) int { return a.Fewest - b.Fewest })
	report(row{
		goal: goal, measured: measured, reference: reference,
		figure: fmt.Sprintf("%.0f ms, %d frames/s", f.FirstPaintMs, worst.Fewest),
		limit:  fmt.Sprintf("≤ %d ms, ≥ %d frames/s", fluidPaintMs, fluidFrames),
		met:    f.FirstPaintMs <= fluidPaintMs && worst.Fewest >= fluidFrames,
	}, "%d nodes, of which all but two roam and are sampled once a second; first paint, and the fewest frames that a "+
		"headless Chromium drew in a second while the page was scrolled and, in the report, while the playback's "+
		"slider was dragged and while it played; the longest time between two frames was %.0f ms.", liveNodes,
		slices.MaxFunc(f.Used, func(a, b frames) int { return int(a.LongestMs - b.LongestMs) }).LongestMs)
}
