//go:build e2e

package unprivileged

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"fieldmesh.dev/fieldmesh/controller/archive"
	"fieldmesh.dev/fieldmesh/controller/metrics"
	"fieldmesh.dev/fieldmesh/internal/keys"
	"fieldmesh.dev/fieldmesh/protocols/wire"
	"fieldmesh.dev/fieldmesh/test/testnet"
)

// seconds is the window; on a busy machine attempts fail for being late, and are repeated.
const seconds = 3

var campaign = testnet.Brief("ordinary", seconds, "acceptance: {attempts_max: 20}\n")

// field is an app's phone, alpha, and a laptop, bravo, whose agents run without root. Their
// network stands already. The controller reaches both by a network apart.
type field struct {
	*testnet.Pair
	dir    string
	before map[string]string // the nodes' networks
	agents map[string]*testnet.Running
}

func newField(t *testing.T) *field { return newFieldWith(t, "") }

// newFieldWith is a field in which the app's phone has an iperf3 of its own.
func newFieldWith(t *testing.T, iperf3 string) *field {
	t.Helper()
	testnet.Need(t, "ip", "tc", "iperf3", "setpriv")
	f := &field{Pair: testnet.NewPair(t, "10.97.0", [2]string{"alpha", "bravo"}), dir: testnet.Folder(t),
		before: map[string]string{}, agents: map[string]*testnet.Running{}}
	f.fieldmesh(t, "keys", "init", "--dir", f.path("fleet"))
	_, _, app, err := keys.New("app")
	if err != nil {
		t.Fatal(err)
	}
	for i, name := range []string{"alpha", "bravo"} {
		f.Nodes[name].Run(t, "ip", "address", "add", fmt.Sprintf("10.77.0.%d/24", i+1), "dev", "wlan0")
		f.fieldmesh(t, "keys", "issue", name, "--dir", f.path("fleet"), "--address", f.API(name))
		testnet.GiveKeys(t, f.path("fleet/nodes/"+name), f.path(name+"/keys"))
		f.Nodes[name].Run(t, "sysctl", "-qw", "net.ipv4.tcp_congestion_control=reno") // this machine's may pace
		f.before[name] = testnet.Snapshot(t, f.Nodes[name].Name)
		config := fmt.Sprintf("node: %s\ninterface: wlan0\ncontrol_interface: ctl0\ngpsd: none\nprivileges: none\n"+
			"state_dir: %s\nkeys_dir: %s\n", name, f.path(name+"/state"), f.path(name+"/keys"))
		if name == "alpha" {
			config += "app_key: " + app + "\n"
		}
		if name == "alpha" && iperf3 != "" {
			config += fmt.Sprintf("binaries: {iperf3: %s}\n", iperf3)
		}
		err = errors.Join(os.WriteFile(f.path(name+".yaml"), []byte(config), 0o644),
			os.Chown(f.path(name), testnet.Nobody, testnet.Nobody))
		if err != nil {
			t.Fatal(err)
		}
		f.up(t, name)
	}
	return f
}

func (f *field) path(name string) string { return filepath.Join(f.dir, name) }

// up starts a node's agent.
func (f *field) up(t *testing.T, name string, set ...func(*exec.Cmd)) {
	t.Helper()
	words := []string{filepath.Join(programs, "fieldmesh-agent"), "up", "--until-eof", "--config",
		f.path(name + ".yaml")}
	c := f.Nodes[name].Ordinary(t.Context(), words[0], words[1:]...)
	if name == "alpha" {
		c = f.Nodes[name].App(t, words[0], words[1:]...)
	}
	read, write, err := os.Pipe() // which holds its standard input open
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = errors.Join(read.Close(), write.Close()) })
	c.Stdin = read
	for _, s := range set {
		s(c)
	}
	f.agents[name] = testnet.Start(t, c)
	f.agents[name].Says(t, "node is ready")
}

// stop ends both agents in order, after which the machine has to be as it was.
func (f *field) stop(t *testing.T) {
	t.Helper()
	for name, agent := range f.agents {
		if err := agent.Stop(t, syscall.SIGTERM); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		f.isAsBefore(t, name)
	}
}

func (f *field) isAsBefore(t *testing.T, name string) {
	t.Helper()
	if after := testnet.Snapshot(t, f.Nodes[name].Name); after != f.before[name] {
		t.Errorf("%s is not as it was:\n%s", name, testnet.Diff(f.before[name], after))
	}
}

// controller is a command of the controller's.
func (f *field) controller(args ...string) *exec.Cmd {
	return f.Controller(programs, args...)
}

// fieldmesh runs one that has to succeed.
func (f *field) fieldmesh(t *testing.T, args ...string) string {
	t.Helper()
	return f.Fieldmesh(t, programs, args...)
}

// drive begins to drive a campaign.
func (f *field) drive(t *testing.T, name, text string) *testnet.Running {
	t.Helper()
	if err := os.WriteFile(f.path(name+".yaml"), []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return testnet.Start(t, f.controller("run", f.path(name+".yaml"), "--fleet", f.path("fleet/fleet.yaml"),
		"--place", "bench", "--patience", "10s", "--runs", f.path("runs"), "--name", name))
}

// good is what the controller prints of a run's one trial.
var good = regexp.MustCompile(`\[1/1\] trial 1( attempt \d+)?: accepted`)

// accepted waits for a run's end, and returns its archive; its trial has to be accepted.
func (f *field) accepted(t *testing.T, name string, run *testnet.Running) *archive.Archive {
	t.Helper()
	err := run.Wait(t, 5*time.Minute)
	t.Logf("run: %v\n%s", err, run.Said())
	if !good.MatchString(run.Said()) {
		t.Fatal("the trial was not accepted")
	}
	a, err := archive.Read(filepath.Join(f.path("runs"), name))
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// receives reads what a node's interface receives, until the function that it returns is called.
func (f *field) receives(t *testing.T, node string) (end func() testnet.Received) {
	return f.Nodes[node].Receives(t, "wlan0", 2*time.Millisecond)
}

// another is a congestion control besides the one with which the field's connections begin.
func (f *field) another(t *testing.T) string {
	t.Helper()
	offered := strings.Fields(f.Nodes["alpha"].Run(t, "sysctl", "-n", "net.ipv4.tcp_allowed_congestion_control"))
	at := slices.IndexFunc(offered, func(name string) bool { return name == "bbr" || name == "cubic" })
	if at < 0 {
		t.Fatalf("of %v an ordinary user can choose none besides reno", offered)
	}
	return offered[at]
}

// Two nodes without root measure what came over the air, one of which may ask the kernel
// for no sockets; nothing on either changes.
func TestE2EOrdinaryUsersMeasure(t *testing.T) {
	f := newField(t)
	chosen := "variant: " + f.another(t)
	swap := strings.NewReplacer("sender: alpha", "sender: bravo", "receiver: bravo", "receiver: alpha")
	down := swap.Replace(campaign)
	for name, c := range map[string]struct{ receiver, text string }{
		"up": {"bravo", campaign}, "down": {"alpha", down},
		"reverse":  {"alpha", strings.Replace(down, "port: 5000", "port: 5000, reverse: true", 1)},
		"short":    {"alpha", strings.Replace(down, "port: 5000", "port: 5000, duration_s: 1", 1)},
		"short up": {"bravo", strings.Replace(campaign, "port: 5000", "port: 5000, duration_s: 1", 1)},
		"short reverse": {"bravo", strings.Replace(campaign, "port: 5000",
			"port: 5000, duration_s: 1, reverse: true", 1)},
		"chosen": {"bravo", strings.Replace(campaign, "variant: reno", chosen, 1)},
		"chosen reverse": {"alpha", strings.NewReplacer("port: 5000", "port: 5000, reverse: true",
			"variant: reno", chosen).Replace(down)},
	} {
		t.Run(name, func(t *testing.T) {
			end, name := f.receives(t, c.receiver), strings.ReplaceAll(name, " ", "-")
			a := f.accepted(t, name, f.drive(t, name, c.text))
			f.holds(t, a, c.receiver, end())
		})
	}
	f.stop(t)
}

// With the iperf3 that the phone app brings, which is static and of another libc, a phone
// sends and receives, as its client and as its server, without some of the calls that Android
// forbids (packaging's test holds each that it makes against Android's list); the other
// node's iperf3 is the machine's.
func TestE2EThePhoneAppsIperf3Measures(t *testing.T) {
	testnet.Need(t)
	built := testnet.Iperf3(t, "../../packaging/iperf3/build", "x86_64")
	text, err := os.ReadFile(built)
	if err != nil {
		t.Fatal(err)
	}
	own := filepath.Join(testnet.Folder(t), filepath.Base(built)) // where others may look
	if err := os.WriteFile(own, text, 0o755); err != nil {
		t.Fatal(err)
	}
	f := newFieldWith(t, own)
	swap := strings.NewReplacer("sender: alpha", "sender: bravo", "receiver: bravo", "receiver: alpha")
	down := swap.Replace(campaign)
	for name, c := range map[string]struct{ receiver, text string }{
		"up": {"bravo", campaign}, "down": {"alpha", down},
		"reverse": {"alpha", strings.Replace(down, "port: 5000", "port: 5000, reverse: true", 1)},
	} {
		t.Run(name, func(t *testing.T) {
			end := f.receives(t, c.receiver)
			a := f.accepted(t, name, f.drive(t, name, c.text))
			f.holds(t, a, c.receiver, end())
		})
	}
	f.stop(t)
}

// holds holds the accepted attempt's megabytes against the receiver's interface.
func (f *field) holds(t *testing.T, a *archive.Archive, receiver string, received testnet.Received) {
	t.Helper()
	journal, err := a.Journal()
	if err != nil {
		t.Fatal(err)
	}
	var last wire.TrialKey
	for _, e := range journal {
		if e.Verdict != nil && e.Verdict.Outcome == wire.Accepted {
			last = e.Verdict.TrialKey
		}
	}
	rows, err := metrics.Of(a, last)
	if err != nil {
		t.Fatal(err)
	}
	at := slices.IndexFunc(rows, func(r metrics.Row) bool { return r.Name == metrics.TransferredMB })
	if at < 0 {
		t.Fatal("the accepted attempt has no figure")
	}
	records, err := a.All(last.Trial, last.Attempt)
	if err != nil {
		t.Fatal(err)
	}
	ways, interfaces, bound := map[string]string{}, map[string]bool{}, map[string]string{}
	var w *wire.Window
	for _, r := range records {
		switch b := r.Body.(type) {
		case *wire.Window:
			if r.Node == receiver {
				w = b
			}
		case *wire.Provenance:
			if b.Privileges != wire.NoPrivileges {
				t.Errorf("%s has privileges %q by its records", r.Node, b.Privileges)
			}
			ways[r.Node], bound[r.Node] = b.SocketsBy, b.BoundTo
		case *wire.Interface:
			interfaces[r.Node] = true
		case *wire.HostChange:
			t.Errorf("%s says that it changed %s", r.Node, b.What)
		}
	}
	if ways["alpha"] != "descriptors" || ways["bravo"] != "descriptors" {
		t.Errorf("sockets were read by %v", ways)
	}
	if bound["alpha"] != "wlan0" || bound["bravo"] != "" {
		t.Errorf("the trial's sockets were bound to %v", bound)
	}
	if interfaces["alpha"] || !interfaces["bravo"] {
		t.Errorf("of these interfaces there are counters: %v", interfaces)
	}
	if w == nil {
		t.Fatal("the receiver has no window")
	}
	if err := received.Holds(rows[at].Value, *w); err != nil {
		t.Errorf("%s: %v", receiver, err)
	}
}

// What a node can do, and what its records will lack, is told before anything begins.
func TestE2EWhatAnOrdinaryNodeCanDoIsTold(t *testing.T) {
	f := newField(t)
	if err := os.WriteFile(f.path("told.yaml"), []byte(campaign), 0o644); err != nil {
		t.Fatal(err)
	}
	said := f.fieldmesh(t, "preflight", f.path("told.yaml"), "--fleet", f.path("fleet/fleet.yaml"), "--json")
	for _, want := range []string{"it runs without root and changes nothing; its records will lack: connections from " +
		"other machines that wait at the port of iperf3, interface wlan0, radio",
		`it runs without root and changes nothing"`} {
		if !strings.Contains(said, want) {
			t.Errorf("preflight does not say %q:\n%s", want, said)
		}
	}
	for _, name := range []string{"alpha", "bravo"} {
		words := []string{filepath.Join(programs, "fieldmesh-agent"), "probe", "--config", f.path(name + ".yaml")}
		c := f.Nodes[name].Ordinary(t.Context(), words[0], words[1:]...)
		if name == "alpha" {
			c = f.Nodes[name].App(t, words[0], words[1:]...)
		}
		out, err := c.CombinedOutput()
		if err != nil {
			t.Errorf("probe on %s: %v", name, err)
		}
		for _, want := range []string{"privileges  none: it changes nothing; sockets are read by descriptors",
			"variant reno             the kernel's own",
			"variant tahoe            not possible: needs an agent with root"} {
			if !strings.Contains(string(out), want) {
				t.Errorf("probe on %s does not say %q:\n%s", name, want, out)
			}
		}
	}
	f.stop(t)
}

// codeShown is the code that the controller shows.
var codeShown = regexp.MustCompile(`FIELDMESH-PAIR/\S+`)

// A node begins without root as it does with: init, pair, up. Root does not run it.
func TestE2EAnOrdinaryUserBegins(t *testing.T) {
	f := newField(t)
	_ = f.agents["bravo"].Stop(t, syscall.SIGTERM)
	home := f.path("home")
	if err := errors.Join(os.Mkdir(home, 0o700), os.Chown(home, testnet.Nobody, testnet.Nobody)); err != nil {
		t.Fatal(err)
	}
	config := filepath.Join(home, "agent.yaml")
	ordinary := func(words ...string) *exec.Cmd {
		return f.Nodes["bravo"].Ordinary(t.Context(), filepath.Join(programs, "fieldmesh-agent"),
			append(words, "--config", config)...)
	}
	out, err := ordinary("init", "--privileges", "none", "--node", "charlie", "--interface", "wlan0").CombinedOutput()
	if err != nil {
		t.Fatalf("init: %v\n%s", err, out)
	}
	agent := testnet.Start(t, ordinary("up"))
	agent.Says(t, "this node is not paired yet")
	f.fieldmesh(t, "keys", "init", "--dir", f.path("other"))
	offer := testnet.Start(t, f.controller("keys", "pair", "charlie", "--dir", f.path("other"), "--listen",
		"10.97.0.1:7447", "--qr=false"))
	offer.Says(t, "show it to nobody else")
	pair := ordinary("pair")
	pair.Stdin = strings.NewReader(codeShown.FindString(offer.Said()) + "\n")
	if out, err := pair.CombinedOutput(); err != nil || !strings.Contains(string(out), "charlie is paired") {
		t.Fatalf("pair: %v\n%s", err, out)
	}
	agent.Says(t, "node is ready")
	if out, err := ordinary("restore").CombinedOutput(); err != nil || string(out) != "nothing to put back\n" {
		t.Errorf("restore: %v: %s", err, out)
	}
	out, err = f.Nodes["bravo"].Command(t.Context(), filepath.Join(programs, "fieldmesh-agent"), "up", "--config",
		f.path("bravo.yaml")).CombinedOutput()
	if err == nil || !strings.Contains(string(out), "what faces the network must not be root") {
		t.Errorf("as root: %v: %s", err, out)
	}
}

// What the tests' app may not, as Android's may not.
func TestE2EAnAppMayNot(t *testing.T) {
	testnet.Need(t, "ip", "ss", "setpriv")
	ns := testnet.NewNS(t, "app")
	for _, c := range []struct {
		words []string
		says  string
	}{
		{[]string{"cat", "/proc/net/tcp"}, "Permission denied"},
		{[]string{"ls", "/sys/class/net"}, "Permission denied"},
		{[]string{"ip", "link"}, "Permission denied"},
		{[]string{"chroot", "/", "true"}, ""},
	} {
		out, err := ns.App(t, c.words[0], c.words[1:]...).CombinedOutput()
		if err == nil || !strings.Contains(string(out), c.says) {
			t.Errorf("%v: %v: %s", c.words, err, out)
		}
		if c.says == "" && !strings.Contains(err.Error(), "bad system call") {
			t.Errorf("%v ended with %v", c.words, err)
		}
	}
}

// Killed within a trial and started again, a node goes on.
func TestE2EAKilledNodeGoesOn(t *testing.T) {
	f := newField(t)
	for _, name := range []string{"alpha", "bravo"} {
		run := f.drive(t, "killed-"+name, campaign)
		run.Says(t, "measuring")
		for _, pid := range testnet.Pids(f.Nodes[name].Name) {
			_ = syscall.Kill(pid, syscall.SIGKILL) // its iperf3 may have ended with it
		}
		testnet.Await(t, 30*time.Second, "the end of those that were killed", func() bool {
			return len(testnet.Pids(f.Nodes[name].Name)) == 0
		})
		f.up(t, name)
		f.accepted(t, "killed-"+name, run)
	}
	f.stop(t)
}

// The agent ends with whoever holds its standard input, as the phone's app does.
func TestE2EAnOrdinaryUsersAgentEndsWithItsInput(t *testing.T) {
	f := newField(t)
	_ = f.agents["alpha"].Stop(t, syscall.SIGTERM)
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	f.up(t, "alpha", func(c *exec.Cmd) { c.Stdin = read })
	if err := errors.Join(read.Close(), write.Close()); err != nil {
		t.Fatal(err)
	}
	if err := f.agents["alpha"].Wait(t, time.Minute); err != nil {
		t.Error(err)
	}
	testnet.Await(t, 30*time.Second, "the end of all that it started", func() bool {
		return len(testnet.Pids(f.Nodes["alpha"].Name)) == 0
	})
	f.isAsBefore(t, "alpha")
}

// A plan that needs root is refused before anything starts, need by need.
func TestE2EWhatNeedsRootIsRefused(t *testing.T) {
	f := newField(t)
	for name, c := range map[string]struct {
		from, to string
		says     []string
	}{
		"radio": {"radio: {mode: none}", `radio: {mode: adhoc, standard: 802.11g, channel: 6, ssid: x, ` +
			`bssid: "02:0a:5e:00:00:06"}`, []string{"node alpha: radio: the plan sets its radio to adhoc mode, and its " +
			"agent runs without root, which leaves the radio as it is", "node bravo: radio: "}},
		"routing": {"  radio: {mode: none}", "  routing: {protocol: aodv}\n  radio: {mode: none}", []string{
			"node alpha: routing: the plan wants aodv, and its agent runs without root, which starts no routing "}},
		"capture": {"  radio: {mode: none}", "  capture: {snap_bytes: 96}\n  radio: {mode: none}", []string{
			"node alpha: capture: the plan has packets captured, and its agent runs without root, which may not"}},
		"variant": {"variant: reno", "variant: tahoe", []string{
			"node alpha: tcp: variant tahoe cannot be had: this agent runs without root"}},
		"rto": {"variant: reno", "variant: reno, rto_min_ms: 500", []string{
			"node alpha: tcp: rto_min_ms cannot be had: this agent runs without root"}},
		"address": {"10.77.0.1/24", "10.77.0.9/24", []string{"node alpha: address: address 10.77.0.9/24 on wlan0: " +
			"wlan0 does not have it, and this agent sets none (privileges: none); give wlan0 that address by hand"}},
	} {
		run := f.drive(t, "refused-"+name, strings.Replace(campaign, c.from, c.to, 1))
		if err := run.Wait(t, time.Minute); err == nil {
			t.Errorf("%s: it ran", name)
		}
		for _, text := range c.says {
			if !strings.Contains(run.Said(), text) {
				t.Errorf("%s: it does not say %q:\n%s", name, text, run.Said())
			}
		}
		if _, err := os.Stat(filepath.Join(f.path("runs"), "refused-"+name)); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: the refused run is there: %v", name, err)
		}
		for node := range f.before {
			f.isAsBefore(t, node)
		}
	}
	f.stop(t)
}

// A laptop whose rules lead the network elsewhere, as a VPN's do, is refused: what its iperf3 accepts would go there.
// No mark of Android's keeps it to the interface.
func TestE2EALaptopWithAnotherWayIsRefused(t *testing.T) {
	f := newField(t)
	bravo := f.Nodes["bravo"]
	bravo.Run(t, "ip", "route", "add", "10.77.0.0/24", "dev", "ctl0", "table", "77")
	bravo.Run(t, "ip", "rule", "add", "to", "10.77.0.0/24", "lookup", "77")
	run := f.drive(t, "elsewhere", campaign)
	err := run.Wait(t, 5*time.Minute)
	const says = "node bravo: route: packets to 10.77.0.1 leave by ctl0 and not by wlan0"
	if err == nil || !strings.Contains(run.Said(), says) {
		t.Errorf("it ended with %v, and does not say %q:\n%s", err, says, run.Said())
	}
	bravo.Run(t, "ip", "rule", "del", "to", "10.77.0.0/24", "lookup", "77")
	bravo.Run(t, "ip", "route", "flush", "table", "77")
	f.stop(t)
}
