package reference_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"strings"
	"testing"

	"fieldmesh.dev/fieldmesh/controller/reference"
)

var update = flag.Bool("update", false, "write keys.json again")

var schemas = []struct{ format, path string }{
	{reference.Campaign, "../../campaigns/campaign.schema.json"},
	{reference.Agent, "../../node-agent/config/agent.schema.json"},
	{reference.Fleet, "../fleet/fleet.schema.json"},
}

// The keys are those of the JSON Schemas, which are made of their declarations.
func TestKeysAreCurrent(t *testing.T) {
	var keys []reference.Entry
	for _, s := range schemas {
		text, err := os.ReadFile(s.path)
		if err != nil {
			t.Fatal(err)
		}
		of, err := keysOf(s.format, text)
		if err != nil {
			t.Fatal(err)
		}
		keys = append(keys, of...)
	}
	var want bytes.Buffer
	e := json.NewEncoder(&want)
	e.SetEscapeHTML(false)
	e.SetIndent("", " ")
	if err := e.Encode(keys); err != nil {
		t.Fatal(err)
	}
	if *update {
		if err := os.WriteFile("keys.json", want.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if is, err := os.ReadFile("keys.json"); err != nil || !bytes.Equal(is, want.Bytes()) {
		t.Errorf("keys.json is not current (%v): go generate ./controller/reference", err)
	}
}

// Every property that a schema names, at whatever depth, is a key here, and every
// key says what it means.
func TestNothingIsLeftOut(t *testing.T) {
	all, err := reference.All()
	if err != nil {
		t.Fatal(err)
	}
	known := map[string]bool{}
	for _, e := range all {
		if e.Meaning == "" {
			t.Errorf("%s %s does not say what it means", e.Format, e.Key)
		}
		known[e.Format+" "+e.Key[strings.LastIndexByte(e.Key, '.')+1:]] = true
	}
	for _, s := range schemas {
		text, err := os.ReadFile(s.path)
		if err != nil {
			t.Fatal(err)
		}
		var whole any
		if err := json.Unmarshal(text, &whole); err != nil {
			t.Fatal(err)
		}
		for _, name := range named(whole) {
			if !known[s.format+" "+name[strings.LastIndexByte(name, '.')+1:]] {
				t.Errorf("%s has a key %q, which the reference lacks", s.format, name)
			}
		}
	}
}

// named are the names of all properties of a schema.
func named(v any) []string {
	var out []string
	switch v := v.(type) {
	case []any:
		for _, one := range v {
			out = append(out, named(one)...)
		}
	case map[string]any:
		for k, one := range v {
			if of, ok := one.(map[string]any); ok && k == "properties" {
				for name, below := range of {
					out = append(append(out, name), named(below)...)
				}
				continue
			}
			out = append(out, named(one)...)
		}
	}
	return out
}

func TestFind(t *testing.T) {
	all, err := reference.All()
	if err != nil {
		t.Fatal(err)
	}
	for word, want := range map[string]string{
		"trial.gate.hold_s":       "campaign trial.gate.hold_s",
		"hold_s":                  "campaign trial.gate.hold_s",
		"gate.hold_s":             "campaign trial.gate.hold_s",
		"agent.yaml.go_port":      "agent.yaml go_port",
		"dead_man_s":              "agent.yaml dead_man_s",
		"nodes.NAME.pin":          "fleet.yaml nodes.NAME.pin",
		"gps.fix_age_ms":          "record gps.fix_age_ms",
		"clock_error_ms":          "metric clock_error_ms",
		"exit status 75":          "exit status 75",
		"acceptance":              "campaign acceptance",
		"throughput_mbps":         "table results.throughput_mbps",
		"counts":                  "table trials.counts",
		"places.time_utc":         "table places.time_utc",
		"factor_speed_mps":        "table results.factor_NAME",
		"bulk.throughput_bps":     "metric throughput_bps",
		"trial.traffic.NAME.kind": "campaign trial.traffic.NAME.kind",
	} {
		found := false
		for _, e := range reference.Find(all, word) {
			found = found || e.Format+" "+e.Key == want
		}
		if !found {
			t.Errorf("%q finds %+v, want %s", word, reference.Find(all, word), want)
		}
	}
	gate := reference.Find(all, "trial.gate")
	if len(gate) != 1 {
		t.Fatalf("trial.gate finds %+v", gate)
	}
	below := reference.Below(all, gate[0])
	if len(below) < 5 {
		t.Errorf("below the gate are %+v", below)
	}
	for _, e := range below {
		if !strings.HasPrefix(e.Key, "trial.gate.") {
			t.Errorf("%s is not below the gate", e.Key)
		}
	}
}
