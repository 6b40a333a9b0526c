//go:build e2e

package campaigns

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"fieldmesh.dev/fieldmesh/controller/archive"
	"fieldmesh.dev/fieldmesh/protocols/wire"
	"fieldmesh.dev/fieldmesh/test/testnet"
)

// programs is the folder of the built programs.
var programs string

func TestMain(m *testing.M) { os.Exit(testnet.WithPrograms(m.Run, &programs)) }

// patient is what a machine that does other things too cannot keep to.
var patient = []string{"clock_error_ms_max: 20", "clock_error_ms_max: 5000", "lateness_share_max: 0.01",
	"lateness_share_max: 1"}

// rehearsal is the command that drives a file, and the folder of its run.
func rehearsal(t *testing.T, file, scale string, more ...string) (args []string, run string) {
	t.Helper()
	testnet.Need(t, "ip", "gpsd", "iperf3")
	dir := testnet.Folder(t)
	args = append([]string{filepath.Join(programs, "fieldmesh"), "rehearse", file, "--scale", scale, "--name", "test",
		"--runs", filepath.Join(dir, "runs"), "--field-dir", filepath.Join(dir, "fields")}, more...)
	return args, filepath.Join(dir, "runs", "test")
}

// shipped are the campaigns that declare a scale.
func shipped(t *testing.T, scale string) []string {
	t.Helper()
	files, err := filepath.Glob("../../campaigns/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(text), "\n  "+scale+":\n") {
			out = append(out, file)
		}
	}
	if len(out) < 7 {
		t.Fatalf("%d campaigns have a scale %s: %v", len(out), scale, out)
	}
	return out
}

// smokeFirst is one campaign of each paper that simulated.
var smokeFirst = []string{"variants-random", "fixed-rto", "reference-tcp", "six-variants"}

// A campaign's smoke scale is driven to its end: every trial accepted, with
// its TCP in force on every sender and its routing forwarding in every cell,
// for a run fails otherwise; and its report tells that it was a reduction.
func TestSmokeScales(t *testing.T) { smoke(t, true) }

func TestSmokeScalesOfTheOthers(t *testing.T) { smoke(t, false) }

func smoke(t *testing.T, first bool) {
	t.Helper()
	driven := 0
	for _, file := range shipped(t, "smoke") {
		name := strings.TrimSuffix(filepath.Base(file), ".yaml")
		if slices.Contains(smokeFirst, name) != first {
			continue
		}
		driven++
		t.Run(name, func(t *testing.T) {
			drive(t, testnet.Campaign(t, file, "patient", patient...), "smoke", "--fields", "2")
		})
	}
	if first && driven != len(smokeFirst) || driven == 0 {
		t.Errorf("%d campaigns were driven", driven)
	}
}

// TestSoakQuickScales drives the quick scales as they are, one at a time.
func TestSoakQuickScales(t *testing.T) {
	testnet.NeedSet(t, "FIELDMESH_SOAK", "hours long")
	for _, file := range shipped(t, "quick") {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".yaml"), func(t *testing.T) {
			path, err := filepath.Abs(file)
			if err != nil {
				t.Fatal(err)
			}
			drive(t, path, "quick")
		})
	}
}

func drive(t *testing.T, file, scale string, more ...string) {
	t.Helper()
	args, dir := rehearsal(t, file, scale, more...)
	if out, err := exec.Command(args[0], args[1:]...).CombinedOutput(); err != nil {
		t.Fatalf("%v: %v\n%s", args, err, out)
	}
	if out, err := exec.Command(args[0], "verify", dir).CombinedOutput(); err != nil {
		t.Fatalf("verify: %v\n%s", err, out)
	}
	a, err := archive.Read(dir)
	if err != nil {
		t.Fatal(err)
	}
	if s := a.Info().Scale; s == nil || s.Name != scale || s.Why == "" {
		t.Errorf("the run is of scale %+v", s)
	}
	report, err := os.ReadFile(filepath.Join(dir, "report.html"))
	if err != nil || !strings.Contains(string(report), "driven at scale") {
		t.Errorf("the report does not tell the scale: %v", err)
	}
	delivered := false
	for _, v := range a.Decisions() {
		if v.Outcome != "accepted" {
			continue
		}
		records, err := a.All(v.Trial, v.Attempt)
		if err != nil {
			t.Fatal(err)
		}
		trial, _ := a.Trial(v.Trial)
		if senderSeen(t, trial, records) {
			delivered = true
		}
	}
	if !delivered {
		t.Error("no trial has delivered a byte")
	}
}

// senderSeen checks what the nodes of an accepted trial recorded of its TCP, and
// reports whether a measured flow delivered something.
func senderSeen(t *testing.T, trial wire.Trial, records []wire.Record) (delivered bool) {
	t.Helper()
	nodes := map[string]bool{}
	for _, r := range records {
		switch b := r.Body.(type) {
		case *wire.Provenance:
			if b.TCP != nil && b.TCP.Variant == trial.TCP.Variant {
				nodes[r.Node] = true
			}
		case *wire.TCPSample:
			delivered = delivered || b.Stream != nil && b.BytesAcked > 1
		}
	}
	for _, f := range trial.Traffic {
		if !f.Background && !nodes[f.From] {
			t.Errorf("trial %d: sender %s does not tell its TCP", trial.Number, f.From)
		}
	}
	return delivered
}

// chainOf is the chain campaign cut to one short trial.
func chainOf(t *testing.T, changes ...string) string {
	t.Helper()
	return testnet.Campaign(t, "../../campaigns/variants-chain.yaml", "chain", append(changes, append(patient,
		"variant: {levels: [tahoe, vegas1995]}", "variant: {levels: [tahoe]}", "routing: {levels: [dsr-ns2, aodv-ns2]}",
		"routing: {levels: [aodv-ns2]}\n      motion: {only: [static]}",
		"trial: {duration_s: 5,", "trial: {duration_s: 2,")...)...)
}

// Routing protocols that had nothing to forward were not compared: here every
// node hears every other.
func TestARunWhoseRoutingDidNotForwardFails(t *testing.T) {
	args, dir := rehearsal(t, chainOf(t, "spacing_m: 105", "spacing_m: 30"), "smoke")
	out, err := exec.Command(args[0], args[1:]...).CombinedOutput()
	want := "routing did not forward in 1 of 1 cells"
	if err == nil || !strings.Contains(string(out), want) ||
		!strings.Contains(string(out), "motion=static routing=aodv-ns2 variant=tahoe: the longest way of a measured "+
			"flow had 1 hops, acceptance.hops_min asks for 5") {
		t.Fatalf("%v, want %q:\n%s", err, want, out)
	}
	a, err := archive.Read(dir)
	if err != nil {
		t.Fatal(err)
	}
	if v := a.Decisions(); len(v) == 0 || v[len(v)-1].Outcome != "accepted" {
		t.Errorf("the trial by itself is %+v, want accepted", v)
	}
}

// A sender whose socket runs another TCP than the trial's: its iperf3 asks the
// kernel for reno, whatever it is told.
func TestATrialWithAnotherTCPFails(t *testing.T) {
	args, dir := rehearsal(t, chainOf(t, "attempts_max: 8", "attempts_max: 4"), "smoke")
	folder := testnet.Folder(t)
	deaf := filepath.Join(folder, "deaf")
	const among = "/usr/local/src" // the machine's programs, which a script's agent may start
	script := fmt.Sprintf("#!/bin/sh\nfor a; do shift; [ \"$last\" = -C ] && a=reno; last=$a; set -- \"$@\" \"$a\"; "+
		"done\nexec %s/iperf3 \"$@\"\n", among)
	if err := os.WriteFile(deaf, []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("cp", "/usr/bin/iperf3", folder).CombinedOutput(); err != nil {
		t.Fatalf("copy iperf3: %v\n%s", err, out)
	}
	// Only what the rehearsal starts sees the other program.
	inside := append([]string{"-m", "sh", "-c", `mount --bind "$0" ` + among +
		` && mount --bind "$0/deaf" /usr/bin/iperf3 && exec "$@"`, folder}, args...)
	out, err := exec.Command("unshare", inside...).CombinedOutput()
	if err == nil {
		t.Fatalf("the run is as if nothing were amiss:\n%s", out)
	}
	a, rerr := archive.Read(dir)
	if rerr != nil {
		t.Fatalf("%v\n%s", rerr, out)
	}
	const want = `not_in_force: a socket of flow bulk on a runs "reno", and tahoe of the trial is "tahoe_`
	found := false
	for _, v := range a.Decisions() {
		found = found || strings.HasPrefix(v.Reason.String(), want)
		if v.Outcome != "failed" {
			t.Errorf("attempt %d is %s\n%s", v.Attempt, v.Outcome, out)
		}
	}
	if !found {
		t.Errorf("no attempt failed for %q:\n%s", want, out)
	}
}
