//go:build e2e

package field

import (
	"context"
	"fmt"
	"math"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/vishvananda/netns"

	"fieldmesh.dev/fieldmesh/internal/keys"
	"fieldmesh.dev/fieldmesh/protocols/wire"
	"fieldmesh.dev/fieldmesh/rehearsal/field/ledger"
	"fieldmesh.dev/fieldmesh/rehearsal/gps"
	"fieldmesh.dev/fieldmesh/rehearsal/medium"
	"fieldmesh.dev/fieldmesh/test/testnet"
)

// TestMain makes the test binary serve as the owner process of a field.
func TestMain(m *testing.M) {
	if os.Getenv("FIELD_OWNER") == "" {
		os.Exit(m.Run())
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	cfg, err := LoadConfig(os.Args[len(os.Args)-1])
	if err == nil {
		err = Serve(ctx, os.Stdin, os.Stdout, cfg)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// ownerCommand starts the test binary as a field's owner.
func ownerCommand() []string { return []string{"/usr/bin/env", "FIELD_OWNER=1", os.Args[0]} }

// sleeper is a field of two nodes whose agents are stubs.
func sleeper(t *testing.T) Config {
	t.Helper()
	testnet.Need(t, "ip", "gpsd", "sleep")
	dir := t.TempDir()
	if err := os.Chmod(filepath.Dir(dir), 0o755); err != nil {
		t.Fatal(err)
	}
	_, _, pin, err := keys.New("desk")
	if err != nil {
		t.Fatal(err)
	}
	return Config{
		Dir: dir, Nodes: []Node{{Name: "alpha", Unit: "u1"}, {Name: "beta", Unit: "u2"}},
		AgentCommand: []string{"/bin/sleep", "600"}, Seed: 1, Run: "test",
		Authorized: []keys.Peer{{Name: "desk", Role: wire.RoleController, Pin: pin}},
	}
}

// nothingHeard is a channel that carries nothing and is never late.
type nothingHeard struct{ dead bool }

func (c *nothingHeard) Run(ctx context.Context) error { <-ctx.Done(); return nil }
func (c *nothingHeard) SetDead(dead bool)             { c.dead = dead }
func (c *nothingHeard) Lateness(open, closed time.Duration) (wire.Lateness, error) {
	return wire.Lateness{Source: wire.LateMedium, WindowS: (closed - open).Seconds()}, nil
}
func (c *nothingHeard) Counters(int) medium.Counters                           { return medium.Counters{} }
func (c *nothingHeard) Losses(time.Duration, time.Duration) ([]loss, uint64)   { return nil, 0 }
func (c *nothingHeard) Sent(time.Duration, time.Duration) []map[string]float64 { return nil }
func (c *nothingHeard) Forget()                                                {}
func (c *nothingHeard) Miss(time.Duration, int, []byte, medium.Cause)          {}

// mustCreate makes a field in this process that ends with the test.
func mustCreate(t *testing.T, cfg Config) *Field {
	t.Helper()
	f, err := Create(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	})
	return f
}

// create makes a field with no radio.
func create(t *testing.T, cfg Config) *Field {
	t.Helper()
	f := mustCreate(t, cfg)
	f.openChannel = func(medium.Config) (channel, error) { return &nothingHeard{}, nil }
	return f
}

func depart(speed float64) wire.Trial {
	return wire.Trial{
		Number: 3, Car: "alpha", Roadside: "beta", Sender: "alpha", Receiver: "beta", Initiator: "alpha",
		SpeedMps: &speed, Direction: "outbound", DurationS: 1,
		Course: wire.Course{Kind: "depart", StartM: 5, AccelMps2: 20, BrakeMps2: 20, HeadingDeg: 70},
	}
}

// reports collects a node's TPVs until enough says so.
func reports(t *testing.T, f *Field, name string, enough func([]gps.Report) bool) []gps.Report {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 15*time.Second)
	defer cancel()
	conn, err := f.dial(ctx, f.nodes[f.find(name)].netns, "127.0.0.1:"+gps.Port)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	var got []gps.Report
	if err := gps.Watch(ctx, conn, func(r gps.Report) bool { got = append(got, r); return enough(got) }); err != nil {
		t.Fatalf("after %d reports: %v", len(got), err)
	}
	return got
}

// Real gpsds are fed at P1's speeds; what they report is the car's truth.
func TestGPSDReportsTheCarsSpeed(t *testing.T) {
	f := create(t, sleeper(t))
	for _, v := range []float64{2.8, 5.6, 8.3, 11.1, 13.9, 16.7} {
		placing := time.Now()
		if err := f.Place(t.Context(), depart(v), 1); err != nil {
			t.Fatal(err)
		}
		t.Logf("placed in %v", time.Since(placing))
		standing := bootOf(t)
		if err := f.Drive(t.Context()); err != nil {
			t.Fatal(err)
		}
		began := bootOf(t)
		const cruising = 12
		got := reports(t, f, "alpha", func(g []gps.Report) bool {
			// One more than counts: the first may be from just before the
			// target speed, none after it.
			return len(g) > cruising && steady(g[len(g)-cruising-1:], v)
		})
		got = got[len(got)-cruising:]
		tenths := 0
		var before time.Time
		for _, r := range got {
			if r.Mode != 3 || math.Abs(*r.Speed-v) > 0.1 {
				t.Errorf("at %g m/s gpsd says %g m/s in mode %d", v, *r.Speed, r.Mode)
			}
			now, err := time.Parse(time.RFC3339, r.Time)
			if err != nil || !now.After(before) {
				t.Errorf("report at %v follows one at %v (%v)", now, before, err)
			}
			if now.Sub(before) == 100*time.Millisecond {
				tenths++
			}
			before = now
		}
		if tenths < cruising/2 { // a busy machine may skip some
			t.Errorf("%d of %d reports are a tenth of a second apart", tenths, cruising-1)
		}
		records, err := f.Settle(t.Context(), int64(began+100*time.Millisecond), int64(began+1100*time.Millisecond))
		if err != nil {
			t.Fatal(err)
		}
		checkRecords(t, records, v)
		records, err = f.Settle(t.Context(), int64(standing), int64(began+500*time.Millisecond))
		if err != nil || len(records) != 0 {
			t.Errorf("of a window that opened before the car set off it tells %v, %v", records, err)
		}
		if records, err = f.Settle(t.Context(), int64(began+500*time.Millisecond), int64(began+time.Hour)); err != nil {
			t.Errorf("a window that was not over: %v", err)
		} else if late, ok := records[0].Body.(*wire.Lateness); !ok || late.WindowS > 3600 {
			t.Errorf("a window that was not over gives %+v", records[0])
		}
	}
}

func steady(g []gps.Report, v float64) bool {
	for _, r := range g {
		if r.Speed == nil || math.Abs(*r.Speed-v) > 0.5 {
			return false
		}
	}
	return true
}

func bootOf(t *testing.T) time.Duration {
	t.Helper()
	now, err := bootNow()
	if err != nil {
		t.Fatal(err)
	}
	return now
}

func checkRecords(t *testing.T, records []wire.Record, v float64) {
	t.Helper()
	kinds := map[string]int{}
	for _, r := range records {
		kinds[r.Kind]++
		if r.Trial != 3 || r.Attempt != 1 || r.Run != "test" {
			t.Errorf("record's header %+v", r.Header)
		}
		if tr, ok := r.Body.(*wire.Truth); ok && (tr.Of == "alpha" && (tr.SpeedMps > v+1e-9 || tr.DistanceM < 5) ||
			tr.Of == "beta" && tr.DistanceM != 0) {
			t.Errorf("truth %+v", tr)
		}
	}
	if kinds["lateness"] != 1 || kinds["truth"] != 11+2 {
		t.Errorf("records %v, want one lateness and truth at 10 Hz over 1 s, both edges", kinds)
	}
}

func TestReceiverFaults(t *testing.T) {
	f := create(t, sleeper(t))
	if err := f.Place(t.Context(), depart(5), 1); err != nil {
		t.Fatal(err)
	}
	if err := f.Fault(Fault{Kind: FaultGPSNoFix, Node: "alpha"}); err != nil {
		t.Fatal(err)
	}
	reports(t, f, "alpha", func(g []gps.Report) bool { return g[len(g)-1].Mode == 1 })
	// The other node's receiver is well, and a faulty one holds no trial up.
	reports(t, f, "beta", func(g []gps.Report) bool { return len(g) > 5 && g[len(g)-1].Mode == 3 })
	if err := f.Place(t.Context(), depart(5), 2); err != nil {
		t.Fatal(err)
	}
	if err := f.Fault(Fault{Kind: FaultGPSSilent, ForS: 1}); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	reports(t, f, "beta", func(g []gps.Report) bool { return time.Since(began) > time.Second && g[len(g)-1].Mode == 3 })
	if err := f.Fault(Fault{Kind: "earthquake"}); err == nil || !strings.Contains(err.Error(), "radio_dead") {
		t.Errorf("unknown fault: %v", err)
	}
}

// start runs a field in a process of its own and checks that it is all there.
func start(t *testing.T, cfg Config) *Client {
	t.Helper()
	c, err := Start(t.Context(), ownerCommand(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() }) // the test itself closes and checks it
	prefix := fmt.Sprintf("fm%d-", c.Info().ID)
	if got := testnet.Namespaces(t, prefix); len(got) != 3 {
		t.Fatalf("namespaces %v, want two nodes' and the control's", got)
	}
	for name, ns := range c.Info().Netns {
		if pids := testnet.Pids(ns); len(pids) != 2 {
			t.Errorf("node %s: processes %v, want gpsd and agent", name, pids)
		}
	}
	return c
}

func TestDestroyLeavesNothing(t *testing.T) {
	cfg := sleeper(t)
	before := testnet.Snapshot(t, "", "lo", "eth")
	c := start(t, cfg)
	id := c.Info().ID
	snap := testnet.Snapshot(t, c.Info().Netns["alpha"])
	for _, want := range []string{
		"link wlan0 type tuntap mtu 1500 up true", fmt.Sprintf("address 10.213.%d.11/24 on ctl0", id),
		"net/ipv6/conf/wlan0/disable_ipv6 = 1", "link lo type device mtu 65536 up true",
	} {
		if !strings.Contains(snap, want) {
			t.Errorf("no %q in\n%s", want, snap)
		}
	}
	if strings.Contains(snap, "on wlan0") {
		t.Errorf("wlan0 has an address of its own:\n%s", snap)
	}
	processes := processesOf(c.Info())
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	if after := testnet.Snapshot(t, "", "lo", "eth"); after != before {
		t.Errorf("the machine was\n%sand is\n%s", before, after)
	}
	gone(t, id, processes)
}

func TestKilledOwnerIsSweptUpAfter(t *testing.T) {
	cfg := sleeper(t)
	before := testnet.Snapshot(t, "", "lo", "eth")
	c := start(t, cfg)
	id, processes := c.Info().ID, processesOf(c.Info())
	if err := syscall.Kill(c.cmd.Process.Pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if err := c.Close(); err == nil || !strings.Contains(err.Error(), "--resume") {
		t.Errorf("a killed field closes with %v, and nothing of how to go on", err)
	}
	removed, err := ledger.Sweep("")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(strings.Join(removed, " "), fmt.Sprintf("fm%d-alpha", id)) {
		t.Logf("swept by another test's field: %v", removed)
	}
	if after := testnet.Snapshot(t, "", "lo", "eth"); after != before {
		t.Errorf("the machine was\n%sand is\n%s", before, after)
	}
	gone(t, id, processes)

	// The same folder again: keys and state are taken up.
	fleet, err := os.ReadFile(c.Info().Fleet)
	if err != nil {
		t.Fatal(err)
	}
	again := start(t, cfg)
	now, err := os.ReadFile(again.Info().Fleet)
	if err != nil {
		t.Fatal(err)
	}
	if again.Info().ID == id && string(now) != string(fleet) {
		t.Errorf("the fleet was\n%sand is\n%s", fleet, now)
	}
	if err := again.Close(); err != nil {
		t.Error(err)
	}
}

func processesOf(i Info) []int {
	var out []int
	for _, ns := range i.Netns {
		out = append(out, testnet.Pids(ns)...)
	}
	return out
}

// gone checks that no process, namespace, ledger or socket of a field is left.
func gone(t *testing.T, id int, processes []int) {
	t.Helper()
	for _, pid := range processes {
		// A dead one that nobody has waited for yet has no namespace any more.
		if _, err := os.Stat(fmt.Sprintf("/proc/%d/ns/net", pid)); err == nil {
			t.Errorf("process %d is left", pid)
		}
	}
	if got := testnet.Namespaces(t, fmt.Sprintf("fm%d-", id)); len(got) != 0 {
		t.Errorf("namespaces %v are left", got)
	}
	if _, err := os.Stat(ledger.Path(ledger.DefaultRunDir, id)); err == nil {
		t.Error("the ledger is left")
	}
}

func TestControlLinkCanBeCut(t *testing.T) {
	f := create(t, sleeper(t))
	state := func() string { return testnet.Snapshot(t, f.ctlNS) }
	up := state()
	if err := f.Fault(Fault{Kind: FaultControlCut, Node: "beta"}); err != nil {
		t.Fatal(err)
	}
	if s := state(); !strings.Contains(s, "link node2 type veth mtu 1500 up false") ||
		!strings.Contains(s, "link node1 type veth mtu 1500 up true") {
		t.Errorf("beta's link is not cut, or alpha's is:\n%s", s)
	}
	if err := f.Fault(Fault{Kind: FaultClear}); err != nil {
		t.Fatal(err)
	}
	if s := state(); s != up {
		t.Errorf("it was\n%sand is\n%s", up, s)
	}
}

func TestAnAgentThatEndsIsStartedAgain(t *testing.T) {
	cfg := sleeper(t)
	f := create(t, cfg)
	ns, err := netns.GetFromName(f.nodes[0].netns)
	if err != nil {
		t.Fatal(err)
	}
	defer ns.Close()
	if err := f.nodes[0].agent.signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
		f.mu.Lock()
		noted := len(f.events) > 0
		f.mu.Unlock()
		pids, err := ledger.ProcessesIn(map[string]netns.NsHandle{"": ns})
		if err != nil {
			t.Fatal(err)
		}
		if noted && len(pids) == 2 {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("processes %v, event noted: %v", pids, noted)
		}
	}
}

// echoes sends datagrams from alpha to beta and counts those that come back, waiting
// so long for each.
func echoes(t *testing.T, nodes map[string]*testnet.NS, n int, wait time.Duration) (back int) {
	t.Helper()
	var server net.PacketConn
	var client net.Conn
	nodes["beta"].Do(t, func() (err error) { server, err = net.ListenPacket("udp4", "10.77.0.2:0"); return err })
	defer server.Close()
	nodes["alpha"].Do(t, func() (err error) { client, err = net.Dial("udp4", server.LocalAddr().String()); return err })
	defer client.Close()
	go func() { // ends when server is closed
		buf := make([]byte, 64)
		for {
			k, from, err := server.ReadFrom(buf)
			if err != nil {
				return
			}
			_, _ = server.WriteTo(buf[:k], from)
		}
	}()
	for i := range n {
		if err := client.SetDeadline(time.Now().Add(wait)); err != nil {
			t.Fatal(err)
		}
		if _, err := client.Write([]byte{byte(i)}); err != nil {
			continue // the host is known to be unreachable
		}
		for got := make([]byte, 64); ; { // what comes late of an earlier one is passed over
			k, err := client.Read(got)
			if err != nil {
				break
			}
			if k == 1 && got[0] == byte(i) {
				back++
				break
			}
		}
	}
	return back
}

// The whole length without agents: a field in its own process, a trial placed
// and driven, echoes over the emulated radio, and what Settle reports about
// them.
func TestATrialCrossesTheEmulatedRadio(t *testing.T) {
	c := start(t, sleeper(t))
	ctx := t.Context()
	nodes := map[string]*testnet.NS{}
	for i, name := range []string{"alpha", "beta"} {
		nodes[name] = &testnet.NS{Name: c.Info().Netns[name]}
		nodes[name].Run(t, "ip", "address", "add", fmt.Sprintf("10.77.0.%d/24", i+1), "dev", "wlan0")
	}
	if err := c.Place(ctx, depart(8.3), 1); err != nil {
		t.Fatal(err)
	}
	if err := c.Drive(ctx); err != nil {
		t.Fatal(err)
	}
	open := bootOf(t)
	const patience, silence = 5 * time.Second, 500 * time.Millisecond
	if got := echoes(t, nodes, 20, patience); got < 19 { // one may meet a collision after its retries
		t.Errorf("%d of 20 echoes came back", got)
	}
	time.Sleep(500*time.Millisecond - min(500*time.Millisecond, bootOf(t)-open)) // of driving, to be seen below
	closed := bootOf(t)
	records, err := c.Settle(ctx, int64(open), int64(closed))
	if err != nil {
		t.Fatal(err)
	}
	var late *wire.Lateness
	var far float64
	for _, r := range records {
		switch b := r.Body.(type) {
		case *wire.Lateness:
			late = b
		case *wire.Truth:
			far = max(far, b.DistanceM)
		}
	}
	if late == nil || late.Events < 38 || late.WindowS < (closed-open).Seconds() {
		t.Errorf("lateness %+v, want at least the echoes' 40 deliveries", late)
	}
	if want := 5 + 8.3*8.3/(2*20); far < want { // beyond its run-up
		t.Errorf("the car came %g m far, want more than %g", far, want)
	}

	if err := c.Fault(ctx, Fault{Kind: FaultRadioDead}); err != nil {
		t.Fatal(err)
	}
	if got := echoes(t, nodes, 2, silence); got != 0 {
		t.Errorf("%d echoes crossed a dead radio", got)
	}
	// A trial on another channel is another medium, and as dead.
	next := depart(8.3)
	next.Radio = wire.Radio{Standard: "802.11b", Channel: 11}
	if err := c.Place(ctx, next, 1); err != nil {
		t.Fatal(err)
	}
	if got := echoes(t, nodes, 2, silence); got != 0 {
		t.Errorf("%d echoes crossed a dead radio after it was tuned", got)
	}
	if err := c.Fault(ctx, Fault{Kind: FaultClear}); err != nil {
		t.Fatal(err)
	}
	if got := echoes(t, nodes, 10, silence); got == 0 {
		t.Error("the radio did not come back")
	}
	if err := c.Place(ctx, wire.Trial{Car: "nobody"}, 1); err == nil || !strings.Contains(err.Error(), `"nobody"`) {
		t.Errorf("an unknown car: %v", err)
	}
	if err := c.Close(); err != nil {
		t.Error(err)
	}
}
