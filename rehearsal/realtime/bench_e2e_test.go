//go:build e2e

package realtime

import (
	"fmt"
	"net"
	"testing"
	"time"

	"fieldmesh.dev/fieldmesh/rehearsal/medium"
	"fieldmesh.dev/fieldmesh/rehearsal/medium/phy"
	"fieldmesh.dev/fieldmesh/rehearsal/medium/propagation"
	"fieldmesh.dev/fieldmesh/test/testnet"
)

// row prints one goal beside what was measured.
func row(what, measured, goal string) {
	fmt.Printf("medium: %-58s %-34s goal %s\n", what, measured, goal)
}

// share is the processor time of a load as a share of one core, kernel's part
// in this process included.
func (f *field) share(t *testing.T, seconds int, load func()) (percent float64, p99Us float64) {
	t.Helper()
	from := f.live.now()
	cpu, began := testnet.CPUTime(t), time.Now()
	load()
	percent = 100 * float64(testnet.CPUTime(t)-cpu) / float64(time.Since(began))
	late, err := f.live.Lateness(from, f.live.now())
	if err != nil {
		t.Fatal(err)
	}
	return percent, late.P99Us
}

func TestBenchSaturatedHop(t *testing.T) {
	testnet.NeedSet(t, "FIELDMESH_BENCH", "a benchmark")
	f := newField(t, testConfig(phy.Standard80211g, 54, 2))
	var got iperfResult
	percent, p99 := f.share(t, 10, func() { got = f.iperf3(t, 10, "-u", "-b", "40M", "-l", "1472") })
	row("saturated hop at 54 Mbit/s", fmt.Sprintf("%.1f %% of a core, p99 %.0f us", percent, p99), "<= 25 %")
	row("the same, UDP in real time against theory", fmt.Sprintf("%.2f of %.2f Mbit/s", got.Mbps, udpLimitMbps),
		"within 4 %, quiet machine")
}

// onDisc puts a configuration on ns-2's disc.
func onDisc(cfg medium.Config) medium.Config {
	cfg.Propagation = propagation.Config{Model: "disc", RangeM: 250, CarrierSenseM: 550}
	return cfg
}

func TestBenchChainOfSix(t *testing.T) {
	testnet.NeedSet(t, "FIELDMESH_BENCH", "a benchmark")
	cfg := onDisc(testConfig(phy.Standard80211b, 11, 6))
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
	var conn *net.UDPConn
	f.nodes[node].Do(t, func() (err error) {
		conn, err = net.ListenUDP("udp4", &net.UDPAddr{Port: 9000})
		return err
	})
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

// p99 lateness of 50 nodes in a grid with ten flows of 2 Mbit/s between
// neighbours.
func TestBenchLatenessOfFiftyNodes(t *testing.T) {
	testnet.NeedSet(t, "FIELDMESH_BENCH", "a benchmark")
	const nodes, flows, during = 50, 10, 10 * time.Second
	cfg := onDisc(testConfig(phy.Standard80211g, 54, nodes))
	memory := testnet.ResidentMB(t)
	began := time.Now()
	f := newFieldAt(t, cfg, grid(10, 200))
	row("50 nodes", fmt.Sprintf("set up in %.2f s by one ip(8) at a time, +%.0f MB", time.Since(began).Seconds(),
		testnet.ResidentMB(t)-memory), "(see field's)")
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

// grid puts nodes in rows of so many.
func grid(columns int, spacingM float64) medium.Locate {
	return func(n int, _ time.Duration) (float64, float64) {
		return float64(n%columns) * spacingM, float64(n/columns) * spacingM
	}
}
