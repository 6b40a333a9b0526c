package testnet

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Campaign writes a campaign that ships into a folder of the test's, as
// NAME.yaml and with changes, each a text that stands in it once and what takes
// its place.
func Campaign(t *testing.T, shipped, name string, changes ...string) string {
	t.Helper()
	text, err := os.ReadFile(shipped)
	if err != nil {
		t.Fatal(err)
	}
	out := string(text)
	for i := 0; i < len(changes); i += 2 {
		if strings.Count(out, changes[i]) != 1 {
			t.Fatalf("%s does not hold %q once", shipped, changes[i])
		}
		out = strings.Replace(out, changes[i], changes[i+1], 1)
	}
	path := filepath.Join(t.TempDir(), name+".yaml")
	if err := os.WriteFile(path, []byte(out), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

// Brief is Standing's campaign over a cable between alpha and bravo, whose one trial is a
// flow of some seconds. What is added to it follows.
func Brief(name string, seconds int, rest string) string {
	return Standing(name, "alpha", "bravo", fmt.Sprintf(`  duration_s: %d
  gate: {after_s: 0.1, timeout_s: 20, lead_s: 0.3}
  radio: {mode: none}
  tcp: {variant: reno}
  traffic: {bulk: {kind: iperf3_tcp, from: sender, to: receiver, streams: 1, window_bytes: 65536, port: 5000}}
design: {repetitions: 1, order: as_listed, seed: 1}
%s`, seconds, rest))
}

// Standing is a campaign in which one node sends to another and nobody drives,
// so that it needs no GPS. What it lacks follows: the rest of the trial, indented,
// and the other keys.
func Standing(name, sender, receiver, rest string) string {
	return fmt.Sprintf(`fieldmesh: 1
name: %s
title: Two standing nodes
nodes:
  %[2]s: {mesh_address: 10.77.0.1/24}
  %[3]s: {mesh_address: 10.77.0.2/24}
trial:
  sender: %[2]s
  receiver: %[3]s
  course: {kind: none}
%[4]s`, name, sender, receiver, rest)
}

// Sections are the keys of a campaign's two sections, in which one and the other sends, and
// of its design.
func Sections(one, other string, repetitions int) string {
	return fmt.Sprintf(`factors:
  section:
    levels:
      A: {sender: %[1]s, receiver: %[2]s}
      B: {sender: %[2]s, receiver: %[1]s}
design: {repetitions: %[3]d, order: randomised_blocks, seed: 7}
`, one, other, repetitions)
}

// Parked are the first keys of a trial between fox, which is the car and stands near the
// roadside's mark, and owl. Its SSID is the campaign's name.
func Parked(name string, durationS float64) string {
	return fmt.Sprintf(`trial:
  car: fox
  roadside: owl
  sender: car
  receiver: roadside
  duration_s: %g
  course: {kind: parked, mark_m: 10, heading_deg: 90}
  gate: {after_s: 0.1, timeout_s: 10, lead_s: 0.3}
  radio: {mode: adhoc, standard: 802.11g, channel: 6, ssid: %s, `+
		`bssid: "02:0a:5e:00:00:06", rate_mbps: 12}
`, durationS, name)
}
