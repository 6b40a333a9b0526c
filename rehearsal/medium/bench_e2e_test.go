//go:build e2e

package medium

import (
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func needBench(t *testing.T) {
	t.Helper()
	if os.Getenv("FIELDMESH_BENCH") == "" {
		t.Skip("a benchmark: make bench runs it (FIELDMESH_BENCH=1)")
	}
}

// row prints one goal beside what was measured.
func row(what, measured, goal string) {
	fmt.Printf("medium: %-58s %-34s goal %s\n", what, measured, goal)
}

// Frames a second on one hop without a limit: the core, MAC and PHY as they
// are, in model time and so as fast as the processor goes.
func TestBenchOneHopUnlimited(t *testing.T) {
	needBench(t)
	for _, payload := range []int{64, 1500} {
		delivered := 0
		c := mustCore(t, testConfig(Standard80211g, 54, 2), line(5), sinkFunc(func(int, time.Duration) { delivered++ }))
		frame := ethernet(0, 1, 0, payload)
		began := time.Now()
		for time.Since(began) < 2*time.Second {
			for c.QueueRoom(0) > 0 {
				c.Enqueue(0, frame)
			}
			c.Advance(c.Now() + 5*time.Millisecond)
		}
		perS := float64(delivered) / time.Since(began).Seconds()
		row(fmt.Sprintf("one hop unlimited, %d bytes", payload),
			fmt.Sprintf("%.0f frames/s, %.0f Mbit/s", perS, perS*float64(8*payload)/1e6), ">= 300000 frames/s")
	}
}

// share is the processor time of a load as a share of one core, kernel's part
// in this process included.
func (f *field) share(t *testing.T, seconds int, load func()) (percent float64, p99Us float64) {
	t.Helper()
	f.live.BeginWindow()
	cpu, began := cpuTime(t), time.Now()
	load()
	percent = 100 * float64(cpuTime(t)-cpu) / float64(time.Since(began))
	return percent, f.live.EndWindow().P99Us
}

func TestBenchSaturatedHop(t *testing.T) {
	needBench(t)
	f := newField(t, testConfig(Standard80211g, 54, 2))
	limit := theoreticalMbps(Standard80211g, 54, 1472, false)
	var got iperfResult
	percent, p99 := f.share(t, 10, func() { got = f.iperf3(t, 10, "-u", "-b", "40M", "-l", "1472") })
	row("saturated hop at 54 Mbit/s", fmt.Sprintf("%.1f %% of a core, p99 %.0f us", percent, p99), "<= 25 %")
	row("the same, UDP in real time against theory", fmt.Sprintf("%.2f of %.2f Mbit/s", got.Mbps, limit),
		"within 4 %, quiet machine")
}

func TestBenchChainOfSix(t *testing.T) {
	needBench(t)
	cfg := disc(testConfig(Standard80211b, 11, 6), 550)
	f := newFieldAt(t, cfg, line(200))
	for i := range 6 {
		run(t, f.in(i, "/usr/sbin/sysctl", "-qw", "net.ipv4.ip_forward=1",
			"net.ipv4.conf.all.send_redirects=0", "net.ipv4.conf.wlan0.send_redirects=0",
			"net.ipv4.conf.all.rp_filter=0", "net.ipv4.conf.wlan0.rp_filter=0")...)
		for to := range 6 {
			next := i + 1
			if to < i {
				next = i - 1
			}
			if to != i && next != to {
				run(t, f.in(i, "/usr/sbin/ip", "route", "add", nodeIP(to)+"/32", "via", nodeIP(next), "dev",
					"wlan0")...)
			}
		}
	}
	var got iperfResult
	percent, p99 := f.share(t, 10, func() { got = f.iperf3To(t, 5, 10, "-C", "reno") })
	row("chain of 6 nodes at 11 Mbit/s, TCP end to end", fmt.Sprintf("%.1f %% of a core, %.2f Mbit/s, p99 %.0f us",
		percent, got.Mbps, p99), "<= 12 %")
}

// udpIn opens a UDP socket in a node's namespace.
func (f *field) udpIn(t *testing.T, node int) *net.UDPConn {
	t.Helper()
	type opened struct {
		conn *net.UDPConn
		err  error
	}
	out := make(chan opened)
	go func() {
		runtime.LockOSThread() // and never unlocked: the thread dies with the goroutine
		file, err := os.Open("/var/run/netns/" + f.namespaces[node])
		if err == nil {
			err = unix.Setns(int(file.Fd()), unix.CLONE_NEWNET)
			_ = file.Close()
		}
		if err != nil {
			out <- opened{nil, err}
			return
		}
		conn, err := net.ListenUDP("udp4", &net.UDPAddr{Port: 9000})
		out <- opened{conn, err}
	}()
	o := <-out
	if o.err != nil {
		t.Fatalf("open a socket at node %d: %v", node, o.err)
	}
	t.Cleanup(func() { _ = o.conn.Close() })
	return o.conn
}

// p99 lateness of 50 nodes in a grid with ten flows of 2 Mbit/s between
// neighbours.
func TestBenchLatenessOfFiftyNodes(t *testing.T) {
	needBench(t)
	const nodes, flows, during = 50, 10, 10 * time.Second
	cfg := disc(testConfig(Standard80211g, 54, nodes), 550)
	memory := residentMB(t)
	began := time.Now()
	f := newFieldAt(t, cfg, grid(10, 200))
	row("50 nodes", fmt.Sprintf("set up in %.2f s by one ip(8) at a time, +%.0f MB", time.Since(began).Seconds(),
		residentMB(t)-memory), "(see field's)")
	for i := range nodes { // an idle IPv6 is not
		run(t, f.in(i, "/usr/sbin/sysctl", "-qw", "net.ipv6.conf.wlan0.disable_ipv6=1")...)
	}
	idle, _ := f.share(t, 3, func() { time.Sleep(3 * time.Second) })
	row("50 nodes, idle", fmt.Sprintf("%.2f %% of a core", idle), "about 0")
	var conns []*net.UDPConn
	for i := range flows {
		conns = append(conns, f.udpIn(t, 5*i))
	}
	sent := make(chan int)
	percent, p99 := f.share(t, 10, func() {
		for i, conn := range conns {
			go func() { sent <- pace(conn, 5*i+1, 2e6, during) }()
		}
		total := 0
		for range conns {
			total += <-sent
		}
		t.Logf("%d datagrams given to the kernel, %.1f Mbit/s", total, float64(total)*1472*8/during.Seconds()/1e6)
	})
	delivered := uint64(0)
	for i := range nodes {
		delivered += f.live.Counters(i).Delivered
	}
	row("50 nodes, 10 flows of 2 Mbit/s", fmt.Sprintf("p99 %.0f us late, %.1f %% of a core (%d frames)", p99, percent,
		delivered), "p99 <= 2000 us, quiet machine")
}

// pace sends datagrams to a node at a rate and says how many.
func pace(conn *net.UDPConn, to int, bitsPerS float64, during time.Duration) (sent int) {
	payload := make([]byte, 1472)
	every := time.Duration(float64(len(payload)*8) / bitsPerS * 1e9)
	dst := &net.UDPAddr{IP: net.IPv4(10, 7, 0, byte(to+1)), Port: 9}
	tick := time.NewTicker(every)
	defer tick.Stop()
	for end := time.Now().Add(during); time.Now().Before(end); <-tick.C {
		if _, err := conn.WriteToUDP(payload, dst); err == nil {
			sent++
		}
	}
	return sent
}

func residentMB(t *testing.T) float64 {
	t.Helper()
	text, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		t.Fatal(err)
	}
	var size, resident int
	if _, err := fmt.Sscan(string(text), &size, &resident); err != nil {
		t.Fatal(err)
	}
	return float64(resident*os.Getpagesize()) / 1e6
}

// grid puts nodes in rows of so many.
func grid(columns int, spacingM float64) Locate {
	return func(n int, _ time.Duration) (float64, float64) {
		return float64(n%columns) * spacingM, float64(n/columns) * spacingM
	}
}

// How the core's cost grows from 10 to 200 nodes at the same density: a flow of
// 100 kbit/s from every second node to its neighbour, everybody moving. A node pays for its
// neighbours only, so the cost of a node stays nearly the same.
func TestBenchGrowthWithNodes(t *testing.T) {
	needBench(t)
	type cost struct {
		nodes int
		share float64
	}
	var costs []cost
	for _, nodes := range []int{10, 20, 50, 100, 150, 200} {
		cfg := disc(testConfig(Standard80211b, 11, nodes), 550)
		at := grid(10, 200)
		c := mustCore(t, cfg, func(n int, now time.Duration) (float64, float64) {
			x, y := at(n, now)
			return x + 10*now.Seconds(), y
		}, sinkFunc(func(int, time.Duration) {}))
		rng := rand.New(rand.NewPCG(1, 1))
		began := time.Now()
		const model = 20 * time.Second
		for c.Now() < model {
			// 8.5 frames a second and sender: 1 ms steps, at random.
			for n := 0; n+1 < nodes; n += 2 {
				if rng.Float64() < 0.0085 {
					c.Enqueue(n, ethernet(n, n+1, 0, 1500))
				}
			}
			c.Advance(c.Now() + time.Millisecond)
		}
		costs = append(costs, cost{nodes, 100 * float64(time.Since(began)) / float64(model)})
	}
	for _, c := range costs {
		row(fmt.Sprintf("core, %3d moving nodes, %3d flows of 100 kbit/s", c.nodes, c.nodes/2),
			fmt.Sprintf("%.2f %% of a core, %.3f %% a node", c.share, c.share/float64(c.nodes)), "a node's share stays")
	}
	top := costs[len(costs)-1].share
	for _, c := range costs {
		fmt.Printf("medium: %4d nodes |%s %.2f %%\n", c.nodes, strings.Repeat("#", int(60*c.share/top)), c.share)
	}
}
