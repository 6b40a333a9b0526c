package dashboards

import (
	"errors"
	"regexp"
	"testing"

	"github.com/grafana/grafana-foundation-sdk/go/cog"
	"github.com/grafana/grafana-foundation-sdk/go/cog/plugins"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
)

// beyond are the fields that Grafana's InfluxDB data source keeps in an
// annotation, and that Grafana's schema, which knows no data source's own, does not name.
var beyond = regexp.MustCompile(
	`^annotations\.list\[\d+\]\.AnnotationQuery: unexpected field '(query|textColumn|tagsColumn)'$`)

// Grafana's schema, as its own Go types are made of it, knows every field of
// every dashboard and panel, and has none that is missing or out of its bounds.
func TestGrafanasSchemaKnowsTheDashboards(t *testing.T) {
	plugins.RegisterDefaultPlugins()
	all, err := All()
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range all {
		raw, err := files.ReadFile("json/" + d.Name + ".json")
		if err != nil {
			t.Fatal(err)
		}
		var read dashboard.Dashboard
		for _, e := range each(errors.Join(read.UnmarshalJSONStrict(raw), read.Validate())) {
			if !beyond.MatchString(e.Error()) {
				t.Errorf("%s: %v", d.Name, e)
			}
		}
		if len(read.Panels) == 0 {
			t.Errorf("%s: no panel was read", d.Name)
		}
		for _, p := range read.Panels {
			if c := p.Panel; c != nil && c.FieldConfig != nil && c.FieldConfig.Defaults.Color != nil &&
				c.FieldConfig.Defaults.Color.Mode == "" {
				t.Errorf("%s, %s: colours without a mode", d.Name, *c.Title)
			}
		}
	}
	var strange dashboard.Dashboard
	if err := strange.UnmarshalJSONStrict(
		[]byte(`{"title": "x", "panels": [{"type": "timeseries", "titel": "y"}]}`)); err == nil {
		t.Error("a field that is in no schema is read without a word")
	}
}

// each are the single errors of a joined one.
func each(err error) []error {
	var many cog.BuildErrors
	if errors.As(err, &many) && len(many) > 0 {
		out := []error{}
		for _, e := range many {
			out = append(out, e)
		}
		return out
	}
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		var out []error
		for _, e := range joined.Unwrap() {
			out = append(out, each(e)...)
		}
		return out
	}
	if err == nil {
		return nil
	}
	return []error{err}
}
