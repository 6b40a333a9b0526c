package cmd

import (
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"fieldmesh.dev/fieldmesh/test/synthetic"
)

// Panels of a database that refused records are poorer: whoever publishes by a script learns it by the status.
func TestPublishTellsThatRecordsWereRefused(t *testing.T) {
	dir := synthetic.Run(t, synthetic.Options{Seed: 2, Speeds: []float64{2.8}, Repetitions: 1}).Dir()
	for refused, want := range map[string]error{"fm_result,": errUnmet, "fm_none,": nil} {
		db := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path != "/write" {
				return
			}
			body, err := gzip.NewReader(r.Body)
			if err != nil {
				t.Error(err)
				return
			}
			text, err := io.ReadAll(body)
			if err != nil {
				t.Error(err)
			}
			if bytes.Contains(text, []byte(refused)) {
				w.WriteHeader(http.StatusBadRequest)
				_, _ = io.WriteString(w, `{"error": "field type conflict"}`)
			}
		}))
		defer db.Close()
		root := Root()
		var out bytes.Buffer
		root.SetArgs([]string{"publish", dir, "--influx", db.URL})
		root.SetOut(&out)
		if err := root.ExecuteContext(t.Context()); !errors.Is(err, want) {
			t.Errorf("where %q are refused: %v, want %v; it says\n%s", refused, err, want, &out)
		}
	}
}

// What publish says when it cannot begin; the writing itself is tested in
// controller/influx against a real server.
func TestPublishRefuses(t *testing.T) {
	t.Setenv("FIELDMESH_INFLUX_PASSWORD", "")
	open := filepath.Join(t.TempDir(), "password")
	if err := os.WriteFile(open, []byte("hunter2\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"publish", "r"}, "--influx is missing"},
		{[]string{"publish", "--influx", "http://127.0.0.1:1"}, "usage: fieldmesh publish RUN"},
		{[]string{"publish", "r", "--influx", "http://car:hunter2@h:8086"}, "take it out, and give it by --user"},
		{[]string{"publish", "r", "--influx", "h:8086"}, "expected http://"},
		{[]string{"publish", "r", "--influx", "http://127.0.0.1:1", "--user", "car", "--password-file", open},
			"chmod 600"},
		{[]string{"publish", "r", "--influx", "http://127.0.0.1:1", "--user", "car", "--password-file", open + ".none"},
			"no such file"},
		{[]string{"publish", "r", "--influx", "http://127.0.0.1:1", "--patience", "1ms"}, "does not take records"},
	} {
		var out bytes.Buffer
		root := Root()
		root.SetArgs(c.args)
		root.SetOut(&out)
		root.SetErr(&out)
		err := root.ExecuteContext(t.Context())
		if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error()+out.String(),
			"hunter2") {
			t.Errorf("%v: %v\n%s; want %q", c.args, err, out.String(), c.want)
		}
	}
}
