//go:build e2e

package journeys

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"fieldmesh.dev/fieldmesh/controller/archive"
	"fieldmesh.dev/fieldmesh/controller/metrics"
	"fieldmesh.dev/fieldmesh/protocols/wire"
	"fieldmesh.dev/fieldmesh/test/testnet"
)

// kept is a finished run as its archive has it.
type kept struct {
	*archive.Archive
	attempts []archive.Attempt
}

// openRun verifies a run with the command that a user has, and reads it.
func openRun(t *testing.T, dir string) kept {
	t.Helper()
	said := fieldmesh(t, "verify", dir)
	t.Logf("verify: %s", said)
	a := readRun(t, dir)
	for _, want := range []string{"the run is signed by key ", "was sealed before the first trial by key "} {
		if !strings.Contains(said, want) {
			t.Errorf("verify does not say %q", want)
		}
	}
	for _, n := range a.Info().Plan.Nodes {
		if !regexp.MustCompile(n.Name + `: \d+ of \d+ records are signed by key [0-9a-f]{64}`).MatchString(said) {
			t.Errorf("no record of %s is signed", n.Name)
		}
	}
	return a
}

func readRun(t *testing.T, dir string) kept {
	t.Helper()
	a, err := archive.Read(dir)
	if err != nil {
		t.Fatal(err)
	}
	attempts, err := a.Trials()
	if err != nil {
		t.Fatal(err)
	}
	return kept{a, attempts}
}

// late reports whether an attempt was not accepted because the machine was late or
// stood still: what else happened to it, its reason does not say.
func late(at archive.Attempt) bool { return at.Verdict != nil && testnet.Late(at.Verdict.Reason) }

// accepted reports whether an attempt was.
func accepted(at archive.Attempt) bool {
	return at.Verdict != nil && at.Verdict.Outcome == wire.Accepted
}

// everyTrialOnce fails unless each trial was accepted exactly once, and each
// attempt was decided and sealed.
func (k kept) everyTrialOnce(t *testing.T) {
	t.Helper()
	accepted := map[int]int{}
	for _, at := range k.attempts {
		if at.Verdict == nil || !at.Sealed {
			t.Errorf("trial %d attempt %d: verdict %v, sealed %v", at.Trial, at.Attempt, at.Verdict, at.Sealed)
			continue
		}
		if at.Verdict.Outcome == "accepted" {
			accepted[at.Trial]++
		}
	}
	for _, trial := range k.Info().Plan.Trials {
		if accepted[trial.Number] != 1 {
			t.Errorf("trial %d was accepted %d times", trial.Number, accepted[trial.Number])
		}
	}
	decided := map[wire.TrialKey]bool{}
	for _, v := range k.Decisions() {
		if decided[v.TrialKey] {
			t.Errorf("trial %d attempt %d was decided twice", v.Trial, v.Attempt)
		}
		decided[v.TrialKey] = true
	}
}

// records are an attempt's, node by node.
func (k kept) records(t *testing.T, key wire.TrialKey) []wire.Record {
	t.Helper()
	out, err := k.All(key.Trial, key.Attempt)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// nothingLost fails when the sequence of a node's records has a gap, or a
// record is there twice.
func (k kept) nothingLost(t *testing.T, nodes ...string) {
	t.Helper()
	numbers := map[string]map[string][]uint64{} // node → epoch → sequence numbers
	add := func(r wire.Record, err error) {
		if err != nil {
			t.Fatal(err)
		}
		if numbers[r.Node] == nil {
			numbers[r.Node] = map[string][]uint64{}
		}
		numbers[r.Node][r.Epoch] = append(numbers[r.Node][r.Epoch], r.Seq)
	}
	for _, at := range k.attempts {
		for r, err := range k.Records(at.Trial, at.Attempt) {
			add(r, err)
		}
	}
	for r, err := range k.Between() {
		add(r, err)
	}
	for _, node := range nodes {
		if len(numbers[node]) != 1 {
			t.Errorf("%s: records of %d epochs, want one", node, len(numbers[node]))
		}
		for epoch, seqs := range numbers[node] {
			slices.Sort(seqs)
			for i, seq := range seqs {
				if seq != uint64(i+1) {
					t.Errorf("%s, epoch %s: record %d stands where %d should", node, epoch, seq, i+1)
					break
				}
			}
			t.Logf("%s: %d records, none missing, none twice", node, len(seqs))
		}
	}
}

// metric is one number of an attempt; ok is false when it was not measured.
func (k kept) metric(t *testing.T, key wire.TrialKey, name string) (value float64, ok bool) {
	t.Helper()
	rows, err := metrics.Of(k.Archive, key)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range rows {
		if r.Name == name {
			return r.Value, true
		}
	}
	return 0, false
}

// windowOf is the measuring window of a node in an attempt.
func windowOf(t *testing.T, records []wire.Record, node string) *wire.Window {
	t.Helper()
	for _, r := range records {
		if w, ok := r.Body.(*wire.Window); ok && r.Node == node {
			return w
		}
	}
	t.Fatalf("%s has no window", node)
	return nil
}
