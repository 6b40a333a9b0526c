//go:build e2e

package tcp

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cilium/ebpf"

	"fieldmesh.dev/fieldmesh/test/testnet"
)

// bandwidth is struct bandwidth of bandwidth.h.
type bandwidth struct{ Filtered, Sample, AckedUs, SampledUs, Bytes uint64 }

// units are the program's, of a byte a second.
const units = 256

// filter runs bandwidth.h in the kernel, with times of the test.
type filter struct {
	t       *testing.T
	program *ebpf.Program
	state   struct {
		bandwidth
		NowUs, Bytes uint64
	}
}

func newFilter(t *testing.T) *filter {
	t.Helper()
	testnet.Need(t)
	spec, err := ebpf.LoadCollectionSpec("../../protocols/tcpcc/bpf/yardsticks/bandwidth.bpf.o")
	if err != nil {
		t.Fatal(err)
	}
	coll, err := ebpf.NewCollection(spec)
	if err != nil {
		t.Fatal(err)
	}
	f := &filter{t: t, program: coll.DetachProgram("note")}
	coll.Close()
	testnet.CloseAtEnd(t, f.program)
	return f
}

// after has so many bytes be acknowledged after a time, or none, and returns
// the estimate in bytes a second.
func (f *filter) after(us, bytes uint64) float64 {
	f.t.Helper()
	f.state.NowUs += us
	f.state.Bytes = bytes
	if _, err := f.program.Run(&ebpf.RunOptions{Context: &f.state, ContextOut: &f.state}); err != nil {
		f.t.Fatal(err)
	}
	return float64(f.state.Filtered) / units
}

// paper is the estimate of Mascolo and others 2001, section 2.2, in real
// numbers: the filter of time constant tau, and virtual samples of 0.
type paper struct{ filtered, sample, ackedS, sampledS float64 } // bytes/s and s

const (
	tau  = 0.5
	rest = 0.01 // a silence is not divided so that less is left
)

func (p *paper) take(sample, apart float64) {
	x := 2 * tau / apart
	p.filtered = (x-1)/(x+1)*p.filtered + (sample+p.sample)/(x+1)
	p.sample = sample
	p.sampledS += apart
}

// until takes the virtual samples of a silence.
func (p *paper) until(now float64) {
	for now-p.sampledS >= tau/2+rest-1e-9 {
		p.take(0, tau/2)
	}
}

func (p *paper) ack(now, bytes float64) {
	p.until(now)
	p.take(bytes/(now-p.ackedS), now-p.sampledS)
	p.ackedS = now
}

// The program's whole numbers are the paper's filter to a thousandth, over six
// orders of magnitude, with silences, and with ACKs for many segments.
func TestBandwidthIsThePapersFilter(t *testing.T) {
	f := newFilter(t)
	seed := testnet.Seed(t, 20011, "the ACKs")
	for i, meanUs := range []float64{1, 30, 1e3, 20e3, 200e3, 2e6} {
		f.state.bandwidth = bandwidth{AckedUs: f.state.NowUs, SampledUs: f.state.NowUs}
		r := rand.New(rand.NewPCG(seed, uint64(i)))
		p, now, worst := paper{}, 0.0, 0.0
		for range 4000 {
			us := uint64(1 + r.ExpFloat64()*meanUs)
			bytes := uint64(512 * (1 + r.IntN(3)))
			now += float64(us) / 1e6
			if r.IntN(8) == 0 { // a look at a silence, as at a timeout
				p.until(now)
				f.after(us, 0)
				continue
			}
			p.ack(now, float64(bytes))
			got := f.after(us, bytes)
			if math.Abs(got-p.filtered) > 1 { // byte a second
				worst = max(worst, math.Abs(got-p.filtered)/p.filtered)
			}
		}
		t.Logf("ACKs %.0f µs apart: %.0f bytes/s at the end, off by %.1e at most", meanUs, p.filtered, worst)
		if worst > 1e-3 {
			t.Errorf("ACKs %.0f µs apart: the estimate is off by %.4f of the paper's", meanUs, worst)
		}
	}
}

// Segments of 512 bytes at the rates of the papers' chains, their ACKs' distance
// 30 % more or less: the estimate is that rate in the mean. It would not be if
// bandwidth were counted in whole bytes a jiffy.
func TestBandwidthIsRightAtLowRates(t *testing.T) {
	f := newFilter(t)
	seed := testnet.Seed(t, 20012, "the ACKs")
	for i, kbits := range []float64{20, 50, 100, 1000, 10_000} {
		f.state.bandwidth = bandwidth{AckedUs: f.state.NowUs, SampledUs: f.state.NowUs}
		r := rand.New(rand.NewPCG(seed, uint64(i)))
		const segment = 512
		apartUs := segment * 8 / kbits * 1000
		sum, n := 0.0, 0
		settled := max(200, int(5*tau*1e6/apartUs))
		for k := range settled + 5000 {
			got := f.after(uint64(math.Round(apartUs*(0.7+0.6*r.Float64()))), segment)
			if k >= settled {
				sum, n = sum+got*8/1000, n+1
			}
		}
		ratio := sum / float64(n) / kbits
		t.Logf("%.0f kbit/s: estimated at %.3f of it", kbits, ratio)
		if math.Abs(ratio-1) > 0.05 {
			t.Errorf("at %.0f kbit/s the estimate is %.3f of that", kbits, ratio)
		}
	}
}

// What nothing was acknowledged in counts as nothing: so the paper has it.
func TestBandwidthFallsInASilence(t *testing.T) {
	f := newFilter(t)
	for range 400 {
		f.after(20_000, 1000)
	}
	before := f.after(20_000, 1000)
	if d := before/50_000 - 1; math.Abs(d) > 0.01 {
		t.Fatalf("the estimate is %.0f bytes/s, want 50000", before)
	}
	// Four virtual samples. The first has half of the last sample in it.
	want := before
	for i := range 4 {
		want = 0.6*want + map[bool]float64{true: 0.2 * 50_000}[i == 0]
	}
	if got := f.after(1_010_000, 0); math.Abs(got/want-1) > 0.01 {
		t.Errorf("after a second of silence the estimate is %.0f bytes/s, want %.0f", got, want)
	}
	if got := f.after(3_600_000_000, 0); got != 0 {
		t.Errorf("after an hour of silence the estimate is %f bytes/s, want 0", got)
	}
	// And one ACK after all that is one sample, of what was acknowledged in that hour.
	if got := f.after(100_000, 1000); got > 1 {
		t.Errorf("the first ACK after it makes the estimate %f bytes/s, want less than 1", got)
	}
}

// natively is bandwidth.h as a program of this machine, as the kernel for virtual
// time has it compiled in: it reads times and bytes, and writes the state after each.
const natively = `#define TCPCC_KERNEL_H
typedef unsigned int u32;
typedef unsigned long long u64;
#define INLINE static inline
#include <stdio.h>
#include "bandwidth.h"

int main(void)
{
	struct bandwidth b;
	u64 now_us, bytes;

	open_bandwidth(&b, 0);
	while (scanf("%llu %llu", &now_us, &bytes) == 2) {
		if (bytes)
			note_ack(&b, now_us, bytes);
		else
			note_silence(&b, now_us);
		printf("%llu %llu %llu %llu %llu\n", b.filtered, b.sample, b.acked_us, b.sampled_us, b.bytes);
	}
	return 0;
}
`

// The same source gives the same state to the bit as BPF and as a machine's own
// code, after each of 10,000 drawn ACKs and silences, of all lengths and sizes.
func TestE2EBandwidthIsTheSameCompiledNatively(t *testing.T) {
	f := newFilter(t)
	if _, err := exec.LookPath("clang"); err != nil {
		t.Skip("needs clang, which is not installed")
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "native.c"), []byte(natively), 0o600); err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(dir, "native")
	if out, err := exec.Command("clang", "-O2", "-I../../protocols/tcpcc/bpf", "-o", program,
		filepath.Join(dir, "native.c")).CombinedOutput(); err != nil {
		t.Fatalf("compile: %v\n%s", err, out)
	}
	r := rand.New(rand.NewPCG(testnet.Seed(t, 20013, "the ACKs"), 0))
	var in, want strings.Builder
	for range 10_000 {
		us, bytes := uint64(math.Pow(10, 8*r.Float64()))-1, uint64(math.Pow(10, 9*r.Float64()))-1
		if r.IntN(8) == 0 {
			bytes = 0
		}
		f.after(us, bytes)
		fmt.Fprintln(&in, f.state.NowUs, bytes)
		b := f.state.bandwidth
		fmt.Fprintln(&want, b.Filtered, b.Sample, b.AckedUs, b.SampledUs, b.Bytes)
	}
	cmd := exec.Command(program)
	cmd.Stdin = strings.NewReader(in.String())
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	got, wanted := strings.Split(string(out), "\n"), strings.Split(want.String(), "\n")
	for i := range wanted {
		if i >= len(got) || got[i] != wanted[i] {
			t.Fatalf("after ACK %d BPF has %q, and native code %q", i, wanted[i], got[min(i, len(got)-1)])
		}
	}
}
