package plan

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"fieldmesh.dev/fieldmesh/controller/plan/tree"
)

// fine is a campaign without a fault, which every case below spoils by
// replacing one text by another.
const fine = `fieldmesh: 1
name: small
title: a small campaign
nodes:
  alpha: {unit: laptop-1, mesh_address: 10.0.0.1/24}
  bravo: {unit: laptop-2, mesh_address: 10.0.0.2/24}
  relay-1: {mesh_address: 10.0.0.3/24}
trial:
  car: alpha
  roadside: bravo
  sender: car
  receiver: roadside
  duration_s: 10
  course: {kind: depart, start_m: 10, accel_mps2: 2.5, brake_mps2: 4}
  gate: {speed_band: true, hold_s: 0.5, timeout_s: 60, lead_s: 0.5}
  radio: {mode: adhoc, standard: 802.11g, channel: 6, ssid: test}
  tcp: {variant: reno}
  traffic:
    bulk: {kind: iperf3_tcp, streams: 6, port: 5000}
factors:
  speed: {key: speed_mps, levels: [2.8, 5.6]}
  section:
    levels:
      A: {sender: car, receiver: roadside}
      B: {sender: roadside, receiver: car}
design: {repetitions: 2, order: randomised_blocks, seed: 1, balance: {direction: [outbound, inbound]}}
acceptance: {speed_band_mps: 0.5, in_band_share_min: 0.95, attempts_max: 3}
`

// faults are read from testdata/faults.txt: for each a line "== name", then
// "- old text", "+ new text" (\n for a line's end), and the problems that are to be reported.
type fault struct {
	name, old, new string
	want           []string
}

func readFaults(t testing.TB) []fault {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join("testdata", "faults.txt"))
	if err != nil {
		t.Fatal(err)
	}
	var out []fault
	unescape := strings.NewReplacer(`\n`, "\n", `\t`, "\t").Replace
	for l := range strings.Lines(string(raw)) {
		l = strings.TrimSuffix(l, "\n")
		switch {
		case strings.HasPrefix(l, "== "):
			out = append(out, fault{name: l[3:]})
		case strings.HasPrefix(l, "- "):
			out[len(out)-1].old = unescape(l[2:])
		case strings.HasPrefix(l, "+ "), l == "+":
			out[len(out)-1].new = unescape(strings.TrimPrefix(l[1:], " "))
		case l != "" && len(out) > 0:
			out[len(out)-1].want = append(out[len(out)-1].want, l)
		}
	}
	return out
}

func (x fault) file(t testing.TB) []byte {
	t.Helper()
	if strings.Count(fine, x.old) != 1 {
		t.Fatalf("fault %q replaces a text that is there %d times", x.name, strings.Count(fine, x.old))
	}
	return []byte(strings.Replace(fine, x.old, x.new, 1))
}

func TestFineCampaign(t *testing.T) {
	if _, err := Parse("small.yaml", []byte(fine)); err != nil {
		t.Fatalf("the campaign that every fault starts from:\n%v", err)
	}
}

//attack:file a campaign of few lines that makes millions of trials | cells and trials are counted before they are
//attack:and made
func TestFaultsAreReported(t *testing.T) {
	faults := readFaults(t)
	var golden strings.Builder
	for _, x := range faults {
		_, err := Parse("f", x.file(t))
		var problems tree.Problems
		if !errors.As(err, &problems) {
			t.Errorf("%s: error %v, want problems", x.name, err)
			continue
		}
		got := problems.Error()
		if *update {
			escape := strings.NewReplacer("\n", `\n`, "\t", `\t`).Replace
			golden.WriteString("== " + x.name + "\n- " + escape(x.old) + "\n+ " + escape(x.new) + "\n" + got + "\n\n")
			continue
		}
		if want := strings.Join(x.want, "\n"); got != want {
			t.Errorf("%s:\ngot\n%s\nwant\n%s", x.name, got, want)
		}
	}
	if *update && !t.Failed() {
		if err := os.WriteFile(filepath.Join("testdata", "faults.txt"), []byte(golden.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if len(faults) < 160 {
		t.Errorf("only %d faults are tried", len(faults))
	}
}

// A trial that is driven at any speed would count in the cell of its target, where no rule holds the car to it.
func TestASpeedThatNothingHoldsIsWarnedOf(t *testing.T) {
	const gate, accept = "speed_band: true, hold_s: 0.5", "speed_band_mps: 0.5, in_band_share_min: 0.95, "
	for name, c := range map[string]struct {
		gate, accept string
		warned       bool
	}{
		"held in the window":  {"after_s: 5", accept, false},
		"held at the gate":    {gate, "speed_band_mps: 0.5, ", false},
		"held nowhere":        {"after_s: 5", "", true},
		"fixes alone counted": {"after_s: 5", "fix_mode_min: 3, ", true},
	} {
		file := []byte(strings.NewReplacer(gate, c.gate, accept, c.accept).Replace(fine))
		got := parsed(t, file).Warnings.Error()
		if strings.Contains(got, ":8:1: trial.speed_mps: no rule holds the car to its speed") != c.warned {
			t.Errorf("%s: warned of %q", name, got)
		}
		run, err := ParseArchived("f", file, FullScale)
		if err != nil || strings.Contains(run.Warnings.Error(), "no rule") {
			t.Errorf("%s, of a run: %v, %v", name, run, err)
		}
	}
	shipped, err := filepath.Glob("../../campaigns/*.yaml")
	if err != nil || len(shipped) == 0 {
		t.Fatalf("no campaigns: %v", err)
	}
	for _, file := range shipped {
		if c, err := Load(file); err != nil || strings.Contains(c.Warnings.Error(), "no rule") {
			t.Errorf("%s: %v, %v", file, c, err)
		}
	}
}

// Speeds are in m/s: those of a campaign that has them in km/h are told in both.
func TestASpeedThatIsFasterThanAMotorwayIsWarnedOf(t *testing.T) {
	for levels, want := range map[string]string{
		"[2.8, 36.1]": "",
		"[20, 40]":    "f:8:1: trial.speed_mps: the fastest trial is driven at 40 m/s, which is 144 km/h",
	} {
		c, err := Parse("f", []byte(strings.Replace(fine, "[2.8, 5.6]", levels, 1)))
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		for _, w := range c.Warnings {
			if strings.Contains(w.Message, "km/h") {
				got += w.Error()
			}
		}
		if got != want {
			t.Errorf("%s: warned of %q, want %q", levels, got, want)
		}
	}
}
