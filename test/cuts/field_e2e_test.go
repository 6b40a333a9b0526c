//go:build e2e

package cuts

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"fieldmesh.dev/fieldmesh/rehearsal/field"
	"fieldmesh.dev/fieldmesh/test/testnet"
)

// fields is where fields write down what they have made.
const fields = "/run/fieldmesh"

// emulated is a rehearsal's field, which ends and is built again with its
// controllers. Its nodes' disks outlast it.
type emulated struct {
	dir  string // of the fields' files
	file string // the campaign
	run  string
}

func newEmulated(t *testing.T, dir, run, campaign string) *emulated {
	t.Helper()
	e := &emulated{dir: filepath.Join(dir, "fields"), file: filepath.Join(dir, "chaos.yaml"), run: run}
	if err := os.WriteFile(e.file, []byte(campaign), 0o644); err != nil {
		t.Fatal(err)
	}
	return e
}

func (e *emulated) begin() []string {
	return []string{"rehearse", e.file, "--field-dir", e.dir}
}

func (e *emulated) resume(run string) []string {
	return []string{"rehearse", "--resume", run, "--field-dir", e.dir}
}

// ledger is what a field has written down of itself.
type ledger struct {
	ID         int      `json:"id"`
	OwnerPID   int      `json:"owner_pid"`
	Dir        string   `json:"dir"`
	Namespaces []string `json:"namespaces"`
}

// ledgers are those of our fields.
func (e *emulated) ledgers() []ledger {
	return slices.DeleteFunc(allLedgers(), func(l ledger) bool { return !strings.HasPrefix(l.Dir, e.dir+"/") })
}

func allLedgers() []ledger {
	paths, _ := filepath.Glob(filepath.Join(fields, "field-*.json"))
	var out []ledger
	for _, p := range paths {
		var l ledger
		text, err := os.ReadFile(p)
		if err == nil && json.Unmarshal(text, &l) == nil {
			out = append(out, l)
		}
	}
	return out
}

func (e *emulated) namespace(of string) string {
	for _, l := range e.ledgers() {
		for _, ns := range l.Namespaces {
			if strings.HasSuffix(ns, "-"+of) {
				return ns
			}
		}
	}
	return ""
}

func (e *emulated) netns(node string) string { return e.namespace(node) }

func (e *emulated) control() string { return e.namespace("ctl") }

func (e *emulated) port(node string) string {
	for i, n := range nodes {
		if n == node {
			return fmt.Sprintf("node%d", i+1)
		}
	}
	return ""
}

func (e *emulated) owner() int {
	for _, l := range e.ledgers() {
		return l.OwnerPID
	}
	return 0
}

func (e *emulated) spools() map[string]string {
	out := map[string]string{}
	for _, n := range nodes {
		out[n] = filepath.Join(field.Folder(e.dir, e.run), "field0", "nodes", n, "state", "face", "spool")
	}
	return out
}

func (e *emulated) passing() bool { return true }

func (e *emulated) judge(c *campaign, w *witness) {
	c.judge(w)
	e.gone(c.t)
}

// gone: the fields have left nothing behind. Other tests may have fields at the
// same time, which are written down as long as anything of them exists.
func (e *emulated) gone(t *testing.T) {
	t.Helper()
	for _, l := range e.ledgers() {
		t.Errorf("a field is still written down: %+v", l)
	}
	var found []string
	for _, n := range nodes {
		for _, pattern := range []string{testnet.Dir + "/fm*-" + n, fields + "/field-*-" + n + ".sock"} {
			paths, _ := filepath.Glob(pattern)
			found = append(found, paths...)
		}
	}
	others := map[string]bool{}
	for _, l := range allLedgers() {
		for _, n := range nodes {
			others[fmt.Sprintf("%s/fm%d-%s", testnet.Dir, l.ID, n)] = true
			others[fmt.Sprintf("%s/field-%d-%s.sock", fields, l.ID, n)] = true
		}
	}
	for _, path := range found {
		if _, err := os.Lstat(path); err == nil && !others[path] {
			t.Errorf("left behind: %s", path)
		}
	}
	empty(t, e.dir)
}

var emulatedCampaign = `fieldmesh: 1
name: chaos-field
title: Many short windows, to be cut
nodes:
  fox: {unit: one, mesh_address: 10.77.0.1/24}
  owl: {unit: two, mesh_address: 10.77.0.2/24}
` + testnet.Parked("chaos", 1) + `  routing: {protocol: none}
  tcp: {variant: reno}
  traffic:
    bulk: {kind: iperf3_tcp, from: sender, to: receiver, streams: 2, window_bytes: 32768, port: 5000}
` + testnet.Sections("car", "roadside", 5) + `acceptance: {fix_mode_min: 3, fix_age_ms_max: 1500, clock_error_ms_max: 100, attempts_max: 20}
`

var fieldKinds = []string{controllerKilled, fieldKilled, faceKilled, hostKilled, upKilled, linkCut, influxdKilled,
	influxdStopped, controllerInterrupted}

// rehearse cuts rehearsals.
func rehearse(t *testing.T, total int, seed uint64) {
	testnet.Need(t, "ip", "gpsd", "iperf3", "influxd")
	cutRuns(t, total, rand.New(rand.NewPCG(seed, 1)), fieldKinds, func(t *testing.T, dir, run string) stage {
		return newEmulated(t, dir, run, emulatedCampaign)
	})
}

func TestRehearsalSurvivesCuts(t *testing.T) {
	rehearse(t, 10, newSeed(t))
}
