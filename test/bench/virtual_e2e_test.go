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

// TestBenchVirtualTime rehearses two campaigns in virtual time, on one processor each:
// a saturated hop, and a chain of six with AODV and captures.
func TestBenchVirtualTime(t *testing.T) {
	begin(t)
	if _, err := kernel.Find(); errors.Is(err, kernel.ErrNone) {
		t.Skipf("%v (%s)", err, kernel.Build)
	}
	for _, k := range []struct {
		goal, file, name string
		changes          []string
	}{
		{"virtual time, a saturated hop", "velocity", "hop", []string{
			"levels: [2.8, 5.6, 8.3, 11.1, 13.9, 16.7]", "levels: [8.3, 16.7]", "repetitions: 2", "repetitions: 1"}},
		{"virtual time, a chain of six", "variants-chain", "chain", []string{
			"levels: [tahoe, reno, newreno, vegas, westwood]", "levels: [newreno]", "levels: [dsdv, dsr, aodv]",
			"levels: [aodv]", "repetitions: 3", "repetitions: 1", "duration_s: 360", "duration_s: 60",
			"      mobile: {still: false}\n", ""}},
	} {
		campaign := testnet.Campaign(t, "../../campaigns/"+k.file+".yaml", k.name, k.changes...)
		c := exec.Command(filepath.Join(programs, "fieldmesh"), "rehearse", campaign, "--clock", "virtual", "--name",
			k.name, "--runs", testnet.Folder(t))
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
			goal:      k.goal,
			measured:  fmt.Sprintf("%.0f s of virtual time in %.0f s of a processor and %.0f s", seconds, cpu, took),
			reference: "real time: 1 s in 1 s",
			figure:    fmt.Sprintf("%.2f s a processor's second", seconds/cpu), limit: "none set", met: true,
		}, "all that one kernel does, with its start and the report; the load of the machine was %s at the end.",
			strings.Join(strings.Fields(string(load))[:3], ", "))
	}
}
