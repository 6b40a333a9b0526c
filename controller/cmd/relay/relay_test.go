package relay

import (
	"encoding/json"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"fieldmesh.dev/fieldmesh/controller/progress"
	"fieldmesh.dev/fieldmesh/controller/run"
	"fieldmesh.dev/fieldmesh/protocols/wire"
)

func TestTheEndIsTheOneInside(t *testing.T) {
	for line, want := range map[string]bool{
		`{"ended":{"error":"1 of 2 trials accepted","unmet":true}}`: true,
		`{"ended":{"error":"the disk is full"}}`:                    false,
	} {
		h := NewHearer(progress.New(io.Discard, []string{""}), "", &Tally{Begun: time.Now()})
		if err := h.Line([]byte(line)); err != nil {
			t.Fatal(err)
		}
		if unmet, err := h.End(); err == nil || unmet != want || !strings.Contains(line, err.Error()) {
			t.Errorf("%s: %v, unmet: %v", line, err, unmet)
		}
	}
}

func TestWhatIsToldInsideIsShownOutside(t *testing.T) {
	shown, err := os.CreateTemp(t.TempDir(), "out")
	if err != nil {
		t.Fatal(err)
	}
	defer shown.Close()
	h := NewHearer(progress.New(shown, []string{""}), "", &Tally{Begun: time.Now().Add(-10 * time.Second)})
	if _, err := h.End(); err == nil {
		t.Error("an end that nobody told is none")
	}
	trial := &wire.Trial{Number: 4}
	for _, l := range []Line{
		{UptimeS: 1, Step: &run.Progress{Trial: trial, Attempt: 1, Phase: "running", Decided: 3, Total: 6}},
		{UptimeS: 40, Step: &run.Progress{Trial: trial, Attempt: 1, Phase: "judged", Decided: 4, Total: 6,
			Verdict: &wire.Verdict{Outcome: wire.Accepted}}},
		{UptimeS: 41, Ended: &End{Error: "one trial was given up"}},
	} {
		text, err := json.Marshal(l)
		if err != nil {
			t.Fatal(err)
		}
		if err := h.Line(append(text, '\n')); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := h.End(); err == nil || err.Error() != "one trial was given up" {
		t.Errorf("the end: %v", err)
	}
	text, err := os.ReadFile(shown.Name())
	want := "[3/6] trial 4: running\n[4/6] trial 4: accepted\n        40 s of virtual time in 10 s, about 20s left\n"
	if err != nil || string(text) != want {
		t.Errorf("shown:\n%s\nwant:\n%s", text, want)
	}
	if err := h.Line([]byte("not JSON\n")); err == nil {
		t.Error("a line that cannot be read is passed over")
	}
}

// What several kernels tell is added up to the whole run's: trials that are decided,
// those of parts that were finished before too, and how virtual time goes.
func TestPartsAreToldTogether(t *testing.T) {
	all := &Tally{Begun: time.Now().Add(-10 * time.Second), Decided: 3, Total: 10}
	one, other := NewHearer(nil, "job 1", all), NewHearer(nil, "job 2", all)
	for i, c := range []struct {
		of      *Hearer
		decided int
		uptimeS float64
		want    int
		pace    string
	}{
		{one, 1, 5, 4, "        5 s of virtual time in 10 s"}, // one trial was decided when it began
		{other, 0, 7, 4, "        12 s of virtual time in 10 s"},
		{one, 2, 15, 5, "        22 s of virtual time in 10 s, about 50s left"},
		{other, 1, 20, 6, "        35 s of virtual time in 10 s, about 20s left"},
	} {
		l := &Line{UptimeS: c.uptimeS, Step: &run.Progress{Decided: c.decided, Total: 3}}
		if pace := all.take(c.of, l); pace != c.pace || l.Step.Decided != c.want || l.Step.Total != 10 {
			t.Errorf("line %d: [%d/%d]%s, want [%d/10]%s", i, l.Step.Decided, l.Step.Total, pace, c.want, c.pace)
		}
	}
}
