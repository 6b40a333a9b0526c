//go:build e2e

package journeys

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"fieldmesh.dev/fieldmesh/controller/fleet"
	"fieldmesh.dev/fieldmesh/controller/metrics"
	"fieldmesh.dev/fieldmesh/controller/plan"
	"fieldmesh.dev/fieldmesh/controller/preflight"
	"fieldmesh.dev/fieldmesh/internal/keys"
	"fieldmesh.dev/fieldmesh/protocols/wire"
	"fieldmesh.dev/fieldmesh/rehearsal/field"
	"fieldmesh.dev/fieldmesh/test/testnet"
)

// skew is a clock file's contents, as an agent reads them.
type skew struct {
	BootOffsetNs int64   `json:"boot_offset_ns"`
	WallOffsetNs int64   `json:"wall_offset_ns"`
	DriftPpm     float64 `json:"drift_ppm"`
	FromBootNs   int64   `json:"from_boot_ns"`
}

// of is the node's boot clock when the machine's is at bootNs.
func (s skew) of(bootNs int64) float64 {
	return float64(bootNs) + float64(s.BootOffsetNs) + s.DriftPpm*1e-6*float64(bootNs-s.FromBootNs)
}

// machines are what the nodes take for their machines' batteries, thermometers
// and clocks: folders and files that a test writes.
type machines struct {
	t   *testing.T
	dir string
}

func newMachines(t *testing.T) *machines {
	m := &machines{t: t, dir: testnet.Folder(t)}
	for _, n := range deskNodes {
		m.battery(n, 80, "Discharging")
		m.heat(n, 51)
		m.clock(n, skew{})
	}
	return m
}

// lines are those of agent.yaml.
func (m *machines) lines() string {
	return fmt.Sprintf("sysfs_dir: %s/NODE\nclock_file: %[1]s/NODE.clock\n", m.dir)
}

// put writes a file whole, so that nobody reads half of one.
func (m *machines) put(path, text string) {
	m.t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		m.t.Fatal(err)
	}
	if err := os.WriteFile(path+"~", []byte(text), 0o644); err != nil {
		m.t.Fatal(err)
	}
	if err := os.Rename(path+"~", path); err != nil {
		m.t.Fatal(err)
	}
}

func (m *machines) battery(node string, percent int, status string) {
	m.t.Helper()
	for name, text := range map[string]string{"type": "Battery", "capacity": fmt.Sprint(percent), "status": status} {
		m.put(filepath.Join(m.dir, node, "class", "power_supply", "BAT0", name), text+"\n")
	}
}

func (m *machines) heat(node string, celsius int) {
	m.t.Helper()
	for name, text := range map[string]string{"type": "cpu", "temp": fmt.Sprint(1000 * celsius)} {
		m.put(filepath.Join(m.dir, node, "class", "thermal", "thermal_zone0", name), text+"\n")
	}
}

func (m *machines) clock(node string, s skew) {
	m.t.Helper()
	text, err := json.Marshal(s)
	if err != nil {
		m.t.Fatal(err)
	}
	m.put(filepath.Join(m.dir, node+".clock"), string(text))
}

// A gpsd that is killed, a wall clock that is stepped by an hour and a battery
// that runs low, each in the middle of a window: each trial ends with its
// reason recorded, and the campaign goes on.
func TestMishapsOfAFieldDay(t *testing.T) {
	m := newMachines(t)
	d := newDesk(t, m.lines())
	file := stationary(t, "fieldday", "[5.6, 16.7]", "duration_s: 3", "duration_s: 8")
	reasons := map[string]string{
		"5.6 A":  "gps: ",
		"5.6 B":  "clock_stepped: on bravo: the wall clock was put forward by 1h0m0s",
		"16.7 A": "3 % left, the limit is 5 %",
		"16.7 B": "", // nothing happens in it
	}
	cell := func(trial wire.Trial) string { return trial.Factors["speed"] + " " + trial.Factors["section"] }
	c := d.start(t, file)
	c.steps = func(step string, k wire.TrialKey) {
		if k.Attempt != 1 {
			return
		}
		switch step + " " + cell(c.trials[k.Trial]) {
		case "measuring 5.6 A":
			d.receiver.killGPSD(t)
		case "kept 5.6 A":
			d.receiver.startGPSD(t)
		case "measuring 5.6 B":
			m.clock("bravo", skew{WallOffsetNs: time.Hour.Nanoseconds()})
		case "measuring 16.7 A":
			m.battery("alpha", 3, "Discharging")
		case "restoring 16.7 A", "kept 16.7 A":
			m.battery("alpha", 90, "Charging")
		}
	}
	c.drive(t, 10*time.Minute, c.run.Over)
	for i := 0; c.run.Wait(t, time.Minute) != nil && i < 2; i++ {
		// The next trial was begun before the battery was changed: a person takes
		// the run up again, with the clock set right.
		if said := c.run.Said(); !strings.Contains(said, "cannot begin a trial: battery: ") {
			t.Fatalf("fieldmesh run: %s", said)
		}
		m.battery("alpha", 90, "Charging")
		m.clock("bravo", skew{})
		c.run = begin(t, "run", "--resume", c.runDir(), "--fleet", d.fleetFile())
		c.drive(t, 10*time.Minute, c.run.Over)
	}
	if err := c.run.Wait(t, time.Minute); err != nil {
		t.Fatalf("fieldmesh run: %v\n%s", err, c.run.Said())
	}
	d.restored(t)
	k := openRun(t, c.runDir())
	k.nothingLost(t, deskNodes...)
	accepted := map[int]bool{}
	for _, at := range k.attempts {
		reason := reasons[cell(c.trials[at.Trial])]
		t.Logf("trial %d attempt %d, %s: %s %q", at.Trial, at.Attempt, cell(c.trials[at.Trial]), at.Verdict.Outcome,
			at.Verdict.Reason)
		if late(at) {
			continue
		}
		if at.Attempt == 1 && (at.Verdict.Outcome == "accepted") != (reason == "") {
			t.Errorf("trial %d: %s", at.Trial, at.Verdict.Outcome)
		}
		if at.Attempt == 1 && !strings.Contains(at.Verdict.Reason.String(), reason) {
			t.Errorf("trial %d: %q does not report %q", at.Trial, at.Verdict.Reason, reason)
		}
		accepted[at.Trial] = accepted[at.Trial] || at.Verdict.Outcome == "accepted"
		k.everyChangeUndone(t, at.TrialKey)
		k.tellsOfTheMachines(t, at.TrialKey, reason)
	}
	for n := range c.trials {
		if !accepted[n] {
			t.Errorf("trial %d was not accepted in the end", n)
		}
	}
}

// tellsOfTheMachines: every attempt's records have each node's battery and wall
// clock, and what went wrong with them.
func (k kept) tellsOfTheMachines(t *testing.T, key wire.TrialKey, reason string) {
	t.Helper()
	told := map[string]int{}
	alarm, stepped := false, false
	for _, r := range k.records(t, key) {
		switch b := r.Body.(type) {
		case *wire.Machine:
			told[r.Node+" machine"]++
			alarm = alarm || !b.Alarm.IsZero()
			if b.BatteryPercent == nil || b.TemperatureC == nil {
				t.Errorf("trial %d: %s: %+v", key.Trial, r.Node, b)
			}
		case *wire.WallClock:
			told[r.Node+" clock"]++
			stepped = stepped || b.SteppedNs != nil
			if r.Node == "alpha" && key.Attempt > 1 && b.GPSOffsetNs == nil {
				t.Errorf("trial %d: alpha has GPS, and does not say where its clock stands to it: %+v", key.Trial, b)
			}
			// The test's receiver tells its time as it is, some milliseconds late.
			if r.Node == "alpha" && b.GPSOffsetNs != nil && math.Abs(float64(*b.GPSOffsetNs)) >
				10*wire.NMEATimeUncertaintyNs {
				t.Errorf("trial %d: GPS time is %d ns off alpha's clock", key.Trial, *b.GPSOffsetNs)
			}
		}
	}
	for _, n := range deskNodes {
		if told[n+" machine"] == 0 || told[n+" clock"] == 0 {
			t.Errorf("trial %d attempt %d: %s tells %v", key.Trial, key.Attempt, n, told)
		}
	}
	if first := key.Attempt == 1; alarm != (first && strings.Contains(reason, "%")) ||
		stepped != (first && strings.HasPrefix(reason, "clock")) {
		t.Errorf("trial %d attempt %d: alarm %v, stepped %v", key.Trial, key.Attempt, alarm, stepped)
	}
}

// unmetNeeds runs preflight and gives its unmet needs, "node need", in order.
func unmetNeeds(t *testing.T, fleetFile, campaign string, args ...string) (unmet []string, report preflight.Report) {
	t.Helper()
	cmd := exec.Command(filepath.Join(programs, "fieldmesh"),
		append([]string{"preflight", campaign, "--fleet", fleetFile, "--json"}, args...)...)
	text, err := cmd.Output() // its status reports whether all is met
	if jerr := json.Unmarshal(text, &report); jerr != nil {
		t.Fatalf("%v: %v, %v\n%s", cmd.Args, err, jerr, text)
	}
	for _, i := range report.Items {
		if i.State == preflight.Unmet {
			unmet = append(unmet, strings.TrimSpace(i.Node+" "+i.Need))
			if i.Cure == "" {
				t.Errorf("no cure for %+v", i)
			}
		}
	}
	if report.Pass != (len(unmet) == 0) || (err == nil) != report.Pass {
		t.Errorf("pass %v, unmet %v, exit %v", report.Pass, unmet, err)
	}
	slices.Sort(unmet)
	return unmet, report
}

// Each need is spoilt in turn on real agents; preflight names it, on the node
// where it is so, with its cure, and nothing else.
func TestPreflightNamesWhatIsNotMet(t *testing.T) {
	m := newMachines(t)
	d := newDesk(t, m.lines()+"binaries: {olsrd: /nonexistent/olsrd}\n")
	const shipped = "stationary-check.yaml"
	plain := variant(t, shipped, "plain")
	passes := func() {
		t.Helper()
		testnet.Await(t, 30*time.Second, "preflight passes, once fixes have come", func() bool {
			unmet, report := unmetNeeds(t, d.fleetFile(), plain)
			return len(unmet) == 0 && slices.ContainsFunc(report.Items, func(i preflight.Item) bool {
				return i.Need == "gps_rate" && i.State == preflight.Met
			})
		})
	}
	passes()
	t.Logf("fieldmesh preflight:\n%s", fieldmesh(t, "preflight", plain, "--fleet", d.fleetFile()))
	strange := filepath.Join(filepath.Dir(d.fleetFile()), "strange.yaml")
	for name, c := range map[string]struct {
		campaign    string
		fleet       string
		spoil, mend func()
		want        []string
	}{
		"battery": {spoil: func() {
			m.battery("alpha", 3, "Discharging")
		}, mend: func() { m.battery("alpha", 80, "Full") }, want: []string{"alpha battery"}},
		"heat": {spoil: func() {
			m.heat("bravo", 99)
		}, mend: func() { m.heat("bravo", 40) }, want: []string{"bravo temperature"}},
		"1970": {spoil: func() {
			m.clock("alpha", skew{WallOffsetNs: -time.Now().UnixNano()})
		}, mend: func() { m.clock("alpha", skew{}) }, want: []string{"alpha wall_clock"}},
		"two hours": {spoil: func() {
			m.clock("bravo", skew{WallOffsetNs: 2 * time.Hour.Nanoseconds()})
		}, mend: func() { m.clock("bravo", skew{}) }, want: []string{"bravo wall_clock"}},
		"gpsd": {spoil: func() {
			d.receiver.pause(t, true)
			time.Sleep(4 * time.Second)
		}, mend: func() { d.receiver.pause(t, false); passes() }, want: []string{"alpha gps"}},
		"control": {spoil: func() {
			d.control.Run(t, "ip", "link", "set", "bravo", "down")
		}, mend: func() { d.control.Run(t, "ip", "link", "set", "bravo", "up") }, want: []string{"bravo reach"}},
		"radio": {campaign: variant(t, shipped, "radio", "radio: {mode: none}", "radio: {mode: adhoc, standard: "+
			"802.11g, channel: 6, ssid: x}"), want: []string{"alpha radio", "bravo radio"}},
		"tcp": {campaign: variant(t, shipped, "tcp", "tcp: {variant: reno}", "tcp: {variant: yeah}"),
			want: []string{"alpha tcp", "bravo tcp"}},
		"routing": {campaign: variant(t, shipped, "routing", "routing: {protocol: none}",
			"routing: {protocol: olsrd}"), want: []string{"alpha routing", "bravo routing"}},
		"clock": {campaign: variant(t, shipped, "clock", "clock_error_ms_max: 20", "clock_error_ms_max: 0.00001"),
			want: []string{"alpha clock", "bravo clock"}},
		"disk": {campaign: variant(t, shipped, "disk", "duration_s: 3", "duration_s: 3600\n  sample_hz: 100"),
			want: []string{"alpha disk", "bravo disk"}},
		"not there": {campaign: variant(t, shipped, "who", "bravo: {unit: laptop-2", "charlie: {unit: laptop-2",
			"roadside: bravo", "roadside: charlie"), want: []string{"charlie reach"}},
		"a stranger": {fleet: strange, spoil: func() { d.strangeFleet(t, strange) }, want: []string{"alpha key"}},
	} {
		if c.spoil != nil {
			c.spoil()
		}
		if c.campaign == "" {
			c.campaign = plain
		}
		if c.fleet == "" {
			c.fleet = d.fleetFile()
		}
		settles(t, name, c.fleet, c.campaign, c.want...)
		if c.mend != nil {
			c.mend()
		}
	}
	settles(t, "with all mended", d.fleetFile(), plain)
}

// settles waits until just these needs are unmet: what a test has changed, a node
// notices a little later.
func settles(t *testing.T, when, fleetFile, campaign string, want ...string) {
	t.Helper()
	var unmet []string
	var report preflight.Report
	for until := time.Now().Add(30 * time.Second); time.Now().Before(until); time.Sleep(100 * time.Millisecond) {
		if unmet, report = unmetNeeds(t, fleetFile, campaign); slices.Equal(unmet, want) {
			return
		}
	}
	t.Errorf("%s: unmet %v, want %v\n%+v", when, unmet, want, report.Items)
}

// strangeFleet writes a fleet file that takes alpha's key for another's.
func (d *desk) strangeFleet(t *testing.T, path string) {
	t.Helper()
	text, err := os.ReadFile(d.fleetFile())
	if err != nil {
		t.Fatal(err)
	}
	pin := d.fleet.Nodes["alpha"].Pin
	other := strings.Repeat("ab", len(pin)/2)
	if err := os.WriteFile(path, []byte(strings.ReplaceAll(string(text), pin, other)), 0o644); err != nil {
		t.Fatal(err)
	}
}

// Nodes whose clocks are far apart, and drift, are put on one time axis within
// what is stated, and that is at most 2 ms on a LAN.
func TestClocksFarApartAreAligned(t *testing.T) {
	const limitNs = 2e6
	m := newMachines(t)
	d := newDesk(t, m.lines())
	alpha := clientOf(t, d.fleet, "alpha")
	for _, offsetS := range []float64{0.3, 5, -40} {
		s := skew{BootOffsetNs: int64(offsetS * 1e9), WallOffsetNs: int64(offsetS * 1e9), DriftPpm: 50,
			FromBootNs: testnet.BootNs() - 100e9}
		m.clock("alpha", s)
		time.Sleep(200 * time.Millisecond) // it is looked at again
		est := d.compare(t, alpha)
		at := testnet.BootNs()
		off := float64(est.OffsetNs) - (s.of(at) - float64(at))
		t.Logf("%+g s and 50 ppm: estimated %.6f s ± %.3f ms, off by %.3f ms", offsetS, float64(est.OffsetNs)/1e9,
			float64(est.UncertaintyNs)/1e6, off/1e6)
		// The comparison was some milliseconds before; at 50 ppm that is nothing.
		if math.Abs(off) > float64(est.UncertaintyNs)+1000 || est.UncertaintyNs > limitNs {
			t.Errorf("%+g s: off by %.0f ns, stated %d ns", offsetS, off, est.UncertaintyNs)
		}
	}

	skews := map[string]skew{
		"alpha": {BootOffsetNs: 5e9, WallOffsetNs: 5e9, DriftPpm: 50, FromBootNs: testnet.BootNs()},
		"bravo": {BootOffsetNs: -40e9, WallOffsetNs: 0.3e9, DriftPpm: -50, FromBootNs: testnet.BootNs()},
	}
	for n, s := range skews {
		m.clock(n, s)
	}
	// No real boot clock ever steps. Until the steps of this one are out of what
	// the node looks back over, it tells a rate of fixes that is none.
	testnet.Await(t, 20*time.Second, "alpha tells ten fixes a second", func() bool {
		st, err := alpha.Status(t.Context())
		return err == nil && st.GPSRateHz != nil && math.Abs(*st.GPSRateHz-10) < 3
	})
	c := d.start(t, stationary(t, "apart", "[16.7]"))
	c.steps = func(string, wire.TrialKey) {}
	k := c.finish(t, 10*time.Minute)
	for _, at := range k.attempts {
		if late(at) {
			continue
		}
		loaded, err := metrics.Load(k.Archive, at.TrialKey)
		if err != nil {
			t.Fatal(err)
		}
		for _, n := range slices.Sorted(maps.Keys(skews)) {
			clocks, ok := loaded.Clocks(n, n)
			fit := clocks.Fits[n]
			uncertainty := fit.UncertaintyNs
			if !ok || uncertainty > limitNs {
				t.Fatalf("trial %d: %s: aligned %v, within %.0f ns", at.Trial, n, ok, uncertainty)
			}
			w := windowOf(t, loaded.Records(), n)
			worst := 0.0
			for _, theirs := range []int64{w.OpenBootNs, (w.OpenBootNs + w.CloseBootNs) / 2, w.CloseBootNs} {
				machine := fit.Common(theirs) // the controller goes by the machine's own clock
				worst = max(worst, math.Abs(skews[n].of(machine)-float64(theirs)))
			}
			t.Logf("trial %d: %s is aligned within %.3f ms, off by %.3f ms at most", at.Trial, n, uncertainty/1e6,
				worst/1e6)
			if worst > uncertainty+1000 {
				t.Errorf("trial %d: %s: off by %.0f ns, stated %.0f ns", at.Trial, n, worst, uncertainty)
			}
		}
		if v := at.Verdict; v.Outcome != "accepted" {
			t.Errorf("trial %d: %+v", at.Trial, v)
		}
	}
}

// compare compares a node's clocks with ours, again while the machine is too
// busy to answer within the limit.
func (d *desk) compare(t *testing.T, c *fleet.Client) wire.Clock {
	t.Helper()
	var best wire.Clock
	for i := range 20 {
		est, err := c.ClockOffset(t.Context(), 8)
		if err != nil {
			t.Fatal(err)
		}
		if best = est; est.UncertaintyNs <= 2e6 {
			return best
		}
		t.Logf("comparison %d: ± %.3f ms", i+1, float64(est.UncertaintyNs)/1e6)
	}
	return best
}

// In a rehearsal's fleet preflight passes as it is, and names what a fault of
// the field makes of it.
func TestPreflightInARehearsal(t *testing.T) {
	testnet.Need(t, "ip", "gpsd", "iperf3")
	dir := testnet.Folder(t)
	identity, err := fleet.Init(filepath.Join(dir, "keys"))
	if err != nil {
		t.Fatal(err)
	}
	emulated, err := field.Start(context.WithoutCancel(t.Context()), []string{filepath.Join(programs, "fieldmesh"),
		"field", "serve"}, field.Config{
		Dir: filepath.Join(dir, "field"), Agent: filepath.Join(programs, "fieldmesh-agent"),
		ControllerKeys: filepath.Join(dir, "keys"), Run: "preflight", Seed: 1,
		Nodes:      []field.Node{{Name: "alpha", Unit: "laptop-1"}, {Name: "bravo", Unit: "laptop-2"}},
		Authorized: []keys.Peer{{Name: identity.Name, Role: wire.RoleController, Pin: identity.Pin}},
	})
	if err != nil {
		t.Fatal(err)
	}
	testnet.CloseAtEnd(t, emulated)
	campaign := filepath.Join("..", "..", "campaigns", "velocity.yaml")
	settle := func(when string, want ...string) {
		t.Helper()
		settles(t, when, emulated.Info().Fleet, campaign, want...)
	}
	settle("before a trial is placed, which tunes the field's radio", "alpha radio", "bravo radio")
	planned, err := plan.Load(campaign)
	if err != nil {
		t.Fatal(err)
	}
	trials, err := planned.Schedule()
	if err != nil {
		t.Fatal(err)
	}
	if err := emulated.Place(t.Context(), trials[0], 1); err != nil {
		t.Fatal(err)
	}
	settle("with a trial")
	t.Logf("fieldmesh preflight:\n%s", fieldmesh(t, "preflight", campaign, "--fleet", emulated.Info().Fleet))
	for _, c := range []struct {
		fault field.Fault
		want  string
	}{
		{field.Fault{Kind: field.FaultGPSNoFix, Node: "alpha"}, "alpha gps"},
		{field.Fault{Kind: field.FaultControlCut, Node: "bravo"}, "bravo reach"},
	} {
		if err := emulated.Fault(t.Context(), c.fault); err != nil {
			t.Fatal(err)
		}
		settle(string(c.fault.Kind), c.want)
		if err := emulated.Fault(t.Context(), field.Fault{Kind: field.FaultClear}); err != nil {
			t.Fatal(err)
		}
		settle("mended")
	}
}
