//go:build e2e

package journeys

import (
	"context"
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
	"fieldmesh.dev/fieldmesh/controller/fleet"
	"fieldmesh.dev/fieldmesh/controller/plan"
	"fieldmesh.dev/fieldmesh/protocols/wire"
	"fieldmesh.dev/fieldmesh/test/testnet"
)

// desk is two nodes whose interfaces under test are the ends of one cable, and
// a control network apart from it that the controller looks out from.
type desk struct {
	dir      string
	pair     *testnet.Pair
	nodes    map[string]*testnet.NS // alpha, which has the GPS receiver, and bravo
	control  *testnet.NS
	receiver *receiver
	agents   []*testnet.Running
	fleet    *fleet.Fleet
	before   string
	mesh     bool          // the cable under test carries control too, and the controller sits at alpha
	pulledNs map[int]int64 // trial → when the cable was pulled in it, by the boot clock
}

var deskNodes = []string{"alpha", "bravo"}

// newDesk sets up the nodes, makes their keys as a user does, and starts their
// agents. Extra lines go into every agent.yaml; NODE in them is the node's name.
func newDesk(t *testing.T, extra string) *desk {
	t.Helper()
	return newDeskOn(t, extra, false)
}

func newDeskOn(t *testing.T, extra string, mesh bool) *desk {
	t.Helper()
	testnet.Need(t, "ip", "gpsd", "iperf3", "tcpdump")
	pair := testnet.NewPair(t, "10.213.251", [2]string(deskNodes))
	d := &desk{dir: testnet.Folder(t), pair: pair, nodes: pair.Nodes, control: pair.Control, mesh: mesh,
		pulledNs: map[int]int64{}}
	if mesh {
		for i, name := range deskNodes {
			d.nodes[name].Run(t, "ip", "addr", "add", fmt.Sprintf("10.77.0.%d/24", i+1), "dev", "wlan0")
		}
		d.control = d.nodes["alpha"]
	}
	d.receiver = newReceiver(t, d.nodes["alpha"])
	d.before = d.snapshot(t)
	d.issueKeys(t)
	for _, name := range deskNodes {
		d.startAgent(t, name, extra)
	}
	return d
}

// snapshot is the state of the nodes, the control network and the machine.
func (d *desk) snapshot(t *testing.T) string {
	t.Helper()
	var b strings.Builder
	for _, name := range deskNodes {
		fmt.Fprintf(&b, "--- %s\n%s", name, testnet.Snapshot(t, d.nodes[name].Name))
	}
	fmt.Fprintf(&b, "--- control\n%s--- machine\n%s%s", testnet.Snapshot(t, d.control.Name),
		testnet.Snapshot(t, "", testnet.Prefix()), testnet.Snapshot(t, "", "lo", "eth"))
	return b.String()
}

// restored fails the test when anything is not as it was before the agents came.
func (d *desk) restored(t *testing.T) {
	t.Helper()
	if after := d.snapshot(t); after != d.before {
		t.Errorf("the machine is not as it was:\n%s", testnet.Diff(d.before, after))
	}
}

func (d *desk) address(name string) string {
	if d.mesh {
		return fmt.Sprintf("10.77.0.%d:7443", slices.Index(deskNodes, name)+1)
	}
	return d.pair.API(name)
}

func (d *desk) fleetFile() string { return filepath.Join(d.dir, "fleet", "fleet.yaml") }

func (d *desk) issueKeys(t *testing.T) {
	t.Helper()
	keysDir := filepath.Join(d.dir, "fleet")
	fieldmesh(t, "keys", "init", "--dir", keysDir)
	for i, name := range deskNodes {
		fieldmesh(t, "keys", "issue", name, "--dir", keysDir, "--address", d.address(name), "--unit",
			fmt.Sprintf("laptop-%d", i+1))
	}
	testnet.ReachFrom(t, d.fleetFile(), d.control)
	var err error
	if d.fleet, err = fleet.Load(d.fleetFile()); err != nil {
		t.Fatal(err)
	}
}

func (d *desk) nodeDir(name string) string { return filepath.Join(d.dir, name) }

func (d *desk) startAgent(t *testing.T, name, extra string) {
	t.Helper()
	dir := d.nodeDir(name)
	testnet.GiveKeys(t, filepath.Join(d.dir, "fleet", "nodes", name), filepath.Join(dir, "keys"))
	config := fmt.Sprintf("node: %s\nlisten: %s\nstate_dir: %s/state\ninterface: wlan0\ncontrol_interface: "+
		"ctl0\nface_user: nobody\nkeys_dir: %s/keys\n%s",
		name, d.address(name), dir, dir, strings.ReplaceAll(extra, "NODE", name))
	path := filepath.Join(dir, "agent.yaml")
	if err := os.WriteFile(path, []byte(config), 0o644); err != nil {
		t.Fatal(err)
	}
	agent := exec.Command("ip", "netns", "exec", d.nodes[name].Name, filepath.Join(programs, "fieldmesh-agent"), "up",
		"--config", path)
	agent.Env = append(os.Environ(), "TMPDIR=/nowhere") // it needs none of the system's
	d.agents = append(d.agents, testnet.Start(t, agent))
	client := d.client(t, name)
	testnet.Await(t, 30*time.Second, name+"'s agent answers", func() bool {
		_, err := client.Status(t.Context())
		return err == nil
	})
}

// stopAgents ends the agents as a service manager does.
func (d *desk) stopAgents(t *testing.T) {
	t.Helper()
	for _, a := range d.agents {
		a.Stop(t, syscall.SIGTERM)
	}
}

// client talks to a node from inside it, whatever happens to the control link.
func (d *desk) client(t *testing.T, name string) *fleet.Client {
	t.Helper()
	identity, err := d.fleet.Identity()
	if err != nil {
		t.Fatal(err)
	}
	n := d.fleet.Nodes[name]
	n.Netns = d.nodes[name].Name
	c := fleet.NewClient(identity, n)
	t.Cleanup(c.Close)
	return c
}

// controlLink cuts nodes off the controller and each other, or lets them back; all of them where none
// is named.
func (d *desk) controlLink(t *testing.T, up bool, nodes ...string) {
	t.Helper()
	if len(nodes) == 0 {
		nodes = deskNodes
	}
	for _, name := range nodes {
		d.control.Run(t, "ip", "link", "set", name, upOrDown(up))
	}
}

// cable pulls the cable under test at bravo's end, or puts it back.
func (d *desk) cable(t *testing.T, up bool) {
	t.Helper()
	d.nodes["bravo"].Run(t, "ip", "link", "set", "wlan0", upOrDown(up))
}

func upOrDown(up bool) string {
	if up {
		return "up"
	}
	return "down"
}

// campaign is a run on a desk, with the car driven as the present trial wants.
type campaign struct {
	*desk
	name   string
	trials map[int]wire.Trial
	run    *testnet.Running
	follow *follower
	// steps is called at every step of an attempt: before the car sets off
	// ("armed"), when the window has opened ("measuring"), when the attempt is
	// over ("kept"), and at others.
	steps func(step string, k wire.TrialKey)
}

// variant is a shipped campaign with some lines changed.
func variant(t *testing.T, shipped, name string, changes ...string) string {
	t.Helper()
	return testnet.Campaign(t, filepath.Join("../../campaigns", shipped), name, changes...)
}

const allSpeeds = "levels: [2.8, 5.6, 8.3, 11.1, 13.9, 16.7]"

// patient has a trial driven more often than the shipped campaign does: a machine that
// others use, too, spoils one attempt after the other now and then.
var patient = []string{"attempts_max: 3", fmt.Sprintf("attempts_max: %d", patientAttempts)}

const patientAttempts = 20

// stationary is the shipped campaign for a desk, at some of its speeds.
func stationary(t *testing.T, name, speeds string, changes ...string) string {
	t.Helper()
	return variant(t, "stationary-check.yaml", name, slices.Concat(changes, patient,
		[]string{allSpeeds, "levels: " + speeds})...)
}

// velocity is the shipped campaign of that name, once and at some of its speeds.
// Beside other work the emulated radio may be late; that is judged elsewhere.
func velocity(t *testing.T, name, speeds string, changes ...string) string {
	t.Helper()
	return variant(t, "velocity.yaml", name, slices.Concat(changes, patient, []string{allSpeeds, "levels: " + speeds,
		"repetitions: 2", "repetitions: 1", "lateness_share_max: 0.01", "lateness_share_max: 1"})...)
}

// start begins `fieldmesh run FILE`. The run has the file's name.
func (d *desk) start(t *testing.T, file string) *campaign {
	t.Helper()
	name := nameOf(file)
	c := &campaign{desk: d, name: name, trials: map[int]wire.Trial{}, follow: &follower{client: d.client(t, "alpha"),
		run: name}}
	planned, err := plan.Load(file)
	if err != nil {
		t.Fatal(err)
	}
	p, err := planned.RunPlan(name, make([]byte, 32))
	if err != nil {
		t.Fatal(err)
	}
	for _, trial := range p.Trials {
		c.trials[trial.Number] = trial
	}
	c.run = begin(t, "run", file, "--fleet", d.fleetFile(), "--runs", filepath.Join(d.dir, "runs"),
		"--name", name, "--place", archive.PlaceBench)
	return c
}

// drive follows alpha's view of the run until over says so: the car drives while
// a trial is armed or running, at its speed, and stands otherwise.
func (c *campaign) drive(t *testing.T, within time.Duration, over func() bool) {
	t.Helper()
	for until := time.Now().Add(within); !over(); {
		if time.Now().After(until) {
			t.Fatalf("the run is not over after %v", within)
		}
		step, k, changed := c.follow.next(t.Context())
		if !changed {
			continue
		}
		c.steps(step, k)
		switch step {
		case "armed":
			c.receiver.drive(*c.trials[k.Trial].SpeedMps)
		case "kept", "restoring":
			c.receiver.drive(0)
		}
	}
}

// finish drives until the run's end, which has to be a good one.
func (c *campaign) finish(t *testing.T, within time.Duration) kept {
	t.Helper()
	c.drive(t, within, c.run.Over)
	if err := c.run.Wait(t, time.Minute); err != nil {
		t.Errorf("fieldmesh run: %v", err)
	}
	t.Logf("fieldmesh run:\n%s", c.run.Said())
	k := openRun(t, c.runDir())
	k.everyTrialOnce(t)
	if k.Info().Plan.AttemptsMax == patientAttempts {
		k.patienceWasForLateness(t)
	}
	return k
}

// patienceWasForLateness allows a trial two attempts that failed otherwise, as the shipped
// campaigns do.
func (k kept) patienceWasForLateness(t *testing.T) {
	t.Helper()
	failed := map[int]int{}
	for _, at := range k.attempts {
		if !accepted(at) && !late(at) {
			failed[at.Trial]++
		}
	}
	for trial, n := range failed {
		if n > 2 {
			t.Errorf("trial %d failed %d times though the machine was not late", trial, n)
		}
	}
}

func (c *campaign) runDir() string { return filepath.Join(c.dir, "runs", c.name) }

// follower looks at a run as a node sees it.
type follower struct {
	client *fleet.Client
	run    string
	known  uint64
	last   string
}

// next waits a little for the next step of an attempt; changed is false when
// none came.
func (f *follower) next(ctx context.Context) (step string, k wire.TrialKey, changed bool) {
	v, err := f.client.View(ctx, f.run, f.known, 250*time.Millisecond)
	if err != nil { // the run is not loaded yet, or the agent just starts
		time.Sleep(20 * time.Millisecond)
		return "", k, false
	}
	f.known = v.Version
	if v.Current == nil {
		return "", k, false
	}
	k, step = *v.Current, string(v.State)
	if step == "running" && v.Detail == "measuring" {
		step = "measuring"
	}
	now := fmt.Sprint(step, k)
	changed, f.last = now != f.last, now
	return step, k, changed
}
