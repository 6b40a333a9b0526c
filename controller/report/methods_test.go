package report

import (
	"slices"
	"strings"
	"testing"

	"fieldmesh.dev/fieldmesh/controller/report/evidence"
	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// A rule that all trials have is told once, and one in which they differ with each of its values, as their texts are.
func TestEachValueOfARuleIsToldOnce(t *testing.T) {
	mode, one, two := 3, 100.0, 200.0
	d := &evidence.Run{}
	for i, age := range []*float64{&one, &two, &one} {
		d.Info.Plan.Trials = append(d.Info.Plan.Trials, wire.Trial{Number: i + 1,
			Acceptance: wire.Acceptance{FixModeMin: &mode, FixAgeMsMax: age}})
	}
	want := []pair{{"GPS fix", "mode 3 or better throughout"},
		{"age of the fix", "never above 100 ms or never above 200 ms"}}
	if got := rules(d); len(got) != 2 || got[0] != want[0] || got[1] != want[1] {
		t.Errorf("%q, want %q", got, want)
	}
}

// A tool that is on the nodes and that no trial used is no part of what was done.
func TestSoftwareIsWhatTheTrialsUsed(t *testing.T) {
	installed := map[string]string{"babeld": "babeld-1.12.1", "batman-adv": "2025.4", "olsrd": "*** olsrd 0.9.8",
		"iperf3": "iperf 3.12 (cJSON 1.7.15)", "wpa_supplicant": "wpa_supplicant v2.10", "chronyc": "chronyc 4.3"}
	of := func(x wire.Trial, radio *wire.Caps) string {
		text := proseSoftware(&evidence.Run{Attempts: []evidence.Attempt{{Trial: x,
			Node: map[string]wire.Provenance{"a": {Kernel: "7.3.4", Tools: installed, Radio: radio}}}}})
		_, tools, _ := strings.Cut(text, "; ")
		tools, _, _ = strings.Cut(tools, ". Campaign")
		return tools
	}
	tcp := []wire.Flow{{Kind: "iperf3_tcp"}}
	for _, c := range []struct {
		trial wire.Trial
		radio *wire.Caps
		want  string
	}{
		{wire.Trial{Traffic: tcp, Routing: wire.Routing{Protocol: "none"}, Radio: wire.Radio{Mode: "adhoc"}},
			&wire.Caps{}, "Linux 7.3.4; chronyc 4.3; iperf3 3.12 (cJSON 1.7.15)"},
		{wire.Trial{Routing: wire.Routing{Protocol: "babeld"}, Radio: wire.Radio{Mode: "infrastructure"}}, &wire.Caps{},
			"Linux 7.3.4; babeld 1.12.1; chronyc 4.3; wpa_supplicant v2.10"},
		{wire.Trial{Routing: wire.Routing{Protocol: "batman-adv"}, Radio: wire.Radio{Mode: "infrastructure"}}, nil,
			"Linux 7.3.4; batman-adv 2025.4; chronyc 4.3"},
	} {
		if got := of(c.trial, c.radio); got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
}

func TestAWindowIsToldAsItIs(t *testing.T) {
	d := &evidence.Run{}
	d.Info.Plan.Trials = []wire.Trial{{Number: 1, DurationS: 1234}, {Number: 2, DurationS: 1800.5}}
	says(t, proseTrial(d), "a window of 1234 s, or 1800.5 s when")
	if rows := runPairs(d); !slices.Contains(rows, pair{"window", "1234 s, 1800.5 s"}) {
		t.Errorf("%q", rows)
	}
}
