//go:build e2e

package bench

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"fieldmesh.dev/fieldmesh/controller/archive"
	"fieldmesh.dev/fieldmesh/controller/influx"
	line "fieldmesh.dev/fieldmesh/internal/influx"
	"fieldmesh.dev/fieldmesh/protocols/wire"
	"fieldmesh.dev/fieldmesh/test/synthetic"
	"fieldmesh.dev/fieldmesh/test/testnet"
)

const influxPairs = 12

// TestBenchArchiveToInfluxDB takes turns between publishing an archive and a
// bare HTTP client that sends the very requests of it, made beforehand.
func TestBenchArchiveToInfluxDB(t *testing.T) {
	begin(t)
	d := testnet.NewInfluxd(t)
	dir := filepath.Join(t.TempDir(), "run")
	const seed = 7
	t.Logf("synthetic run with seed %d", seed)
	buildArchive(t, dir, synthetic.Options{Seed: seed, Repetitions: 8})
	var batches recorder
	summary, err := influx.Publish(t.Context(), dir, &batches)
	if err != nil {
		t.Fatal(err)
	}
	packed, lines := batches.pack(t)
	if summary.Points < 100_000 {
		t.Fatalf("the archive gives %d points, too few to tell: %+v", summary.Points, summary)
	}
	bind(t, d.PID(), os.Getpid())
	var publishing, bare, ratios []float64
	for i := range influxPairs {
		first, second := publishOnce, bareOnce
		if i%2 == 1 {
			first, second = second, first
		}
		took := map[string]time.Duration{}
		for turn, f := range []func(*testing.T, *testnet.Influxd, string, string, [][]byte) (string,
			time.Duration){first, second} {
			who, d := f(t, d, fmt.Sprintf("bench%d%d", i, turn), dir, packed)
			took[who] = d
		}
		publishing, bare = append(publishing, took["publish"].Seconds()), append(bare, took["bare"].Seconds())
		ratios = append(ratios, math.Log(took["bare"].Seconds()/took["publish"].Seconds()))
	}
	rate := func(seconds []float64) float64 { return float64(lines) / median(seconds) / 1e3 }
	middle, low := middleAndBound(ratios)
	ratio := math.Exp(middle)
	report(row{
		goal:      "archive to InfluxDB",
		measured:  fmt.Sprintf("%.0f thousand points/s", rate(publishing)),
		reference: fmt.Sprintf("bare HTTP client: %.0f thousand/s", rate(bare)),
		figure:    fmt.Sprintf("%.2f, surely ≥ %.2f", ratio, math.Exp(low)), limit: "≥ 0.9", met: ratio >= 0.9,
	}, "%d points of an archive on disk, read, dated, encoded, packed and sent; against a client that sends the same "+
		"requests, packed beforehand, over as many connections. The server has one processor and the client another. "+
		"%d pairs, who is first in turns, each time into a new database of Debian's influxd; median rates, and of the "+
		"pairs' ratios the Hodges-Lehmann estimate with its bound as above.", summary.Points, influxPairs)
}

// bind leaves each of two processes a processor of its own, until the test ends.
func bind(t *testing.T, pids ...int) {
	t.Helper()
	var all unix.CPUSet
	if err := unix.SchedGetaffinity(0, &all); err != nil {
		t.Fatal(err)
	}
	if all.Count() < len(pids) {
		t.Skipf("needs %d processors", len(pids))
	}
	processor := 0
	for _, pid := range pids {
		for !all.IsSet(processor) {
			processor++
		}
		var only unix.CPUSet
		only.Set(processor)
		processor++
		t.Cleanup(func() {
			if err := allow(pid, all); err != nil && !errors.Is(err, os.ErrNotExist) { // the server may have ended
				t.Error(err)
			}
		})
		for range 2 { // threads that began meanwhile, too
			if err := allow(pid, only); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// allow sets the processors of all threads of a process; one that has ended needs none.
func allow(pid int, set unix.CPUSet) error {
	threads, err := os.ReadDir(fmt.Sprintf("/proc/%d/task", pid))
	if err != nil {
		return err
	}
	for _, thread := range threads {
		id, err := strconv.Atoi(thread.Name())
		if err != nil {
			return err
		}
		if err := unix.SchedSetaffinity(id, &set); err != nil && !errors.Is(err, unix.ESRCH) {
			return err
		}
	}
	return nil
}

// buildArchive makes a run whose records can be dated: the controller has
// compared clocks before every trial.
func buildArchive(t *testing.T, dir string, o synthetic.Options) {
	t.Helper()
	info := synthetic.Info(o)
	a, err := archive.Create(dir, info)
	if err != nil {
		t.Fatal(err)
	}
	seqs, seq := map[string]*uint64{}, uint64(0)
	for _, trial := range info.Plan.Trials {
		told := synthetic.Attempt(info.Plan, trial, 1, synthetic.Conditions{MB: 20, LatenessShare: 0.001}, seqs)
		for _, node := range slices.Sorted(maps.Keys(told)) {
			if node != archive.FieldNode {
				seq++
				h := wire.Header{Node: "controller", Epoch: "c", Seq: seq, TBootNs: told[node][0].TBootNs,
					Run: info.Plan.Run, Trial: trial.Number, Attempt: 1}
				told["controller"] = append(told["controller"],
					wire.Record{Header: h, Body: &wire.Clock{Peer: node, OwnWallOffsetNs: new(int64(1_790_000_000e9)),
						Exchanges: 8}})
			}
		}
		for node, records := range told {
			if err := synthetic.Store(a, node, records); err != nil {
				t.Fatal(err)
			}
		}
		if err := errors.Join(a.Decide(wire.Verdict{TrialKey: wire.TrialKey{Trial: trial.Number, Attempt: 1},
			Outcome: "accepted", Final: true}), a.Seal(trial.Number, 1)); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(a.Finish(), a.Close()); err != nil {
		t.Fatal(err)
	}
}

// recorder keeps what is written to it.
type recorder struct {
	mu      sync.Mutex
	batches [][]byte
}

func (r *recorder) Write(_ context.Context, lines []byte) ([]line.Refusal, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.batches = append(r.batches, bytes.Clone(lines))
	return nil, nil
}

func (r *recorder) Forget(context.Context, string, map[string]string, time.Time) error { return nil }

func (r *recorder) pack(t *testing.T) (packed [][]byte, lines int) {
	for _, b := range r.batches {
		lines += bytes.Count(b, []byte("\n"))
		var out bytes.Buffer
		w := gzip.NewWriter(&out)
		_, err := w.Write(b)
		if cerr := w.Close(); err == nil {
			err = cerr
		}
		if err != nil {
			t.Fatal(err)
		}
		packed = append(packed, out.Bytes())
	}
	return packed, lines
}

func publishOnce(t *testing.T, d *testnet.Influxd, database, dir string, _ [][]byte) (string, time.Duration) {
	w := &line.Writer{Target: line.Target{URL: d.URL, Database: database, User: testnet.InfluxAdmin,
		Password: testnet.InfluxAdminPassword}, Patience: time.Minute}
	if err := w.Prepare(t.Context()); err != nil {
		t.Fatal(err)
	}
	begun := time.Now()
	s, err := influx.Publish(t.Context(), dir, w)
	if err != nil || s.RefusedN > 0 {
		t.Fatalf("publish: %v, %d refused: %v", err, s.RefusedN, s.Refused)
	}
	return "publish", time.Since(begun)
}

// bareConnections is as many as Publish writes over.
const bareConnections = 2

func bareOnce(t *testing.T, d *testnet.Influxd, database, _ string, packed [][]byte) (string, time.Duration) {
	w := &line.Writer{Target: line.Target{URL: d.URL, Database: database, User: testnet.InfluxAdmin,
		Password: testnet.InfluxAdminPassword}, Patience: time.Minute}
	if err := w.Prepare(t.Context()); err != nil {
		t.Fatal(err)
	}
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: bareConnections}}
	defer client.CloseIdleConnections()
	target := d.URL + "/write?" + url.Values{"db": {database}, "precision": {"ns"}}.Encode()
	bodies := make(chan []byte, len(packed))
	for _, b := range packed {
		bodies <- b
	}
	close(bodies)
	begun := time.Now()
	var senders sync.WaitGroup
	for range bareConnections {
		senders.Go(func() {
			for body := range bodies {
				if err := post(t.Context(), client, target, body); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	senders.Wait()
	return "bare", time.Since(begun)
}

func post(ctx context.Context, client *http.Client, target string, body []byte) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, target, bytes.NewReader(body))
	if err != nil {
		return err
	}
	request.Header.Set("Content-Encoding", "gzip")
	request.SetBasicAuth(testnet.InfluxAdmin, testnet.InfluxAdminPassword)
	response, err := client.Do(request)
	if err != nil {
		return err
	}
	answer, err := io.ReadAll(response.Body)
	_ = response.Body.Close()
	if err != nil {
		return err
	}
	if response.StatusCode != http.StatusNoContent {
		return fmt.Errorf("write: %s: %s", response.Status, answer)
	}
	return nil
}
