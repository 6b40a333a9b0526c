package plan

import (
	"math"
	"os"
	"strings"
	"testing"

	"fieldmesh.dev/fieldmesh/controller/plan/draw"
)

func shippedAt(t *testing.T, file, scale string, changes ...string) (*Campaign, error) {
	t.Helper()
	raw, err := os.ReadFile("../../campaigns/" + file)
	if err != nil {
		t.Fatal(err)
	}
	text := string(raw)
	for i := 0; i < len(changes); i += 2 {
		if !strings.Contains(text, changes[i]) {
			t.Fatalf("%s does not hold %q", file, changes[i])
		}
		text = strings.Replace(text, changes[i], changes[i+1], 1)
	}
	return ParseAt("f", []byte(text), scale)
}

// The cells of a repetition have the same pairs, repetitions have others; no two
// flows have the same two ends; background shares its total and begins in the
// first 3.5 s of the warm-up; the first measured pair has the roles.
func TestDrawnFlows(t *testing.T) {
	c, err := shippedAt(t, "fixed-rto.yaml", "quick")
	if err != nil {
		t.Fatal(err)
	}
	first := map[int][2]string{}
	for _, x := range c.trials {
		ends := map[[2]string]bool{}
		total := 0.0
		for _, f := range x.Traffic {
			if p := draw.Pair(f.From, f.To); f.From == f.To || ends[p] || f.From == draw.Random {
				t.Fatalf("trial %d: flow %s from %s to %s", x.Number, f.Name, f.From, f.To)
			} else {
				ends[p] = true
			}
			if f.Background {
				total += *f.BitrateBps
			}
			least, most := 0.0, 0.0
			if f.Background {
				least, most = -5, -1.5
			}
			if end := f.StartS + f.DurationS; f.StartS < least || f.StartS > most || math.Abs(end-30) > 1e-9 {
				t.Fatalf("trial %d: flow %s from %g s for %g s", x.Number, f.Name, f.StartS, f.DurationS)
			}
		}
		tcp := x.Traffic[0]
		if len(x.Traffic) != 11 || total != 50000 || tcp.Name != "tcp_1" || x.Sender != tcp.From ||
			x.Receiver != tcp.To || x.Gate.LeadS != 6 || x.WarmupS() != 5 || len(x.Nodes()) != 50 ||
			*x.TCP.WindowPackets != 8 {
			t.Fatalf("trial %d: %d flows, %g bit/s, %s to %s, lead %g s, %d nodes", x.Number, len(x.Traffic), total,
				x.Sender, x.Receiver, x.Gate.LeadS, len(x.Nodes()))
		}
		if was, seen := first[x.Repetition]; seen && was != [2]string{tcp.From, tcp.To} {
			t.Errorf("repetition %d has pairs %v and %s, %s", x.Repetition, was, tcp.From, tcp.To)
		}
		first[x.Repetition] = [2]string{tcp.From, tcp.To}
	}
	if len(first) != 3 || first[1] == first[2] && first[2] == first[3] {
		t.Errorf("pairs by repetition %v", first)
	}
}

func TestFaultsOfDrawnFlows(t *testing.T) {
	for want, change := range map[string][2]string{
		"one end is drawn and the other is not": {"from: random, to: random, flows: 1,",
			"from: random, to: n05, flows: 1,"},
		"trial.traffic.tcp.flows: 1 is not allowed between two": {"from: random, to: random, flows: 1,",
			"from: sender, to: receiver, flows: 1,"},
		"trial.traffic.tcp.total_bps: 9000 is not allowed for kind": {"flows: 1, payload_bytes: 1460",
			"flows: 1, total_bps: 9000, payload_bytes: 1460"},
		"total_bps":                    {"total_bps: 50000, start", "bitrate_bps: 1000, total_bps: 50000, start"},
		"is taken by flow tcp":         {"port: 6000", "port: 5000"},
		"from -200 s to -200 s is not": {"port: 5000}", "port: 5000, start_s: -200}"},
		"tcp.duration_s: iperf3 cannot send for 0.5 s; allowed: whole": {"port: 5000}", "port: 5000, duration_s: 0.5}"},
		"trial.warmup_s: 9000":  {"warmup_s: 5, duration_s: 30", "warmup_s: 9000, duration_s: 30"},
		"tcp.window_packets: 0": {"window_packets: 8", "window_packets: 0"},
		"channel_error: a burst's length": {"  course: {kind: none}",
			"  conditions: {channel_error: {mean: 0.1}}\n  course: {kind: none}"},
		"speeds from 30 up to 20 m/s are none": {"  course: {kind: none}",
			"  conditions: {speed_min_mps: 30}\n  course: {kind: none}"},
		"field.mobility.speed_max_mps: 20 is below": {"model: setdest", "model: setdest\n    speed_min_mps: 21"},
		"there is no level \"tcp9\"": {"only: [tcp1_cbr10_50]}}\n    design: {repetitions: 3}",
			"only: [tcp9]}}\n    design: {repetitions: 3}"},
		"tcp.unique_ends: true is not allowed between two": {"unique_ends: true, from: random, to: random, flows: 1,",
			"unique_ends: true, from: sender, to: receiver,"},
		"26 flows have unique_ends and 50 nodes": {"{traffic: {tcp: {flows: 1}", "{traffic: {tcp: {flows: 26}"},
		"trial.traffic.cbr.port: datagram":       {"port: 6000", "port: 6690"}, // ten flows: the seventh has babeld's
		"acceptance.hops_min: 0 is not al":       {"hops_min: 2", "hops_min: 0"},
	} {
		if _, err := shippedAt(t, "fixed-rto.yaml", "quick", change[0], change[1]); err == nil ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("%.600v, want %q", err, want)
		}
	}
	const want = "speeds from 30 up to 5 m/s are none"
	if _, err := shippedAt(t, "six-variants.yaml", "quick", "low: {conditions: {speed_min_mps: 1,",
		"low: {conditions: {speed_min_mps: 30,"); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("%.600v, want %q", err, want)
	}
}

// "The sender and receiver nodes were unique for each connection, although in some cases a TCP end point was
// also the endpoint of one or more CBR flows" (P3, section 5.2).
func TestP3sConnectionsShareNoEnd(t *testing.T) {
	c, err := shippedAt(t, "fixed-rto.yaml", "load_10_40_200")
	if err != nil {
		t.Fatal(err)
	}
	shared := false
	for _, x := range c.trials {
		ends := map[string]int{}
		for _, f := range x.Measured() {
			ends[f.From]++
			ends[f.To]++
		}
		if len(ends) != 20 {
			t.Errorf("trial %d: ten connections end at %v", x.Number, ends)
		}
		for _, f := range x.Traffic {
			shared = shared || f.Background && ends[f.From] > 0
		}
	}
	if !shared {
		t.Error("no node has both a connection and a constant-bit-rate flow")
	}
}

// Factors may set what the field is like in a trial, each a part of it, and a
// scale may leave levels out and shorten those that it keeps.
func TestConditionsOfCases(t *testing.T) {
	c, err := shippedAt(t, "reference-tcp.yaml", "quick")
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, x := range c.trials {
		cell := x.Factors["node_speed"] + " " + x.Factors["congestion"]
		seen[cell] = true
		if *x.Conditions.ChannelErrorMean != 0 || *x.TCP.WindowPackets != 8 || x.Sender != "s" {
			t.Fatalf("%+v", x)
		}
		switch cell {
		case "0 udp":
			if !x.Still || len(x.Traffic) != 3 || x.Traffic[1].DurationS != 26 || x.Traffic[1].Across != "tcp" {
				t.Fatalf("%+v", x)
			}
		case "10 none":
			if *x.Conditions.SpeedMaxMps != 10 || x.Still || len(x.Traffic) != 1 {
				t.Fatalf("%+v", x)
			}
		}
	}
	if len(c.trials) != 24 || len(seen) != 4 {
		t.Errorf("%d trials of %v", len(c.trials), seen)
	}
	if c, err = shippedAt(t, "reference-tcp-settings.yaml", FullScale); err != nil {
		t.Fatal(err)
	}
	for _, x := range c.trials {
		if x.Factors["setting"] == "hops_9" && (*x.Conditions.HeightM != 1700 || *x.Conditions.ChannelErrorMean !=
			0.01 || x.Receiver != "r09" || len(x.Nodes()) != 64) {
			t.Fatalf("%+v", x)
		}
	}
}

// Each campaign of a paper says in what it is not as the paper has it, at every scale.
func TestPapersDeviationsAreDeclared(t *testing.T) {
	campaigns, err := everyShipped()
	if err != nil || len(campaigns) == 0 {
		t.Fatalf("%d campaigns: %v", len(campaigns), err)
	}
	for file, c := range campaigns {
		if c.Paper != nil && len(c.Paper.Deviations) == 0 {
			t.Errorf("%s names %s and no deviation", file, c.Paper.Name)
		}
	}
}
