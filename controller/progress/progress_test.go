package progress

import (
	"strings"
	"testing"
	"time"

	"fieldmesh.dev/fieldmesh/controller/plan/drive"
	"fieldmesh.dev/fieldmesh/controller/run"
	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// The line of a trial under way says each thing once, and there is one that fits 80 columns.
func TestStepLine(t *testing.T) {
	trial := wire.Trial{Number: 2, SpeedMps: new(11.1), Factors: map[string]string{"section": "A", "speed": "11.1"}}
	live := &wire.Live{SpeedMps: new(11.0), ThroughputBps: new(4.86e6), RemainingS: new(2.0)}
	for _, c := range []struct {
		step         run.Progress
		whole, short string // after the trial's number
	}{
		{run.Progress{Phase: "armed", Detail: "faster: 2.1 of 11.1 m/s", Live: &wire.Live{SpeedMps: new(2.1)}},
			" section=A speed=11.1: armed, faster: 2.1 of 11.1 m/s", ": faster: 2.1 of 11.1 m/s"},
		{run.Progress{Phase: "running", Detail: "measuring", Live: live},
			" section=A speed=11.1: running, measuring  11.0 of 11.1 m/s  4.86 Mbit/s  2 s left",
			": measuring  11.0 of 11.1 m/s  4.86 Mbit/s  2 s left"},
		{run.Progress{Mbps: new(4.9), Verdict: &wire.Verdict{Outcome: wire.Accepted}},
			" section=A speed=11.1: accepted, 4.90 Mbit/s", ": accepted, 4.90 Mbit/s"},
		{run.Progress{Mbps: new(0.0042), Verdict: &wire.Verdict{Outcome: wire.Accepted}},
			" section=A speed=11.1: accepted, 4.2 kbit/s", ": accepted, 4.2 kbit/s"},
	} {
		c.step.Trial, c.step.Attempt, c.step.Decided, c.step.Total = &trial, 1, 1, 24
		const begin = "[1/24, 8 min left] trial 2"
		if got := stepLine(c.step, ", 8 min left", true); got != begin+c.whole {
			t.Errorf("got  %s\nwant %s", got, begin+c.whole)
		}
		if got := stepLine(c.step, ", 8 min left", false); got != begin+c.short || len(got) >= 80 {
			t.Errorf("got  %s, %d columns\nwant %s", got, len(got), begin+c.short)
		}
	}
}

// Before the first trial the plan says how long it takes, then the trials themselves.
func TestTimeLeft(t *testing.T) {
	l := timeLeft{drive.Left{Trial: 20 * time.Second}}
	now := time.Unix(1000, 0)
	for _, c := range []struct {
		decided int
		after   time.Duration
		want    string
	}{
		{4, 0, ", 7 min left"},
		{4, 50 * time.Second, ", 7 min left"},
		{5, time.Minute, ", 19 min left"},
		{20, 8 * time.Minute, ", 2 min left"},
		{23, 9*time.Minute + 30*time.Second, ", 30 s left"},
		{24, 10 * time.Minute, ""},
	} {
		if got := l.text(run.Progress{Decided: c.decided, Total: 24}, now.Add(c.after)); got != c.want {
			t.Errorf("%d decided after %v: %q, want %q", c.decided, c.after, got, c.want)
		}
	}
	if got := (&timeLeft{}).text(run.Progress{Total: 24}, now); got != "" {
		t.Errorf("without an estimate: %q", got)
	}
}

//attack:face whoever has taken it over, or a radio's driver, tells what the controller's terminal would obey | what
//attack:and nodes tell is escaped before it is printed
func TestWhatNodesTellMovesNoTerminal(t *testing.T) {
	var out strings.Builder
	p := New(&out, nil)
	p.Say("note: \x1b]0;OWNED\x07")
	trial := wire.Trial{Number: 2}
	p.Step(run.Progress{Trial: &trial, Attempt: 1, Phase: "armed", Detail: "waits \x1b[2J"})
	if strings.ContainsAny(out.String(), "\x1b\x07") || !strings.Contains(out.String(), `waits \x1b[2J`) ||
		!strings.Contains(out.String(), `note: \x1b]0;OWNED\a`) {
		t.Errorf("%q", out.String())
	}
}
