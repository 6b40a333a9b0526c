package packets

import (
	"bufio"
	"bytes"
	"errors"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"fieldmesh.dev/fieldmesh/test/testnet"
)

// TestBenchCapturesToMetrics prints how fast captures become numbers, beside
// tshark's analysis of the same files, and that memory does not grow with them.
func TestBenchCapturesToMetrics(t *testing.T) {
	testnet.NeedSet(t, "FIELDMESH_BENCH", "a benchmark")
	for i, n := range []int{50_000, 400_000} {
		w := newWire(t)
		k := w.random(rand.New(rand.NewPCG(1, 1)), n, 1)
		var paths [2]string
		bytes := 0.0
		for end := range paths {
			data := w.file(end)
			bytes += float64(len(data))
			paths[end] = filepath.Join(t.TempDir(), "capture.pcapng")
			if err := os.WriteFile(paths[end], data, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		flow := w.flow()
		w.ends = [2][]captured{} // nothing but the analysis is to be in memory
		ours, peak := ourTime(t, paths, flow, k.Sent)
		t.Logf("%7d packets, %.0f MB: here %.0f MB/s, %.1f MB of memory", n, bytes/1e6, bytes/1e6/ours.Seconds(), peak)
		if i > 0 { // tshark takes minutes, and is no slower by the byte on the small ones
			continue
		}
		theirs, err := tsharkTime(paths)
		if errors.Is(err, exec.ErrNotFound) {
			t.Log("tshark is not installed: nothing to compare with")
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("%7d packets, %.0f MB: tshark %.1f MB/s; here %.0f times as fast", n, bytes/1e6,
			bytes/1e6/theirs.Seconds(), theirs.Seconds()/ours.Seconds())
	}
}

// ourTime is the fastest of three analyses, and the memory that one needs.
func ourTime(t *testing.T, paths [2]string, flow Flow, sent uint64) (best time.Duration, peakMB float64) {
	t.Helper()
	for range 3 {
		var ends [2]End
		for i, p := range paths {
			f, err := os.Open(p)
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			ends[i] = End{Name: p, Capture: bufio.NewReader(f), CloseNs: forever}
		}
		runtime.GC()
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		began := time.Now()
		out, _, err := Analyse(ends[0], ends[1], []Flow{flow})
		took := time.Since(began)
		runtime.ReadMemStats(&after)
		if err != nil || out[0].Sent != sent {
			t.Fatalf("%+v %v", out, err)
		}
		// All that was ever allocated is more than what was held at any moment.
		peakMB = float64(after.TotalAlloc-before.TotalAlloc) / 1e6
		if best == 0 || took < best {
			best = took
		}
	}
	return best, peakMB
}

// tsharkTime has tshark find retransmissions, reordering and round trips in both files.
func tsharkTime(paths [2]string) (time.Duration, error) {
	began := time.Now()
	for _, p := range paths {
		c := exec.Command("tshark", "-r", p, "-T", "fields", "-e", "tcp.analysis.retransmission", "-e",
			"tcp.analysis.out_of_order", "-e", "tcp.analysis.ack_rtt")
		var said bytes.Buffer
		c.Stderr = &said
		if err := c.Run(); err != nil {
			return 0, errors.Join(err, errors.New(said.String()))
		}
	}
	return time.Since(began), nil
}
