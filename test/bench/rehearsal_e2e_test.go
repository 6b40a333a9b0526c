//go:build e2e

package bench

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"fieldmesh.dev/fieldmesh/controller/archive"
	"fieldmesh.dev/fieldmesh/protocols/wire"
	"fieldmesh.dev/fieldmesh/test/testnet"
)

// TestBenchRehearsal rehearses a short campaign and looks at two things: what
// time goes by between trials, and what memory the agents take meanwhile.
func TestBenchRehearsal(t *testing.T) {
	begin(t)
	testnet.Need(t, "ip", "gpsd", "iperf3")
	dir := programs
	campaign := testnet.Campaign(t, "../../campaigns/velocity.yaml", "short", "duration_s: 10", "duration_s: 3",
		"levels: [2.8, 5.6, 8.3, 11.1, 13.9, 16.7]", "levels: [2.8, 5.6]", "repetitions: 2", "repetitions: 4")
	r := testnet.Start(t, exec.Command(filepath.Join(programs, "fieldmesh"), "rehearse", campaign, "--name", "bench",
		"--runs", filepath.Join(dir, "runs"), "--field-dir", filepath.Join(dir, "field")))
	hung := time.AfterFunc(8*time.Minute, func() { _ = r.Cmd.Process.Signal(os.Interrupt) })
	defer hung.Stop()
	most, together := watchAgents(filepath.Join(dir, "field"), r.Ended())
	t.Logf("%s", r.Said())
	a, err := archive.Read(filepath.Join(dir, "runs", "bench"))
	if err != nil {
		t.Fatalf("the rehearsal left no run: %v", err)
	}
	reportBetween(t, a)
	reportMemory(t, most, together)
}

// passage is one attempt as its initiator's boot clock saw it, in seconds.
type passage struct{ armed, running, open, closed, toBand, lead float64 }

func passageOf(t *testing.T, a *archive.Archive, k wire.TrialKey) (passage, bool) {
	trial, _ := a.Trial(k.Trial)
	p := passage{lead: trial.Gate.LeadS}
	if trial.SpeedMps != nil && trial.Acceptance.SpeedBandMps != nil {
		p.toBand = (*trial.SpeedMps-*trial.Acceptance.SpeedBandMps)/trial.Course.AccelMps2 + trial.Gate.HoldS
	}
	for r, err := range a.Records(k.Trial, k.Attempt) {
		if err != nil {
			t.Fatal(err)
		}
		if r.Node != trial.Initiator {
			continue
		}
		switch b := r.Body.(type) {
		case *wire.TrialState:
			switch at := float64(r.TBootNs) / 1e9; b.State {
			case "armed":
				p.armed = at
			case "running":
				p.running = at
			}
		case *wire.Window:
			p.open, p.closed = float64(b.OpenBootNs)/1e9, float64(b.CloseBootNs)/1e9
		}
	}
	return p, p.armed > 0 && p.running > 0 && p.closed > 0
}

// reportBetween: the machine's boot clock is every node's in a rehearsal.
func reportBetween(t *testing.T, a *archive.Archive) {
	var all []passage
	for _, v := range a.Decisions() {
		if p, ok := passageOf(t, a, v.TrialKey); ok {
			all = append(all, p)
		}
	}
	slices.SortFunc(all, func(x, y passage) int { return int(1e9 * (x.armed - y.armed)) })
	if len(all) < 3 {
		t.Fatalf("%d windows were opened, too few to tell", len(all))
	}
	var sum, turn, gate, own []float64
	for i := 1; i < len(all); i++ {
		p := all[i]
		turned, gated, gone := p.armed-all[i-1].closed, p.running-p.armed-p.toBand, p.open-p.running-p.lead
		turn, gate, sum = append(turn, turned), append(gate, gated), append(sum, turned+gated+gone)
		own = append(own, p.toBand+p.lead+p.closed-p.open)
	}
	report(row{
		goal:      "time between trials",
		measured:  fmt.Sprintf("median %.2f s, 95 %% within %.2f s", median(sum), rank(sum, 0.95)),
		reference: fmt.Sprintf("window and driving: median %.2f s", median(own)),
		figure:    fmt.Sprintf("%.2f s", median(sum)), limit: "≤ 1.5 s", met: median(sum) <= 1.5,
	}, "of %d successive trials, from one window's close to the next one's open, less what the plan itself asks for: "+
		"(speed − band) ÷ acceleration + hold, "+
		"and the lead. Of it, median %.2f s from the close until the next trial is armed and the car may set off "+
		"(draining, putting back, collecting, "+
		"judging, placing, clocks, arming), and %.2f s from the band's being held to GO (the receiver's and gpsd's "+
		"delay).", len(sum), median(turn), median(gate))
}

// watchAgents looks at the agents below a folder until the rehearsal has ended. It
// returns the largest resident memory of each kind of process, and the largest that
// all had at one time, with what they share counted once.
func watchAgents(below string, ended <-chan struct{}) (most map[string]int64, together int64) {
	most = map[string]int64{}
	for {
		select {
		case <-ended:
			return most, together
		case <-time.After(200 * time.Millisecond):
		}
		var now int64
		processes, _ := filepath.Glob("/proc/[0-9]*/cmdline")
		for _, path := range processes {
			line, err := os.ReadFile(path)
			words := strings.Split(string(line), "\x00")
			// The program that `up` was started as has a path, its halves do not.
			if err != nil || len(words) < 4 || filepath.Base(words[0]) != "fieldmesh-agent" ||
				!strings.HasPrefix(words[3], below) {
				continue
			}
			most[words[1]] = max(most[words[1]], field(filepath.Dir(path)+"/status", "VmHWM:"))
			now += field(filepath.Dir(path)+"/smaps_rollup", "Pss:")
		}
		together = max(together, now)
	}
}

// field reads a value in kB from a file of /proc, as bytes; 0 when the process
// is gone.
func field(path, name string) int64 {
	text, err := os.ReadFile(path)
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(text)) {
		if rest, ok := strings.CutPrefix(line, name); ok {
			kb, err := strconv.ParseInt(strings.Fields(rest)[0], 10, 64)
			if err != nil {
				return 0
			}
			return kb * 1024
		}
	}
	return 0
}

func reportMemory(t *testing.T, most map[string]int64, together int64) {
	if len(most) < 3 {
		t.Fatalf("agents seen: %v, want up, host and face", most)
	}
	mb := func(bytes int64) string { return fmt.Sprintf("%.1f MB", float64(bytes)/1e6) }
	report(row{
		goal:      "agent's memory",
		measured:  "face " + mb(most["face"]) + ", host " + mb(most["host"]) + ", up " + mb(most["up"]),
		reference: "two agents, shared pages once: " + mb(together),
		figure:    mb(most["face"]), limit: "≤ 25 MB", met: most["face"] <= 25e6,
	}, "largest resident memory of each process over the whole rehearsal. They run one program, whose %s of code and "+
		"data they share; beside it stands the most that all of both nodes had at one time, by their proportional "+
		"shares (PSS).", mb(fileSize(filepath.Join(programs, "fieldmesh-agent"))))
}

func fileSize(path string) int64 {
	info, err := os.Stat(path)
	if err != nil {
		return 0
	}
	return info.Size()
}
