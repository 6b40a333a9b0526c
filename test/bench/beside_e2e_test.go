//go:build e2e

package bench

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/netip"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	"gonum.org/v1/gonum/stat"

	"fieldmesh.dev/fieldmesh/node-agent/clock"
	"fieldmesh.dev/fieldmesh/node-agent/gps"
	"fieldmesh.dev/fieldmesh/node-agent/measure"
	"fieldmesh.dev/fieldmesh/node-agent/spool"
	"fieldmesh.dev/fieldmesh/protocols/wire"
	"fieldmesh.dev/fieldmesh/test/testnet"
)

const (
	blocks  = 20 // each without, with, with, without
	streams = 6
)

// TestBenchThroughputBesideTheAgent runs iperf3 over a veth pair that nothing
// slows down, with and without what an agent records in a trial at both ends.
func TestBenchThroughputBesideTheAgent(t *testing.T) {
	begin(t)
	testnet.Need(t, "ip", "iperf3")
	a, b := testnet.NewNS(t, "bena"), testnet.NewNS(t, "benb")
	testnet.Veth(t, a, "wlan0", "10.77.0.1/24", b, "wlan0", "10.77.0.2/24")
	p := &pipe{a: a, b: b, dir: t.TempDir()}
	server := b.Command(t.Context(), "iperf3", "-s", "-p", "5000")
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = server.Process.Kill()
		_ = server.Wait()
	}()
	time.Sleep(500 * time.Millisecond)
	p.run(t, false) // warms up
	var ratios, with, without []float64
	for range blocks {
		w1, y1, y2, w2 := p.run(t, false), p.run(t, true), p.run(t, true), p.run(t, false)
		without, with = append(without, w1, w2), append(with, y1, y2)
		ratios = append(ratios, math.Log((y1+y2)/(w1+w2)))
	}
	ratio, low := middleAndBound(ratios)
	ratio, low = math.Exp(ratio), math.Exp(low)
	report(row{
		goal:      "iperf3 beside the agent",
		measured:  fmt.Sprintf("%.2f Gbit/s with it", stat.Mean(with, nil)/1e9),
		reference: fmt.Sprintf("%.2f Gbit/s without", stat.Mean(without, nil)/1e9),
		figure:    fmt.Sprintf("%.4f, surely ≥ %.4f", ratio, low), limit: "bound ≥ 0.97", met: low >= 0.97,
	}, "%d blocks ABBA of 1 s over a veth pair, %d streams, what the receiver got; with: at both ends everything "+
		"that an agent samples in a trial at 10 Hz "+
		"(GPS, interface, every socket), onto disk. Averages left and right; the ratio is the Hodges-Lehmann "+
		"estimate over the blocks, its bound that of Wilcoxon's signed ranks, 95 %% one-sided: "+
		"neither minds a few blocks that something else on the machine got into.", blocks, streams)
}

// middleAndBound are the Hodges-Lehmann estimate of the differences' middle,
// which is the median of all pairs' means, and the lower bound that goes with
// Wilcoxon's signed-rank test, 95 % one-sided (Hollander, Wolfe and Chicken,
// Nonparametric Statistical Methods, 3rd ed., sections 3.2 and 3.3).
func middleAndBound(v []float64) (middle, low float64) {
	var means []float64
	for i := range v {
		for j := i; j < len(v); j++ {
			means = append(means, (v[i]+v[j])/2)
		}
	}
	slices.Sort(means)
	// ways counts the sets of ranks 1 to n with each sum: 2^n in all.
	ways := make([]float64, len(means)+1)
	ways[0] = 1
	for rank := 1; rank <= len(v); rank++ {
		for sum := len(means); sum >= rank; sum-- {
			ways[sum] += ways[sum-rank]
		}
	}
	sum, below := 0, ways[0] // the smallest sum that comes up by chance too often
	for below <= 0.05*math.Pow(2, float64(len(v))) {
		sum++
		below += ways[sum]
	}
	return median(means), means[max(sum-1, 0)]
}

// pipe is two namespaces joined by a veth pair.
type pipe struct {
	a, b *testnet.NS
	dir  string
	runs int
}

// run is one second of iperf3; it returns the receiver's bits per second.
func (p *pipe) run(t *testing.T, sampled bool) float64 {
	t.Helper()
	p.runs++
	port := 20000 + 10*p.runs // none that may still be in TIME_WAIT
	if sampled {
		flow := wire.Flow{Name: "bulk", Kind: "iperf3_tcp", From: "a", To: "b", Port: 5000, Streams: streams,
			ClientPort: port}
		defer p.sampler(t, p.a, sampling{Node: "a", Flow: flow})()
		defer p.sampler(t, p.b, sampling{Node: "b", Flow: flow})()
	}
	c := p.a.Command(t.Context(), "iperf3", "-c", "10.77.0.2", "-p", "5000", "-t", "1", "-P", fmt.Sprint(streams),
		"--cport", fmt.Sprint(port), "-J")
	out, err := c.Output()
	if err != nil {
		t.Fatalf("iperf3: %v\n%s", err, out)
	}
	var result struct {
		End struct {
			Received struct {
				BitsPerSecond float64 `json:"bits_per_second"`
			} `json:"sum_received"`
		} `json:"end"`
	}
	if err := json.Unmarshal(out, &result); err != nil || result.End.Received.BitsPerSecond <= 0 {
		t.Fatalf("iperf3 says nothing: %v\n%s", err, out)
	}
	return result.End.Received.BitsPerSecond
}

// samplerVariable makes this program a sampler, in a namespace of its own; it
// names a file with its orders.
const samplerVariable = "FIELDMESH_BENCH_SAMPLER"

// sampling is a sampler's orders.
type sampling struct {
	Node string    `json:"node"`
	Dir  string    `json:"dir"`
	Flow wire.Flow `json:"flow"`
}

// sampler starts one and waits until it samples. It returns what stops it and
// sees that it has sampled sockets.
func (p *pipe) sampler(t *testing.T, ns *testnet.NS, s sampling) (stop func()) {
	t.Helper()
	s.Dir = filepath.Join(p.dir, fmt.Sprintf("%s-%d", s.Node, p.runs))
	orders := s.Dir + ".json"
	text, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(orders, text, 0o600); err != nil {
		t.Fatal(err)
	}
	end := beside(t, ns, "0", samplerVariable+"="+orders, "sampling", "sockets")
	return func() {
		if sockets := end(); sockets < streams*5 {
			t.Errorf("the sampler at %s saw sockets %d times: it was not beside the transfer", s.Node, sockets)
		}
	}
}

// beside starts this program again in a namespace, as what a variable of its
// environment says, and waits until it says that it is ready. end ends it, and returns
// how many of something it counted until then.
func beside(t *testing.T, ns *testnet.NS, nice, variable, ready, counted string) (end func() int) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	c := exec.Command("nice", "-n", nice, "ip", "netns", "exec", ns.Name, self)
	c.Env = append(os.Environ(), variable)
	c.Stderr = os.Stderr
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewReader(out)
	if line, err := lines.ReadString('\n'); err != nil || line != ready+"\n" {
		t.Fatalf("%s: it says %q first, want %q: %v", variable, line, ready, err)
	}
	return func() (n int) {
		_ = c.Process.Signal(syscall.SIGTERM)
		if _, err := fmt.Fscanf(lines, "%d "+counted+"\n", &n); err != nil {
			t.Errorf("%s: how many %s? %v", variable, counted, err)
		}
		if err := c.Wait(); err != nil {
			t.Errorf("%s: %v", variable, err)
		}
		return n
	}
}

// sampleUntilTold does what an agent does in a trial, until SIGTERM.
func sampleUntilTold(orders string) error {
	var s sampling
	text, err := os.ReadFile(orders)
	if err == nil {
		err = json.Unmarshal(text, &s)
	}
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	sp, err := spool.Open(s.Dir, s.Node, spool.Options{})
	if err != nil {
		return err
	}
	clk := clock.System{}
	receiver := gps.New("127.0.0.1:2947", clk)
	sockets := 0
	emit := func(tBootNs int64, b wire.Body) error {
		if sample, ok := b.(*wire.TCPSample); ok && sample.Stream != nil {
			sockets++
		}
		_, err := sp.Append(wire.Header{TBootNs: tBootNs}, b)
		return err
	}
	g, gctx := errgroup.WithContext(ctx)
	g.Go(func() error { return receiver.Run(gctx) })
	addresses := map[string]netip.Addr{"a": netip.MustParseAddr("10.77.0.1"), "b": netip.MustParseAddr("10.77.0.2")}
	sources := []measure.Source{receiver, measure.NewTCP(s.Node, []wire.Flow{s.Flow}, addresses),
		measure.NewInterface("wlan0")}
	g.Go(func() error { return measure.Loop(gctx, clk, 100*time.Millisecond, sources, emit) })
	fmt.Println("sampling")
	if err := g.Wait(); err != nil && !errors.Is(err, context.Canceled) {
		return err
	}
	fmt.Printf("%d sockets\n", sockets)
	return sp.Close()
}
