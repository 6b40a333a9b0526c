package face

import (
	"errors"
	"net/netip"
	"strings"
	"testing"

	"fieldmesh.dev/fieldmesh/node-agent/config"
	"fieldmesh.dev/fieldmesh/node-agent/link"
	"fieldmesh.dev/fieldmesh/node-agent/standing"
	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// A node without root refuses a plan when it is loaded, with every need at once, and takes
// one whose network stands.
func TestAPlanThatNeedsRootIsNotLoaded(t *testing.T) {
	f := &Face{cfg: config.Config{Node: "a", Interface: "lo", Privileges: config.NoPrivileges},
		transport: standing.Machine}
	plan := wire.RunPlan{Nodes: []wire.PlanNode{{Name: "a", MeshPrefix: "127.0.0.1/8"},
		{Name: "b", MeshPrefix: "127.0.0.2/8"}}}
	trial := wire.Trial{Sender: "a", Receiver: "b", Radio: wire.Radio{Mode: "none"},
		Routing: wire.Routing{Protocol: "none"},
		Traffic: []wire.Flow{{Name: "cbr", Kind: "iperf3_udp", From: "a", To: "b"}}}
	plan.Trials = []wire.Trial{trial, trial}
	if err := f.possible(plan); err != nil {
		t.Errorf("a plan that needs nothing changed: %v", err)
	}
	needy := trial
	needy.Radio, needy.Routing = wire.Radio{Mode: "adhoc"}, wire.Routing{Protocol: "aodv"}
	needy.Capture = &wire.CapturePlan{SnapBytes: 96, Offloads: wire.OffloadsOff}
	plan.Trials = append(plan.Trials, needy, needy)
	plan.Nodes[0].MeshPrefix = "10.77.0.1/24"
	err := f.possible(plan)
	var refused *wire.Error
	if !errors.As(err, &refused) || refused.Code != wire.CodeConflict {
		t.Fatalf("a plan that needs root: %v", err)
	}
	for _, need := range []string{"node a runs without root", "address 10.77.0.1/24 on lo", "daemon aodv on lo",
		"a capture", "offloads of lo off", "privileges: root"} {
		if !strings.Contains(refused.Message, need) {
			t.Errorf("it does not name %q: %s", need, refused.Message)
		}
	}
	if n := strings.Count(refused.Message, "daemon aodv on lo"); n != 1 {
		t.Errorf("the daemon is named %d times", n)
	}
	f.cfg.Node = "c"
	if err := f.possible(plan); err != nil {
		t.Errorf("a node that takes no part: %v", err)
	}
	f.cfg.Node, f.cfg.Privileges = "a", "root"
	if err := f.possible(plan); err != nil {
		t.Errorf("with root: %v", err)
	}
}

// What of the network is not there as the plan has it is a problem of the node's.
func TestWhatDoesNotStandIsTold(t *testing.T) {
	f := &Face{cfg: config.Config{Node: "a", Interface: "lo", Privileges: config.NoPrivileges}}
	peers := []netip.Addr{netip.MustParseAddr("127.0.0.2")}
	if found := f.notStanding(netip.MustParsePrefix("127.0.0.1/8"), peers); len(found) != 0 {
		t.Errorf("loopback: %+v", found)
	}
	found := f.notStanding(netip.MustParsePrefix("10.77.0.1/24"), peers)
	if len(found) != 1 || found[0].Need != "address" || !strings.Contains(found[0].Cure, "by hand") {
		t.Errorf("an address that is not there: %+v", found)
	}
}

// A phone's node without root keeps its trials' sockets to the interface, unless something hinders it: then it says
// what.
func TestTheTrialsSocketsKeepToTheInterface(t *testing.T) {
	if err := link.MayBind(); err != nil {
		t.Skipf("this system lets nobody bind sockets: %v", err)
	}
	for version, bound := range map[string]bool{"iperf 3.9 (cJSON 1.7.13)": false, "iperf 3.12": true, "": true} {
		f := &Face{cfg: config.Config{Node: "a", Interface: "lo", Privileges: config.NoPrivileges, AppKey: "a"}}
		f.generator.Version = func() string { return version }
		f.bind()
		if (f.bound == "lo") != bound || f.generator.Bound != f.bound {
			t.Errorf("with %q they are bound to %q, those of iperf3 to %q", version, f.bound, f.generator.Bound)
		}
		if found := f.unbound; bound != (found.Found == "") {
			t.Errorf("with %q: %+v", version, found)
		}
	}
	f := &Face{cfg: config.Config{Node: "a", Interface: "lo", Privileges: config.NoPrivileges}}
	if f.bind(); f.bound != "" || f.generator.Bound != "" || f.unbound.Found != "" {
		t.Errorf("a laptop's are bound to %q, those of iperf3 to %q: %+v", f.bound, f.generator.Bound, f.unbound)
	}
}
