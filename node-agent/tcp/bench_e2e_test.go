//go:build e2e

package tcp

import (
	"math"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"fieldmesh.dev/fieldmesh/protocols/tcpcc"
	"fieldmesh.dev/fieldmesh/test/testnet"
)

func needBench(t *testing.T, tools ...string) {
	t.Helper()
	testnet.NeedSet(t, "FIELDMESH_BENCH", "a benchmark")
	testnet.Need(t, tools...)
}

// What a variant adds to the time of an ACK, beside the kernel's own: reno,
// cubic, and the kernel's of the variant's name where it has one. All take
// turns in one run. What is added to is the time with a congestion control
// that does nothing and takes no program to be called; there is none, so that it is
// worked out: a program that calls the kernel's reno, less one that does nothing,
// is what the kernel's reno takes, and the rest of an ACK with reno is the stack's.
func TestBenchVariants(t *testing.T) {
	needBench(t, "ip")
	m, err := Here()
	if err != nil {
		t.Fatal(err)
	}
	const reno, nothing, call = 0, 2, 3
	labels := []string{"the kernel's reno", "the kernel's cubic", "", ""}
	for _, program := range tcpcc.Programs() {
		labels = append(labels, program+" by BPF")
	}
	var modules []string // that the programs stand for
	for _, program := range []string{tcpcc.Vegas, tcpcc.Westwood} {
		if slices.Contains(m.Native, program) {
			modules, labels = append(modules, program), append(labels, "the kernel's "+program)
		}
	}
	a := timeACKs(t, 12, 45, func(t *testing.T) []string {
		names := []string{"reno", "cubic", yardstick(t, "nothing"), yardstick(t, "kernel_reno")}
		for _, program := range tcpcc.Programs() {
			names = append(names, register(t, program).Name)
		}
		return append(names, modules...)
	})
	own, low, high := a.more(call, nothing)
	t.Logf("bench: an ACK takes the kernel %.0f ns with its reno, whose own function takes %.0f ns of it (%.0f to "+
		"%.0f in the middle half of 12 loadings)", a.whole(reno), own, low, high)
	entry, low, high := a.more(nothing, reno)
	t.Logf("bench: the way into a program that does nothing and back takes %.0f ns (%.0f to %.0f)", entry+own, low+own,
		high+own)
	for i, label := range labels {
		if label == "" {
			continue
		}
		goal := ""
		if strings.HasSuffix(label, " by BPF") {
			goal = "; goal 60"
		}
		ns, low, high := a.more(i, reno)
		if math.IsNaN(ns) {
			t.Logf("bench: %-19s is not measured: its window stays too small to be timed", label)
			continue
		}
		t.Logf("bench: %-19s %5.1f ns an ACK, calls included (%.0f to %.0f in the middle half of 12 loadings)%s", label,
			ns+own, low+own, high+own, goal)
	}
}

// What a connection carries with a variant beside one with the kernel's reno, in
// turns over the same veth, whose queue sends a gigabit a second.
func TestBenchThroughput(t *testing.T) {
	needBench(t, "ip", "tc")
	a, b := testnet.NewNS(t, "snd"), testnet.NewNS(t, "rcv")
	testnet.Veth(t, a, "v0", senderAddr+"/24", b, "v0", receiverAddr+"/24")
	setSysctls(t, a, map[string]string{"tcp_no_metrics_save": "1"})
	a.Run(t, "tc", "qdisc", "add", "dev", "v0", "root", "tbf", "rate", "1gbit", "burst", "256kb", "latency", "10ms")
	const pairs = 5
	compare := func(label, congestion string) {
		var ours, renos, ratios []float64
		for range pairs {
			renos = append(renos, carried(t, a, b, "reno", time.Second))
			ours = append(ours, carried(t, a, b, congestion, time.Second))
			ratios = append(ratios, ours[len(ours)-1]/renos[len(renos)-1])
		}
		t.Logf("bench: %-9s carries %.2f of what the kernel's reno does (%.2f to %.2f in %d turns; %.0f against %.0f "+
			"Mbit/s) at 1 Gbit/s",
			label, median(ratios), slices.Min(ratios), slices.Max(ratios), pairs, median(ours)/1e6, median(renos)/1e6)
	}
	compare("reno", "reno") // with itself: what the machine makes of nothing
	for _, program := range tcpcc.Programs() {
		t.Run(program, func(t *testing.T) { compare(program, register(t, program).Name) })
	}
}

// carried is what a connection carries in a time, in bit/s.
func carried(t *testing.T, a, b *testnet.NS, congestion string, lasts time.Duration) float64 {
	t.Helper()
	got := receive(t, b)
	conn := experiment{congestion: congestion}.dial(t, a)
	began := time.Now()
	pump(t, conn, lasts)
	n := <-got
	return float64(n) * 8 / time.Since(began).Seconds()
}

func pump(t *testing.T, conn *net.TCPConn, lasts time.Duration) {
	t.Helper()
	block := make([]byte, 256<<10)
	for until := time.Now().Add(lasts); time.Now().Before(until); {
		if _, err := conn.Write(block); err != nil {
			t.Fatal(err)
		}
	}
	if err := conn.Close(); err != nil {
		t.Fatal(err)
	}
}
