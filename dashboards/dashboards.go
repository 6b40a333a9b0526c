// Package dashboards is Fieldmesh's Grafana dashboards: json/ is made from src/
// by `npm run generate`, and read here, so that tests put every query to a real
// database. It talks to no server itself.
package dashboards

import (
	"cmp"
	"embed"
	"encoding/json"
	"fmt"
	"io/fs"
	"strings"
)

//go:embed json/*.json
var files embed.FS

// Dashboard is what a test needs of one: its variables', panels' and
// annotations' queries.
type Dashboard struct {
	Name      string // of its file, without .json
	UID       string
	Title     string
	Variables []Query
	Choices   []string // names of the variables whose values stand in the dashboard
	Panels    []Query
	Marks     []Query // annotations
}

// Query is one InfluxQL query with Grafana's macros in it. Name is the
// variable's, the panel's with the query's letter, or the annotation's.
type Query struct {
	Name, Text string
	Table      bool // wanted as a table: its columns are named in it
}

// stored is the part of Grafana's JSON that holds queries.
type stored struct {
	UID, Title string
	Templating struct {
		List []struct {
			Name, Type string
			Query      string
		}
	}
	Panels []struct {
		Title   string
		Targets []struct {
			RefID        string
			Query        string
			ResultFormat string
		}
	}
	Annotations struct {
		List []struct {
			Name   string
			Target struct{ Query string }
		}
	}
}

// All reads every dashboard.
func All() ([]Dashboard, error) {
	names, err := fs.Glob(files, "json/*.json")
	if err != nil {
		return nil, fmt.Errorf("list dashboards: %w", err)
	}
	var out []Dashboard
	for _, name := range names {
		raw, err := files.ReadFile(name)
		if err != nil {
			return nil, fmt.Errorf("read dashboard: %w", err)
		}
		var s stored
		if err := json.Unmarshal(raw, &s); err != nil {
			return nil, fmt.Errorf("read dashboard %s: %w", name, err)
		}
		out = append(out, s.dashboard(strings.TrimSuffix(strings.TrimPrefix(name, "json/"), ".json")))
	}
	return out, nil
}

func (s stored) dashboard(name string) Dashboard {
	d := Dashboard{Name: name, UID: s.UID, Title: s.Title}
	for _, v := range s.Templating.List {
		switch v.Type {
		case "query":
			d.Variables = append(d.Variables, Query{Name: v.Name, Text: v.Query})
		case "custom":
			d.Choices = append(d.Choices, v.Name)
		}
	}
	for _, p := range s.Panels {
		for _, t := range p.Targets {
			d.Panels = append(d.Panels, Query{Name: p.Title + " " + t.RefID, Text: t.Query, Table: t.ResultFormat ==
				"table"})
		}
	}
	for _, a := range s.Annotations.List {
		if a.Target.Query != "" {
			d.Marks = append(d.Marks, Query{Name: a.Name, Text: a.Target.Query, Table: true})
		}
	}
	return d
}

// Macros replaces what Grafana replaces in a query: each variable by its value
// (what is not named: everything, or its first choice), the time range, and the
// interval. from and to are in nanoseconds since 1970; to is now, too.
func Macros(values map[string]string, from, to, interval string) *strings.Replacer {
	pairs := []string{"$timeFilter", "time >= " + from + " AND time <= " + to, "$__interval", interval, "now()", to}
	for _, name := range []string{"run", "other", "trial", "node", "flow", "section"} {
		value, ok := values[name]
		if !ok {
			value = ".*"
		}
		pairs = append(pairs, "/^$"+name+"$/", "/^"+value+"$/")
	}
	for name, first := range map[string]string{"factor": "section", "second": "variant", "outcome": "throughput_bps"} {
		pairs = append(pairs, `"$`+name+`"`, `"`+cmp.Or(values[name], first)+`"`)
	}
	return strings.NewReplacer(pairs...)
}
