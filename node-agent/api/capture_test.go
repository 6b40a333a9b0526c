package api

import (
	"net/http"
	"testing"

	"fieldmesh.dev/fieldmesh/protocols/wire"
)

func TestCapturesAreReadByOffset(t *testing.T) {
	b := start(t, nil)
	client := b.client(wire.RoleController)
	for _, c := range []struct {
		query  string
		status int
		body   string
	}{
		{"trial=2&attempt=1", http.StatusOK, "0123456789"},
		{"trial=2&attempt=1&offset=4&bytes=3", http.StatusOK, "456"},
		{"trial=2&attempt=1&offset=400", http.StatusOK, ""},
		{"trial=1&attempt=1", http.StatusNotFound, ""},
		{"trial=2", http.StatusBadRequest, ""},
		{"attempt=1", http.StatusBadRequest, ""},
		{"trial=2&attempt=1&bytes=0", http.StatusBadRequest, ""},
		{"trial=2&attempt=1&offset=-1", http.StatusBadRequest, ""},
	} {
		r := b.askBy(client, "GET", "/v1/runs/velocity-1/capture?"+c.query, "")
		if r.status != c.status || c.status == http.StatusOK && string(r.body) != c.body {
			t.Errorf("%s: %d %q, want %d %q", c.query, r.status, r.body, c.status, c.body)
		}
	}
}
