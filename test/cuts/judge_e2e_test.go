//go:build e2e

package cuts

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"fieldmesh.dev/fieldmesh/controller/archive"
	"fieldmesh.dev/fieldmesh/controller/metrics"
	line "fieldmesh.dev/fieldmesh/internal/influx"
	"fieldmesh.dev/fieldmesh/protocols/wire"
	"fieldmesh.dev/fieldmesh/test/model"
	"fieldmesh.dev/fieldmesh/test/testnet"
)

// judge holds a run that is complete against what was promised.
func (c *campaign) judge(w *witness) {
	c.t.Helper()
	a, err := archive.Read(c.runDir())
	if err != nil {
		c.t.Fatal(err)
	}
	c.decisions(a)
	trace, err := model.Archived(a, true)
	if err == nil {
		err = trace.Check()
	}
	if err != nil {
		c.t.Error(err)
	}
	c.dataFlowed(a)
	must(c.t, fieldmesh("verify", c.runDir()))
	c.nothingLost(a, w.records(c.t))
	c.inDatabase(a)
	c.nothingRuns()
}

// decisions: every trial is accepted once, in its last attempt.
func (c *campaign) decisions(a *archive.Archive) {
	c.t.Helper()
	attempts, accepted := map[int]int{}, map[int]int{}
	for _, v := range a.Decisions() {
		if v.Attempt != attempts[v.Trial]+1 {
			c.t.Errorf("trial %d: attempt %d was decided after attempt %d", v.Trial, v.Attempt, attempts[v.Trial])
		}
		attempts[v.Trial] = v.Attempt
		if accepted[v.Trial] != 0 {
			c.t.Errorf("trial %d: attempt %d was driven though attempt %d is accepted", v.Trial, v.Attempt,
				accepted[v.Trial])
		}
		switch v.Outcome {
		case "accepted":
			accepted[v.Trial] = v.Attempt
		default:
			c.t.Logf("trial %d attempt %d: %s (%s)", v.Trial, v.Attempt, v.Outcome, v.Reason)
		}
	}
	for _, t := range a.Info().Plan.Trials {
		if accepted[t.Number] == 0 {
			c.t.Errorf("trial %d is not accepted after %d attempts", t.Number, attempts[t.Number])
		}
	}
}

// dataFlowed: nothing that was cut touches the way of the data without failing
// the trial, so an accepted window without data was measured on a node that was
// not set up.
func (c *campaign) dataFlowed(a *archive.Archive) {
	c.t.Helper()
	for _, v := range a.Decisions() {
		if v.Outcome != "accepted" {
			continue
		}
		rows, err := metrics.Of(a, v.TrialKey)
		if err != nil {
			c.t.Fatal(err)
		}
		i := slices.IndexFunc(rows, func(r metrics.Row) bool { return r.Name == metrics.TransferredMB })
		if i < 0 || rows[i].Value == 0 {
			c.t.Errorf("trial %d attempt %d is accepted, and no data came through its window", v.Trial, v.Attempt)
		}
	}
}

// name is what a record is known by.
type name struct {
	node, epoch string
	seq         uint64
}

// nothingLost: what the nodes had on disk is in the archive, byte for byte and
// once, and no epoch of anybody's records has a gap.
func (c *campaign) nothingLost(a *archive.Archive, spooled map[string][][]byte) {
	c.t.Helper()
	var all bytes.Buffer
	if err := a.CopyLines(&all); err != nil {
		c.t.Fatal(err)
	}
	archived := map[name]string{}
	newest := map[name]uint64{} // with seq 0: of an epoch
	for text := range strings.Lines(all.String()) {
		var h wire.Header
		if err := json.Unmarshal([]byte(text), &h); err != nil {
			c.t.Fatalf("%v: %s", err, text)
		}
		n := name{h.Node, h.Epoch, h.Seq}
		if _, twice := archived[n]; twice {
			c.t.Errorf("record %v is archived twice", n)
		}
		archived[n] = strings.TrimSuffix(text, "\n")
		newest[name{h.Node, h.Epoch, 0}] = max(newest[name{h.Node, h.Epoch, 0}], h.Seq)
	}
	for n, seq := range newest {
		for n.seq = 1; n.seq <= seq; n.seq++ {
			if _, ok := archived[n]; !ok {
				c.t.Errorf("record %v is missing, though %d came after it", n, seq)
				break
			}
		}
	}
	total := 0
	for node, lines := range spooled {
		lost := 0
		for _, text := range lines {
			var h wire.Header
			if err := json.Unmarshal(text, &h); err != nil {
				c.t.Fatalf("%v: %s", err, text)
			}
			if archived[name{node, h.Epoch, h.Seq}] != string(text) {
				if lost++; lost <= 3 {
					c.t.Errorf("%s had this on disk, and the archive has it not, or has %.200q:\n%.300s", node,
						archived[name{node, h.Epoch, h.Seq}], text)
				}
			}
		}
		if lost > 3 {
			c.t.Errorf("%s: %d records lost in all", node, lost)
		}
		if total += len(lines); len(lines) == 0 {
			c.t.Errorf("nobody saw records of %s", node)
		}
	}
	c.t.Logf("%d records of the nodes' are in the archive, %d with the controller's and the field's", total,
		len(archived))
}

// inDatabase: what was written live is what the archive has, and what a
// database that is filled afterwards has.
func (c *campaign) inDatabase(a *archive.Archive) {
	c.t.Helper()
	want := map[string]int{}
	count := func(r wire.Record, err error) {
		if err != nil {
			c.t.Fatal(err)
		}
		want[r.Body.Kind()]++
	}
	attempts, err := a.Trials()
	if err != nil {
		c.t.Fatal(err)
	}
	for _, at := range attempts {
		for r, err := range a.Records(at.Trial, at.Attempt) {
			count(r, err)
		}
	}
	for r, err := range a.Between() {
		count(r, err)
	}
	if c.controller.cut != "" {
		// Interrupted while it waited for the database, with the run complete: it
		// says that publish brings the rest.
		must(c.t, fieldmesh(append([]string{"publish", c.runDir()}, c.to("live")...)...))
	}
	must(c.t, fieldmesh(append([]string{"publish", c.runDir()}, c.to("afterwards")...)...))
	for _, m := range line.Schema() {
		live, afterwards := c.points("live", m.Name), c.points("afterwards", m.Name)
		if live != want[m.Kind] || afterwards != want[m.Kind] {
			c.t.Errorf("%s: the archive has %d records, the database %d points written live, and %d published "+
				"afterwards", m.Name, want[m.Kind], live, afterwards)
		}
	}
}

// nothingRuns: every process that a controller started, or that was started by
// one, has ended. They are told by their session, which none of them leaves.
func (c *campaign) nothingRuns() {
	c.t.Helper()
	var left []string
	for until := time.Now().Add(20 * time.Second); ; time.Sleep(50 * time.Millisecond) {
		if left = inSessions(c.sessions); len(left) == 0 {
			return
		}
		if time.Now().After(until) {
			break
		}
	}
	c.t.Errorf("still running:\n%s", strings.Join(left, "\n"))
}

// inSessions lists the processes of some sessions but zombies.
func inSessions(sessions map[int]bool) []string {
	stats, _ := filepath.Glob("/proc/[0-9]*/stat")
	var out []string
	for _, path := range stats {
		text, err := os.ReadFile(path)
		if err != nil {
			continue // it has ended
		}
		// proc(5): pid (comm) state ppid pgrp session; comm may hold anything.
		_, after, _ := strings.Cut(string(text[max(0, bytes.LastIndexByte(text, ')')):]), ") ")
		var state string
		var ppid, group, session int
		if _, err := fmt.Sscan(after, &state, &ppid, &group, &session); err == nil && sessions[session] &&
			state != "Z" {
			args, _ := os.ReadFile(filepath.Join(filepath.Dir(path), "cmdline"))
			out = append(out, fmt.Sprintf("%s (parent %d): %q", filepath.Dir(path), ppid, args))
		}
	}
	return out
}

// machine is the state of the root namespace but for the names of others,
// which belong to whoever tests at the same time.
func machine(t *testing.T) string {
	t.Helper()
	var out strings.Builder
	for text := range strings.Lines(testnet.Snapshot(t, "")) {
		if !strings.HasPrefix(text, "netns ") {
			out.WriteString(text)
		}
	}
	return out.String()
}

// same compares two states, line by line in the report.
func same(t *testing.T, what, before, after string) {
	t.Helper()
	if before == after {
		return
	}
	t.Errorf("%s is not as it was:\n%s", what, testnet.Diff(before, after))
}

// empty fails the test when a folder is not.
func empty(t *testing.T, dir string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
	for _, e := range entries {
		t.Errorf("left behind: %s", filepath.Join(dir, e.Name()))
	}
}
