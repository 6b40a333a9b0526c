//go:build e2e

package host

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"fieldmesh.dev/fieldmesh/node-agent/host/change"
	"fieldmesh.dev/fieldmesh/node-agent/host/flows"
	"fieldmesh.dev/fieldmesh/node-agent/host/netstack"
	"fieldmesh.dev/fieldmesh/node-agent/routing/batman"
	"fieldmesh.dev/fieldmesh/node-agent/routing/control"
	"fieldmesh.dev/fieldmesh/protocols/wire"
	"fieldmesh.dev/fieldmesh/test/testnet"
)

// The test binary plays the other processes too: envRole says which.
const (
	envRole   = "FIELDMESH_HOST_TEST_ROLE" // host | restore | status | squat
	envConfig = "FIELDMESH_HOST_TEST_CONFIG"
)

func TestMain(m *testing.M) {
	if len(os.Args) == 4 && os.Args[1] == "route" { // a daemon of ours is started as the program that runs
		if err := follow(os.Args[3]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	role := os.Getenv(envRole)
	if role == "" {
		os.Exit(m.Run())
	}
	var cfg Config
	if err := json.Unmarshal([]byte(os.Getenv(envConfig)), &cfg); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	cfg.Log = slog.New(slog.NewTextHandler(os.Stderr, nil))
	if err := play(role, cfg); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// follow reads batman-adv's mesh, as `fieldmesh-agent route --config FILE` does.
func follow(file string) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	var cfg control.Config
	if err := json.Unmarshal(text, &cfg); err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	cfg.Log = slog.New(slog.NewTextHandler(os.Stderr, nil))
	return batman.Run(ctx, cfg)
}

func play(role string, cfg Config) error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	switch role {
	case "host":
		return Serve(ctx, cfg)
	case "restore":
		report, err := RestoreByHand(cfg, "")
		return errors.Join(err, json.NewEncoder(os.Stdout).Encode(report))
	case "squat":
		l, err := net.ListenUnix("unix", &net.UnixAddr{Name: aloneName, Net: "unix"})
		if err != nil {
			return err
		}
		fmt.Println("taken")
		<-ctx.Done()
		return l.Close()
	}
	_, err := Dial(cfg.Socket).Status(ctx)
	return err
}

// field is a namespace with an interface that has seen some use.
type field struct {
	ns  *testnet.NS
	cfg Config
}

const device = "wlan0"

// newField joins two namespaces and gives the first all kinds of state that a
// change could lose.
func newField(t *testing.T) (a, b field) {
	t.Helper()
	testnet.Need(t, "ip", "babeld")
	nsA, nsB := testnet.NewNS(t, "hosta"), testnet.NewNS(t, "hostb")
	testnet.Veth(t, nsA, device, "192.168.7.1/24", nsB, device, "192.168.7.2/24")
	for _, line := range []string{
		"addr add 192.168.8.1/24 dev wlan0 valid_lft 4000 preferred_lft 3000",
		"-6 addr add fd99::1/64 dev wlan0 nodad",
		"-6 addr add fe80::77/64 dev wlan0 nodad",
		// As NetworkManager does it: the route to the prefix is its own, and looks like the kernel's.
		"addr add 192.168.12.1/24 dev wlan0 noprefixroute",
		"route add 192.168.12.0/24 dev wlan0 proto kernel scope link src 192.168.12.1 metric 600",
		"route add 172.18.0.0/16 via 192.168.12.9 dev wlan0 metric 600",
		"route add 172.16.0.0/16 via 192.168.7.2 dev wlan0 metric 50 mtu 1300",
		"route add 172.17.0.0/16 dev wlan0 scope link congctl reno",
		"route add 10.77.9.0/24 via 192.168.7.2 dev wlan0 proto 99",
		"route add 10.77.9.0/24 via 192.168.7.2 dev wlan0 table 77",
		"route append 10.77.9.0/24 via 192.168.7.3 dev wlan0 proto 98",
		"-6 route add fdaa::/64 via fd99::2 dev wlan0 metric 5",
		"-6 route add fdab::/64 via fe80::5 dev wlan0",
		"rule add to 172.16.0.0/16 lookup 77",
		"-6 rule add to fdac::/64 lookup 77",
	} {
		nsA.Run(t, "ip", strings.Fields(line)...)
	}
	nsA.Do(t, func() error {
		return errors.Join(
			netstack.WriteSysctl("/proc/sys/net/ipv4/conf/wlan0/rp_filter", "2"),
			netstack.WriteSysctl("/proc/sys/net/ipv4/conf/wlan0/accept_redirects", "1"),
			netstack.WriteSysctl("/proc/sys/net/ipv4/conf/lo/forwarding", "1"),
		)
	})
	return field{nsA, fieldConfig(t)}, field{nsB, fieldConfig(t)}
}

func fieldConfig(t *testing.T) Config {
	t.Helper()
	dir := t.TempDir()
	return Config{
		Socket: filepath.Join(dir, "host.sock"), StateDir: filepath.Join(dir, "host"),
		Interfaces: []string{device}, Prefixes: []netip.Prefix{netip.MustParsePrefix("10.77.0.0/16"),
			netip.MustParsePrefix("fd77::/48")},
		Binaries: map[string]string{babeld: "/usr/sbin/babeld"}, DeadMan: time.Hour,
		ControlPort: wire.DefaultControlPort,
	}
}

// command makes a process that plays a role inside the field.
func (f field) command(t *testing.T, role string) *exec.Cmd {
	t.Helper()
	cfg, err := json.Marshal(f.cfg)
	if err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := f.ns.Command(context.WithoutCancel(t.Context()), self)
	cmd.Env = append(os.Environ(), envRole+"="+role, envConfig+"="+string(cfg))
	return cmd
}

// start starts a host process, waiting until it answers when ready is true.
func (f field) start(t *testing.T, ready bool) (*Client, *exec.Cmd) {
	t.Helper()
	return f.begin(t, f.command(t, "host"), ready)
}

func (f field) begin(t *testing.T, cmd *exec.Cmd, ready bool) (*Client, *exec.Cmd) {
	t.Helper()
	var log testnet.Output
	cmd.Stderr = &log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill() // when the test failed; else it has ended
		_ = cmd.Wait()
		if t.Failed() {
			t.Logf("host in %s:\n%s", f.ns.Name, log.String())
		}
	})
	c := Dial(f.cfg.Socket)
	if ready {
		awaitAnswer(t, c)
	}
	return c, cmd
}

func terminate(t *testing.T, cmd *exec.Cmd) {
	t.Helper()
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("host ended with %v", err)
	}
}

// snapshot adds what testnet's leaves out and these changes could lose.
func (f field) snapshot(t *testing.T) string {
	t.Helper()
	s := withoutPrograms(testnet.Snapshot(t, f.ns.Name))
	// Order and metrics of routes, apart from the kernel's own.
	for _, family := range []string{"-4", "-6"} {
		for line := range strings.Lines(f.ns.Run(t, "ip", family, "route", "show", "table", "all")) {
			if !strings.Contains(line, "proto kernel") && !strings.Contains(line, "table local") {
				s += line
			}
		}
	}
	s += f.ns.Run(t, "ethtool", "-k", device)
	f.ns.Do(t, func() error {
		for _, key := range []string{"accept_dad", "router_solicitations"} {
			v, err := netstack.ReadSysctl("/proc/sys/net/ipv6/conf/wlan0/" + key)
			if err != nil {
				return err
			}
			s += key + " " + v + "\n"
		}
		return nil
	})
	for _, pid := range testnet.Pids(f.ns.Name) {
		exe, err := os.Readlink(fmt.Sprintf("/proc/%d/exe", pid))
		if err == nil && filepath.Base(exe) == babeld {
			s += "babeld runs\n"
		}
	}
	return s + f.programs(t)
}

func mustEqual(t *testing.T, when, before, after string) {
	t.Helper()
	if before != after {
		t.Fatalf("%s: the machine is not as it was:\n%s", when, testnet.Diff(before, after))
	}
}

// runChanges and trialChanges use every kind of change that a namespace can make; the others
// have tests of their own.
func runChanges() []change.Change {
	return []change.Change{
		sysctl("net.ipv6.conf.wlan0.disable_ipv6", "1"),
		change.Link{Interface: device, Up: ptr(true), MTUBytes: ptr(1400)},
		address("10.77.0.1/24"),
		change.Rule{Network: netip.MustParsePrefix("10.77.0.0/24")},
		change.Rule{Network: netip.MustParsePrefix("fd77::/64")},
		closedControl(),
	}
}

func closedControl() change.Change {
	return change.ControlPort{Interface: device, Own: netip.MustParseAddr("10.77.0.1"), Port: wire.DefaultControlPort}
}

func trialChanges() []change.Change {
	via := netip.MustParseAddr("10.77.0.2")
	return []change.Change{
		sysctl("net.ipv4.tcp_congestion_control", "reno"),
		sysctl("net.ipv4.tcp_no_metrics_save", "1"),
		sysctl("net.ipv4.tcp_syn_retries", "127"),
		change.TCPMetrics{Peers: netip.MustParsePrefix("10.77.0.0/24")},
		change.Route{Interface: device, Destination: netip.MustParsePrefix("10.77.9.0/24"), Via: &via,
			Congestion: "reno"},
		change.Route{Interface: device, Destination: netip.MustParsePrefix("10.77.3.0/24"), Via: &via, Metric: 7},
		change.BPFCongestion{Program: "tahoe"},
		change.HeldRTO{Peers: netip.MustParsePrefix("10.77.0.0/24")},
		change.TCPEvents{Flows: []change.TracedFlow{{Port: 5000, ClientPort: 20000, Streams: 6}}},
		change.Offloads{Interface: device},
		change.Admission{Own: netip.MustParseAddr("10.77.0.1"),
			Flows: []flows.End{{Peer: netip.MustParseAddr("10.77.0.2"), Port: 5000, Streams: 6, Server: true}}},
		change.Route{Interface: device, Destination: netip.MustParsePrefix("10.77.0.0/24"),
			Source: ptr(netip.MustParseAddr("10.77.0.1")), QuickAck: true},
		routingDaemon(),
	}
}

func apply(t *testing.T, c *Client, scope string, changes []change.Change) {
	t.Helper()
	if _, err := c.Apply(t.Context(), scope, changes); err != nil {
		t.Fatal(err)
	}
}

func restoreAll(t *testing.T, c *Client) wire.RestoreReport {
	t.Helper()
	report, err := c.Restore(t.Context(), "")
	if err != nil || len(report.Failed) > 0 {
		t.Fatalf("restored %+v, %v", report, err)
	}
	return report
}

func TestE2EEveryChangeIsMadeAndUndone(t *testing.T) {
	f, _ := newField(t)
	before := f.snapshot(t)
	c, cmd := f.start(t, true)
	apply(t, c, ScopeRun, runChanges())
	duringRun := f.snapshot(t)
	apply(t, c, ScopeTrial, trialChanges())
	during := f.snapshot(t)
	for _, want := range []string{
		"mtu 1400", "address 10.77.0.1/24 on wlan0", fmt.Sprintf("rule %d family 2 from <nil> to 10.77.0.0/24",
			change.RulePriority), fmt.Sprintf("rule %d family 10 from <nil> to fd77::/64", change.RulePriority),
		"sysctl net/ipv4/tcp_congestion_control = reno", "babeld runs",
		"10.77.9.0/24 via 10.77.0.2 dev wlan0 proto static congctl reno", "10.77.3.0/24 via 10.77.0.2 dev wlan0 " +
			"proto static metric 7",
		"10.77.0.0/24 dev wlan0 proto static scope link src 10.77.0.1 quickack 1", "congestion control tahoe_",
		"a timer is attached",
		"table inet fieldmesh-control", "table ip fieldmesh-admission",
		"ip daddr 10.77.0.1 ip saddr != 10.77.0.2 tcp dport 5000-5000 counter",
		"sysctl net/ipv4/ip_forward = 1", "sysctl net/ipv4/conf/wlan0/rp_filter = 0",
		"sysctl net/ipv4/conf/all/rp_filter = 0",
	} {
		if !strings.Contains(during, want) {
			t.Errorf("in force there is no %q in\n%s", want, during)
		}
	}
	if _, err := c.Restore(t.Context(), ScopeTrial); err != nil {
		t.Fatal(err)
	}
	mustEqual(t, "after the trial", duringRun, f.snapshot(t))
	apply(t, c, ScopeTrial, trialChanges())
	restoreAll(t, c)
	mustEqual(t, "after the run", before, f.snapshot(t))
	apply(t, c, ScopeRun, []change.Change{change.Link{Interface: device, Up: ptr(false)}})
	if s := f.snapshot(t); strings.Contains(s, "fdaa::/64") || strings.Contains(s, "172.16.0.0/16 via") {
		t.Errorf("the interface is not down:\n%s", s)
	}
	restoreAll(t, c)
	mustEqual(t, "after the interface was down", before, f.snapshot(t))
	apply(t, c, ScopeRun, runChanges())
	apply(t, c, ScopeTrial, trialChanges())
	terminate(t, cmd)
	mustEqual(t, "after SIGTERM", before, f.snapshot(t))
	left, err := filepath.Glob(filepath.Join(f.cfg.StateDir, "daemons", "*"))
	if err != nil || len(left) > 0 {
		t.Errorf("left of daemons: %v, %v", left, err)
	}
}

// A rule that the run's first trial did not need is made for a later one, when
// somebody's rules have come meanwhile.
func TestE2EARuleIsMadeWhenItIsNeededLater(t *testing.T) {
	f, _ := newField(t)
	before := f.snapshot(t)
	c, _ := f.start(t, true)
	f.ns.Run(t, "ip", "rule", "del", "to", "172.16.0.0/16") // of newField's: the machine has the kernel's own only
	rule := []change.Change{change.Rule{Network: netip.MustParsePrefix("10.77.0.0/24")}}
	added := fmt.Sprintf("rule %d family 2 from <nil> to 10.77.0.0/24", change.RulePriority)
	for i, want := range []bool{false, false, true, true} {
		if i == 2 {
			f.ns.Run(t, "ip", "rule", "add", "to", "172.16.0.0/16", "lookup", "77")
		}
		apply(t, c, ScopeRun, rule)
		if got := strings.Contains(f.snapshot(t), added); got != want {
			t.Errorf("for trial %d there is the rule: %t, want %t", i+1, got, want)
		}
	}
	restoreAll(t, c)
	mustEqual(t, "after the run", before, f.snapshot(t))
}

func TestE2EAnErrorLeavesNothingOfItsCall(t *testing.T) {
	f, _ := newField(t)
	c, cmd := f.start(t, true)
	apply(t, c, ScopeRun, runChanges())
	before := f.snapshot(t)
	_, err := c.Apply(t.Context(), ScopeTrial,
		append(trialChanges(), sysctl("net.ipv4.tcp_congestion_control", "nosuch")))
	if err == nil || !strings.Contains(err.Error(), "tcp_congestion_control=nosuch") ||
		!strings.Contains(err.Error(), "this kernel has: reno") {
		t.Errorf("unknown congestion control: %v", err)
	}
	mustEqual(t, "after a failed call", before, f.snapshot(t))
	var refused *change.Refused
	_, err = c.Apply(t.Context(), ScopeTrial, append(trialChanges(), sysctl("net.ipv4.tcp_nosuch", "1")))
	if !errors.As(err, &refused) || !strings.Contains(refused.Change, "tcp_nosuch") {
		t.Errorf("unknown sysctl: %v", err)
	}
	mustEqual(t, "after a refused call", before, f.snapshot(t))
	terminate(t, cmd)
}

// TestE2ESIGKILL kills real host processes at random moments of a life in
// which every kind of change is made and undone over and over. The next life,
// or a restore by hand, must find and put back everything.
func TestE2ESIGKILL(t *testing.T) { killed(t, 20) }

func TestSoakSIGKILL(t *testing.T) {
	testnet.NeedSet(t, "FIELDMESH_SOAK", "200 kills take long")
	killed(t, 200)
}

func killed(t *testing.T, times int) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	f, _ := newField(t)
	before := f.snapshot(t)
	inForce := 0
	for i := range times {
		c, cmd := f.start(t, false)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() {
			defer close(done)
			busy(ctx, c)
		}()
		time.Sleep(time.Duration(random.Int64N(int64(600 * time.Millisecond))))
		if err := cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		_ = cmd.Wait() // "signal: killed"
		cancel()
		<-done
		if f.snapshot(t) != before {
			inForce++
		}
		if i%2 == 0 {
			f.restoreByHand(t)
		} else {
			_, next := f.start(t, true)
			mustEqual(t, fmt.Sprintf("seed %d, kill %d, next life", seed, i), before, f.snapshot(t))
			terminate(t, next)
		}
		mustEqual(t, fmt.Sprintf("seed %d, kill %d", seed, i), before, f.snapshot(t))
	}
	t.Logf("%d of %d kills left changes in force", inForce, times)
	if inForce == 0 {
		t.Error("no kill hit a moment with changes in force")
	}
}

// restoreByHand is what a person does when no host process runs.
func (f field) restoreByHand(t *testing.T) string {
	t.Helper()
	out, err := f.command(t, "restore").CombinedOutput()
	if err != nil {
		t.Fatalf("restore by hand: %v\n%s", err, out)
	}
	return string(out)
}

// busy lives a run's life over and over; its errors are those of a host that
// is killed or not there yet.
func busy(ctx context.Context, c *Client) {
	for ctx.Err() == nil {
		_, _ = c.Apply(ctx, ScopeRun, runChanges())
		_, _ = c.Apply(ctx, ScopeTrial, trialChanges())
		_, _ = c.Restore(ctx, ScopeTrial)
		_, _ = c.Restore(ctx, "")
		time.Sleep(time.Millisecond)
	}
}

// TestE2EBabeldFindsItsNeighbour runs it on both ends; a killed babeld leaves
// routes, and they go too.
func TestE2EBabeldFindsItsNeighbour(t *testing.T) {
	a, b := newField(t)
	var befores []string
	for _, f := range []field{a, b} { // a radio has a link-local address; testnet's links have none
		for _, how := range [][]string{{"addrgenmode", "eui64"}, {"down"}, {"up"}} {
			f.ns.Run(t, "ip", append([]string{"link", "set", "dev", device}, how...)...)
		}
	}
	for _, f := range []field{a, b} {
		awaitOutput(t, f, "fe80", "-6", "addr", "show", "dev", device)
		befores = append(befores, f.snapshot(t))
	}
	var clients []*Client
	var hosts []*exec.Cmd
	hello := 0.5
	for i, f := range []field{a, b} {
		c, cmd := f.start(t, true)
		apply(t, c, ScopeRun, []change.Change{
			sysctl("net.ipv6.conf.wlan0.disable_ipv6", "1"), address(fmt.Sprintf("10.77.0.%d/24", i+1)),
		})
		d := routingDaemon()
		d.HelloS = &hello
		apply(t, c, ScopeTrial, []change.Change{d})
		clients, hosts = append(clients, c), append(hosts, cmd)
	}
	awaitOutput(t, a, "10.77.0.2", "-4", "route", "show", "proto", "babel")
	for _, pid := range testnet.Pids(a.ns.Name) {
		if exe, err := os.Readlink(fmt.Sprintf("/proc/%d/exe", pid)); err == nil && filepath.Base(exe) == babeld {
			if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
				t.Fatal(err)
			}
		}
	}
	if routes := a.ns.Run(t, "ip", "-4", "route", "show", "proto", "babel"); routes == "" {
		t.Error("a killed babeld left no route: this test shows nothing")
	}
	for i, f := range []field{a, b} {
		restoreAll(t, clients[i])
		mustEqual(t, f.ns.Name, befores[i], f.snapshot(t))
		terminate(t, hosts[i])
	}
}

// awaitOutput waits until ip(8) says something.
func awaitOutput(t *testing.T, f field, want string, args ...string) {
	t.Helper()
	for until := time.Now().Add(60 * time.Second); ; time.Sleep(50 * time.Millisecond) {
		got := f.ns.Run(t, "ip", args...)
		if strings.Contains(got, want) {
			return
		}
		if time.Now().After(until) {
			t.Fatalf("ip %s says %q, never %q", strings.Join(args, " "), got, want)
		}
	}
}

func TestE2EAnInterfaceThatVanishes(t *testing.T) {
	f, _ := newField(t)
	c, cmd := f.start(t, true)
	apply(t, c, ScopeRun, runChanges())
	apply(t, c, ScopeTrial, trialChanges())
	f.ns.Run(t, "ip", "link", "del", device)
	f.ns.Run(t, "ip", "link", "add", device, "type", "veth", "peer", "name", "far0") // another one by its name
	report := restoreAll(t, c)
	if len(report.Undone) != len(runChanges())+len(trialChanges()) ||
		!strings.Contains(strings.Join(report.Undone, "\n"), "address 10.77.0.1/24 on wlan0 (interface wlan0 "+
			"is gone)") ||
		!strings.Contains(strings.Join(report.Undone, "\n"), "congctl reno (interface wlan0 is gone)") {
		t.Errorf("report %q", report.Undone)
	}
	if s := f.snapshot(t); strings.Contains(s, "babeld runs") || strings.Contains(s, "10.77.0.1") {
		t.Errorf("left in force:\n%s", s)
	}
	terminate(t, cmd)
}

// copyForStrangers copies this program to where every user may start it, and returns the folder.
func copyForStrangers(t *testing.T) (dir string) {
	t.Helper()
	dir, err := os.MkdirTemp("", "host-stranger")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	program, err := os.ReadFile("/proc/self/exe")
	if err == nil {
		err = errors.Join(os.Chmod(dir, 0o755), os.WriteFile(filepath.Join(dir, "program"), program, 0o755))
	}
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

//attack:local a local user on the host process's socket
func TestE2EStrangersAndWrongNamespaces(t *testing.T) {
	f, other := newField(t)
	want := f.snapshot(t)
	c, cmd := f.start(t, true)
	apply(t, c, ScopeRun, runChanges())

	dir := copyForStrangers(t) // and a way to the socket
	socket := filepath.Join(dir, "host.sock")
	copied := filepath.Join(dir, "program")
	if err := os.Link(f.cfg.Socket, socket); err != nil {
		t.Fatal(err)
	}
	cfg, err := json.Marshal(Config{Socket: socket})
	if err != nil {
		t.Fatal(err)
	}
	for mode, want := range map[os.FileMode]string{0o600: "permission denied", 0o666: "user 65534 may not change " +
		"this machine"} {
		if err := os.Chmod(socket, mode); err != nil {
			t.Fatal(err)
		}
		stranger := exec.CommandContext(t.Context(), copied)
		stranger.Dir = "/"
		stranger.Env = []string{envRole + "=status", envConfig + "=" + string(cfg)}
		stranger.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
		if out, err := stranger.CombinedOutput(); err == nil || !strings.Contains(string(out), want) {
			t.Errorf("a stranger at a socket of mode %o: %v %s", mode, err, out)
		}
	}

	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // "signal: killed"
	wrong := field{ns: other.ns, cfg: f.cfg}
	out, err := wrong.command(t, "restore").CombinedOutput()
	if err != nil || !strings.Contains(string(out), "ip netns exec "+f.ns.Name+" fieldmesh-agent restore") {
		t.Errorf("restore in another namespace: %v\n%s", err, out)
	}
	f.restoreByHand(t)
	mustEqual(t, "after a restore in the right namespace", want, f.snapshot(t))
}

// A change that is pending from another namespace is in force there. Here it is made, and taken back.
func TestE2EAChangeOfAnotherNamespaceIsMadeHereToo(t *testing.T) {
	f, other := newField(t)
	c, cmd := f.start(t, true)
	changes := []change.Change{sysctl(sack, "0")}
	apply(t, c, ScopeRun, changes)
	_ = cmd.Process.Kill()
	_ = cmd.Wait() // "signal: killed"
	want := other.snapshot(t)
	here := field{ns: other.ns, cfg: f.cfg}
	c, cmd = here.start(t, true)
	if made, err := c.Apply(t.Context(), ScopeRun, changes); err != nil || len(made) != 1 {
		t.Errorf("made %v, %v", made, err)
	}
	if is := here.ns.Run(t, "cat", "/proc/sys/net/ipv4/tcp_sack"); is != "0\n" {
		t.Errorf("tcp_sack is %q", is)
	}
	if report, err := c.Restore(t.Context(), ""); err != nil || len(report.Undone) != 1 || len(report.Failed) != 1 {
		t.Errorf("report %+v, %v", report, err)
	}
	mustEqual(t, "after the restore", want, other.snapshot(t))
	_ = cmd.Process.Kill()
	_ = cmd.Wait() // "signal: killed"
	f.restoreByHand(t)
}
