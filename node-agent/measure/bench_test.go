package measure

import (
	"os"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"fieldmesh.dev/fieldmesh/node-agent/spool"
	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// cpu is the processor time of this process so far.
func cpu(t *testing.T) time.Duration {
	t.Helper()
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		t.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// TestBenchRecording prints what the recording of connections costs: asking the
// kernel, making records, and bringing them to the disk.
func TestBenchRecording(t *testing.T) {
	if os.Getenv("FIELDMESH_BENCH") == "" {
		t.Skip("a bench: FIELDMESH_BENCH is not set")
	}
	for _, n := range []int{1, 100, 1000} {
		recording(t, n)
	}
}

// recording measures at 10 Hz and in real time, as an agent records: what a
// core spends on waking up is part of it.
func recording(t *testing.T, n int) {
	p := connect(t, n, 21000)
	s := source(t, "sender", p.flow)
	dir := t.TempDir()
	sp, err := spool.Open(dir, "sender", spool.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := sp.Close(); err != nil {
			t.Error(err)
		}
	}()
	samples := 0
	tick := func(at int64) {
		bodies, err := s.Sample(at)
		if err != nil {
			t.Fatal(err)
		}
		for _, b := range bodies {
			if _, err := sp.Append(wire.Header{TBootNs: at, Run: "bench", Trial: 1, Attempt: 1}, b); err != nil {
				t.Fatal(err)
			}
		}
		samples += len(bodies)
	}
	for i := range 5 { // finding them is not part of it
		tick(int64(i) * 1e9)
	}
	samples = 0
	began, used := time.Now(), cpu(t)
	const ticks = 50
	for i := range ticks {
		tick(int64(10+i) * 1e9)
		time.Sleep(time.Until(began.Add(time.Duration(i+1) * 100 * time.Millisecond)))
	}
	spent, took := cpu(t)-used, time.Since(began)
	t.Logf("%4d connections at 10 Hz: %d samples, %.1f µs each, %.2f %% of a core", n, samples,
		float64(spent.Microseconds())/float64(samples), 100*spent.Seconds()/took.Seconds())
	if n == 100 && spent.Seconds() > 0.02*took.Seconds() {
		t.Logf("goal: at most 2 %% of a core for 100 connections")
	}
}
