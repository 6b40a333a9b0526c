//go:build e2e

package tcp

import (
	"fmt"
	"net"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"

	"fieldmesh.dev/fieldmesh/internal/testnet"
	"fieldmesh.dev/fieldmesh/protocols/tcpcc"
)

// What a program costs for an ACK, and what a connection with it carries beside
// one with the kernel's reno, in turns over the same veth.
func TestBenchVariants(t *testing.T) {
	if os.Getenv("FIELDMESH_BENCH") == "" {
		t.Skip("a measurement: set FIELDMESH_BENCH=1")
	}
	testnet.Need(t, "ip")
	const goalNs = 60.0
	stats, err := ebpf.EnableStats(uint32(unix.BPF_STATS_RUN_TIME))
	if err != nil {
		t.Fatal(err)
	}
	a, b := testnet.NewNS(t, "snd"), testnet.NewNS(t, "rcv")
	testnet.Veth(t, a, "v0", senderAddr+"/24", b, "v0", receiverAddr+"/24")
	setSysctls(t, a, map[string]string{"tcp_no_metrics_save": "1"})
	for _, program := range tcpcc.Programs() {
		t.Run(program, func(t *testing.T) {
			c := register(t, program)
			perAck, perCall := costs(t, a, b, c.Name)
			t.Logf("bench: %-9s %5.1f ns an ACK by BPF (goal %.0f), of which each callback %s", program, perAck, goalNs, perCall)
		})
	}
	if err := stats.Close(); err != nil { // measuring costs too
		t.Fatal(err)
	}
	for _, program := range tcpcc.Programs() {
		t.Run(program+" beside reno", func(t *testing.T) {
			c := register(t, program)
			var ours, renos []float64
			for range 5 {
				renos = append(renos, carried(t, a, b, "reno", time.Second))
				ours = append(ours, carried(t, a, b, c.Name, time.Second))
			}
			slices.Sort(ours)
			slices.Sort(renos)
			t.Logf("bench: %-9s %.2f of kernel reno's throughput (%.0f against %.0f Mbit/s, medians of 5 in turns)", program, ours[2]/renos[2], ours[2]/1e6, renos[2]/1e6)
		})
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

// costs runs a connection for two seconds and reads the kernel's own count of
// what the programs took. An ACK costs what is called for each; cwnd_event is
// called when sending begins, and is told apart.
func costs(t *testing.T, a, b *testnet.NS, congestion string) (perAck float64, perCall string) {
	t.Helper()
	before := programTimes(t)
	carried(t, a, b, congestion, 2*time.Second)
	var parts []string
	for id, after := range programTimes(t) {
		runs, ns := float64(after.runs-before[id].runs), float64(after.ns-before[id].ns)
		if after.runs < before[id].runs+100 {
			continue
		}
		parts = append(parts, fmt.Sprintf("%s %.1f ns × %.0f", strings.TrimPrefix(after.name, "on_"), ns/runs, runs))
		if after.name != "on_cwnd_event" {
			perAck += ns / runs
		}
	}
	slices.Sort(parts)
	return perAck, strings.Join(parts, ", ")
}

type programTime struct {
	name string
	runs uint64
	ns   int64
}

// programTimes are the kernel's counts of our programs that are loaded.
func programTimes(t *testing.T) map[ebpf.ProgramID]programTime {
	t.Helper()
	out := map[ebpf.ProgramID]programTime{}
	var id ebpf.ProgramID
	for {
		next, err := ebpf.ProgramGetNextID(id)
		if err != nil {
			break
		}
		id = next
		p, err := ebpf.NewProgramFromID(id)
		if err != nil {
			continue
		}
		info, err := p.Info()
		s, serr := p.Stats()
		if err == nil && serr == nil && strings.HasPrefix(info.Name, "on_") {
			out[id] = programTime{info.Name, s.RunCount, s.Runtime.Nanoseconds()}
		}
		_ = p.Close()
	}
	return out
}
