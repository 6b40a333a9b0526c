package dashboards

import (
	"encoding/json"
	"io/fs"
	"regexp"
	"strings"
	"testing"

	"fieldmesh.dev/fieldmesh/internal/influx"
)

// grafanaUnits are what Grafana calls the schema's units.
var grafanaUnits = map[string]string{"m/s": "velocityms", "m": "lengthm", "bit/s": "bps", "Mbit/s": "Mbits",
	"s": "s", "ms": "ms", "µs": "µs", "ns": "ns", "dBm": "suffix: dBm", "%": "percent", "1": "percentunit",
	"°C": "celsius", "B": "decbytes", "segments": "segments", "hops": "hops",
	"packets/s": "packets/s"}

// shown is a field as a panel shows it: chosen by an aggregate that keeps its unit,
// with nothing done to it.
var shown = regexp.MustCompile(`^SELECT (?:last|mean|min|max)\("([a-z0-9_]+)"\)(?: AS "[a-z_]+")? FROM "(fm_[a-z_]+)"`)

// A panel that shows a field as it is has the field's unit.
func TestPanelsHaveTheUnitsOfWhatTheyShow(t *testing.T) {
	names, err := fs.Glob(files, "json/*.json")
	if err != nil {
		t.Fatal(err)
	}
	compared := 0
	for _, name := range names {
		raw, err := files.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		var s struct {
			Panels []struct {
				Title       string
				FieldConfig struct{ Defaults struct{ Unit string } }
				Targets     []struct{ Query string }
			}
		}
		if err := json.Unmarshal(raw, &s); err != nil {
			t.Fatal(err)
		}
		for _, p := range s.Panels {
			for _, query := range p.Targets {
				m := shown.FindStringSubmatch(query.Query)
				if m == nil || p.FieldConfig.Defaults.Unit == "" {
					continue
				}
				compared++
				unit := unitOf(t, m[2], m[1])
				if want := grafanaUnits[unit]; p.FieldConfig.Defaults.Unit != want {
					t.Errorf("%s, %s: %s of %s is in %q; the panel has it as %q, want %q", name, p.Title, m[1], m[2],
						unit, p.FieldConfig.Defaults.Unit, want)
				}
			}
		}
	}
	if compared < 15 {
		t.Errorf("only %d panels were compared", compared)
	}
}

// unitOf is a field's unit by the schema.
func unitOf(t *testing.T, measurement, field string) string {
	t.Helper()
	for _, m := range append(influx.Schema(), influx.Computed()...) {
		for _, f := range m.Fields {
			if m.Name == measurement && f.Name == field {
				return f.Unit
			}
		}
	}
	t.Errorf("%s has no field %q", measurement, field)
	return ""
}

// The mean time to connect is of those that connected: its panel says so, and one beside it counts the others.
func TestTimeToConnectIsBesideThoseThatNeverDid(t *testing.T) {
	raw, err := files.ReadFile("json/campaign.json")
	if err != nil {
		t.Fatal(err)
	}
	var s struct {
		Panels []struct {
			Title, Description string
			Targets            []struct{ Query string }
		}
	}
	if err := json.Unmarshal(raw, &s); err != nil {
		t.Fatal(err)
	}
	told := map[string]string{}
	for _, p := range s.Panels {
		for _, query := range p.Targets {
			if shows := regexp.MustCompile(`^SELECT ((?:mean|count)\("connect_[a-z_]+"\))`).
				FindStringSubmatch(query.Query); shows != nil {
				told[shows[1]] = p.Description
			}
		}
	}
	if text := told[`mean("connect_time_ms")`]; !strings.Contains(text, "to the first SYN-ACK") ||
		!strings.Contains(text, "Attempts without a connection are not in it") {
		t.Errorf("the time to connect is said to be %q", text)
	}
	if told[`count("connect_censored_ms")`] == "" {
		t.Error("nothing counts the attempts without a connection")
	}
}

// What is called accepted is all that was: of the results alone, without calibration passes, it would look as if
// some of the trials that are planned were missing.
func TestAcceptedAttemptsAreAllOfThem(t *testing.T) {
	all, err := All()
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range all {
		for _, q := range d.Panels {
			if strings.Contains(q.Text, `sum("accepted")`) && strings.Contains(q.Text, `"counts" = 1`) {
				t.Errorf("%s, %s: accepted attempts of those that count alone: %s", d.Name, q.Name, q.Text)
			}
		}
	}
}
