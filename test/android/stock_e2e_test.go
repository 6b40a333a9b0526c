//go:build e2e

package android

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
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
	"fieldmesh.dev/fieldmesh/internal/pause"
	"fieldmesh.dev/fieldmesh/protocols/wire"
	"fieldmesh.dev/fieldmesh/test/testnet"
)

// TestE2ESoakKillsOfTwoStockPhones drives velocity campaigns by two phones without root, whose agents the phone app
// keeps. All the while something is killed at a random moment: the app, as Android ends it; a program that the app has
// started; a whole phone; or the controller. Every trial is accepted nevertheless, what it carried is what the
// receiver's interface got, and nothing is left. In its short form each is killed once.
func TestE2ESoakKillsOfTwoStockPhones(t *testing.T) {
	isSoak := os.Getenv("FIELDMESH_SOAK") != ""
	k := newStockKilled(t, isSoak)
	times := len(k.victims)
	if isSoak {
		times = soakKills
	}
	received := map[string]func() testnet.Received{}
	for _, p := range k.phones {
		received[p.name] = p.ns().Receives(t, "wlan0", 20*time.Millisecond)
	}
	k.kill(t, times)
	for _, p := range k.phones {
		p.ends(t)
	}
	readings := map[string]testnet.Received{}
	for name, end := range received {
		readings[name] = end()
	}
	runs, err := filepath.Glob(k.desk.path("runs/run-*"))
	if err != nil || len(runs) != k.runs {
		t.Errorf("of %d runs there are %v: %v", k.runs, runs, err)
	}
	for _, run := range runs {
		k.desk.fieldmesh(t, "verify", run)
		k.holds(t, run, readings)
	}
}

// stockKilled are two phones without root and the controller, of which something is killed.
type stockKilled struct {
	*kills
	phones []*stock
}

func newStockKilled(t *testing.T, isSoak bool) *stockKilled {
	t.Helper()
	changes := []string{"radio: {mode: hotspot, access_point: roadside, channel: 6, ssid: fieldmesh}",
		"radio: {mode: none}"}
	k := &stockKilled{kills: &kills{trials: soakTrials}}
	if !isSoak {
		changes = append(changes, "repetitions: 2", "repetitions: 1")
		k.trials /= 2
	}
	alpha, bravo := twoStockPhones(t, soakCampaign(t, changes...))
	k.desk, k.phones = alpha.field, []*stock{alpha, bravo}
	for _, p := range k.phones {
		k.victims = append(k.victims,
			victim{p.name + "'s app, with all that it started", p.killApp},
			victim{p.name + "'s app, and then what it started", p.killAppFirst},
			victim{p.name + "'s agent", func(t *testing.T) { p.killOne(t, agentOfApp+" up") }},
			victim{p.name + "'s face", func(t *testing.T) { p.killOne(t, "fieldmesh-agent face") }},
			victim{p.name + "'s iperf3", func(t *testing.T) { p.killIperf3(t, k.goOn) }},
			victim{p.name + ", whole", p.killPhone})
	}
	k.victims = append(k.victims, victim{"the controller", k.controller})
	return k
}

// What Android lays out of the app's file.
const (
	agentOfApp  = "libfieldmesh_agent.so"
	iperf3OfApp = "libiperf3.so"
)

// sky is where the controller's namespace tells where the car is.
const sky = "10.98.0.1:2947"

// stock is a phone as it is sold, with the phone app.
type stock struct {
	*field
	address  string // by the Wi-Fi that something else keeps
	boots    int
	alone    bool   // the app's own process was killed last without the others
	sky      string // empty: the app gives no fixes
	emulated bool   // its agent is built for Android
	isStrict bool   // its system lets apps bind no sockets to an interface
	app      *testnet.Running
}

// twoStockPhones are alpha, whose app gives its fixes, and bravo. Their agents run.
func twoStockPhones(t *testing.T, campaign string) (alpha, bravo *stock) {
	t.Helper()
	testnet.Need(t, "ip", "ss", "tc", "setpriv")
	pair, dir := testnet.NewPair(t, "10.98.0", [2]string{"alpha", "bravo"}), testnet.Folder(t)
	desk := &field{Pair: pair, dir: dir, name: "alpha", iface: "wlan0"}
	alpha = &stock{field: desk, address: "10.77.0.1/24", sky: sky}
	bravo = &stock{field: &field{Pair: pair, dir: dir, name: "bravo", iface: "wlan0"}, address: "10.77.0.2/24"}
	desk.fieldmesh(t, "keys", "init", "--dir", desk.path("fleet"))
	if err := os.WriteFile(desk.path("campaign.yaml"), []byte(campaign), 0o644); err != nil {
		t.Fatal(err)
	}
	testnet.Start(t, pair.Control.Command(t.Context(), programs+"/fieldmesh-agent", "simulate-gps", "--speeds-mps",
		"2.8,5.6", "--listen", sky)).Says(t, "simulated GPS at")
	for _, p := range []*stock{alpha, bravo} {
		p.install(t)
		p.ns().Run(t, "ip", "address", "add", p.address, "dev", "wlan0")
		p.ns().Run(t, "sysctl", "-qw", "net.ipv4.tcp_congestion_control=reno") // this machine's may pace
		p.before = testnet.Snapshot(t, p.ns().Name)
		p.boot(t)
	}
	return alpha, bravo
}

func (p *stock) ns() *testnet.NS { return p.Nodes[p.name] }

// own is a file of the phone's.
func (p *stock) own(name string) string { return p.path(filepath.Join(p.name, name)) }

// install lays the app's programs and files out, and pairs the node.
func (p *stock) install(t *testing.T) {
	t.Helper()
	for _, folder := range []string{"home", "cache", "app", "programs"} {
		if err := os.MkdirAll(p.own(folder), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for name, of := range map[string]string{agentOfApp: programs + "/fieldmesh-agent", "phoneapp": self,
		iperf3OfApp: testnet.Iperf3(t, "../../packaging/iperf3/build", "x86_64")} {
		text, err := os.ReadFile(of)
		if err == nil {
			err = os.WriteFile(p.own("programs/"+name), text, 0o755)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	p.fieldmesh(t, "keys", "issue", p.name, "--dir", p.path("fleet"), "--address", p.API(p.name))
	testnet.GiveKeys(t, p.path("fleet/nodes/"+p.name), p.own("home/keys"))
	certificate, key, pin, err := keys.New("app")
	if err == nil {
		err = keys.SaveIdentity(p.own("app"), "app", certificate, key)
	}
	if err == nil {
		err = os.WriteFile(p.own("home/agent.yaml"), []byte(p.configuration(t, pin)), 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"home", "cache", "app", "app/app.crt", "app/app.key"} {
		if err := os.Chown(p.own(name), testnet.Nobody, testnet.Nobody); err != nil {
			t.Fatal(err)
		}
	}
}

// inApp is the agent's configuration as the app writes it.
var inApp = regexp.MustCompile(`(?s)val text = """\n(.*?)"""\.trimIndent`)

func (p *stock) configuration(t *testing.T, pin string) string {
	t.Helper()
	text, err := os.ReadFile("../../android-app/core/src/main/kotlin/dev/fieldmesh/core/node/OwnAgent.kt")
	if err != nil {
		t.Fatal(err)
	}
	found := inApp.FindSubmatch(text)
	if found == nil {
		t.Fatal("the app writes no configuration")
	}
	out := strings.NewReplacer("            ", "", "${setup.name}", p.name, "${setup.interfaceName}", p.iface, "$PORT",
		"7443", "$home", p.own("home"), "$keys", p.own("home/keys"), "${setup.app.hex}", pin, "$programs",
		p.own("programs"), "$IPERF3", iperf3OfApp).Replace(string(found[1]))
	if strings.Contains(out, "$") {
		t.Fatalf("the app's configuration has other values:\n%s", out)
	}
	return out
}

// boot switches the phone on, and starts the app. Each boot has an identifier of its own.
func (p *stock) boot(t *testing.T) {
	t.Helper()
	p.boots++
	id := fmt.Sprintf("00000000-0000-4000-8000-%012d\n", p.boots)
	if err := os.WriteFile(p.own("boot_id"), []byte(id), 0o444); err != nil {
		t.Fatal(err)
	}
	p.start(t)
}

// start starts the app, as Android does when the app's service was killed.
func (p *stock) start(t *testing.T) {
	t.Helper()
	app := p.ns().App
	if p.isStrict {
		app = p.ns().StrictApp
	}
	c := app(t, p.own("programs/phoneapp"), p.path(p.name), p.sky)
	const boot = `mount --bind "$0" /proc/sys/kernel/random/boot_id && exec "$@"`
	first := []string{"sh", "-c", boot, p.own("boot_id")}
	if p.emulated {
		first = append([]string{p.emulator(t)}, first...)
	}
	c.Args = slices.Insert(c.Args, slices.Index(c.Args, p.ns().Name)+1, first...)
	p.app = testnet.Start(t, c)
	p.app.Says(t, "node is ready")
}

// ofApp are the app's processes.
func (p *stock) ofApp() (out []int) {
	for _, words := range []string{"phoneapp ", agentOfApp + " up", "fieldmesh-agent face", iperf3OfApp + " "} {
		out = append(out, p.processes(words)...)
	}
	return out
}

// killAtOnce kills all of the app's processes at once, as Android does, which takes the whole control group.
func (p *stock) killAtOnce(t *testing.T) {
	t.Helper()
	testnet.Await(t, 30*time.Second, "the end of the app of "+p.name, func() bool {
		pids := p.ofApp()
		for _, signal := range []syscall.Signal{syscall.SIGSTOP, syscall.SIGKILL} {
			for _, pid := range pids {
				if err := syscall.Kill(pid, signal); err != nil && !errors.Is(err, syscall.ESRCH) {
					t.Error(err)
				}
			}
		}
		return len(pids) == 0
	})
}

func (p *stock) killApp(t *testing.T) {
	p.killAtOnce(t)
	p.start(t)
}

// killAppFirst kills the app's own process, as the kernel does when memory is short. What it has started ends by
// itself, or is killed a moment later, in turn.
func (p *stock) killAppFirst(t *testing.T) {
	if err := p.app.Cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	if p.alone = !p.alone; !p.alone {
		time.Sleep(200 * time.Millisecond)
		p.killAtOnce(t)
	}
	p.start(t)
}

// killOne kills a process that the app has started, as Android does when it finds that there are too many.
func (p *stock) killOne(t *testing.T, words string) {
	before := p.ofApp()
	found := p.processes(words)
	if len(found) != 1 {
		t.Fatalf("%s has the processes %v of %q", p.name, found, words)
	}
	ready := strings.Count(p.app.Said(), "node is ready")
	if err := syscall.Kill(found[0], syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	testnet.Await(t, 2*time.Minute, "the agent of "+p.name+" is ready again", func() bool {
		return strings.Count(p.app.Said(), "node is ready") > ready
	})
	for _, pid := range p.processes(iperf3OfApp + " ") {
		if slices.Contains(before, pid) {
			t.Errorf("%s: iperf3 outlives the agent that started it", p.name)
		}
	}
}

// killIperf3 waits for one. The campaign may end meanwhile: goOn has another begin.
func (p *stock) killIperf3(t *testing.T, goOn func(*testing.T)) {
	var pids []int
	testnet.Await(t, 2*time.Minute, p.name+" runs iperf3", func() bool {
		goOn(t)
		pids = p.processes(iperf3OfApp + " ")
		return len(pids) > 0
	})
	if err := syscall.Kill(pids[0], syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
		t.Fatal(err)
	}
}

// killPhone has the power go. The phone joins its Wi-Fi again, and then its owner starts the app.
func (p *stock) killPhone(t *testing.T) {
	p.killAtOnce(t)
	p.ns().Run(t, "ip", "link", "set", "wlan0", "down")
	p.ns().Run(t, "ip", "address", "flush", "dev", "wlan0")
	p.ns().Run(t, "ss", "-K", "-t")
	time.Sleep(time.Second)
	p.ns().Run(t, "ip", "link", "set", "wlan0", "up")
	p.ns().Run(t, "ip", "address", "add", p.address, "dev", "wlan0")
	p.boot(t)
}

// ends ends the app, after which nothing of it is left but what it has to keep.
func (p *stock) ends(t *testing.T) {
	t.Helper()
	if err := p.app.Stop(t, syscall.SIGTERM); err != nil {
		t.Errorf("%s: the app ended with %v", p.name, err)
	}
	if left := testnet.Pids(p.ns().Name); len(left) > 0 {
		t.Errorf("%s: there are left the processes %v", p.name, left)
	}
	var sockets string
	testnet.Settled(20*time.Second, "", func() string {
		sockets = p.ns().Run(t, "ss", "-Hapntu", "state", "all", "exclude", "time-wait")
		return sockets
	})
	if sockets != "" {
		t.Errorf("%s: there are left the sockets\n%s", p.name, sockets)
	}
	if after := testnet.Snapshot(t, p.ns().Name); after != p.before {
		t.Errorf("%s is not as it was:\n%s", p.name, testnet.Diff(p.before, after))
	}
	for folder, want := range map[string][]string{"cache": nil, "home": {"agent.yaml", "keys", "state"},
		"home/state": {"face", "up.lock"}, "home/state/face": {"run", "spool", "traffic"},
		"home/state/face/traffic": nil} {
		entries, err := os.ReadDir(p.own(folder))
		var names []string
		for _, e := range entries {
			names = append(names, e.Name())
		}
		if err != nil || !slices.Equal(names, want) {
			t.Errorf("%s: in %s there are %v, %v", p.name, folder, names, err)
		}
	}
}

// holds fails the test unless each of a run's trials was accepted once, with what its receiver's interface got.
func (k *kills) holds(t *testing.T, dir string, received map[string]testnet.Received) {
	t.Helper()
	a, err := archive.Read(dir)
	if err != nil {
		t.Fatal(err)
	}
	journal, err := a.Journal()
	if err != nil {
		t.Fatal(err)
	}
	attempts, accepted := map[wire.TrialKey]bool{}, map[int]int{}
	for _, e := range journal {
		if e.Verdict == nil {
			continue
		}
		key := e.Verdict.TrialKey
		if attempts[key] {
			t.Errorf("%s: attempt %d of trial %d was decided twice", dir, key.Attempt, key.Trial)
		}
		if attempts[key] = true; e.Verdict.Outcome == wire.Accepted {
			accepted[key.Trial]++
			holdsAttempt(t, a, key, received)
		}
	}
	for number := 1; number <= k.trials; number++ {
		if accepted[number] != 1 {
			t.Errorf("%s: trial %d was accepted %d times", dir, number, accepted[number])
		}
	}
	for key := range attempts {
		before := key
		if before.Attempt--; before.Attempt > 0 && !attempts[before] {
			t.Errorf("%s: of trial %d there is attempt %d and not the one before", dir, key.Trial, key.Attempt)
		}
	}
}

func holdsAttempt(t *testing.T, a *archive.Archive, key wire.TrialKey, received map[string]testnet.Received) {
	t.Helper()
	trial, _ := a.Trial(key.Trial)
	rows, err := metrics.Of(a, key)
	if err != nil {
		t.Fatal(err)
	}
	records, err := a.All(key.Trial, key.Attempt)
	if err != nil {
		t.Fatal(err)
	}
	at := slices.IndexFunc(rows, func(r metrics.Row) bool { return r.Name == metrics.TransferredMB })
	window := slices.IndexFunc(records, func(r wire.Record) bool {
		_, ok := r.Body.(*wire.Window)
		return ok && r.Node == trial.Receiver
	})
	if at < 0 || window < 0 {
		t.Errorf("%s: attempt %d of trial %d has no figure or no window", a.Dir(), key.Attempt, key.Trial)
		return
	}
	err = received[trial.Receiver].Holds(rows[at].Value, *records[window].Body.(*wire.Window))
	if err != nil {
		t.Errorf("%s: attempt %d of trial %d: %v", a.Dir(), key.Attempt, key.Trial, err)
	}
}

// phoneApp is the phone app as far as its node is concerned, in a folder of the phone's files. It keeps the agent
// running as the app's NodeKeeper does, and gives it the fixes of a sky as its FixPush does.
func phoneApp(dir, sky string) error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	if sky != "" {
		go func() {
			for pause.For(ctx, 500*time.Millisecond) == nil {
				if err := pushFixes(ctx, dir, sky); err != nil {
					fmt.Println("The app: fixes:", err)
				}
			}
		}()
	}
	wait := time.Second
	for ctx.Err() == nil {
		begun := time.Now()
		fmt.Println("The app: the agent ended:", keepAgent(ctx, dir))
		if time.Since(begun) >= time.Minute {
			wait = time.Second
		}
		_ = pause.For(ctx, wait)
		wait = min(2*wait, time.Minute)
	}
	return nil
}

// keepAgent is one life of the agent, which ends in order with its standard input.
func keepAgent(ctx context.Context, dir string) error {
	home := filepath.Join(dir, "home")
	c := exec.Command(filepath.Join(dir, "programs", agentOfApp), "up", "--until-eof", "--config",
		filepath.Join(home, "agent.yaml"))
	c.Dir, c.Env = home, append(os.Environ(), "TMPDIR="+filepath.Join(dir, "cache"))
	said := struct{ io.Writer }{os.Stdout} // a pipe, which breaks when the app is killed
	c.Stdout, c.Stderr = said, said
	input, err := c.StdinPipe()
	if err == nil {
		err = c.Start()
	}
	if err != nil {
		return err
	}
	defer context.AfterFunc(ctx, func() { _ = input.Close() })()
	return c.Wait()
}

// pushFixes gives the node a fix a second, as a phone has them, until the node or the sky does not answer.
func pushFixes(ctx context.Context, dir, sky string) error {
	app, err := keys.LoadIdentity(filepath.Join(dir, "app"))
	if err != nil {
		return err
	}
	own, err := keys.LoadIdentity(filepath.Join(dir, "home/keys"))
	if err != nil {
		return err
	}
	node := &http.Client{Timeout: time.Second,
		Transport: &http.Transport{TLSClientConfig: keys.ClientTLS(app, own.Pin)}}
	defer node.CloseIdleConnections()
	conn, err := net.DialTimeout("tcp", sky, time.Second)
	if err != nil {
		return err
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
	lines := bufio.NewScanner(conn)
	for n := 0; lines.Scan(); n++ {
		var is struct { // as in gpsd_json(5)
			Mode     int     `json:"mode"`
			Time     string  `json:"time"`
			LatDeg   float64 `json:"lat"`
			LonDeg   float64 `json:"lon"`
			SpeedMps float64 `json:"speed"`
			TrackDeg float64 `json:"track"`
		}
		if n%10 != 0 {
			continue
		}
		if err := json.Unmarshal(lines.Bytes(), &is); err != nil {
			return err
		}
		body, err := json.Marshal(wire.Fix{Mode: is.Mode, TimeUTC: is.Time, LatDeg: &is.LatDeg, LonDeg: &is.LonDeg,
			SpeedMps: &is.SpeedMps, TrackDeg: &is.TrackDeg})
		if err != nil {
			return err
		}
		reply, err := node.Post("https://127.0.0.1:7443/v1/gps", "application/json", bytes.NewReader(body))
		if err != nil {
			return err
		}
		text, err := io.ReadAll(reply.Body)
		_ = reply.Body.Close() // it is read
		if err != nil || reply.StatusCode != http.StatusOK {
			return fmt.Errorf("the node answers %s: %s, %w", reply.Status, text, err)
		}
	}
	return lines.Err()
}
