package plan

import (
	"os"
	"strings"
	"testing"
)

func chain(t *testing.T) string {
	t.Helper()
	raw, err := os.ReadFile("../../campaigns/variants-chain.yaml")
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

// A scale changes what it names and nothing else, and says what it may change.
func TestAScaleIsTheSameCampaignShorter(t *testing.T) {
	text := chain(t)
	full, err := ParseAt("f", []byte(text), "")
	if err != nil {
		t.Fatal(err)
	}
	quick, err := ParseAt("f", []byte(text), "quick")
	if err != nil {
		t.Fatal(err)
	}
	if full.Scale != nil || quick.Scale == nil || quick.Scale.Name != "quick" || !strings.Contains(quick.Scale.Why,
		"60 s instead of 360") {
		t.Errorf("scales %+v, %+v", full.Scale, quick.Scale)
	}
	if len(full.trials) != 90 || len(quick.trials) != 90 || quick.SHA256 != full.SHA256 {
		t.Errorf("%d and %d trials", len(full.trials), len(quick.trials))
	}
	for i, q := range quick.trials {
		f := full.trials[i]
		if q.DurationS != 60 || f.DurationS != 360 || q.Factors["variant"] != f.Factors["variant"] || q.Radio.SSID !=
			f.Radio.SSID || *q.Radio.RateMbps != *f.Radio.RateMbps {
			t.Fatalf("trial %d: %+v, full %+v", q.Number, q, f)
		}
	}
	if m := quick.Field.Mobility.Moves; len(m) != 4 || m[0].AtS != 1 || full.Field.Mobility.Moves[0].AtS != 50 ||
		quick.Field.RangeM == nil || *quick.Field.RangeM != 200 {
		t.Errorf("moves %+v", m)
	}
	if most := full.trials[0].TCP.RTOMaxMs; most == nil || *most != 60_000 || quick.trials[0].TCP.RTOMaxMs != nil {
		t.Errorf("the largest RTO: full %v, quick %v, which leaves it out", most, quick.trials[0].TCP.RTOMaxMs)
	}
	smoke, err := ParseAt("f", []byte(text), "smoke")
	if err != nil {
		t.Fatal(err)
	}
	if len(smoke.trials) != 8 {
		t.Errorf("%d trials in smoke, want 2 variants, 2 protocols, 2 motions", len(smoke.trials))
	}
}

func TestFaultsOfScales(t *testing.T) {
	text := chain(t)
	for want, change := range map[string][2]string{
		`it has no scale "week"; allowed: full, night, quick, smoke`: {},
		"scales.quick.trial.radio.rate_mbps: a scale may not": {"trial: {duration_s: 60,",
			"trial: {radio: {rate_mbps: 2}, duration_s: 60,"},
		"scales.quick.factors.motion.levels.x.radio.channel: a": {"trial: {duration_s: 60, tcp: {rto_max_ms: null}}",
			"factors: {motion: {levels: {x: {radio: {channel: 6}}}}}"},
		`scales.quick: key "why" is missing`: {"why: >-\n      60 s", "trial_: >-\n      60 s"},
		`unknown key "propagation"`: {"    field:\n      mobility:\n        moves:\n          - {node: c, " +
			"at_s: 1,", "    field:\n      propagation: free_space\n      mobility:\n        moves:\n          - " +
			"{node: c, at_s: 1,"},
		`unknown key "model"`: {"      mobility:\n        moves:\n          - {node: c, at_s: 1,",
			"      mobility:\n        model: grid\n        moves:\n          - {node: c, at_s: 1,"},
		`"full" cannot name a scale`:         {"  smoke:\n", "  full:\n"},
		"trial.duration_s: 0 is not allowed": {"trial: {duration_s: 60,", "trial: {duration_s: 0,"},
		`key "duration_s" is missing`:        {"trial: {duration_s: 60,", "trial: {duration_s: null,"},
		`unknown key "rto_most_ms"`: {"trial: {duration_s: 60, tcp: {rto_max_ms: null}}",
			"trial: {duration_s: 60, tcp: {rto_most_ms: null}}"},
	} {
		changed, scale := text, "quick"
		if change[0] == "" {
			scale = "week"
		} else if changed = strings.Replace(text, change[0], change[1], 1); changed == text {
			t.Fatalf("nothing was changed for %q", want)
		}
		_, err := ParseAt("f", []byte(changed), scale)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}
