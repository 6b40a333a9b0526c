package dashboards

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"fieldmesh.dev/fieldmesh/internal/influx"
	"fieldmesh.dev/fieldmesh/protocols/wire"
)

var (
	quoted   = regexp.MustCompile(`"([^"]+)"`)
	from     = regexp.MustCompile(`FROM ((?:(?:, )?"fm_[a-z0-9_]+")+)`)
	aliases  = regexp.MustCompile(`AS "([^"]+)"`)
	variable = regexp.MustCompile(`\$([a-z]+)\b`)
)

// known are the names that a query on a measurement may use.
func known(t *testing.T, measurement string) []string {
	t.Helper()
	for _, m := range influx.Computed() {
		if m.Name != measurement {
			continue
		}
		out := []string{m.Name}
		for _, tag := range m.Tags {
			out = append(out, tag.Name)
		}
		for _, f := range m.Fields {
			out = append(out, f.Name)
		}
		return out
	}
	for _, m := range influx.Schema() {
		if m.Name != measurement {
			continue
		}
		out := []string{m.Name}
		for _, c := range m.Columns() {
			out = append(out, c.Name)
		}
		return out
	}
	t.Errorf("no measurement %q", measurement)
	return nil
}

func TestQueriesNameOnlyWhatTheSchemaHas(t *testing.T) {
	all, err := All()
	if err != nil || len(all) < 5 {
		t.Fatalf("%d dashboards, %v", len(all), err)
	}
	for _, d := range all {
		if !strings.HasPrefix(d.UID, "fieldmesh-") || len(d.Panels) == 0 || len(d.Variables) == 0 {
			t.Errorf("%s: uid %q, %d panels, %d variables", d.Name, d.UID, len(d.Panels), len(d.Variables))
		}
		variables := []string{"timeFilter", "tag"}
		for _, v := range d.Variables {
			variables = append(variables, v.Name)
		}
		variables = append(variables, d.Choices...)
		for _, q := range slices.Concat(d.Variables, d.Panels, d.Marks) {
			measured := from.FindStringSubmatch(q.Text)
			if measured == nil {
				t.Errorf("%s, %s: no measurement in %s", d.Name, q.Name, q.Text)
				continue
			}
			asked := quoted.FindAllStringSubmatch(measured[1], -1)
			for _, m := range asked {
				names := known(t, m[1])
				for _, a := range slices.Concat(asked, aliases.FindAllStringSubmatch(q.Text, -1)) {
					names = append(names, a[1])
				}
				for _, n := range quoted.FindAllStringSubmatch(q.Text, -1) {
					if !slices.Contains(names, n[1]) && !strings.HasPrefix(n[1], "$") {
						t.Errorf("%s, %s: %s has no %q", d.Name, q.Name, m[1], n[1])
					}
				}
			}
			for _, v := range variable.FindAllStringSubmatch(q.Text, -1) {
				if !slices.Contains(variables, v[1]) {
					t.Errorf("%s, %s: there is no variable %q", d.Name, q.Name, v[1])
				}
			}
		}
	}
}

// A link to a trial opens a time around the row's own. In the time range of the row's page, which may be a month, no
// curve shows a trial of seconds.
func TestLinksToATrialOpenItsMoment(t *testing.T) {
	all, err := All()
	if err != nil {
		t.Fatal(err)
	}
	around := regexp.MustCompile(`&time=\$\{__value\.time\}&time\.window=(?:(\d+)|\$\{__data\.fields\.(\w+)\})$`)
	links := map[string]int{}
	for _, d := range all {
		raw, err := files.ReadFile("json/" + d.Name + ".json")
		if err != nil {
			t.Fatal(err)
		}
		var read struct {
			Panels []struct {
				Title   string
				Targets []struct{ Query string }
				// as it stands, for what is left out of the rows
				Transformations json.RawMessage
				FieldConfig     struct {
					Overrides []struct {
						Properties []struct {
							ID    string
							Value json.RawMessage
						}
					}
				}
			}
		}
		if err := json.Unmarshal(raw, &read); err != nil {
			t.Fatal(err)
		}
		for _, p := range read.Panels {
			for _, o := range p.FieldConfig.Overrides {
				for _, property := range o.Properties {
					var list []struct{ URL string }
					if property.ID != "links" {
						continue
					}
					if err := json.Unmarshal(property.Value, &list); err != nil {
						t.Fatal(err)
					}
					for _, l := range list {
						links[d.Name]++
						found := around.FindStringSubmatch(l.URL)
						if !strings.HasPrefix(l.URL, "/d/fieldmesh-live?") || found == nil {
							t.Errorf("%s, %s: the link is %s", d.Name, p.Title, l.URL)
							continue
						}
						if column := found[2]; column != "" && !strings.Contains(p.Targets[0].Query, `AS "`+column+`"`) {
							t.Errorf("%s, %s: the link is %s, its query %s", d.Name, p.Title, l.URL, p.Targets[0].Query)
						}
						if left := regexp.MustCompile(`"(Time|view_ms)": true`).Find(p.Transformations); left != nil {
							t.Errorf("%s, %s: the link is %s, and %s leaves the rows", d.Name, p.Title, l.URL, left)
						}
					}
				}
			}
		}
	}
	if want := map[string]int{"campaign": 1, "results": 1, "fleet": 1}; !maps.Equal(links, want) {
		t.Errorf("links %v, want %v", links, want)
	}
}

// A radio tells a silent peer's last signal for as long as it knows the peer. Queries leave that out,
// as the metrics do.
func TestASilentPeersSignalIsNotShown(t *testing.T) {
	all, err := All()
	if err != nil {
		t.Fatal(err)
	}
	heard := fmt.Sprintf(`"inactive_ms" <= %d`, wire.HeardMs)
	shown := 0
	for _, d := range all {
		for _, q := range d.Panels {
			if !strings.Contains(q.Text, `FROM "fm_station"`) || !strings.Contains(q.Text, `"signal_dbm"`) {
				continue
			}
			shown++
			if !strings.Contains(q.Text, heard) {
				t.Errorf("%s, %s: it does not ask for %s: %s", d.Name, q.Name, heard, q.Text)
			}
		}
	}
	if shown == 0 {
		t.Error("no panel shows a signal")
	}
}

// One set of queries is for every generation of InfluxDB.
func TestQueriesAvoidWhatOnlySomeServersKnow(t *testing.T) {
	all, err := All()
	if err != nil {
		t.Fatal(err)
	}
	avoided := regexp.MustCompile(`(?i)\bSHOW\b.*\bON\b|SLIMIT|SOFFSET|sample\(|"\."`)
	for _, d := range all {
		for _, q := range slices.Concat(d.Variables, d.Panels, d.Marks) {
			if bad := avoided.FindString(q.Text); bad != "" {
				t.Errorf("%s, %s: %s in %s", d.Name, q.Name, bad, q.Text)
			}
		}
	}
}
