//go:build e2e

package realtime

import (
	"bufio"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"fieldmesh.dev/fieldmesh/protocols/wire"
	"fieldmesh.dev/fieldmesh/rehearsal/medium"
	"fieldmesh.dev/fieldmesh/rehearsal/medium/phy"
	"fieldmesh.dev/fieldmesh/test/testnet"
)

// Two namespaces, a TAP each, joined by a channel in real time. Needs root, iproute2 and
// iperf3.

const unprivilegedUID = 65534

// field is a running medium with its namespaces.
type field struct {
	live    *Channel
	nodes   []*testnet.NS
	sockets []string
}

func run(t *testing.T, args ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	out, err := exec.CommandContext(ctx, args[0], args[1:]...).Output()
	if err != nil {
		t.Fatalf("run %v: %v\n%s", args, err, out)
	}
	return string(out)
}

// in is a command line inside a node's namespace.
func (f *field) in(node int, args ...string) []string {
	return append([]string{"/usr/sbin/ip", "netns", "exec", f.nodes[node].Name}, args...)
}

func nodeIP(node int) string { return fmt.Sprintf("10.7.0.%d", node+1) }

func openTAP(t *testing.T, name string) int {
	t.Helper()
	fd, err := unix.Open("/dev/net/tun", unix.O_RDWR|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
	if err != nil {
		t.Fatalf("open /dev/net/tun: %v", err)
	}
	t.Cleanup(func() { _ = unix.Close(fd) })
	req, err := unix.NewIfreq(name)
	if err != nil {
		t.Fatal(err)
	}
	req.SetUint16(unix.IFF_TAP | unix.IFF_NO_PI)
	if err := unix.IoctlIfreq(fd, unix.TUNSETIFF, req); err != nil {
		t.Fatalf("make TAP %s: %v", name, err)
	}
	return fd
}

func newField(t *testing.T, cfg medium.Config) *field {
	t.Helper()
	return newFieldAt(t, cfg, line(5))
}

func newFieldAt(t *testing.T, cfg medium.Config, locate medium.Locate) *field {
	t.Helper()
	testnet.Need(t, "ip", "iperf3")
	dir, err := os.MkdirTemp("", "medium")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	f := &field{}
	var ports []Port
	for i := range cfg.Nodes {
		ns := testnet.NewNS(t, "medium")
		tap := fmt.Sprintf("md%d-%d", os.Getpid()%100000, i)
		f.nodes = append(f.nodes, ns)
		fd := openTAP(t, tap)
		run(t, "/usr/sbin/ip", "link", "set", tap, "address", cfg.Nodes[i].MAC, "netns", ns.Name, "name", "wlan0")
		run(t, f.in(i, "/usr/sbin/ip", "addr", "add", nodeIP(i)+"/24", "dev", "wlan0")...)
		run(t, f.in(i, "/usr/sbin/ip", "link", "set", "wlan0", "up")...)
		f.sockets = append(f.sockets, filepath.Join(dir, strconv.Itoa(i)))
		ports = append(ports, Port{FD: fd, FeedbackSocket: f.sockets[i], FeedbackUID: unprivilegedUID})
	}
	live, err := New(cfg, locate, ports, Options{Log: slog.New(slog.NewTextHandler(t.Output(), nil))})
	if err != nil {
		t.Fatal(err)
	}
	f.live = live
	keepRunning(t, live)
	return f
}

type iperfResult struct {
	Mbps, LostPercent float64
}

// iperf3 sends from node 0 to node 1.
func (f *field) iperf3(t *testing.T, seconds int, args ...string) iperfResult {
	t.Helper()
	return f.iperf3To(t, 1, seconds, args...)
}

// iperf3To sends from node 0 to another.
func (f *field) iperf3To(t *testing.T, to, seconds int, args ...string) iperfResult {
	t.Helper()
	server := exec.Command("/usr/sbin/ip", f.in(to, "/usr/bin/iperf3", "-s", "-1", "-p", "5000")[1:]...)
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = server.Process.Kill()
		_ = server.Wait()
	}()
	waitListening(t, f, to)
	line := f.in(0, append([]string{"/usr/bin/iperf3", "-J", "-c", nodeIP(to), "-p", "5000", "-t",
		strconv.Itoa(seconds)}, args...)...)
	var report struct {
		End struct {
			SumReceived struct {
				BitsPerSecond float64 `json:"bits_per_second"`
			} `json:"sum_received"`
			Sum struct {
				BitsPerSecond float64 `json:"bits_per_second"`
				LostPercent   float64 `json:"lost_percent"`
			} `json:"sum"`
		} `json:"end"`
	}
	out := run(t, line...)
	if err := json.Unmarshal([]byte(out), &report); err != nil {
		t.Fatalf("read iperf3's report: %v\n%s", err, out)
	}
	if report.End.SumReceived.BitsPerSecond > 0 {
		return iperfResult{Mbps: report.End.SumReceived.BitsPerSecond / 1e6}
	}
	sum := report.End.Sum
	return iperfResult{sum.BitsPerSecond / 1e6 * (1 - sum.LostPercent/100), sum.LostPercent}
}

func waitListening(t *testing.T, f *field, node int) {
	t.Helper()
	for range 1000 {
		if strings.Contains(run(t, f.in(node, "/usr/bin/ss", "-Htln")...), ":5000") {
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
	t.Fatal("iperf3's server does not listen")
}

// measured runs a load and logs what it cost.
func (f *field) measured(t *testing.T, what string, load func()) wire.Lateness {
	t.Helper()
	from := f.live.now()
	cpu, start := testnet.CPUTime(t), time.Now()
	load()
	wall := time.Since(start)
	used := testnet.CPUTime(t) - cpu
	late, err := f.live.Lateness(from, f.live.now())
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%s: %.1f %% of a core; late: mean %.0f µs, p99 %.0f µs, worst %.0f µs, behind %.4f s of %.1f s, %d "+
		"deliveries",
		what, 100*float64(used)/float64(wall), late.MeanUs, late.P99Us, late.WorstUs, late.SumS, late.WindowS,
		late.Events)
	return late
}

// pauses adds up the time in which node 0 had nothing to send though it was
// to: on a busy machine iperf3 waits for a processor while the medium does not.
type pauses struct {
	frames int
	last   time.Duration
	sum    time.Duration
}

// see is a configuration's Trace. What is longer between two frames than 2 ms, several
// times the longest backoff, is a pause; before the first hundred frames it is
// iperf3 setting its test up.
func (p *pauses) see(e medium.Trace) {
	if e.Event != "tx" || e.Kind != "data" || e.Node != 0 {
		return
	}
	if p.frames++; p.frames > 100 && e.At-p.last > 2*time.Millisecond {
		p.sum += e.At - p.last
	}
	p.last = e.At
}

// udpLimitMbps is the payload rate of saturated UDP of 1472 bytes at 54 Mbit/s:
// DIFS, the mean first backoff, the frame, SIFS and the ACK, in µs by the
// standard and not by the code under test.
const udpLimitMbps = 8 * 1472 / (28 + 7.5*9 + 254 + 10 + 34)

func TestRealTrafficCrossesTheMedium(t *testing.T) {
	cfg, source := testConfig(phy.Standard80211g, 54, 2), &pauses{}
	cfg.Trace = source.see
	f := newField(t, cfg)
	if got := f.ping(t, 0, "10.7.0.2", 20, 5*time.Second); got != 20 {
		t.Errorf("%d of 20 pings over an empty channel", got)
	}
	var tcp, udp iperfResult
	late := f.measured(t, "TCP", func() { tcp = f.iperf3(t, 5, "-C", "reno") })
	if tcp.Mbps < 1 || tcp.Mbps > udpLimitMbps {
		t.Errorf("TCP: %g Mbit/s; more than 1 and less than UDP's %g is possible", tcp.Mbps, udpLimitMbps)
	}
	if late.Events < 1000 || late.WindowS < 5 || late.Source != "medium" {
		t.Errorf("lateness of the TCP run: %+v", late)
	}
	f.live.do(func() { *source = pauses{} })
	late = f.measured(t, "UDP", func() { udp = f.iperf3(t, 5, "-u", "-b", "40M", "-l", "1472") })
	// iperf3's clock and the medium's may differ by a queue at the end.
	if udp.Mbps < 1 || udp.Mbps > 1.02*udpLimitMbps {
		t.Errorf("UDP: %g Mbit/s; %g is the limit", udp.Mbps, udpLimitMbps)
	}
	// On a quiet machine real time must show what model time does.
	if quiet := late.SumS < 0.001*late.WindowS && source.sum < 50*time.Millisecond; quiet {
		within(t, "UDP in real time", udp.Mbps, udpLimitMbps, 0.04)
	} else {
		t.Logf("not judged against theory: behind for %.4f s, iperf3 paused for %v", late.SumS, source.sum)
	}
	t.Logf("TCP %.2f Mbit/s, UDP %.2f Mbit/s, in theory %.2f; FIFO and %d CPUs", tcp.Mbps, udp.Mbps, udpLimitMbps,
		runtime.NumCPU())
	if n := f.live.Counters(0); n.Lost[medium.QueueFull] == 0 {
		t.Errorf("40 Mbit/s into %g dropped nothing from the queue: %+v", udpLimitMbps, n)
	}
}

func TestIdleMediumSleeps(t *testing.T) {
	f := newField(t, testConfig(phy.Standard80211b, 11, 2))
	late := f.measured(t, "idle", func() { time.Sleep(2 * time.Second) })
	if late.Events > 100 {
		t.Errorf("%d deliveries in an idle field", late.Events)
	}
}

// dialAs connects as another user: the permission check is the file system's,
// and its user is the thread's own.
func dialAs(uid int, path string) (net.Conn, error) {
	type result struct {
		conn net.Conn
		err  error
	}
	out := make(chan result)
	go func() {
		runtime.LockOSThread() // and never unlocked: the thread dies with the goroutine
		if err := unix.Setfsuid(uid); err != nil {
			out <- result{nil, err}
			return
		}
		fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
		if err == nil {
			err = unix.Connect(fd, &unix.SockaddrUnix{Name: path})
		}
		if err != nil {
			out <- result{nil, err}
			return
		}
		file := os.NewFile(uintptr(fd), path)
		conn, err := net.FileConn(file)
		out <- result{conn, errors.Join(err, file.Close())}
	}()
	r := <-out
	return r.conn, r.err
}

// While it is asked for, the machine's processors do not sleep, and afterwards
// they do as before.
func TestProcessorsStayAwake(t *testing.T) {
	testnet.Need(t)
	allowedUs := func() int32 {
		t.Helper()
		text, err := os.ReadFile("/dev/cpu_dma_latency")
		if errors.Is(err, os.ErrNotExist) {
			t.Skip("this kernel cannot be asked to keep processors awake")
		}
		if err != nil || len(text) != 4 {
			t.Fatalf("read allowed latency: %d bytes, %v", len(text), err)
		}
		return int32(binary.NativeEndian.Uint32(text))
	}
	before := allowedUs()
	if before == 0 {
		t.Skip("another program keeps them awake")
	}
	awake, err := stayAwake()
	if err != nil {
		t.Fatal(err)
	}
	during := allowedUs()
	if err := awake.Close(); err != nil {
		t.Fatal(err)
	}
	if after := allowedUs(); during != 0 || after != before {
		t.Errorf("processors may take %d µs to wake, %d µs afterwards: want 0 and %d", during, after, before)
	}
}

func TestFeedbackSpeaksToAnUnprivilegedReader(t *testing.T) {
	f := newField(t, testConfig(phy.Standard80211g, 54, 2))
	if conn, err := dialAs(1, f.sockets[0]); err == nil {
		_ = conn.Close()
		t.Error("a stranger may read the feedback socket")
	}
	conn, err := dialAs(unprivilegedUID, f.sockets[0])
	if err != nil {
		t.Fatalf("connect as uid %d: %v", unprivilegedUID, err)
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(30 * time.Second)); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(conn)
	next := func() (line wire.Feedback) {
		t.Helper()
		if !lines.Scan() {
			t.Fatalf("feedback ended: %v", lines.Err())
		}
		if err := json.Unmarshal(lines.Bytes(), &line); err != nil {
			t.Fatalf("read feedback %q: %v", lines.Text(), err)
		}
		return line
	}
	if first := next(); first.Caps == nil || first.Caps.Driver != "medium" || first.Caps.MAC != nodeMAC(0) {
		t.Fatalf("the first line is %+v, want caps", first)
	}
	if f.ping(t, 0, "10.7.0.2", 3, 5*time.Second) != 3 {
		t.Error("pings are lost over a good channel")
	}
	for seen := 0; seen != 3; {
		switch line := next(); {
		case line.Station != nil && line.Station.Peer == nodeMAC(1) && line.Station.SignalDbm != nil:
			seen |= 1
		case line.Survey != nil && line.Survey.Channel == 6:
			seen |= 2
		}
	}
	f.live.SetDead(true)
	if got := f.ping(t, 0, "10.7.0.2", 3, 300*time.Millisecond); got != 0 {
		t.Errorf("%d pings crossed a dead radio", got)
	}
	for {
		if line := next(); line.TxFailed != nil {
			if line.TxFailed.Peer != nodeMAC(1) {
				t.Errorf("tx failed to %s, want %s", line.TxFailed.Peer, nodeMAC(1))
			}
			break
		}
	}
	f.live.SetDead(false)
	if f.ping(t, 0, "10.7.0.2", 10, time.Second) == 0 {
		t.Error("the radio did not come back")
	}
}
