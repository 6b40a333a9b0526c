package plan

import (
	"fmt"
	"strings"
	"testing"
)

// A range is written out in order, each node with the next address, in relays too.
func TestRangesOfNodes(t *testing.T) {
	c, err := shippedAt(t, "reference-tcp.yaml", FullScale)
	if err != nil {
		t.Fatal(err)
	}
	if len(c.Nodes) != 30 || c.Nodes[2] != (Node{Name: "n01", MeshAddress: "10.77.0.1/24"}) ||
		c.Nodes[29] != (Node{Name: "n28", MeshAddress: "10.77.0.28/24"}) {
		t.Errorf("nodes %v", c.Nodes)
	}
	if r := fmt.Sprint(c.trials[0].Relays); !strings.HasPrefix(r, "[n01 n02") || !strings.HasSuffix(r, "n28]") {
		t.Errorf("relays %v", r)
	}
	for want, change := range map[string][2]string{
		`"n[28-01]" is no range`:                      {"  n[01-28]:", "  n[28-01]:"},
		`"n[1-28]" is no range`:                       {"  n[01-28]:", "  n[1-28]:"},
		"the network of 10.77.0.1/29 has not so many": {"10.77.0.1/24", "10.77.0.1/29"},
		"nodes.n01: key \"mesh_address\" is missing": {
			"n[01-28]: {mesh_address: 10.77.0.1/24}", "n[01-28]: {}"},
		"trial.relays: \"n29\" is not a defined node;":       {`relays: ["n[01-28]"]`, `relays: ["n[01-29]"]`},
		"belongs to node s already; allowed: one of its own": {"10.77.0.1/24", "10.77.0.90/24"},
	} {
		_, err := shippedAt(t, "reference-tcp.yaml", FullScale, change[0], change[1])
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.900v, want %q", err, want)
		}
	}
}

// What hangs on the field's links is no schedule before they are known.
func TestFlowsThatCross(t *testing.T) {
	c, err := shippedAt(t, "reference-tcp.yaml", "smoke")
	if err != nil || !c.Crosses() {
		t.Fatal(err)
	}
	if _, err := c.Schedule(); err == nil {
		t.Error("a schedule whose flows have no ends")
	}
	for want, change := range map[string][2]string{
		"icmp\" is no flow that can be crossed; allowed: tcp": {"across: tcp", "across: icmp"},
		"udp_b\" is no flow that can be crossed":              {"across: tcp", "across: udp_b"},
		"is not allowed between two nodes that are named": {
			"from: random, to: random, across", "from: n01, to: n02, across"},
		"unique_ends: true is not allowed beside across": {"across: tcp", "across: tcp, unique_ends: true"},
		"beside start_within_s":                          {"across: tcp", "across: tcp, start_within_s: 1"},
		"start_within_s: a flow may begin at 9 s, when": {
			"payload_bytes: 1460", "payload_bytes: 1460, start_within_s: 9"},
		"conditions.height_m: 900 is more than the area": {
			"0: {still: true}", "0: {still: true, conditions: {height_m: 900}}"},
	} {
		_, err := shippedAt(t, "reference-tcp.yaml", "smoke", change[0], change[1])
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.900v, want %q", err, want)
		}
	}
	if c, err = shippedAt(t, "reference-tcp.yaml", "smoke", "across: tcp", "across: none", "across: tcp",
		"across: none"); err != nil || c.Crosses() {
		t.Errorf("none is crossed: %v", err)
	}
}

// A factor's levels may be lists of relays themselves, in a scale too.
func TestRangesInLevelsOfRelays(t *testing.T) {
	file := strings.Replace(string(designFile(`{size: {key: relays, levels: {few: [n1], many: ["n[1-3]"]}}}`,
		"{repetitions: 1, order: as_listed}")), "trial:\n", "  n[1-3]: {mesh_address: 10.77.0.100/24}\ntrial:\n", 1) +
		`scales: {quick: {why: w, factors: {size: {levels: {many: ["n[1-2]"]}}}}}`
	for scale, want := range map[string]string{FullScale: "[n1 n2 n3]", "quick": "[n1 n2]"} {
		c, err := ParseAt("f", []byte(file), scale)
		if err != nil {
			t.Fatal(err)
		}
		if got := fmt.Sprint(c.trials[1].Relays); got != want {
			t.Errorf("%s: %s, want %s", scale, got, want)
		}
	}
	without := strings.Replace(file, `levels: {many: ["n[1-2]"]}`, `levels: {few: null}`, 1)
	c, err := ParseAt("f", []byte(without), "quick")
	if err != nil || len(c.trials) != 1 || fmt.Sprint(c.trials[0].Relays) != "[n1 n2 n3]" {
		t.Errorf("without a level: %v, %v", c, err)
	}
}

// A range that its network has no room for is one fault, also where its nodes are named.
func TestARangeThatDoesNotFitIsOneFault(t *testing.T) {
	file := strings.Replace(string(designFile("{}", "{repetitions: 1, order: as_listed}")), "trial:\n",
		"  n[001-200]: {mesh_address: 10.77.0.100/24}\ntrial:\n  relays: [\"n[150-200]\"]\n", 1)
	_, err := Parse("f", []byte(file))
	const want = "the network of 10.77.0.100/24 has not so many addresses"
	if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
		t.Errorf("got\n%v\nwant %s alone", err, want)
	}
}
