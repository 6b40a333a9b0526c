//go:build e2e

package truth

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"text/tabwriter"
	"time"

	"fieldmesh.dev/fieldmesh/controller/archive"
	"fieldmesh.dev/fieldmesh/protocols/wire"
	"fieldmesh.dev/fieldmesh/test/testnet"
)

// phase is when in a trial the link is cut, and whether it comes back.
type phase struct {
	name  string
	after time.Duration // since iperf3's client runs; atOnce, beforeData
	back  time.Duration // since then; 0: not before the trial is over
}

const (
	never      = -3 * time.Second
	atOnce     = -2 * time.Second // as the server listens, before any control connection
	beforeData = -1 * time.Second // at the first segment of a data connection
)

// phases are one trial each.
var phases = []phase{
	{"not at all", never, 0},
	{"before the control connection, back in the window", atOnce, 2 * time.Second},
	{"before the control connection, for ever", atOnce, 0},
	{"before data, back in the window", beforeData, 1500 * time.Millisecond},
	{"before data, for ever", beforeData, 0},
	{"in the window, back in it", 1200 * time.Millisecond, 800 * time.Millisecond},
	{"in the window, for ever", 1200 * time.Millisecond, 0},
	{"at its end, back after 1 s", windowTime - 50*time.Millisecond, time.Second},
	{"at its end, for ever", windowTime - 50*time.Millisecond, 0},
	{"just after its end, for ever", windowTime + 20*time.Millisecond, 0},
}

// linkCampaign has a trial for each phase.
var linkCampaign = testnet.Standing("links", "fox", "owl", fmt.Sprintf(`  duration_s: 3
  gate: {after_s: 0.1, timeout_s: 20, lead_s: 0.3}
  radio: {mode: none}
  tcp: {variant: reno}
  traffic: {bulk: {kind: iperf3_tcp, from: sender, to: receiver, streams: 2, window_bytes: 32768, port: 5000}}
design: {repetitions: %d, order: as_listed, seed: 1}
acceptance: {attempts_max: %d}
`, len(phases), attemptsMax))

// attemptsMax is how often one phase is tried when the machine is late.
const attemptsMax = 8

// trialTakes bounds a trial from the window's open to its last iperf3's end:
// the window, what flows may take to end by themselves, iperf3's time to print
// what it has once it is interrupted, and a second. For as long as the machine stood
// still, it took longer.
const trialTakes = windowTime + 2*time.Second + 2*time.Second + time.Second

// generator is a version of iperf3.
type generator struct{ version, path string }

// The iperf3 of this distribution meets a link that is cut at each phase.
func TestALinkCutAtEachPhaseOfATrial(t *testing.T) {
	testnet.Need(t, "ip", "iperf3", "tcpdump")
	own := generator{path: "/usr/bin/iperf3"}
	own.version = own.tell(t)
	cutLinks(t, own, own, false)
}

// The same between agents without root, of which the receiver's may not have the kernel list
// its sockets.
func TestALinkCutAtEachPhaseWithoutRoot(t *testing.T) {
	testnet.Need(t, "ip", "iperf3", "tcpdump", "setpriv")
	own := generator{path: "/usr/bin/iperf3"}
	own.version = own.tell(t)
	cutLinks(t, own, own, true)
}

// TestSoakLinkCutsWithOtherVersions has each version of iperf3 that
// `scripts/iperf3` fetched at both ends, and beside this distribution's.
func TestSoakLinkCutsWithOtherVersions(t *testing.T) {
	testnet.NeedSet(t, "FIELDMESH_SOAK", "every version takes a quarter of an hour")
	testnet.Need(t, "ip", "iperf3", "tcpdump")
	own := generator{path: "/usr/bin/iperf3"}
	own.version = own.tell(t)
	others := fetched(t)
	if len(others) == 0 {
		t.Skip("no other version of iperf3 is here: scripts/iperf3 fetches those of Debian's suites")
	}
	for _, o := range others {
		for _, pair := range [][2]generator{{o, o}, {o, own}, {own, o}} {
			t.Run(pair[0].version+" to "+pair[1].version, func(t *testing.T) { cutLinks(t, pair[0], pair[1], false) })
		}
		t.Run(o.version+" without root", func(t *testing.T) { cutLinks(t, o, o, true) })
	}
}

// tell asks a program for its version.
func (g generator) tell(t *testing.T) string {
	t.Helper()
	out, err := exec.Command(g.path, "--version").Output()
	words := strings.Fields(string(out))
	if err != nil || len(words) < 2 {
		t.Fatalf("%s --version: %v: %s", g.path, err, out)
	}
	return words[1]
}

// fetched copies the versions in .tools to where agents may start them, each
// with a program beside it that starts it with its own libraries.
func fetched(t *testing.T) (out []generator) {
	t.Helper()
	folders, _ := filepath.Glob("../../.tools/iperf3/*/iperf3")
	dir := testnet.Folder(t)
	for i, program := range folders {
		to := filepath.Join(dir, fmt.Sprint(i))
		if err := os.CopyFS(to, os.DirFS(filepath.Dir(program))); err != nil {
			t.Fatal(err)
		}
		loaders, _ := filepath.Glob(filepath.Join(to, "ld-linux*"))
		if len(loaders) != 1 {
			t.Fatalf("%s has %d loaders", filepath.Dir(program), len(loaders))
		}
		g := generator{path: filepath.Join(to, "start-iperf3")}
		text := fmt.Sprintf("#!/bin/sh\nexec %s --library-path %s %s/iperf3 \"$@\"\n", loaders[0], to, to)
		if err := os.WriteFile(g.path, []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
		g.version = g.tell(t)
		out = append(out, g)
	}
	return out
}

// cutLinks drives one trial for each phase, and prints what came of it.
func cutLinks(t *testing.T, client, server generator, ordinary bool) {
	d := newBench(t, map[string]generator{"fox": client, "owl": server}, ordinary)
	file := filepath.Join(d.dir, "links.yaml")
	if err := os.WriteFile(file, []byte(linkCampaign), 0o644); err != nil {
		t.Fatal(err)
	}
	w := watchOn(t, d.spaces["owl"].Name, "owl", filepath.Join(d.dir, "owl.pcap"))
	run := testnet.Start(t, exec.Command(filepath.Join(programs, "fieldmesh"), "run", file,
		"--fleet", filepath.Join(d.dir, "fleet", "fleet.yaml"),
		"--runs", filepath.Join(d.dir, "runs"), "--name", "links", "--place", archive.PlaceBench))
	attempts := d.cutAlong(t, run)
	t.Logf("fieldmesh run:\n%s", run.Said())
	_ = w.cmd.Process.Signal(os.Interrupt)
	<-w.done
	d.report(t, client, server, w, attempts)
}

// generators are the iperf3s that run on either node.
func (d *bench) generators() (out []int) {
	for _, n := range nodes {
		for _, pid := range testnet.Pids(d.spaces[n].Name) {
			line, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
			if err == nil && isIperf3(strings.Split(string(line), "\x00")) {
				out = append(out, pid)
			}
		}
	}
	return out
}

// isServer and isClient know an iperf3 by its arguments, however it was started.
func isServer(_ string, args []string) bool { return isIperf3(args) && slices.Contains(args, "-s") }
func isClient(_ string, args []string) bool { return isIperf3(args) && slices.Contains(args, "-c") }

func isIperf3(args []string) bool {
	return isFlows("iperf3", args) && slices.ContainsFunc(args, func(arg string) bool {
		return filepath.Base(arg) == "iperf3"
	})
}

// cutAttempt is an attempt: which phase its link was cut in, and how long it had
// an iperf3, from its client's start, but for when the machine stood still.
type cutAttempt struct {
	phase
	took time.Duration
}

// cutAlong cuts the cable in each attempt, and returns them in their order. A phase
// in which the machine was late comes again, as the controller has that trial again.
func (d *bench) cutAlong(t *testing.T, run *testnet.Running) (attempts []cutAttempt) {
	for {
		d.clocks.sample()
		select {
		case <-run.Ended():
			if err := run.Wait(t, time.Minute); err != nil {
				t.Errorf("fieldmesh run: %v", err)
			}
			if left := d.generators(); len(left) > 0 {
				t.Errorf("iperf3 still runs: %v", left)
			}
			return attempts
		case <-time.After(10 * time.Millisecond):
		}
		server := process(d.spaces["owl"].Name, isServer)
		if server == 0 {
			continue
		}
		p := d.nextPhase(t)
		attempts = append(attempts, cutAttempt{p, d.cutOnce(t, p, server)})
	}
}

// nextPhase is the first phase that no attempt has been decided in, but for those
// that the machine spoiled.
func (d *bench) nextPhase(t *testing.T) phase {
	t.Helper()
	a, err := archive.Read(filepath.Join(d.dir, "runs", "links"))
	if err != nil {
		t.Fatal(err)
	}
	decided := 0
	for _, v := range a.Decisions() {
		if !(judged{Verdict: v}).late() {
			decided++
		}
	}
	if decided >= len(phases) {
		return phase{name: "again", after: never}
	}
	return phases[decided]
}

// cutOnce sees an attempt through, from its server's start to its last iperf3's end, or to
// the next attempt's server, where a busy machine leaves no time to see none. It returns
// how long that was from its client's start, but for when this test stood still: so did
// the machine.
func (d *bench) cutOnce(t *testing.T, p phase, server int) time.Duration {
	defer d.cable.mend()
	var since time.Time // the cut
	if p.after == atOnce {
		d.cable.cut.Store(true)
		since = time.Now()
	}
	if p.after == beforeData {
		d.cable.cutBefore(20000, 29999) // where plans have their client ports
	}
	var opened time.Time // the client's start
	var still time.Duration
	for begun, last := time.Now(), time.Now(); ; time.Sleep(5 * time.Millisecond) {
		now := time.Now()
		if pause := now.Sub(last); pause > stillTime/2 && !opened.IsZero() {
			still += pause
		}
		last = now
		d.clocks.sample()
		switch {
		case opened.IsZero() && process(d.spaces["fox"].Name, isClient) != 0:
			opened = time.Now()
		case since.IsZero() && p.after >= 0 && !opened.IsZero() && time.Since(opened) >= p.after,
			since.IsZero() && d.cable.cut.Load():
			d.cable.cut.Store(true)
			since = time.Now()
		case p.back > 0 && !since.IsZero() && time.Since(since) >= p.back:
			d.cable.mend()
		}
		serves := process(d.spaces["owl"].Name, isServer)
		if serves != 0 && serves != server || serves == 0 && len(d.generators()) == 0 {
			if opened.IsZero() {
				opened = begun
			}
			return time.Since(opened) - still
		}
		if time.Since(begun) > time.Minute {
			t.Errorf("cut %s: iperf3 still runs after a minute", p.name)
			return time.Since(begun)
		}
	}
}

// report judges the trials against the capture, and prints them.
func (d *bench) report(t *testing.T, client, server generator, w *watch, attempts []cutAttempt) {
	t.Helper()
	r := run{t: t, out: rehearsed{clocks: d.clocks}}
	a, err := archive.Read(filepath.Join(d.dir, "runs", "links"))
	if err != nil {
		t.Fatal(err)
	}
	captured := map[*watch][]segment{w: segments(t, w.file)}
	var text strings.Builder
	table := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "the link is cut\toutcome\tMB\tcounted\tiperf3 ended after\tclient\tserver")
	decisions, decided := a.Decisions(), 0
	if len(decisions) != len(attempts) {
		t.Fatalf("%d attempts were decided, %d seen", len(decisions), len(attempts))
	}
	for i, v := range decisions {
		j, p := judged{Verdict: v}, attempts[i]
		r.measure(a, captured, &j)
		// A cut that comes before all data lets none through; one that comes later does.
		if before := p.after == atOnce || p.after == beforeData; !j.late() && (!before || p.back == 0) &&
			before != (j.count.mostBytes == 0) {
			t.Errorf("cut %s: the capture has %s: the cut was not where it should be", p.name, j.count)
		}
		reported := "none"
		if j.reportedMB != nil {
			reported = fmt.Sprintf("%.3f", *j.reportedMB)
		}
		fmt.Fprintf(table, "%s\t%s %s\t%s\t%s\t%.1f s\t%s\t%s\n", p.name, v.Outcome, v.Reason, reported, j.count,
			p.took.Seconds(), ended(t, a, j, "client"), ended(t, a, j, "server"))
		if !j.late() {
			decided++
		}
		switch {
		case v.Outcome != wire.Accepted && !j.late():
			t.Errorf("cut %s: %s %q, and nothing was wrong but the network", p.name, v.Outcome, v.Reason)
		case v.Outcome == wire.Accepted && j.figure() != "":
			t.Errorf("cut %s: %s: %s", p.name, j.figure(), j.describe())
		}
		if p.took > trialTakes {
			t.Errorf("cut %s: iperf3 ran for %v after the window had opened, at most %v are right", p.name, p.took,
				trialTakes)
		}
	}
	if err := table.Flush(); err != nil {
		t.Fatal(err)
	}
	t.Logf("iperf3 %s sends to %s:\n%s", client.version, server.version, text.String())
	if decided != len(phases) {
		t.Errorf("%d phases were decided by the network, want %d", decided, len(phases))
	}
}

// ended is how one side's iperf3 ended, in short.
func ended(t *testing.T, a *archive.Archive, j judged, side string) string {
	t.Helper()
	records, err := a.All(j.Trial, j.Attempt)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range records {
		if b, ok := r.Body.(*wire.Iperf3); ok && b.Side == side {
			why := strings.TrimSpace(b.Killed + " " + b.Error)
			if why == "" {
				return "by itself"
			}
			return fmt.Sprintf("%.60s", why)
		}
	}
	return "no record"
}
