//go:build e2e

package documents

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"fieldmesh.dev/fieldmesh/test/testnet"
)

// programs is the folder of the built programs.
var programs string

func TestMain(m *testing.M) { os.Exit(testnet.WithPrograms(m.Run, &programs)) }

// proved are commands that are not run here, because they want a car, a phone,
// other nodes, machines or hours; each with the test that does what they do.
var proved = []struct{ like, wants, test string }{
	{`^fieldmesh run (?:campaigns/velocity|FILE)`, "a car", "TestARunComesThroughWithoutItsControlLink"},
	{`^fieldmesh run --resume`, "a car", "TestResumeFindsWhatWentOnAlone"},
	{`^fieldmesh run check.yaml`, "two radios", "TestGuestRun"},
	{`^fieldmesh pull `, "nodes that went on alone", "TestPullBringsHomeWhatTheNodesDidAlone"},
	{`^fieldmesh rehearse --resume`, "a rehearsal that was cut", "TestRehearsalSurvivesCuts"},
	{`^fieldmesh rehearse .*--shard`, "several machines", "TestMergedShardsAreTheWholeCampaign"},
	{`^fieldmesh rehearse campaigns/velocity-phones`, "the kernel for virtual time", "TestE2EAPhonesHotspotIsRehearsed"},
	{`^fieldmesh rehearse .*--clock virtual`, "the kernel for virtual time", "TestE2EBusyProcessorsMakeNothingLate"},
	{`^fieldmesh rehearse campaigns/velocity.yaml$`, "minutes", "TestARehearsalReportsWhatACaptureShows"},
	{`^fieldmesh rehearse campaigns/.* --scale \w+`, "an hour", "TestAScaleIsTheSameCampaignShorter"},
	{`^fieldmesh merge\b`, "several machines", "TestMergedShardsAreTheWholeCampaign"},
	{`^fieldmesh (?:calibrate|rehearse runs/.*/calibrated.yaml)`, "a run on the road",
		"TestCalibrateWritesACampaignToRehearse"},
	{`^fieldmesh compare `, "a run on the road", "TestWhatCannotBeComparedIsAbsent"},
	{`^fieldmesh-agent (?:up|probe) --config FILE`, "a user without root", "TestE2EWhatAnOrdinaryNodeCanDoIsTold"},
	{`^fieldmesh keys pair [\w-]+ --app`, "a phone", "TestE2ENodeAndPhoneArePairedByACode"},
	{`^fieldmesh-agent pair --bundle `, "a stick", "TestKeysFromAStickAreTheReaders"},
}

// provedBy is the place of a command in proved, below 0 for none.
func provedBy(typed string) int {
	return slices.IndexFunc(proved, func(p struct{ like, wants, test string }) bool {
		return regexp.MustCompile(p.like).MatchString(typed)
	})
}

// line is a command of the pages and how it is run here.
type line struct {
	typed string // as the pages have it
	run   string // in its place, where something is to be filled in; the program is not repeated
	until string // it goes on until it is interrupted, which is done once it has said this
	says  string // what it has to say
	fails bool   // its status says that something is unmet
}

// session is what a reader would type, in an order in which each has what it
// needs. Words in capitals stand for what takes two programs at once.
func session(db *testnet.Influxd) []line {
	publish := fmt.Sprintf("publish run-1 --influx %s --user %s --password-file %s", db.URL, testnet.InfluxAdmin,
		db.PasswordFile)
	const nodes = "--fleet fleet/fleet.yaml"
	return []line{
		{typed: "fieldmesh init my-campaign", run: "init my-study", says: "my-study.yaml is written"},
		{typed: "fieldmesh init STUDY", run: "init another-study"},
		{typed: "fieldmesh plan check my-campaign.yaml", says: "3 trials"},
		{typed: "fieldmesh plan check", run: "plan check FILE"},
		{typed: "fieldmesh plan check FILE"},
		{typed: "fieldmesh plan show my-campaign.yaml", says: "my-campaign"},
		{typed: "fieldmesh plan show", run: "plan show FILE"},
		{typed: "fieldmesh plan show FILE"},
		{typed: "fieldmesh plan show campaigns/velocity.yaml", says: "16.7"},
		{typed: "fieldmesh plan show campaigns/velocity-powered.yaml"},
		{typed: "fieldmesh plan show campaigns/velocity-phones.yaml", says: "infrastructure, not ad hoc"},
		{typed: "fieldmesh plan show campaigns/variants-chain.yaml"},
		{typed: "fieldmesh plan show campaigns/variants-chain.yaml --scale quick"},
		{typed: "fieldmesh plan show campaigns/fixed-rto.yaml --scale quick"},
		{typed: "fieldmesh plan show campaigns/reference-tcp.yaml --scale quick"},
		{typed: "fieldmesh plan show campaigns/six-variants.yaml --scale quick"},
		{typed: "fieldmesh plan predict FILE", says: "an upper bound for TCP"},
		{typed: "fieldmesh plan predict campaigns/velocity.yaml", says: "goodput Mbit/s"},
		{typed: "fieldmesh field show campaigns/velocity.yaml --at 5 > field.svg",
			run: "field show campaigns/velocity.yaml --at 5", says: "<svg"},
		{typed: "fieldmesh explain KEY", run: "explain hold_s", says: "trial.gate.hold_s"},
		{typed: "fieldmesh simulate-routing --protocol dsr --nodes 10,50,100", says: "100"},
		{typed: "fieldmesh rehearse my-campaign.yaml", run: "rehearse my-campaign.yaml --name run-1 --field-dir fields",
			says: "3 of 3 trials accepted"},
		// that name is taken
		{typed: "fieldmesh rehearse FILE", run: "rehearse FILE --name run-1 --field-dir fields", fails: true,
			says: "run-1"},
		{typed: "fieldmesh runs", says: "run-1"},
		{typed: "fieldmesh verify RUN"},
		{typed: "fieldmesh report RUN"},
		{typed: "fieldmesh report RUN --pdf", says: "report.pdf"},
		{typed: "fieldmesh export RUN"},
		{typed: "fieldmesh export RUN --mcap"},
		{typed: "fieldmesh export RUN --perfetto"},
		{typed: "fieldmesh export RUN --license https://creativecommons.org/licenses/by/4.0/"},
		{typed: "fieldmesh export RUN --redact --to for-others"},
		{typed: "fieldmesh metrics RUN"},
		{typed: "fieldmesh topology RUN --trial 3 --at 4.5 -o mesh.svg"},
		{typed: "fieldmesh topology RUN --trial 3 --paths", says: "bravo"},
		{typed: "fieldmesh live RUN", until: "http://127.0.0.1:7480"},
		{typed: "fieldmesh live RUN --listen 0.0.0.0:7480", until: "token="},
		{typed: "fieldmesh publish RUN --influx http://127.0.0.1:8086", run: publish},
		{typed: "fieldmesh publish RUN --influx URL", run: publish},
		{typed: "fieldmesh-agent probe", says: "iperf3"},
		{typed: "fieldmesh-agent init", run: "init --config first.yaml", says: "next: "},
		{typed: "fieldmesh-agent init --node alpha", run: "init --node alpha --config alpha.yaml", says: "node alpha"},
		{typed: "fieldmesh-agent init --privileges none --config fieldmesh/agent.yaml --node alpha",
			says: "fieldmesh-agent pair --config "},
		{typed: "fieldmesh-agent simulate-gps", until: "simulated GPS at 127.0.0.1:2947"},
		{typed: "fieldmesh-agent log", run: "log --node alpha --interface wlan0 --for-s 1"},
		{typed: "fieldmesh collect fieldmesh-log", says: "records of [alpha]"},
		{typed: "fieldmesh-agent route --protocol aodv --interface wlan0", run: "ROUTE"},
		{typed: "fieldmesh-agent route --interface wlan0 --show state", run: "ROUTED"},
		{typed: "fieldmesh-agent route", run: "ROUTED"},
		{typed: "fieldmesh keys init --dir fleet"},
		{typed: "fieldmesh keys pair alpha --unit laptop-1", run: "PAIR alpha --unit laptop-1"},
		{typed: "fieldmesh-agent pair", run: "PAIRED"},
		{typed: "fieldmesh-agent up", run: "UP"},
		{typed: "fieldmesh nodes", fails: true, says: "alpha: gps: no app tells where the node is"},
		{typed: "fieldmesh nodes --watch", until: "alpha"},
		{typed: "fieldmesh nodes --watch --json", until: `"alpha"`},
		{typed: "fieldmesh preflight campaigns/velocity.yaml " + nodes, fails: true, says: "bravo"},
		{typed: "fieldmesh preflight campaigns/velocity.yaml " + nodes + " --road-m 800 --time 2h", fails: true,
			says: "road"},
		{typed: "fieldmesh preflight FILE", fails: true, says: "bravo"},
		{typed: "fieldmesh preflight campaigns/velocity.yaml --scan", fails: true, says: "alpha"},
		{typed: "fieldmesh nodes restore", says: "alpha"},
		{typed: "fieldmesh nodes restore " + nodes, says: "alpha"},
		{typed: "fieldmesh nodes forget RUN", fails: true, says: "has nothing of run"},
		{typed: "fieldmesh-agent restore", run: "restore --config agent.yaml", says: "nothing to put back"},
		{typed: "fieldmesh serve", until: "campaigns of campaigns"},
		{typed: "fieldmesh serve --discovery=false", until: "campaigns of campaigns"},
		{typed: "fieldmesh keys tell"},
		{typed: "fieldmesh keys issue alpha --dir fleet --address 192.168.8.11:7443", run: "keys issue bravo --dir " +
			"fleet --address 192.168.8.11:7443"},
		{typed: "fieldmesh keys revoke alpha"},
		{typed: "fieldmesh keys init --dir fleet-phones"},
		{typed: "fieldmesh keys pair alpha --unit phone-1", run: "PAIR alpha --unit phone-1"},
	}
}

// commandsOfPages are all that the guides and the README tell to type.
func commandsOfPages(t *testing.T) map[string]bool {
	t.Helper()
	found := map[string]bool{}
	pages, err := filepath.Glob("../../field-guides/*.md")
	if err != nil || len(pages) < 15 {
		t.Fatalf("the guides: %v, %v", pages, err)
	}
	for _, page := range append(pages, "../../README.md") {
		if slices.Contains([]string{"commands.md", "reference.md"}, filepath.Base(page)) {
			continue // made of the programs, and told to nobody to type
		}
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range anywhere.FindAllStringSubmatch(string(text), -1) {
			found[strings.TrimSpace(m[1])] = true
		}
	}
	return found
}

// anywhere finds also what stands behind another program: srun sudo fieldmesh …
var anywhere = regexp.MustCompile("(?m)(?:^    (?:[a-z]+ )?(?:sudo )?|`(?:sudo )?)((?:fieldmesh|fieldmesh-agent) " +
	"[a-z][^`\\n#|]*)")

// Every command of the pages is run by the next test, or is listed with what it
// wants and the test that does it.
func TestE2EPagesCommandsAreKnown(t *testing.T) {
	found, there, used := commandsOfPages(t), declaredTests(t), map[int]bool{}
	for _, p := range proved {
		if !there[p.test] {
			t.Errorf("%s is said to be done by %s, which is nowhere", p.like, p.test)
		}
	}
	for _, l := range session(&testnet.Influxd{}) {
		if !found[l.typed] {
			t.Errorf("%q is in no page any more: take it out of session", l.typed)
		}
		delete(found, l.typed)
	}
	for typed := range found {
		if at := provedBy(typed); at >= 0 {
			used[at] = true
		} else if !onlyShows(typed) {
			t.Errorf("%q is in the pages, and nothing runs it: add it to session, or to proved with its test", typed)
		}
	}
	for i, p := range proved {
		if !used[i] {
			t.Errorf("nothing in the pages is like %s any more: take it out of proved", p.like)
		}
	}
}

// onlyShows tells commands that look at a campaign that ships: they are run as
// they are typed.
func onlyShows(typed string) bool {
	return regexp.MustCompile(`^fieldmesh plan (show|check) campaigns/`).MatchString(typed)
}

// The commands of the pages, in the order of a reader's first days.
func TestE2EPagesCommandsRun(t *testing.T) {
	testnet.Need(t, "ip", "iperf3", "gpsd", "influxd")
	s := newScene(t)
	lines, known := session(testnet.NewInfluxd(t)), map[string]bool{}
	for _, l := range lines {
		known[l.typed] = true
	}
	for typed := range commandsOfPages(t) {
		if onlyShows(typed) && !known[typed] {
			lines = append(lines, line{typed: typed})
		}
	}
	for _, l := range lines {
		started := time.Now()
		s.do(t, l)
		t.Logf("%5.1f s  %s", time.Since(started).Seconds(), l.typed)
	}
	t.Logf("%d commands were run", len(lines))
}

// scene is a controller's desk that is a node too, in a namespace of its own.
type scene struct {
	ns  *testnet.NS
	dir string
}

var smallCampaign = testnet.Standing("my-campaign", "alpha", "bravo", `  duration_s: 5
  gate: {after_s: 1, timeout_s: 60, lead_s: 0.5}
  radio: {mode: adhoc, standard: 802.11b, channel: 1, ssid: desk, rate_mbps: 11}
  routing: {protocol: olsr, hello_s: 0.5}
  tcp: {variant: reno}
  capture: {snap_bytes: 96}
  traffic:
    bulk: {kind: iperf3_tcp, from: sender, to: receiver, streams: 1, window_bytes: 16384, port: 5000}
design: {repetitions: 3, order: as_listed, seed: 1}
acceptance: {attempts_max: 20, lateness_share_max: 1} # a busy machine is late now and then
field:
  propagation: disc
  range_m: 250
  mobility: {model: chain, spacing_m: 200}
`)

func newScene(t *testing.T) *scene {
	t.Helper()
	s := &scene{ns: testnet.NewNS(t, "desk"), dir: testnet.Folder(t)}
	testnet.Veth(t, s.ns, "wlan0", "10.99.0.1/24", testnet.NewNS(t, "air"), "wlan0", "10.99.0.2/24")
	config := fmt.Sprintf("node: alpha\nlisten: 127.0.0.1:7443\ninterface: wlan0\ngpsd: none\nstate_dir: "+
		"%[1]s/state\nkeys_dir: %[1]s/keys\nface_user: \"%[2]d:%[2]d\"\n", s.dir, testnet.Nobody)
	for name, text := range map[string]string{"agent.yaml": config, "FILE": smallCampaign,
		"my-campaign.yaml": strings.ReplaceAll(smallCampaign, "10.77.0.", "192.168.5.")} {
		if err := os.WriteFile(filepath.Join(s.dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.CopyFS(filepath.Join(s.dir, "campaigns"), os.DirFS("../../campaigns")); err != nil {
		t.Fatal(err)
	}
	return s
}

// command is a line's. A rehearsal makes namespaces itself, and InfluxDB is the
// machine's: those are run outside.
func (s *scene) command(t *testing.T, words ...string) *exec.Cmd {
	t.Helper()
	program := filepath.Join(programs, words[0])
	cmd := s.ns.Command(t.Context(), program, words[1:]...)
	if slices.Contains([]string{"rehearse", "publish"}, words[1]) {
		cmd = exec.CommandContext(t.Context(), program, words[1:]...)
	}
	cmd.Dir = s.dir
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	return cmd
}

func (s *scene) do(t *testing.T, l line) {
	t.Helper()
	words := strings.Fields(strings.ReplaceAll(l.typed, "RUN", "run-1"))
	if l.run != "" {
		words = append(words[:1], strings.Fields(l.run)...)
	}
	switch words[1] {
	case "PAIR":
		// As an agent says that is to be paired again.
		if err := os.RemoveAll(filepath.Join(s.dir, "keys")); err != nil {
			t.Fatal(err)
		}
		s.pair(t, words[2:])
		return
	case "ROUTE":
		s.route(t)
		return
	case "PAIRED", "ROUTED": // the one before has run it
		return
	case "UP":
		s.up(t)
		return
	}
	cmd := s.command(t, words...)
	if l.until != "" {
		s.goesOn(t, cmd, l)
		return
	}
	out, err := cmd.CombinedOutput()
	if (err != nil) != l.fails || !strings.Contains(string(out), l.says) {
		t.Errorf("%s: %v, want %q and an error: %t\n%s", strings.Join(words, " "), err, l.says, l.fails, out)
	}
}

// goesOn has a command run until it has said something, and ends on an interrupt.
func (s *scene) goesOn(t *testing.T, cmd *exec.Cmd, l line) {
	t.Helper()
	r := testnet.Start(t, cmd)
	r.Says(t, l.until)
	if err := r.Stop(t, os.Interrupt); err != nil {
		t.Errorf("%s, interrupted: %v", l.typed, err)
	}
}

// pair runs both sides of a pairing: the controller shows a code, the node is
// given it.
func (s *scene) pair(t *testing.T, node []string) {
	t.Helper()
	offer := testnet.Start(t, s.command(t, append([]string{"fieldmesh", "keys", "pair"}, append(node, "--dir", "fleet",
		"--listen", "127.0.0.1:7447", "--qr=false")...)...))
	offer.Says(t, "nobody else")
	code := regexp.MustCompile(`FIELDMESH-PAIR/\S+`).FindString(offer.Said())
	pair := s.command(t, "fieldmesh-agent", "pair", "--config", "agent.yaml")
	pair.Stdin = strings.NewReader(code + "\n")
	out, err := pair.CombinedOutput()
	if err != nil {
		t.Fatalf("pair: %v\n%s", err, out)
	}
	if err := offer.Wait(t, time.Minute); err != nil {
		t.Errorf("the offer ends with %v", err)
	}
}

// route runs a routing protocol, asks it for its state, and ends it.
func (s *scene) route(t *testing.T) {
	t.Helper()
	routes := filepath.Join(s.dir, "routes")
	r := testnet.Start(t, s.command(t, "fieldmesh-agent", "route", "--protocol", "aodv", "--interface", "wlan0",
		"--state-dir", routes))
	testnet.Await(t, time.Minute, "the routing protocol tells its state", func() bool {
		state, err := s.command(t, "fieldmesh-agent", "route", "--interface", "wlan0", "--show", "state", "--state-dir",
			routes).CombinedOutput()
		return err == nil && strings.Contains(string(state), "aodv")
	})
	if err := r.Stop(t, os.Interrupt); err != nil {
		t.Errorf("route, interrupted: %v", err)
	}
}

// up starts the node's agent, which ends with the test.
func (s *scene) up(t *testing.T) {
	t.Helper()
	testnet.Start(t, s.command(t, "fieldmesh-agent", "up", "--config", "agent.yaml")).Says(t, "node is ready")
}
