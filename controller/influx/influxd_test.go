//go:build e2e

package influx

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	line "fieldmesh.dev/fieldmesh/internal/influx"
	"fieldmesh.dev/fieldmesh/protocols/wire"
	"fieldmesh.dev/fieldmesh/test/testnet"
)

const runPassword = "runner's secret"

// influxd is a real server with a user who may only write.
type influxd struct {
	*testnet.Influxd
	t testing.TB
}

func newInfluxd(t testing.TB) *influxd {
	t.Helper()
	d := &influxd{testnet.NewInfluxd(t), t}
	d.admin(`CREATE USER runner WITH PASSWORD '` + strings.ReplaceAll(runPassword, `'`, `\'`) + `'`)
	return d
}

func (d *influxd) admin(q string) []map[string]any {
	d.t.Helper()
	return d.Query("field", q)
}

// dump is every point of the database, as text, for comparison.
func (d *influxd) dump() map[string]bool {
	d.t.Helper()
	out := map[string]bool{}
	for _, m := range slices.Concat(line.Schema(), line.Computed()) {
		for _, row := range d.admin(fmt.Sprintf("SELECT * FROM %q", m.Name)) {
			text, err := json.Marshal(row)
			if err != nil {
				d.t.Fatal(err)
			}
			out[string(text)] = true
		}
	}
	return out
}

func (d *influxd) target() line.Target {
	return line.Target{URL: d.URL, Database: "field", User: "runner", Password: runPassword}
}

// prepare makes the database as an administrator does, for a user who may only write.
func (d *influxd) prepare() *line.Writer {
	d.t.Helper()
	w := &line.Writer{Target: line.Target{URL: d.URL, Database: "field", User: testnet.InfluxAdmin,
		Password: testnet.InfluxAdminPassword}, Patience: time.Minute}
	if err := w.Prepare(d.t.Context()); err != nil {
		d.t.Fatal(err)
	}
	d.admin(`GRANT WRITE ON "field" TO "runner"`)
	w.Target = d.target()
	return w
}

func same(t *testing.T, what string, got, want map[string]bool) {
	t.Helper()
	for p := range want {
		if !got[p] {
			t.Errorf("%s: missing %s", what, p)
		}
	}
	for p := range got {
		if !want[p] {
			t.Errorf("%s: too much %s", what, p)
		}
	}
}

func TestWrongPasswordIsSaid(t *testing.T) {
	d := newInfluxd(t)
	w := d.prepare()
	w.Target.Password = "not the runner's secret"
	for name, err := range map[string]error{
		"prepare": w.Prepare(t.Context()),
		"write":   func() error { _, err := w.Write(t.Context(), []byte("m a=1i 1\n")); return err }(),
	} {
		if !errors.Is(err, line.ErrAccess) || !strings.Contains(err.Error(), `user "runner"`) ||
			strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %v", name, err)
		}
	}
	w.Target = d.target()
	if err := w.Prepare(t.Context()); err != nil {
		t.Errorf("a user who may only write cannot begin: %v", err)
	}
	w.Target.Database = "elsewhere"
	if _, err := w.Write(t.Context(), []byte("m a=1i 1\n")); !errors.Is(err, line.ErrAccess) ||
		!strings.Contains(err.Error(), "grant WRITE") {
		t.Errorf("a database without a grant: %v", err)
	}
}

// A run is published, the database is wiped, the run is published again: every
// point is as it was, and there is one for every record.
func TestPublishWipePublish(t *testing.T) {
	d := newInfluxd(t)
	w := d.prepare()
	a := newRun(t, 5)
	for _, s := range script(5) {
		s(t, a)
	}
	s, err := Publish(t.Context(), a.Dir(), w)
	if err != nil {
		t.Fatal(err)
	}
	first := d.dump()
	if int64(len(first)) != s.Points+s.Results+s.Targets || s.Results != 5 || s.RefusedN != 0 {
		t.Errorf("%d points in the database, %d sent, %d refused", len(first), s.Points, s.RefusedN)
	}
	if _, err := Publish(t.Context(), a.Dir(), w); err != nil {
		t.Fatal(err)
	}
	same(t, "published twice", d.dump(), first)
	d.admin(`DROP DATABASE "field"`)
	w = d.prepare()
	if _, err := Publish(t.Context(), a.Dir(), w); err != nil {
		t.Fatal(err)
	}
	same(t, "wiped and published", d.dump(), first)
}

// The server is killed in the middle of a run and comes back: nothing is lost,
// nothing is doubled, and the outage is said once.
func TestTailSurvivesTheServer(t *testing.T) {
	d := newInfluxd(t)
	w := d.prepare()
	var told []string
	w.Patience, w.Jitter = 0, func() float64 { return 0 }
	w.Outage = func(err error) { told = append(told, fmt.Sprint(err)) }
	a := newRun(t, 4)
	done, ended := make(chan struct{}), make(chan error, 1)
	var s Summary
	go func() {
		var err error
		s, err = Tail(t.Context(), a.Dir(), w.Target, w, done, nil)
		ended <- err
	}()
	steps := script(4)
	for i, step := range steps {
		step(t, a)
		switch i {
		case len(steps) / 3:
			waitUntil(t, "the first points are in the database", func() bool { return len(d.dump()) > 0 })
			d.Kill()
		case 2 * len(steps) / 3:
			time.Sleep(2 * pollEvery) // so that it notices
			d.Start()
		}
	}
	close(done)
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	live := d.dump()
	if int64(len(live)) != s.Points+s.Results+s.Targets {
		t.Errorf("%d points in the database, %d acknowledged", len(live), s.Points)
	}
	if len(told) != 2 || told[1] != "<nil>" || strings.Contains(told[0], "secret") {
		t.Errorf("the outage was told as %q, want one failure and its end", told)
	}
	if behind, err := Behind(a.Dir(), w.Target); behind != 0 || err != nil {
		t.Errorf("%d bytes behind, %v", behind, err)
	}
	d.admin(`DROP DATABASE "field"`)
	if _, err := Publish(t.Context(), a.Dir(), d.prepare()); err != nil {
		t.Fatal(err)
	}
	same(t, "live against published", live, d.dump())
}

// The server's disk runs full while a run is published: that is said, and the
// archive has everything for a server with room. (InfluxDB 1.x writes again
// only when it has been started again.)
func TestDatabaseDiskFull(t *testing.T) {
	a := newRun(t, 8)
	for _, s := range busyScript(8) {
		s(t, a)
	}
	d := &influxd{testnet.NewInfluxdOn(t, 1), t}
	d.admin(`CREATE USER runner WITH PASSWORD '` + strings.ReplaceAll(runPassword, `'`, `\'`) + `'`)
	w := d.prepare()
	w.Patience = time.Second
	s, err := Publish(t.Context(), a.Dir(), w)
	if !errors.Is(err, line.ErrAway) || !strings.Contains(err.Error(), "no space left on device") {
		t.Fatalf("%+v, %v", s, err)
	}
	d.Kill()
	d = newInfluxd(t)
	if s, err = Publish(t.Context(), a.Dir(), d.prepare()); err != nil || s.RefusedN != 0 {
		t.Fatalf("%+v, %v", s, err)
	}
	const records = 8 * (2*150*7 + 2) // of sockets, and the clocks' estimates
	if n := len(d.dump()); s.Points != records || n != int(s.Points+s.Results+s.Targets) {
		t.Errorf("%d points in the database, want %d and %d results; %+v", n, records, s.Results, s)
	}
}

// The server keeps the fields that a point had before: what a late record makes unknown is gone from it all the same,
// by whom a user may only write, published again or tailed on.
func TestE2EWhatBecameUnknownIsGone(t *testing.T) {
	d := newInfluxd(t)
	w := d.prepare()
	a := judged(t)
	tail := func() {
		done := make(chan struct{})
		close(done)
		if _, err := Tail(t.Context(), a.Dir(), w.Target, w, done, nil); err != nil {
			t.Fatal(err)
		}
	}
	publish := func() {
		if s, err := Publish(t.Context(), a.Dir(), w); err != nil || s.Kept != 0 {
			t.Fatalf("%+v, %v", s, err)
		}
	}
	known := func(trial int) (known, all int) {
		for _, row := range d.admin(`SELECT * FROM "fm_result"`) {
			if row["trial"] != fmt.Sprint(trial) || row["outcome"] != "accepted" {
				continue
			}
			if all++; row["throughput_bps"] != nil {
				known++
			}
		}
		return known, all
	}
	tail()
	for _, late := range []struct { // in this order: the records' numbers grow
		trial int
		send  func()
	}{{1, publish}, {3, tail}} {
		trial := late.trial
		if n, all := known(trial); n != 1 || all != 1 {
			t.Fatalf("trial %d: of %d results %d have a throughput", trial, all, n)
		}
		at, _ := a.Trial(trial)
		appendAll(t, a, at.Receiver, []wire.Record{{Header: wire.Header{Node: at.Receiver, Epoch: "0123456789abcdef",
			Seq: uint64(trial), TBootNs: 1, Run: a.Info().Run, Trial: trial, Attempt: 1},
			Body: &wire.Edge{Edge: "open"}}})
		late.send()
		if n, all := known(trial); n != 0 || all != 1 {
			t.Errorf("trial %d, of which one edge of two is known to be sampled: of %d results %d have a throughput",
				trial, all, n)
		}
	}
}

func waitUntil(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for range 200 {
		if holds() {
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
	t.Fatalf("not within 10 s: %s", what)
}

// Lines that the server does not take are named, and the others are stored.
func TestBadLineInABatch(t *testing.T) {
	d := newInfluxd(t)
	w := d.prepare()
	var batch bytes.Buffer
	for i := range 300 {
		switch i {
		case 100:
			batch.WriteString("fm_gps,node=car mode= 1\n") // malformed
		case 200:
			batch.WriteString("fm_gps,node=car mode=\"two\" 1790000000000000200\n") // another type
		default:
			fmt.Fprintf(&batch, "fm_gps,node=car mode=3i %d\n", 1_790_000_000_000_000_000+i)
		}
	}
	refused, err := w.Write(t.Context(), batch.Bytes())
	if err != nil || len(refused) != 2 {
		t.Fatalf("refused %v, error %v", refused, err)
	}
	if !strings.Contains(refused[0].Reason, "unable to parse") || !strings.Contains(refused[1].Reason,
		"field type conflict") {
		t.Errorf("reasons %q", refused)
	}
	if n := len(d.dump()); n != 298 {
		t.Errorf("%d points are stored, want 298", n)
	}
}

// TestBenchPublish: archive to InfluxDB against a bare HTTP client that writes
// the same bytes, interleaved. Goal: at least 0.9 of its speed.
func TestBenchPublish(t *testing.T) {
	testnet.NeedSet(t, "FIELDMESH_BENCH", "a benchmark")
	d := newInfluxd(t)
	a := newRun(t, 60)
	for _, s := range busyScript(60) {
		s(t, a)
	}
	tape := &recorder{}
	if _, err := Publish(t.Context(), a.Dir(), tape); err != nil {
		t.Fatal(err)
	}
	const rounds = 6
	var ours, bare time.Duration
	var points int64
	for i := range 2 * rounds {
		d.admin(`DROP DATABASE "field"`)
		w := d.prepare()
		begin := time.Now()
		if i%4 == 0 || i%4 == 3 { // ABBA
			s, err := Publish(t.Context(), a.Dir(), w)
			if err != nil {
				t.Fatal(err)
			}
			points = s.Points
			ours += time.Since(begin)
		} else {
			tape.replay(t, d)
			bare += time.Since(begin)
		}
	}
	rate := func(all time.Duration) float64 { return float64(points) * rounds / all.Seconds() }
	fmt.Printf("publish, 2 connections   %8.0f points/s\nbare client, 1 connection%8.0f points/s\nratio              "+
		"      %8.2f (goal >= 0.90)\n",
		rate(ours), rate(bare), rate(ours)/rate(bare))
}

// recorder keeps the batches that Publish makes as they go over the wire.
type recorder struct {
	mu      sync.Mutex
	batches [][]byte
}

func (r *recorder) Write(_ context.Context, lines []byte) ([]line.Refusal, error) {
	packed, err := line.Pack(lines)
	if err != nil {
		return nil, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.batches = append(r.batches, packed)
	return nil, nil
}

func (r *recorder) Forget(context.Context, string, map[string]string, time.Time) error { return nil }

// replay posts the batches one after another with net/http alone.
func (r *recorder) replay(t *testing.T, d *influxd) {
	t.Helper()
	for _, b := range r.batches {
		req, err := http.NewRequest(http.MethodPost, d.URL+"/write?db=field&precision=ns", bytes.NewReader(b))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Content-Encoding", "gzip")
		req.SetBasicAuth("runner", runPassword)
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		text, _ := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		if resp.StatusCode != http.StatusNoContent {
			t.Fatalf("%s: %s", resp.Status, text)
		}
	}
}
