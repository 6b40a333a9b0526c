//go:build e2e

package cuts

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	"fieldmesh.dev/fieldmesh/controller/fleet"
	"fieldmesh.dev/fieldmesh/test/testnet"
)

// road is two nodes joined by a cable, whose agents a service manager keeps
// running whatever happens to the controller.
type road struct {
	dir, file string
	pair      *testnet.Pair
	ns        map[string]*testnet.NS
	ctl       *testnet.NS
	before    string
	fleet     *fleet.Fleet

	stop   chan struct{}
	agents sync.WaitGroup
}

func (r *road) begin() []string {
	return []string{"run", r.file, "--fleet", r.fleetFile(), "--place", "bench"}
}

func (r *road) resume(run string) []string {
	return []string{"run", "--resume", run, "--fleet", r.fleetFile()}
}

func (r *road) fleetFile() string { return filepath.Join(r.dir, "fleet", "fleet.yaml") }

func (r *road) netns(node string) string { return r.ns[node].Name }

func (r *road) control() string { return r.ctl.Name }

func (r *road) port(node string) string { return node }

func (r *road) owner() int { return 0 }

func (r *road) spools() map[string]string {
	out := map[string]string{}
	for _, n := range nodes {
		out[n] = filepath.Join(r.dir, n, "state", "face", "spool")
	}
	return out
}

func (r *road) passing() bool { return false }

// judge: the agents end first, so that their last records are there.
func (r *road) judge(c *campaign, w *witness) {
	r.gone(c.t)
	c.judge(w)
}

func roadCampaign(windowS float64, repetitions int) string {
	return testnet.Standing("chaos-road", "fox", "owl", fmt.Sprintf(`  initiator: fox
  duration_s: %g
  gate: {after_s: 0.1, timeout_s: 10, lead_s: 0.3}
  radio: {mode: none}
  routing: {protocol: none}
  tcp: {variant: reno}
  traffic:
    bulk: {kind: iperf3_tcp, from: sender, to: receiver, streams: 2, window_bytes: 4096, port: 5000}
`, windowS)+testnet.Sections("fox", "owl", repetitions)+`acceptance: {clock_error_ms_max: 100, attempts_max: 20}
`)
}

// newRoad builds the nodes and starts their agents.
func newRoad(t *testing.T, dir, campaign string) *road {
	t.Helper()
	testnet.Need(t, "ip", "iperf3", "influxd")
	pair := testnet.NewPair(t, "10.213.252", [2]string(nodes))
	r := &road{dir: dir, file: filepath.Join(dir, "chaos.yaml"), pair: pair, ns: pair.Nodes, ctl: pair.Control,
		stop: make(chan struct{})}
	if err := os.WriteFile(r.file, []byte(campaign), 0o644); err != nil {
		t.Fatal(err)
	}
	r.issueKeys(t)
	r.before = r.snapshot(t)
	for _, n := range nodes {
		r.startAgent(t, n)
	}
	t.Cleanup(r.stopAgents)
	return r
}

// snapshot is the canonical state of nodes and control network.
func (r *road) snapshot(t *testing.T) string {
	t.Helper()
	out := testnet.Snapshot(t, r.ctl.Name)
	for _, n := range nodes {
		out += testnet.Snapshot(t, r.ns[n].Name)
	}
	return out
}

// issueKeys makes the fleet with the nodes' addresses as the control network
// has them.
func (r *road) issueKeys(t *testing.T) {
	t.Helper()
	dir := filepath.Dir(r.fleetFile())
	if _, err := fleet.Init(dir); err != nil {
		t.Fatal(err)
	}
	for _, n := range nodes {
		address := r.pair.API(n)
		bundle, err := fleet.Issue(dir, n, address, fleet.IssueOptions{Netns: r.ctl.Name})
		if err != nil {
			t.Fatal(err)
		}
		keysDir := filepath.Join(r.dir, n, "keys")
		testnet.GiveKeys(t, bundle, keysDir)
		config := fmt.Sprintf("node: %s\nlisten: %s\nstate_dir: %s/state\ninterface: wlan0\ncontrol_interface: "+
			"ctl0\nface_user: nobody\nkeys_dir: %s\n",
			n, address, filepath.Join(r.dir, n), keysDir)
		if err := os.WriteFile(filepath.Join(r.dir, n, "agent.yaml"), []byte(config), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	var err error
	if r.fleet, err = fleet.Load(r.fleetFile()); err != nil {
		t.Fatal(err)
	}
}

// startAgent keeps a node's agent running as a service manager does: started
// again a second after it ended, whatever ended it.
func (r *road) startAgent(t *testing.T, node string) {
	t.Helper()
	log, err := os.Create(filepath.Join(r.dir, node, "agent.log"))
	if err != nil {
		t.Fatal(err)
	}
	r.agents.Go(func() {
		defer log.Close()
		for {
			cmd := exec.Command("ip", "netns", "exec", r.ns[node].Name, filepath.Join(programs, "fieldmesh-agent"),
				"up", "--config", filepath.Join(r.dir, node, "agent.yaml"))
			cmd.Stdout, cmd.Stderr = log, log
			if err := cmd.Start(); err != nil {
				t.Error(err)
				return
			}
			ended := make(chan error, 1)
			go func() { ended <- cmd.Wait() }()
			select {
			case <-ended:
			case <-r.stop:
				_ = cmd.Process.Signal(syscall.SIGTERM) // it may be ending just now
				<-ended
				return
			}
			select {
			case <-time.After(time.Second):
			case <-r.stop:
				return
			}
		}
	})
}

// stopAgents ends the agents in order; it may be called twice.
func (r *road) stopAgents() {
	select {
	case <-r.stop:
	default:
		close(r.stop)
	}
	r.agents.Wait()
}

// gone: with the run, the nodes' changes have ended, and with the agents
// everything of theirs.
func (r *road) gone(t *testing.T) {
	t.Helper()
	same(t, "the nodes' state after the run", r.before, r.snapshot(t))
	r.stopAgents()
	for _, n := range nodes {
		for _, pid := range testnet.Pids(r.ns[n].Name) {
			args, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
			t.Errorf("still running at %s: %d %q", n, pid, args)
		}
	}
	same(t, "the nodes' state after the agents' end", r.before, r.snapshot(t))
}

func setLink(ns, link, state string) error {
	if out, err := exec.Command("ip", "-n", ns, "link", "set", link, state).CombinedOutput(); err != nil {
		return fmt.Errorf("ip -n %s link set %s %s: %w: %s", ns, link, state, err, out)
	}
	return nil
}

var roadKinds = []string{controllerKilled, faceKilled, hostKilled, upKilled, linkCut, controllerKilled, influxdKilled,
	influxdStopped, controllerInterrupted}

// drive cuts runs on a road.
func drive(t *testing.T, total int, seed uint64) {
	testnet.Need(t, "ip", "iperf3", "influxd")
	cutRuns(t, total, rand.New(rand.NewPCG(seed, 2)), roadKinds, func(t *testing.T, dir, _ string) stage {
		return newRoad(t, dir, roadCampaign(1, 5))
	})
}

func TestRoadSurvivesCuts(t *testing.T) {
	drive(t, 10, newSeed(t))
}
