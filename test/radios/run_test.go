//go:build guest

//guest:timed

package radios

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/vishvananda/netlink"

	"fieldmesh.dev/fieldmesh/protocols/wire"
	"fieldmesh.dev/fieldmesh/test/testnet"
	"fieldmesh.dev/fieldmesh/test/testnet/hwsim"
)

const campaign = `
fieldmesh: 1
name: road
title: Two nodes with real radios
nodes:
  fox: {unit: one, mesh_address: 10.77.0.1/24}
  owl: {unit: two, mesh_address: 10.77.0.2/24}
%[4]strial:
  sender: fox
  receiver: owl
  initiator: fox
%[3]s  duration_s: %[1]g
  course: {kind: none}
  gate: {after_s: 12, timeout_s: 90, lead_s: 3}
  radio:
    mode: adhoc
    standard: 802.11g
    channel: 11
    ssid: road
    bssid: "02:11:22:33:44:66"
    tx_power_dbm: 14
    rts_threshold_bytes: 500
    retry_limit: 5
  routing: %[2]s
  tcp: {variant: reno}
  traffic:
    bulk: {kind: iperf3_tcp, from: sender, to: receiver, streams: 1, window_bytes: 65536, port: 5000}
design: {repetitions: 1, order: randomised_blocks, seed: 7}
acceptance: {clock_error_ms_max: 5000, attempts_max: 12} # an emulated machine is late now and then
`

const variants = `factors:
  variant:
    levels:
      vegas: {tcp: {variant: vegas}}
      westwood: {tcp: {variant: westwood}}
`

// congestion loads the kernel's own modules and lets namespaces choose them.
func congestion(t *testing.T, names ...string) {
	t.Helper()
	const file = "/proc/sys/net/ipv4/tcp_allowed_congestion_control"
	for _, n := range names {
		hwsim.Modprobe(t, "tcp_"+n)
	}
	text, err := os.ReadFile(file)
	if err == nil {
		err = os.WriteFile(file, []byte(strings.TrimSpace(string(text))+" "+strings.Join(names, " ")), 0)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// fieldmesh runs the controller to its end.
func fieldmesh(t *testing.T, args ...string) (string, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 12*time.Minute)
	defer cancel()
	out, err := exec.CommandContext(ctx, filepath.Join(programs, "fieldmesh"), args...).CombinedOutput()
	return string(out), err
}

// The controller runs a campaign on three agents with radios, the ends of whose
// chain do not hear each other: they join, babeld finds the way, the kernel's
// own Vegas and Westwood carry data, what was in force is recorded, and every
// node is as before in the end.
func TestGuestRun(t *testing.T) {
	r := newRig(t, "fox", "elk", "owl")
	for i, mask := range []uint{1, 3, 2} {
		r.nodes[i].radio.Hear(t, mask)
	}
	congestion(t, "vegas", "westwood")
	file := r.write(t, "road.yaml", fmt.Sprintf(campaign, 20.0, "{protocol: babeld, hello_s: 0.5}", "  relays: [elk]\n",
		"  elk: {unit: three, mesh_address: 10.77.0.3/24}\n")+variants)
	var way atomic.Bool
	watch, end := context.WithCancel(t.Context())
	var watching sync.WaitGroup
	watching.Go(func() { r.nodes[0].awaitRoute(watch, t, "10.77.0.2", "10.77.0.3", &way) })
	dirs := r.run(t, file, 2)
	end()
	watching.Wait()
	if !way.Load() {
		t.Error("fox never had a route to owl by elk")
	}
	seen := map[string]bool{}
	for _, dir := range dirs {
		seen[judgeTrial(t, dir)] = true
	}
	if !seen["vegas"] || !seen["westwood"] {
		t.Errorf("trials with %v, want vegas and westwood", seen)
	}
}

// The same chain with one of our own protocols, which finds the way only when
// data wants it, and with a way that the plan fixes; in the long form with
// batman-adv too, which makes one network of it below IP. One of the nodes keeps
// its own Wi-Fi, and takes part with an interface that it makes on the same radio.
func TestGuestChain(t *testing.T) {
	r := newRig(t, "fox", "elk", "owl")
	hwsim.Modprobe(t, "tun") // what has no route waits in such a device
	for i, mask := range []uint{1, 3, 2} {
		r.nodes[i].radio.Hear(t, mask)
	}
	r.nodes[2].beside(t)
	text := fmt.Sprintf(campaign, 6.0, "{protocol: none}", "  relays: [elk]\n", "  elk: {unit: three, mesh_address: "+
		"10.77.0.3/24}\n")
	ways := []string{"aodv", "static"}
	if os.Getenv("FIELDMESH_SOAK") != "" {
		hwsim.Modprobe(t, "batman_adv")
		ways = append(ways, "batman-adv")
	} else {
		text = strings.Replace(text, "after_s: 12", "after_s: 8", 1)
	}
	text += "factors:\n  way:\n    levels:\n"
	for _, way := range ways {
		text += fmt.Sprintf("      %s: {routing: {protocol: %s}}\n", way, way)
	}
	for _, dir := range r.run(t, r.write(t, "chain.yaml", text), len(ways)) {
		judgeTrial(t, dir)
		for _, record := range records(t, filepath.Join(dir, "records", "owl.ndjson")) {
			if p, ok := record.Body.(*wire.Provenance); ok && (p.Interface != "mesh0" || p.Radio == nil ||
				p.Radio.Beside == nil || p.Radio.Beside.Interface != "wlan0") {
				t.Errorf("%s: owl was in the network by %s, with the radio %+v", dir, p.Interface, p.Radio)
			}
		}
	}
}

// beside has a node make the interface under test on the radio of its wlan0.
func (n *node) beside(t *testing.T) {
	t.Helper()
	path := filepath.Join(n.dir, "agent.yaml")
	text, err := os.ReadFile(path)
	if err == nil {
		err = os.WriteFile(path, []byte(strings.Replace(string(text), "interface: wlan0\n",
			"interface: mesh0\nphy_of: wlan0\n", 1)), 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// rtprotBabel is what babeld's routes say of where they come from
// (rtnetlink.h's RTPROT_BABEL).
const rtprotBabel = 42

// awaitRoute looks at a node's routes of babeld until there is one to an address
// over another, or ctx ends. It starts no program: that could be taken for one
// that the node runs.
func (n *node) awaitRoute(ctx context.Context, t *testing.T, to, over string, seen *atomic.Bool) {
	for ctx.Err() == nil && !seen.Load() {
		n.ns.Do(t, func() error {
			routes, err := netlink.RouteListFiltered(netlink.FAMILY_V4, &netlink.Route{Protocol: rtprotBabel},
				netlink.RT_FILTER_PROTOCOL)
			for _, r := range routes {
				if r.Dst != nil && r.Dst.IP.String() == to && r.Gw.String() == over {
					seen.Store(true)
				}
			}
			if errors.Is(err, netlink.ErrDumpInterrupted) { // the table changed meanwhile
				err = nil
			}
			return err
		})
		time.Sleep(500 * time.Millisecond)
	}
}

// run starts the agents, drives a campaign of so many trials, and gives the
// last attempt's folder of each. After the run, and again after the agents'
// end, every node is as it was.
func (r *rig) run(t *testing.T, file string, trials int) (dirs []string) {
	t.Helper()
	before := map[*node]string{}
	for _, n := range r.nodes {
		before[n] = n.snapshot(t)
		n.start(t)
	}
	runs := filepath.Join(r.dir, "runs")
	out, err := fieldmesh(t, "run", file, "--fleet", r.fleet(), "--place", "bench", "--runs", runs, "--name", "road-1",
		"--patience", "2m")
	t.Logf("fieldmesh run:\n%s", out)
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range r.nodes {
		n.becomes(t, "after the run", before[n])
	}
	for trial := 1; trial <= trials; trial++ {
		attempts, _ := filepath.Glob(filepath.Join(runs, "road-1", "trials", fmt.Sprintf("%04d-a*", trial)))
		if len(attempts) == 0 {
			t.Fatalf("no attempt at trial %d in %s", trial, runs)
		}
		dirs = append(dirs, attempts[len(attempts)-1])
	}
	for _, n := range r.nodes {
		n.stop()
		n.becomes(t, "after the agent's end", before[n])
		for _, pid := range testnet.Pids(n.ns.Name) {
			t.Errorf("still running at %s: %d", n.name, pid)
		}
	}
	return dirs
}

// judgeTrial looks at what the nodes recorded of an attempt, and gives its variant.
func judgeTrial(t *testing.T, dir string) (variant string) {
	t.Helper()
	var plan struct{ Trial wire.Trial }
	read(t, filepath.Join(dir, "plan.json"), &plan)
	variant = plan.Trial.TCP.Variant
	var v wire.Verdict
	read(t, filepath.Join(dir, "verdict.json"), &v)
	if v.Outcome != "accepted" {
		t.Errorf("%s: %s: %s", dir, v.Outcome, v.Reason)
	}
	for _, node := range []string{"fox", "owl"} {
		stations, carried := 0, false
		heard := map[string]bool{}
		for _, record := range records(t, filepath.Join(dir, "records", node+".ndjson")) {
			switch b := record.Body.(type) {
			case *wire.Provenance:
				c := b.Radio
				if c == nil || c.Mode != "adhoc" || c.Channel != 11 || c.Width != "20 MHz (no HT)" ||
					c.SSID != "road" || c.BSSID != "02:11:22:33:44:66" || c.TxPowerDbm == nil || *c.TxPowerDbm != 14 {
					t.Errorf("%s of %s: the radio in force is %+v", node, dir, c)
				}
				if c != nil && (!is(c.RTSThresholdBytes, 500) || !is(c.ShortRetryLimit, 5) ||
					!is(c.LongRetryLimit, 5)) {
					t.Errorf("%s of %s: RTS threshold or retry limits in force are not the plan's: %+v", node, dir, c)
				}
			case *wire.Station:
				stations++
				heard[b.Peer] = true
				if b.SignalDbm == nil || *b.SignalDbm != 14-50 || b.TxBitrateMbps == nil || *b.TxBitrateMbps > 54 {
					t.Errorf("%s of %s: station %+v", node, dir, b)
				}
			case *wire.TCPSample:
				carried = carried || b.BytesReceived > 0
				if node == "fox" && b.Stream != nil && b.Congestion != variant {
					t.Errorf("%s sends by %q, want %q", node, b.Congestion, variant)
				}
			}
		}
		t.Logf("%s of %s: %d samples of the other station", node, filepath.Base(dir), stations)
		if len(heard) != 1 {
			t.Errorf("%s of %s heard %v, want the relay alone", node, dir, heard)
		}
		if node == "owl" && !carried {
			t.Errorf("%s: nothing was carried", dir)
		}
	}
	return variant
}

func is(n *int, want int) bool { return n != nil && *n == want }

func read(t *testing.T, path string, into any) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err == nil {
		err = json.Unmarshal(text, into)
	}
	if err != nil {
		t.Fatalf("read %s: %v", path, err)
	}
}

func records(t *testing.T, path string) (out []wire.Record) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		var r wire.Record
		if err := json.Unmarshal([]byte(line), &r); err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		out = append(out, r)
	}
	return out
}
