//go:build e2e

package routingd

import (
	"os"
	"slices"
	"testing"

	"fieldmesh.dev/fieldmesh/controller/archive"
	"fieldmesh.dev/fieldmesh/controller/metrics"
	"fieldmesh.dev/fieldmesh/controller/topology"
	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// leavesS is when the relay of testdata/detour.yaml begins to leave.
const leavesS = 5

// After a link is cut a run holds three outages: without a route, without a
// ping, and without data; and what routing cost, to the frames on the air.
func TestACutLinkIsThreeOutages(t *testing.T) {
	text, err := os.ReadFile("testdata/detour.yaml")
	if err != nil {
		t.Fatal(err)
	}
	a := rehearse(t, string(text)).archive(t)
	for _, trial := range a.Info().Plan.Trials {
		t.Run(trial.Routing.Protocol, func(t *testing.T) { checkDetour(t, a, trial) })
	}
}

func checkDetour(t *testing.T, a *archive.Archive, trial wire.Trial) {
	k := lastAttempt(t, a, trial.Number)
	at, err := metrics.Load(a, k)
	if err != nil {
		t.Fatal(err)
	}
	mesh := at.Mesh()
	if mesh == nil || !mesh.HasDaemon() {
		t.Fatal("no records of routing")
	}
	last := mesh.PathAt(mesh.Seconds)
	before := mesh.PathAt(leavesS)
	if !before.Whole || !slices.Contains(before.Nodes, "n2") || !last.Whole || last.Hops() != 3 {
		t.Errorf("the way before the cut was %s and at the end %s\n%s", before, last, mesh.PathText())
	}
	rows, err := metrics.Of(a, k)
	if err != nil {
		t.Fatal(err)
	}
	samplerOf := map[string]string{
		"data_outage_s": trial.Receiver, "ping_outage_s": trial.Sender, "probe_rtt_median_ms": trial.Sender,
	}
	for _, name := range []string{"route_outage_s", "ping_outage_s", "data_outage_s", "hops_mean",
		"mac_frames_routing_per_s", "routing_packets_per_s", "probe_rtt_median_ms"} {
		v := metrics.Value(rows, "", name)
		// Beside other work an agent may stop for a while: then nobody knows.
		if node := samplerOf[name]; node != "" && topology.Stalled(node, at.Records()) {
			if v != nil {
				t.Errorf("%s is %g though the sampler of %s stalled", name, *v, node)
			}
			continue
		}
		if v == nil {
			t.Errorf("%s is not known\n%s", name, mesh.PathText())
			continue
		}
		t.Logf("%s %.3f", name, *v)
	}
	// Where the radio reports a lost link the way round is there at once; hellos take their time.
	if ping, _ := mesh.PingOutage(); trial.Routing.Readiness() == wire.ReadyRoutes && ping.FromS+ping.Seconds <
		leavesS {
		t.Errorf("the longest time without a ping, %+v, was over before the relay left", ping)
	}
	if frames := metrics.Value(rows, "", "mac_frames_routing_per_s"); frames != nil && *frames == 0 {
		t.Error("no frame of routing was on the air")
	}
	message := map[string]string{"babeld": "captured_messages_hello_per_s", "olsr": "captured_messages_hello_per_s",
		"aodv": "captured_messages_rreq_per_s"}[trial.Routing.Protocol]
	if v := metrics.Value(rows, "", message); v == nil || *v == 0 {
		t.Errorf("%s is not known, or nought", message)
	}
	if cut := metrics.Value(rows, "", "routing_packets_cut"); cut != nil {
		t.Errorf("%g routing packets could not be read whole", *cut)
	}
}

// lastAttempt is the one that decided the trial.
func lastAttempt(t *testing.T, a *archive.Archive, trial int) wire.TrialKey {
	t.Helper()
	attempts, err := a.Trials()
	if err != nil {
		t.Fatal(err)
	}
	k := wire.TrialKey{Trial: trial}
	for _, x := range attempts {
		if x.Trial == trial && x.Attempt > k.Attempt {
			k = x.TrialKey
		}
	}
	return k
}
