package plan

import (
	"encoding/json"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"fieldmesh.dev/fieldmesh/controller/plan/tree"
)

// bases are campaigns to which a key is given: between them there is a course,
// a radio, a routing protocol and a flow for each key.
func bases(t *testing.T) []*tree.Node {
	t.Helper()
	change := strings.NewReplacer
	var out []*tree.Node
	for _, edit := range []*strings.Replacer{
		change(),
		change("nodes:", "field: {propagation: two_ray_ground, mobility: {model: random_waypoint, "+
			"area: {width_m: 100, height_m: 100}, speed_min_mps: 1, speed_max_mps: 2, pause_s: 0}}\nnodes:",
			"course: {kind: depart, start_m: 10, accel_mps2: 2.5, brake_mps2: 4}", "course: {kind: none}",
			"bulk: {",
			"load: {kind: iperf3_udp, background: true, payload_bytes: 100, bitrate_bps: 1000}\n    bulk: {"),
		change("radio: {mode: adhoc, standard: 802.11g",
			"routing: {protocol: olsr}\n  radio: {mode: infrastructure, standard: 802.11g, access_point: bravo"),
		change("bulk: {kind: iperf3_tcp, streams: 6, port: 5000}",
			"bulk: {kind: iperf3_udp, payload_bytes: 100, bitrate_bps: 1000}"),
		change("bulk: {kind: iperf3_tcp, streams: 6, port: 5000}",
			"bulk: {kind: delay, payload_bytes: 100, interval_ms: 20}"),
		change("  duration_s: 10", "  relays: [relay-1]\n  duration_s: 10", "bulk: {",
			"load: {kind: cbr, from: random, to: random, payload_bytes: 100, bitrate_bps: 1000}\n    bulk: {"),
		change("  duration_s: 10", "  speed_mps: 2.8\n  duration_s: 10",
			"speed: {key: speed_mps, levels: [2.8, 5.6]", "rate: {key: sample_hz, levels: [10, 20]",
			"direction: [outbound, inbound]", "relay_sample_hz: [1, 2]",
			"A: {sender: car, receiver: roadside}", "A: {still: true}",
			"B: {sender: roadside, receiver: car}", "B: {still: false}"),
	} {
		var f tree.Findings
		root := tree.Read([]byte(edit.Replace(fine)), "fieldmesh: 1", &f)
		if root == nil || f.Len() > 0 {
			t.Fatalf("a campaign that keys are given to: %+v", f.Problems("f", 0))
		}
		out = append(out, root)
	}
	return out
}

// ownRule are complaints about a value by its own rule: they come of the declaration.
var ownRule = regexp.MustCompile(`is not allowed; allowed:|unknown key`)

// outcome is the schedule that a campaign comes to, or what is said against it
// beyond the rules of single values; "" if there is nothing else.
func outcome(t *testing.T, root *tree.Node) string {
	t.Helper()
	raw, err := json.Marshal(root.Plain())
	if err != nil {
		t.Fatal(err)
	}
	c, err := Parse("f", raw)
	if err != nil {
		lines := slices.DeleteFunc(strings.Split(err.Error(), "\n"), ownRule.MatchString)
		return strings.Join(lines, "\n")
	}
	trials, err := json.Marshal(c.trials)
	if err != nil {
		t.Fatal(err)
	}
	return string(trials)
}

// valuesOf are some that a rule allows.
func valuesOf(t *testing.T, r rule) []any {
	t.Helper()
	switch r := r.(type) {
	case number:
		if r.whole {
			return []any{r.most, max(r.least, 0) + 1}
		}
		return []any{r.most, r.least + (r.most-r.least)/3}
	case numberChoice:
		return []any{r.values[0], r.values[len(r.values)-1]}
	case choice:
		return []any{r[0], r[len(r)-1], r[len(r)/2]}
	case boolean, toggle:
		return []any{true, false}
	case text:
		return []any{"a", "b"}
	case reference:
		return []any{"alpha", "bravo", "relay-1"}
	case list:
		return []any{valuesOf(t, r.item)[:1], valuesOf(t, r.item)[1:]}
	case checked:
		return valuesOf(t, r.rule)
	case pattern:
		for _, s := range []string{"02:11:22:33:44:55", "alpha", "a_b"} {
			if r.form.MatchString(s) {
				return []any{s}
			}
		}
	}
	t.Fatalf("no value for a rule of type %T", r)
	return nil
}

// TestEveryKeyOfATrialHasAnEffect: a key that is declared and not read would be
// taken from every campaign and ignored. Given, it changes the schedule, or
// something is said of it beyond what its own rule says.
func TestEveryKeyOfATrialHasAnEffect(t *testing.T) {
	all := bases(t)
	var before []string
	for _, root := range all {
		before = append(before, outcome(t, root))
		if last := before[len(before)-1]; !strings.HasPrefix(last, "[{") {
			t.Fatalf("campaign %d, without a key more, comes to %q", len(before), last)
		}
	}
	hasEffect := func(path string, value any) bool {
		for i, root := range all {
			given := tree.Merge(tree.Without(root, path), tree.Nest(path, plainNode(value)))
			if after := outcome(t, given); after != "" && after != before[i] {
				return true
			}
		}
		return false
	}
	var walk func(o object, path string) int
	walk = func(o object, path string) int {
		tried := 0
		for _, f := range o.fields {
			at := strings.Replace(path+"."+f.key, "trial.acceptance", "acceptance", 1)
			switch r := f.rule.(type) {
			case object:
				tried += walk(r, at)
				continue
			case table:
				tried += walk(r.row.(object), at+".bulk")
				continue
			}
			tried++
			effects := slices.ContainsFunc(valuesOf(t, f.rule), func(v any) bool { return hasEffect(at, v) })
			if !effects {
				t.Errorf("%s changes no schedule: it is declared and nothing reads it", at)
			}
		}
		return tried
	}
	tried := walk(schema{names: names{nodes: []string{"alpha", "bravo", "relay-1"}}}.override(), "trial")
	if tried < 80 {
		t.Errorf("only %d keys are tried", tried)
	}
}

// plainNode is a value as the tree of a file has it.
func plainNode(v any) *tree.Node {
	switch v := v.(type) {
	case string:
		return tree.NewText(v, tree.Position{})
	case float64:
		return tree.NewNumber(v, tree.Position{})
	case bool:
		return &tree.Node{Shape: tree.Bool, Truth: v, Text: fmt.Sprint(v)}
	case []any:
		out := &tree.Node{Shape: tree.List}
		for _, item := range v {
			out.Items = append(out.Items, plainNode(item))
		}
		return out
	}
	panic(fmt.Sprintf("no node of a %s", reflect.TypeOf(v)))
}
