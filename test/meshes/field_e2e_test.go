//go:build e2e

package meshes

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"fieldmesh.dev/fieldmesh/protocols/manet"
	"fieldmesh.dev/fieldmesh/rehearsal/medium"
	"fieldmesh.dev/fieldmesh/rehearsal/medium/phy"
	"fieldmesh.dev/fieldmesh/rehearsal/medium/propagation"
	"fieldmesh.dev/fieldmesh/rehearsal/realtime"
	"fieldmesh.dev/fieldmesh/test/testnet"
)

var programs string

func TestMain(m *testing.M) {
	if orders := os.Getenv(bareLoop); orders != "" {
		if err := runLoop(orders); err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
		os.Exit(1)
	}
	os.Exit(testnet.WithPrograms(m.Run, &programs))
}

// field is nodes with a radio each on one emulated channel, without agents.
type field struct {
	dir    string
	spaces []*testnet.NS
	live   *realtime.Channel
	wired  bool // there is no radio whose feedback could be had
	runs   int  // of iperf3
}

// rangeM is that of the radios; nodes 100 m apart hear only their neighbours.
const rangeM = 150

func address(node int) string { return fmt.Sprintf("10.9.0.%d", node+1) }

// newField makes nodes that are where locate says. A rate of 0 lets the radios
// choose theirs.
func newField(t *testing.T, nodes int, rateMbps float64, locate medium.Locate) *field {
	t.Helper()
	testnet.Need(t, "iperf3")
	f := &field{dir: testnet.Folder(t)}
	cfg := medium.Config{Seed: 1, Standard: phy.Standard80211b, Channel: 1, RateMbps: rateMbps,
		Propagation: propagation.Config{Model: "disc", RangeM: rangeM}}
	var ports []realtime.Port
	for i := range nodes {
		mac := fmt.Sprintf("02:00:00:00:09:%02x", i+1)
		cfg.Nodes = append(cfg.Nodes, medium.NodeConfig{Name: fmt.Sprintf("n%d", i+1), MAC: mac, TxPowerDbm: 16,
			NoiseFigureDb: 7})
		ns := testnet.NewNS(t, "mesh")
		f.spaces = append(f.spaces, ns)
		ports = append(ports, realtime.Port{FD: openTAP(t, ns, mac), FeedbackSocket: f.radio(i)})
		ns.Up(t, "wlan0", address(i)+"/24")
	}
	var err error
	f.live, err = realtime.New(cfg, locate, ports,
		realtime.Options{Log: slog.New(slog.NewTextHandler(t.Output(), nil))})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- f.live.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("run the medium: %v", err)
		}
	})
	return f
}

func (f *field) radio(node int) string { return filepath.Join(f.dir, fmt.Sprintf("radio%d", node)) }

// openTAP makes wlan0 inside a namespace.
func openTAP(t *testing.T, ns *testnet.NS, mac string) (fd int) {
	t.Helper()
	ns.Do(t, func() error {
		var err error
		if fd, err = unix.Open("/dev/net/tun", unix.O_RDWR|unix.O_CLOEXEC|unix.O_NONBLOCK, 0); err != nil {
			return err
		}
		req, err := unix.NewIfreq("wlan0")
		if err != nil {
			return err
		}
		req.SetUint16(unix.IFF_TAP | unix.IFF_NO_PI)
		if err := unix.IoctlIfreq(fd, unix.TUNSETIFF, req); err != nil {
			return err
		}
		link, err := netlink.LinkByName("wlan0")
		if err != nil {
			return err
		}
		raw, err := net.ParseMAC(mac)
		if err != nil {
			return err
		}
		return netlink.LinkSetHardwareAddr(link, raw)
	})
	t.Cleanup(func() {
		if err := unix.Close(fd); err != nil {
			t.Error(err)
		}
	})
	return fd
}

// route starts the routing daemon on all nodes and waits until it runs.
func (f *field) route(t *testing.T, protocol string, args ...string) {
	t.Helper()
	var daemons []*testnet.Running
	for i, ns := range f.spaces {
		cmd := ns.Command(context.Background(), filepath.Join(programs, "fieldmesh-agent"),
			append([]string{"route", "--protocol", protocol, "--socket", f.socket(i), "--state-dir",
				filepath.Join(f.dir, fmt.Sprintf("state%d", i))}, args...)...)
		if !f.wired {
			cmd.Args = append(cmd.Args, "--feedback", f.radio(i))
		}
		daemons = append(daemons, testnet.Start(t, cmd))
	}
	for _, d := range daemons {
		d.Says(t, "routing daemon is ready")
	}
}

func (f *field) socket(node int) string {
	return filepath.Join(f.dir, fmt.Sprintf("route%d.sock", node))
}

// wait tries until something holds. The time is generous: what is measured is
// whether, not when.
func wait(t *testing.T, patience time.Duration, holds func() error) {
	t.Helper()
	var err error
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
		if err = holds(); err == nil {
			return
		}
	}
	t.Fatalf("after %v: %v", patience, err)
}

// state asks a node's daemon for its state.
func (f *field) state(t *testing.T, node int) (s manet.State) {
	t.Helper()
	out := f.spaces[node].Run(t, filepath.Join(programs, "fieldmesh-agent"), "route", "--show", "state", "--socket",
		f.socket(node))
	if err := json.Unmarshal([]byte(out), &s); err != nil {
		t.Fatalf("read state %q: %v", out, err)
	}
	return s
}

// way is a node's route to another; its hops are 0 where there is none.
func (f *field) way(t *testing.T, from, to int) (r manet.Route) {
	t.Helper()
	for _, r := range f.state(t, from).Routes {
		if r.Destination.Contains(netip.MustParseAddr(address(to))) {
			return r
		}
	}
	return r
}

// udp is a pair of sockets, to send packets from a node to another.
type udp struct{ client, server *net.UDPConn }

func (f *field) udp(t *testing.T, from, to int) (u udp) {
	t.Helper()
	f.spaces[to].Do(t, func() (err error) {
		u.server, err = net.ListenUDP("udp4", &net.UDPAddr{IP: net.ParseIP(address(to))})
		return err
	})
	t.Cleanup(func() { _ = u.server.Close() })
	f.spaces[from].Do(t, func() (err error) {
		u.client, err = net.DialUDP("udp4", &net.UDPAddr{IP: net.ParseIP(address(from))},
			u.server.LocalAddr().(*net.UDPAddr))
		return err
	})
	t.Cleanup(func() { _ = u.client.Close() })
	return u
}

// send sends one packet and reports whether it arrives.
func (u udp) send(t *testing.T, patience time.Duration) bool {
	t.Helper()
	if _, err := u.client.Write([]byte("data")); err != nil {
		t.Fatal(err)
	}
	if err := u.server.SetReadDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	buf := make([]byte, 64)
	n, err := u.server.Read(buf)
	return err == nil && string(buf[:n]) == "data"
}

// datagram sends one packet, and fails where it does not arrive.
func (f *field) datagram(t *testing.T, from, to int) {
	t.Helper()
	if !f.udp(t, from, to).send(t, time.Minute) {
		t.Fatalf("a packet from node %d to node %d did not arrive", from, to)
	}
}

// hops is how long a node's route to another is; 0 for none.
func (f *field) hops(t *testing.T, from, to int) int {
	t.Helper()
	return f.way(t, from, to).Hops
}

// reaches waits until packets arrive over a route of a length. A loaded channel
// may lose a frame again and again, and a link with it: there may be no route
// for seconds, but there is one again.
func (f *field) reaches(t *testing.T, from, to, want int) {
	t.Helper()
	probe := f.udp(t, from, to)
	wait(t, time.Minute, func() error {
		if came, hops := probe.send(t, time.Second), f.hops(t, from, to); !came || hops != want {
			return fmt.Errorf("the route is %d hops long, want %d: %+v", hops, want, f.state(t, from))
		}
		return nil
	})
}

// transfer is what iperf3's client says of one run.
type transfer struct {
	Start struct {
		MSS int `json:"tcp_mss_default"`
	} `json:"start"`
	End struct {
		Received struct {
			Bytes   int64   `json:"bytes"`
			Seconds float64 `json:"seconds"`
			Bps     float64 `json:"bits_per_second"`
		} `json:"sum_received"`
		Sent struct {
			Retransmits int `json:"retransmits"`
		} `json:"sum_sent"`
	} `json:"end"`
	Error string `json:"error"`
}

// iperf sends for some seconds from a node to another. How much arrives hangs on
// which frames collide: where that is to be judged, bulk.
func (f *field) iperf(t *testing.T, from, to, seconds int) transfer {
	t.Helper()
	r, err := f.iperf3(t, from, to, time.Duration(seconds+60)*time.Second, "-t", fmt.Sprint(seconds))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// bulk sends so many bytes from a node to another, however long that takes,
// with a window of eight segments or so, as the papers' TCPs have: a larger one
// over many hops is in its own way. A route that goes just as a connection is
// being made ends it, for a kernel gives up one that is half open when it is
// told "unreachable"; then it is begun again.
func (f *field) bulk(t *testing.T, from, to int, bytes int64) transfer {
	t.Helper()
	args := []string{"-n", fmt.Sprint(bytes), "-l", "8K", "-w", "16K"}
	r, err := f.iperf3(t, from, to, 4*time.Minute, args...)
	for again := 0; err != nil && again < 2; again++ {
		t.Logf("begun again: %v", err)
		r, err = f.iperf3(t, from, to, 4*time.Minute, args...)
	}
	if err != nil {
		t.Fatal(err)
	}
	// What was still in the sender's buffer, twice the 16 K, as iperf3 called it
	// done is not counted, nor what its server had not read from its own, as large.
	if least := bytes - 64<<10; r.End.Received.Bytes < least {
		t.Errorf("%d bytes arrived, want at least %d", r.End.Received.Bytes, least)
	}
	return r
}

func (f *field) iperf3(t *testing.T, from, to int, patience time.Duration, args ...string) (r transfer, err error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	f.runs++ // the last run's server may not have ended yet
	port := fmt.Sprint(5200 + f.runs)
	server := testnet.Start(t, f.spaces[to].Command(ctx, "iperf3", "-s", "-1", "--forceflush", "-B", address(to),
		"-p", port))
	server.Says(t, "listening")
	out, err := f.spaces[from].Command(ctx, "iperf3",
		append([]string{"-c", address(to), "-B", address(from), "-p", port, "-J"}, args...)...).Output()
	if decoding := json.Unmarshal(out, &r); err != nil || decoding != nil || r.Error != "" {
		return r, fmt.Errorf("iperf3: %v, %v, %q; its server said: %s", err, decoding, r.Error, server.Said())
	}
	return r, nil
}
