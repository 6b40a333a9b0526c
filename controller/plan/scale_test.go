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

// A scale leaves levels out, each named once and as the file has it, and brings no other radio.
func TestLevelsOfAScale(t *testing.T) {
	with := func(factors, scale string) string {
		return string(designFile("{"+factors+"}", "{repetitions: 1, order: as_listed}")) + "scales: {quick: {why: w, " +
			"factors: {" + scale + "}}}\n"
	}
	const (
		section = "section: {levels: {A: {}, B: {sender: roadside, receiver: car}}}"
		power   = "power: {key: radio.tx_power_dbm, levels: [10, 20]}"
		named   = "power: {key: radio.tx_power_dbm, levels: {low: 10, high: 20}}"
		other   = "a scale may not change the radio"
	)
	radio := func(file string) string {
		return strings.Replace(file, "{mode: none}", "{mode: adhoc, standard: 802.11g, channel: 6, ssid: f}", 1)
	}
	for _, c := range []struct{ file, want string }{
		{with(section, "section: {only: [A, A]}"),
			"factors.section.only: \"A\" is given twice; allowed: each level once"},
		{radio(with(power, "power: {levels: [15]}")), other},
		{radio(with(named, "power: {levels: {low: 15}}")), other},
		{radio(with(named, "power: {levels: {low: 20, high: null}}")), other},
		{radio(with("tcp: "+variants, "tcp: {key: radio.channel, levels: {a: 1, b: 6}}")), other},
	} {
		if _, err := ParseAt("f", []byte(c.file), "quick"); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("got\n%v\nwant %s\n%s", err, c.want, c.file)
		}
		if _, err := ParseArchived("f", []byte(c.file), "quick"); err != nil {
			t.Errorf("of a run: %v", err)
		}
	}
	refused(t, []byte(radio(with(section, "section: {levels: {A: {radio: {channel: 1}}}}"))), other)
	for _, file := range []string{
		radio(with("radio_"+power, "radio_power: {levels: [20]}")),
		radio(with(power, "power: {levels: [10]}")),
		radio(with(named, "power: {levels: {low: null}}")),
		radio(with(named, "power: {levels: {low: 10, high: null}}")),
		radio(with(named, "power: {levels: [10]}")),
		radio(with(power, "power: {levels: {low: 10}}")),
		with("rto: {key: tcp.rto_min_ms, levels: {1000: 1000, 20.0: 20}}", "rto: {only: [20.0]}"),
	} {
		c, err := ParseAt("f", []byte(file), "quick")
		if err != nil {
			t.Errorf("%v\n%s", err, file)
		} else if len(c.trials) != 1 {
			t.Errorf("%d trials, want 1\n%s", len(c.trials), file)
		}
	}
}
