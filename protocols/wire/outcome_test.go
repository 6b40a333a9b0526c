package wire_test

import (
	"encoding/json"
	"testing"

	"fieldmesh.dev/fieldmesh/protocols/wire"
	"fieldmesh.dev/fieldmesh/test/fuzz"
)

// The journals and spools of former versions hold reasons as text.
func TestReasonsOfFormerArchivesAreRead(t *testing.T) {
	for text, want := range map[string]wire.Reason{
		"gps: fix_age_ms_max on car is 4000, limit 1500": {Code: wire.ReasonGPS,
			Text: "fix_age_ms_max on car is 4000, limit 1500"},
		"agent_restarted: on roadside: killed": {Code: wire.ReasonAgentRestarted, Node: "roadside",
			Text: "killed"},
		"aborted: on car": {Code: wire.ReasonAborted, Node: "car"},
		"arm_failed: radio: wlan0 is not there": {Code: wire.ReasonArmFailed,
			Text: "radio: wlan0 is not there"},
		"node_failed: on car, without a reason": {Code: wire.ReasonNodeFailed,
			Text: "on car, without a reason"},
		"the disk is full":  {Code: "the disk is full"},
		"x: on the road: y": {Code: "x", Text: "on the road: y"},
		"x: on car: ":       {Code: "x", Text: "on car: "},
		"x: ":               {Code: "x: "},
		"":                  {},
	} {
		got := wire.ParseReason(text)
		if got != want || got.String() != text {
			t.Errorf("%q is read as %+v and written as %q", text, got, got)
		}
	}
}

func TestVerdictsOfFormerArchivesAreWrittenAsTheyWere(t *testing.T) {
	for _, line := range []string{
		`{"trial":3,"attempt":2,"outcome":"rejected","reason":"speed: in_band_share_min is 0.85, limit 0.9","final":true}`,
		`{"trial":1,"attempt":1,"outcome":"interrupted","reason":"host_restarted: on car: killed","final":true,` +
			`"word":{"decision":"repeat","by":"phone","judged":"interrupted"}}`,
		`{"trial":1,"attempt":2,"outcome":"accepted","final":true}`,
	} {
		var v wire.Verdict
		if err := json.Unmarshal([]byte(line), &v); err != nil {
			t.Fatal(err)
		}
		if again, err := json.Marshal(v); err != nil || string(again) != line {
			t.Errorf("%s became %s, %v", line, again, err)
		}
	}
	kept := `{"kind":"trial","node":"car","epoch":"e","seq":1,"t_boot_ns":5,"run":"today","trial":1,"attempt":1,` +
		`"state":"kept","outcome":"failed","reason":"go_failed: no answer"}`
	var r wire.Record
	if err := json.Unmarshal([]byte(kept), &r); err != nil {
		t.Fatal(err)
	}
	want := wire.TrialState{State: wire.StateKept, Outcome: wire.Failed,
		Reason: wire.Reason{Code: wire.ReasonGoFailed, Text: "no answer"}}
	if *r.Body.(*wire.TrialState) != want {
		t.Errorf("read %+v", r.Body)
	}
}

func FuzzReasonsAreWrittenAsTheyWereRead(f *testing.F) {
	for _, text := range []string{"", "a", "a: b", "a: on n: t", ": on n: t", "on n", "a: on n", "a: : ",
		"a: on n: on m: t"} {
		f.Add(text)
	}
	fuzz.Run(f, func(t *testing.T, text string) {
		if again := wire.ParseReason(text).String(); again != text {
			t.Errorf("%q became %q", text, again)
		}
	})
}
