//go:build e2e

package virtual

import (
	"fmt"
	"io"
	"maps"
	"math"
	"strings"
	"testing"

	"gonum.org/v1/gonum/stat"

	"fieldmesh.dev/fieldmesh/controller/archive"
	"fieldmesh.dev/fieldmesh/controller/topology"
	"fieldmesh.dev/fieldmesh/internal/pcapng"
	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// chainNodes are those of a chain of five hops.
const chainNodes = "abcdef"

// chain is a campaign on the first of its nodes, with a level for each way. Full frames reach 41 m, so
// that neighbours hear each other and nobody else. One segment is under way at a time:
// frames of one flow do not collide with each other, and throughput follows from what
// each hop takes.
func chain(names, levels string) []byte { return chainOf(chainsCell, names, levels) }

// chainsCell is the radio of a chain.
const chainsCell = `mode: adhoc, standard: 802.11b, rate_mbps: 11, bssid: "02:0a:5e:00:00:06"`

func chainOf(radio, names, levels string) []byte {
	var nodes strings.Builder
	for i, n := range names {
		fmt.Fprintf(&nodes, "  %c: {mesh_address: 10.77.0.%d/24}\n", n, i+1)
	}
	last, relays := len(names)-1, ""
	if last > 1 {
		relays = "\n  relays: [" + strings.Join(strings.Split(names[1:last], ""), ", ") + "]"
	}
	return fmt.Appendf(nil, `fieldmesh: 1
name: chain
title: Throughput by hops
nodes:
%strial:
  sender: a
  receiver: %c
  initiator: a%s
  course: {kind: none}
  gate: {after_s: 1, timeout_s: 30, lead_s: 0.5}
  duration_s: 10
  radio: {%s, tx_power_dbm: 20, channel: 6, ssid: chain}
  tcp: {variant: reno, delayed_ack: false, window_packets: 1}
  traffic: {bulk: {kind: iperf3_tcp, from: sender, to: receiver, port: 5000}}
factors:
  way:
    levels:
%sdesign: {repetitions: 4, order: as_listed, seed: 1}
acceptance: {attempts_max: 1}
field:
  propagation: log_distance
  path_loss_exponent: 4
  mobility: {model: chain, spacing_m: 34}
`, nodes.String(), names[last], relays, radio, levels)
}

// A chain of five hops of the kernel's own radios: AODV finds its ways through an ad
// hoc cell whose ends do not hear each other. As much gets through as between
// interfaces of Ethernet. Over several hops segments are lost, each costs a time-out, and
// how many a window has is chance: so means of several trials are compared, by their own
// spread. Routes break by HELLOs in both, because by default an agent reports no frame
// that its radio gave up.
func TestE2EAChainOfTheKernelsRadios(t *testing.T) {
	d := newDesk(t, "[8.3]")
	text := string(chain(chainNodes, `      one: {receiver: b, relays: [c, d, e, f], routing: {protocol: aodv, link_feedback: false}}
      three: {receiver: d, relays: [b, c, e, f], routing: {protocol: aodv, link_feedback: false}}
      five: {routing: {protocol: aodv, link_feedback: false}}
`))
	d.write(t, "chain.yaml", []byte(text))
	// In the agents' cell frames to all have the fixed rate.
	d.write(t, "ethernet.yaml", []byte(strings.NewReplacer("\nfield:\n", "\nfield:\n  basic_rates_mbps: [11]\n",
		"  duration_s: 10\n", "  duration_s: 10\n  capture: {snap_bytes: 94}\n").Replace(text)))
	got := d.transferred(t, "chain.yaml", "kernel", archive.RadioMAC80211)
	want := d.transferred(t, "ethernet.yaml", "ethernet", "")
	ways := []int{1, 3, 5} // hops, as the levels are listed
	for i, hops := range ways {
		var kernel, ethernet []float64
		for trial := i + 1; trial <= len(got); trial += len(ways) {
			kernel, ethernet = append(kernel, got[trial]), append(ethernet, want[trial])
		}
		t.Logf("%d hops, MB: through the kernel's own radios %.3f, through Ethernet %.3f", hops, kernel, ethernet)
		k, e := stat.Mean(kernel, nil), stat.Mean(ethernet, nil)
		// Three standard errors of the difference, and what the two radios' frames may differ by.
		n := float64(len(kernel))
		bound := 3*math.Sqrt((stat.Variance(kernel, nil)+stat.Variance(ethernet, nil))/n) + 0.05*e
		if !(math.Abs(k-e) < bound) || bound > e/2 {
			t.Errorf("%d hops: the kernel's own radios carried %.3f MB in the mean and interfaces of Ethernet "+
				"%.3f MB, want them within %.3f MB", hops, k, e, bound)
		}
	}
	for _, run := range []string{"kernel", "ethernet"} {
		a := d.read(t, run)
		for _, trial := range a.Info().Plan.Trials {
			chained(t, a, trial, ways[(trial.Number-1)%len(ways)])
		}
	}
}

// The kernel's own radios forward for others: a mesh of 802.11s over five hops, whose ends do
// not hear each other, and an access point from one station to another. One segment is under
// way at a time, and each hop takes the same time; a segment that is lost costs a time-out.
func TestE2ETheKernelsRadiosForward(t *testing.T) {
	for _, c := range []struct {
		name, radio, names, levels string
		hops                       []int
	}{
		{"mesh", "mode: mesh, standard: 802.11g, rate_mbps: 11", chainNodes,
			`      one: {receiver: b, relays: [c, d, e, f]}
      three: {receiver: d, relays: [b, c, e, f]}
      five: {}
`, []int{1, 3, 5}},
		{"access", "mode: infrastructure, access_point: b, standard: 802.11g, rate_mbps: 11", "abc",
			`      one: {receiver: b, relays: [c]}
      two: {}
`, []int{1, 2}},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := newDesk(t, "[8.3]")
			needsSupplicant(t, c.radio)
			text := strings.Replace(string(chainOf(c.radio, c.names, c.levels)), "repetitions: 4", "repetitions: 1", 1)
			d.write(t, "forwarded.yaml", []byte(text))
			mb := d.transferred(t, "forwarded.yaml", c.name, archive.RadioMAC80211)
			t.Logf("over %v hops: %v MB, by trial", c.hops, mb)
			for i, hops := range c.hops {
				if share := mb[i+1] * float64(hops) / mb[1]; !(share > 0.85 && share < 1.05) {
					t.Errorf("over %d hops %.3f MB, over one %.3f MB, want one part in %d", hops, mb[i+1], mb[1], hops)
				}
			}
		})
	}
}

// chained: the way of the data had so many hops by the nodes' routing tables, and what
// each node changed for the trial it undid.
func chained(t *testing.T, a *archive.Archive, trial wire.Trial, hops int) {
	t.Helper()
	var records []wire.Record
	changes := map[string]int{}
	for r, err := range a.Records(trial.Number, 1) {
		if err != nil {
			t.Fatal(err)
		}
		records = append(records, r)
		if c, is := r.Body.(*wire.HostChange); is && c.Scope == "trial" {
			changes[c.Action]++
		}
	}
	if changes["applied"] < len(a.Info().Plan.Nodes) || changes["applied"] != changes["undone"] {
		t.Errorf("run %s, trial %d: of the nodes' changes %v", a.Info().Run, trial.Number, changes)
	}
	mesh := topology.Read(a.Info().Plan, trial, records)
	if mesh == nil {
		t.Fatalf("run %s, trial %d: no records of routing", a.Info().Run, trial.Number)
	}
	most := 0
	for _, p := range mesh.PathsInWindow() {
		if p.Whole {
			most = max(most, p.Hops())
		}
	}
	if most != hops {
		t.Errorf("run %s, trial %d: the longest whole way had %d hops, want %d\n%s", a.Info().Run, trial.Number, most,
			hops, mesh.PathText())
	}
}

// batman-adv finds its way over five hops of the kernel's own radios, and as much gets through
// as between interfaces of Ethernet. It takes a way by the share of the last 64 messages that
// came through over each hop, so that a way over five takes half a minute to be worth anything.
func TestE2EBatmanOverAChainOfTheKernelsRadios(t *testing.T) {
	d := newDesk(t, "[8.3]")
	text := strings.NewReplacer("after_s: 1, timeout_s: 30", "after_s: 60, timeout_s: 90", "repetitions: 4",
		"repetitions: 2").Replace(string(chain(chainNodes,
		`      one: {receiver: b, relays: [c, d, e, f], routing: {protocol: batman-adv}}
      three: {receiver: d, relays: [b, c, e, f], routing: {protocol: batman-adv}}
      five: {routing: {protocol: batman-adv}}
`)))
	d.write(t, "chain.yaml", []byte(text))
	d.write(t, "ethernet.yaml", []byte(strings.NewReplacer("\nfield:\n", "\nfield:\n  basic_rates_mbps: [11]\n",
		"  duration_s: 10\n", "  duration_s: 10\n  capture: {snap_bytes: 94}\n").Replace(text)))
	got := d.transferred(t, "chain.yaml", "kernel", archive.RadioMAC80211)
	want := d.transferred(t, "ethernet.yaml", "ethernet", "")
	t.Logf("MB by trial: through the kernel's own radios %v, through Ethernet %v", got, want)
	for trial := range want {
		if !(math.Abs(got[trial]/want[trial]-1) < 0.05) {
			t.Errorf("trial %d: the kernel's own radios carried %.3f MB and interfaces of Ethernet %.3f MB, want them "+
				"within 5 %%", trial, got[trial], want[trial])
		}
		hops := []float64{5, 1, 3}[trial%3]
		if share := got[trial] * hops / got[1]; !(math.Abs(share-1) < 0.05) {
			t.Errorf("trial %d: %.3f MB over %g hops, %.3f MB over one", trial, got[trial], hops, got[1])
		}
	}
	a := d.read(t, "kernel")
	for _, trial := range a.Info().Plan.Trials {
		d.batman(t, a, trial.Number, map[string]int{"a": 1, "b": 2, "c": 2, "d": 2, "e": 2, "f": 1})
	}
	a = d.read(t, "ethernet")
	all := 0
	for _, trial := range a.Info().Plan.Trials {
		for _, node := range a.Info().Plan.Nodes {
			sent := batmanBroadcasts(t, a, wire.TrialKey{Trial: trial.Number, Attempt: 1}, node.Name)
			for header, times := range sent {
				if all++; times != 3 {
					t.Errorf("trial %d: node %s sent the broadcast %x %d times, want 3", trial.Number, node.Name,
						header, times)
				}
			}
		}
	}
	if all == 0 {
		t.Error("no node sent a broadcast of batman-adv")
	}
}

// batmanBroadcasts are how often a node sent each broadcast of batman-adv, by its header (packet type 1 of ethertype
// 0x4305: struct batadv_bcast_packet, 14 bytes, of linux/batadv_packet.h).
func batmanBroadcasts(t *testing.T, a *archive.Archive, k wire.TrialKey, node string) map[string]int {
	t.Helper()
	f, err := a.OpenCapture(k, node)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	r, err := pcapng.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	sent := map[string]int{}
	for {
		var p pcapng.Packet
		if err := r.Next(&p); err == io.EOF {
			return sent
		} else if err != nil {
			t.Fatal(err)
		}
		if p.Direction == pcapng.Outbound && len(p.Data) >= 28 && string(p.Data[12:15]) == "\x43\x05\x01" {
			sent[string(p.Data[14:28])]++
		}
	}
}

// batman-adv of the kernel in virtual time carries TCP between two nodes, and takes no
// more than its headers do and the time of its own frames.
func TestE2EBatmanCarriesAHop(t *testing.T) {
	d := newDesk(t, "[8.3]")
	text := chain("ab", `      none: {routing: {protocol: none}}
      batman: {routing: {protocol: batman-adv, hello_s: 2}}
`)
	d.write(t, "batman.yaml", text)
	mb := d.transferred(t, "batman.yaml", "batman", "")
	t.Logf("without it %.3f MB, with it %.3f MB", mb[1], mb[2])
	if share := mb[2] / mb[1]; !(share > 0.9 && share < 1) {
		t.Errorf("with batman-adv %.3f MB got through and without it %.3f MB, want a little less", mb[2], mb[1])
	}
	d.batman(t, d.read(t, "batman"), 2, map[string]int{"a": 1, "b": 1})
}

// batman: by batman-adv's word each node has so many neighbours, and each undid what it changed for
// the trial.
func (d *desk) batman(t *testing.T, a *archive.Archive, trial int, neighbours map[string]int) {
	t.Helper()
	most, counts := map[string]int{}, map[string]int{}
	for r, err := range a.Records(trial, 1) {
		if err != nil {
			t.Fatal(err)
		}
		switch b := r.Body.(type) {
		case *wire.RoutingCount:
			symmetric := 0
			for _, n := range b.Neighbors {
				if b.Protocol == "batman-adv" && n.Symmetric {
					symmetric++
				}
			}
			most[r.Node] = max(most[r.Node], symmetric)
		case *wire.HostChange:
			if b.Scope == "trial" {
				counts[b.Action]++
			}
		}
	}
	if !maps.Equal(most, neighbours) || counts["applied"] == 0 || counts["applied"] != counts["undone"] {
		t.Errorf("run %s, trial %d: by batman-adv's word the nodes have neighbours %v, want %v; of their changes %v",
			a.Info().Run, trial, most, neighbours, counts)
	}
}
