//go:build e2e

package bench

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"fieldmesh.dev/fieldmesh/rehearsal/kernel"
	"fieldmesh.dev/fieldmesh/test/testnet"
)

// virtualTime is what a rehearsal says of its pace last.
var virtualTime = regexp.MustCompile(`(\d+) s of virtual time in \d+ s`)

// waits are two nodes that wait for most of an hour before a short window.
var waits = testnet.Standing("wait", "a", "b", `  duration_s: 2
  gate: {after_s: 3500, timeout_s: 3600, lead_s: 0.3}
  radio: {mode: adhoc, standard: 802.11b, rate_mbps: 2, channel: 1, ssid: wait, bssid: "02:0a:5e:00:00:09"}
  routing: {protocol: none}
  tcp: {variant: reno}
  traffic: {bulk: {kind: iperf3_tcp, from: sender, to: receiver, payload_bytes: 1460, port: 5000}}
design: {repetitions: 1, order: as_listed, seed: 1}
acceptance: {attempts_max: 1}
`)

// scale adds a scale of this name to a campaign that has scales: what it leaves of
// the trials, and once each.
func scale(trial, factors string) []string {
	return []string{"\nscales:\n", "\nscales:\n  bench:\n    why: a trial of each kind\n    trial: {" + trial +
		"}\n    factors: {" + factors + "}\n    design: {repetitions: 1}\n"}
}

// TestBenchVirtualTime rehearses five campaigns in virtual time, on one processor each.
func TestBenchVirtualTime(t *testing.T) {
	begin(t)
	if _, err := kernel.Find(); errors.Is(err, kernel.ErrNone) {
		t.Skipf("%v (%s)", err, kernel.Build)
	}
	for _, k := range []struct {
		goal, file, name string
		changes          []string
		limit            float64 // virtual seconds a processor's second
	}{
		{"virtual time, a saturated hop", "velocity", "hop", []string{
			"levels: [2.8, 5.6, 8.3, 11.1, 13.9, 16.7]", "levels: [8.3, 16.7]", "repetitions: 2", "repetitions: 1"}, 3},
		{"virtual time, a standing and a moving chain of six", "variants-chain", "chain", scale("duration_s: 60",
			"variant: {levels: [newreno]}, routing: {levels: [aodv]}"), 10},
		{"virtual time, 30 moving nodes", "reference-tcp", "thirty", scale("duration_s: 40",
			"variant: {levels: [newreno]}, node_speed: {only: [5]}, congestion: {only: [none]}, "+
				"error: {only: [0]}"), 5},
		{"virtual time, 200 moving nodes", "six-variants", "two-hundred", scale("duration_s: 20",
			"variant: {levels: [newreno]}, connections: {levels: [5]}, mobility: {only: [high]}, "+
				"nodes: {only: [n200]}"), 1},
		{"virtual time, an hour of waiting", "", "wait", nil, 360},
	} {
		t.Run(k.name, func(t *testing.T) {
			var args []string
			var campaign string
			if k.file == "" {
				campaign = filepath.Join(t.TempDir(), k.name+".yaml")
				if err := os.WriteFile(campaign, []byte(waits), 0o600); err != nil {
					t.Fatal(err)
				}
			} else {
				campaign = testnet.Campaign(t, "../../campaigns/"+k.file+".yaml", k.name, k.changes...)
				if k.file != "velocity" {
					args = []string{"--scale", "bench"}
				}
			}
			args = append([]string{"rehearse", campaign, "--clock", "virtual", "--name", k.name, "--runs",
				testnet.Folder(t)}, args...)
			c := exec.Command(filepath.Join(programs, "fieldmesh"), args...)
			begun := time.Now()
			out, err := c.CombinedOutput()
			if err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			took := time.Since(begun).Seconds()
			cpu := (c.ProcessState.UserTime() + c.ProcessState.SystemTime()).Seconds()
			paces := virtualTime.FindAllStringSubmatch(string(out), -1)
			if len(paces) == 0 {
				t.Fatalf("it does not say its pace:\n%s", out)
			}
			seconds, err := strconv.ParseFloat(paces[len(paces)-1][1], 64)
			if err != nil {
				t.Fatal(err)
			}
			load, err := os.ReadFile("/proc/loadavg")
			if err != nil {
				t.Fatal(err)
			}
			report(row{
				goal: k.goal,
				measured: fmt.Sprintf("%.0f s of virtual time in %.0f s of a processor and %.0f s", seconds, cpu,
					took),
				reference: "real time: 1 s in 1 s",
				figure:    fmt.Sprintf("%.2f s a processor's second", seconds/cpu),
				limit:     fmt.Sprintf("at least %g", k.limit), met: seconds/cpu >= k.limit,
			}, "all that one kernel does, with its start and the report; the load of the machine was %s at the end.",
				strings.Join(strings.Fields(string(load))[:3], ", "))
		})
	}
}
