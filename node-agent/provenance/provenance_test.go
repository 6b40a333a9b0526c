package provenance

import (
	"context"
	"os"
	"path/filepath"
	"testing"
)

// A tool that comes after the agent has started is found: a phone's storage opens
// when its owner unlocks it.
func TestAToolThatComesLaterIsFound(t *testing.T) {
	path := filepath.Join(t.TempDir(), "iperf3")
	r := New(context.Background(), "lo", map[string]string{"iperf3": path}, nil)
	if v := r.Tools()["iperf3"]; v != "" {
		t.Fatalf("before it is there its version is %q", v)
	}
	if err := os.WriteFile(path, []byte("#!/bin/sh\necho iperf 3.16\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	if v := r.Tools()["iperf3"]; v != "iperf 3.16" {
		t.Errorf("its version is %q, want iperf 3.16", v)
	}
}
