package cmd

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

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
