package cmd

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// judged is what a command of `fieldmesh plan` says of a small campaign with some changes.
func judged(t *testing.T, command string, changes ...string) (out, faults string) {
	t.Helper()
	text := strings.NewReplacer(changes...).Replace(smallCampaign)
	if text == smallCampaign && changes != nil {
		t.Fatalf("nothing was changed: %s", changes)
	}
	file := filepath.Join(t.TempDir(), "c.yaml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	var said, wrong strings.Builder
	c := PlanCommand()
	c.SetArgs([]string{command, file})
	c.SetOut(&said)
	c.SetErr(&wrong)
	if err := c.Execute(); err == nil && strings.Contains(wrong.String(), "c.yaml:") {
		t.Errorf("%s: faults, and no error: %s", changes, wrong.String())
	} else if err != nil && !strings.Contains(err.Error(), "has ") {
		t.Errorf("%s: %v", changes, err)
	}
	return said.String(), wrong.String()
}

const smallCampaign = `fieldmesh: 1
name: small
title: a small design
nodes:
  alpha: {mesh_address: 10.77.0.1/24}
  bravo: {mesh_address: 10.77.0.2/24}
trial:
  car: alpha
  roadside: bravo
  sender: car
  receiver: roadside
  speed_mps: 5
  duration_s: 10
  course: {kind: depart, start_m: 10, accel_mps2: 2.5, brake_mps2: 4}
  gate: {speed_band: true, hold_s: 0.5, timeout_s: 60, lead_s: 0.5}
  radio: {mode: none}
  tcp: {variant: reno}
  traffic: {bulk: {kind: iperf3_tcp}}
factors: {section: {levels: {A: {}, B: {sender: roadside, receiver: car}}}}
design: {repetitions: 3, order: as_listed}
acceptance: {speed_band_mps: 0.5, attempts_max: 3}
scales: {quick: {why: "shorter", design: {repetitions: 2}}}
`

// What no run would drive is not fine: whatever agents refuse of its plan, and whatever is wrong in a scale of it.
func TestPlanCheckFindsWhatARunWouldRefuse(t *testing.T) {
	if out, faults := judged(t, "check"); faults != "" || !strings.Contains(out, "fine: campaign small, 6 trials") {
		t.Errorf("the campaign without a fault: %s%s", out, faults)
	}
	for want, changes := range map[string][]string{
		":1:1: no run drives it: plan: trials[1].radio: with mode hotspot all trials of a run have one radio": {
			"radio: {mode: none}", "radio: {mode: hotspot, access_point: roadside, channel: 6, ssid: fieldmesh}",
			"factors: {section: {levels: {A: {}, B: {sender: roadside, receiver: car}}}}",
			"factors: {chan: {key: radio.channel, levels: [1, 6]}}"},
		":1:1: no run drives it: plan: nodes": {
			"  bravo:", "  n[001-200]: {mesh_address: 10.77.1.1/16}\n  bravo:"},
		"at scale quick: design.repetitions: 0 is not allowed": {"repetitions: 2", "repetitions: 0"},
		"at scale quick: factors.sektion.only: a list is not allowed": {
			"design: {repetitions: 2}", "factors: {sektion: {only: [A]}}"},
		`at scale quick: design: unknown key "repetition"; did you mean`: {"repetitions: 2", "repetition: 2"},
	} {
		out, faults := judged(t, "check", changes...)
		if strings.Contains(out, "fine") || !strings.Contains(faults, want) {
			t.Errorf("%s: %s%s, want %s", changes, out, faults, want)
		}
	}
}

// Nodes that swap their places leave nobody at the roadside who could say where it is.
func TestPlanSaysThatSwappedNodesNeedTheRoadsidesPlace(t *testing.T) {
	const (
		swap = "factors: {car_unit: {levels: {a: {car: alpha, roadside: bravo}, b: {car: bravo, roadside: alpha}}}, "
		want = "which is bravo in some trials and alpha in others"
	)
	for command, begins := range map[string]string{"check": "not driven on a road: ", "show": "no road run drives it"} {
		out, _ := judged(t, command, "factors: {", swap)
		if whole := strings.Join(strings.Fields(out), " "); !strings.Contains(whole, begins) ||
			!strings.Contains(whole, want) {
			t.Errorf("%s: %s", command, out)
		}
		if out, _ := judged(t, command); strings.Contains(out, "in others") {
			t.Errorf("%s, where nobody swaps: %s", command, out)
		}
	}
}

// Every campaign that ships is shown with what it can tell, and each effect that
// it asks about has an interval.
func TestShippedCampaignsCanTellWhatTheyAsk(t *testing.T) {
	files, err := filepath.Glob("../../campaigns/*.yaml")
	if err != nil || len(files) < 10 {
		t.Fatalf("%d campaigns, %v", len(files), err)
	}
	for _, file := range files {
		var out strings.Builder
		c := PlanCommand()
		c.SetArgs([]string{"show", file})
		c.SetOut(&out)
		if err := c.Execute(); err != nil {
			t.Fatal(err)
		}
		_, effects, told := strings.Cut(out.String(), "can tell, if each is accepted")
		if !told || strings.Contains(effects, "the campaign asks about") {
			t.Errorf("%s: %s", file, effects)
		}
	}
}
