//go:build e2e

package routingd

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"fieldmesh.dev/fieldmesh/controller/archive"
	"fieldmesh.dev/fieldmesh/controller/topology"
	"fieldmesh.dev/fieldmesh/node-agent/routing/batman"
	"fieldmesh.dev/fieldmesh/protocols/wire"
	"fieldmesh.dev/fieldmesh/test/testnet"
)

// campaign is a chain of nodes 200 m apart whose radios reach 250 m. The
// verdict leaves lateness out: beside other work the emulated radio may be late.
func campaign(nodes int, routing string, attempts int) string {
	var b strings.Builder
	b.WriteString("fieldmesh: 1\nname: chain\ntitle: a chain\nnodes:\n")
	var relays []string
	for i := range nodes {
		fmt.Fprintf(&b, "  n%d: {mesh_address: 10.77.0.%d/24}\n", i+1, i+1)
		if i > 0 && i < nodes-1 {
			relays = append(relays, fmt.Sprintf("n%d", i+1))
		}
	}
	fmt.Fprintf(&b, "trial:\n  sender: n1\n  receiver: n%d\n", nodes)
	if len(relays) > 0 {
		fmt.Fprintf(&b, "  relays: [%s]\n", strings.Join(relays, ", "))
	}
	b.WriteString("  duration_s: 8\n  course: {kind: none}\n  gate: {after_s: 1, timeout_s: 60, lead_s: 0.5}\n" +
		"  radio: {mode: adhoc, standard: 802.11b, channel: 1, ssid: chain, rate_mbps: 11}\n  tcp: {variant: reno}\n" +
		"  traffic:\n    bulk: {kind: iperf3_tcp, from: sender, to: receiver, streams: 1, window_bytes: 16384, port: " +
		"5000}\n" +
		"factors:\n  routing:\n    levels:\n" + routing)
	fmt.Fprintf(&b, "design: {repetitions: 1, order: as_listed, seed: 1}\nacceptance: {attempts_max: %d}\n", attempts)
	b.WriteString("field:\n  propagation: disc\n  range_m: 250\n  mobility: {model: chain, spacing_m: 200}\n")
	return b.String()
}

// rehearsal is `fieldmesh rehearse` under way.
type rehearsal struct {
	*testnet.Running
	run string // the run's folder
}

func rehearse(t *testing.T, text string) *rehearsal {
	t.Helper()
	testnet.Need(t, "ip", "iperf3", "gpsd", "babeld")
	dir := testnet.Folder(t)
	file := filepath.Join(dir, "chain.yaml")
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(filepath.Join(programs, "fieldmesh"), "rehearse", file, "--runs", dir, "--name", "r",
		"--field-dir", filepath.Join(dir, "w"))
	return &rehearsal{testnet.Start(t, cmd), filepath.Join(dir, "r")}
}

// archive waits for the rehearsal's good end and reads what it left.
func (r *rehearsal) archive(t *testing.T) *archive.Archive {
	t.Helper()
	if err := r.Wait(t, 15*time.Minute); err != nil {
		t.Fatalf("fieldmesh rehearse: %v", err)
	}
	a, err := archive.Read(r.run)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func records(t *testing.T, a *archive.Archive, trial, attempt int) []wire.Record {
	t.Helper()
	var out []wire.Record
	for r, err := range a.Records(trial, attempt) {
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, r)
	}
	return out
}

// Over five hops of the emulated radio each protocol carries TCP, and the run
// holds which way it went and what routing cost.
func TestACampaignOverFiveHops(t *testing.T) {
	a := rehearse(t, campaign(6, "      aodv: {routing: {protocol: aodv}}\n"+
		"      dsr: {routing: {protocol: dsr}}\n"+
		"      olsr: {routing: {protocol: olsr, hello_s: 0.5}}\n"+
		"      babeld: {routing: {protocol: babeld, hello_s: 0.5}}\n", 8)).archive(t)
	for _, trial := range a.Info().Plan.Trials {
		all := records(t, a, trial.Number, lastAttempt(t, a, trial.Number).Attempt)
		mesh := topology.Read(a.Info().Plan, trial, all)
		if mesh == nil {
			t.Errorf("%s: no records of routing", trial.Routing.Protocol)
			continue
		}
		whole := 0
		for _, p := range mesh.PathsInWindow() {
			if p.Whole {
				whole = max(whole, p.Hops())
			}
		}
		if whole != 5 {
			t.Errorf("%s: the longest whole way had %d hops, want 5\n%s", trial.Routing.Protocol, whole,
				mesh.PathText())
		}
		if trial.Routing.Readiness() == wire.ReadyRoutes {
			routesCameFirst(t, trial, mesh, all)
		}
		got, undone := uint64(0), 0
		for _, r := range all {
			switch b := r.Body.(type) {
			case *wire.TCPSample:
				if r.Node == trial.Receiver && b.Stream != nil {
					got = max(got, b.BytesReceived)
				}
			case *wire.HostChange:
				if b.Action == "undone" && strings.HasPrefix(b.What, "daemon "+trial.Routing.Protocol) {
					undone++
				}
			}
		}
		if got == 0 || undone != 6 {
			t.Errorf("%s: %d bytes arrived; %d daemons were stopped, want 6", trial.Routing.Protocol, got, undone)
		}
		cost := mesh.Cost()
		if ours := trial.Routing.Protocol != "babeld"; ours && (cost.PacketsPerS == nil || cost.Nodes != 6) {
			t.Errorf("%s: cost %+v", trial.Routing.Protocol, cost)
		}
		t.Logf("%s: %d bytes, %+v", trial.Routing.Protocol, got, cost)
	}
	report, err := os.ReadFile(filepath.Join(a.Dir(), "report.html"))
	if err != nil || !strings.Contains(string(report), "The mesh in the middle of the window") {
		t.Errorf("the report does not show the mesh: %v", err)
	}
}

// routesCameFirst: both ends of the flow had said that they have their routes
// before the window opened.
func routesCameFirst(t *testing.T, trial wire.Trial, mesh *topology.Mesh, all []wire.Record) {
	t.Helper()
	ready := map[string]bool{}
	for _, r := range all {
		switch b := r.Body.(type) {
		case *wire.RoutingEvent:
			ready[r.Node] = ready[r.Node] || b.Report == "routing_ready_s"
		case *wire.Window:
			if (r.Node == trial.Sender || r.Node == trial.Receiver) && !ready[r.Node] {
				t.Errorf("%s: the window of %s opened before it had its route", trial.Routing.Protocol, r.Node)
			}
		}
	}
	t.Logf("%s: routes took %.1f s; as the window opened the way was %s", trial.Routing.Protocol, *mesh.Cost().ReadyS,
		mesh.PathAt(0))
}

// A kernel without the module cannot take part in a campaign of batman-adv:
// that is said before anything moves. (With it, the trial runs in the guest.)
func TestBatmanIsRefusedWithoutItsModule(t *testing.T) {
	if err := batman.Available(); err == nil {
		t.Skip("this kernel has batman-adv")
	}
	r := rehearse(t, campaign(2, "      it: {routing: {protocol: batman-adv}}\n", 1))
	err := r.Wait(t, 5*time.Minute)
	if said := r.Said(); err == nil || !strings.Contains(said, "the kernel has no batman-adv") ||
		strings.Contains(said, "armed") {
		t.Errorf("the rehearsal ends with %v", err)
	}
}

// A routing daemon that dies ends its trial as failed; the next attempt has a
// new one.
func TestADaemonsDeathEndsTheTrial(t *testing.T) { diesInATrial(t, "aodv") }

func TestAnotherDaemonsDeathEndsTheTrial(t *testing.T) {
	for _, protocol := range []string{"babeld", "olsrd"} {
		t.Run(protocol, func(t *testing.T) {
			if _, err := os.Stat("/usr/sbin/olsrd"); protocol == "olsrd" && err != nil {
				t.Skipf("needs olsrd where an agent looks for it: %v", err)
			}
			diesInATrial(t, protocol)
		})
	}
}

func diesInATrial(t *testing.T, protocol string) {
	t.Helper()
	r := rehearse(t, campaign(2, fmt.Sprintf("      it: {routing: {protocol: %s}}\n", protocol), 8))
	killed := 0
	testnet.Await(t, patience, "a routing daemon is killed", func() bool {
		if said := r.Said(); strings.Contains(said, "armed") || strings.Contains(said, "running") {
			killed = killOne(t, filepath.Dir(r.run), protocol)
		}
		return killed != 0
	})
	a := r.archive(t)
	attempts, err := a.Trials()
	if err != nil {
		t.Fatal(err)
	}
	if len(attempts) < 2 || attempts[0].Verdict.Outcome != "failed" ||
		!strings.Contains(attempts[0].Verdict.Reason.String(), "routing_daemon") {
		t.Errorf("the first attempt: %+v", attempts[0].Verdict)
	}
	if last := attempts[len(attempts)-1]; last.Verdict.Outcome != "accepted" {
		t.Errorf("the last attempt: %+v", last.Verdict)
	}
}

// killOne kills a routing daemon whose configuration, PROTOCOL.conf in a folder
// of the host process, lies below a folder.
func killOne(t *testing.T, dir, protocol string) int {
	t.Helper()
	lines, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, path := range lines {
		text, err := os.ReadFile(path)
		if err != nil || !slices.ContainsFunc(strings.Split(string(text), "\x00"), func(arg string) bool {
			return strings.HasPrefix(arg, dir) && filepath.Base(arg) == protocol+".conf"
		}) {
			continue
		}
		var pid int
		if _, err := fmt.Sscanf(path, "/proc/%d/", &pid); err != nil || syscall.Kill(pid, syscall.SIGKILL) != nil {
			continue
		}
		return pid
	}
	return 0
}
