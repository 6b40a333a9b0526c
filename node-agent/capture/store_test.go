package capture

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"fieldmesh.dev/fieldmesh/protocols/wire"
)

func TestStoreGivesPartsAndForgets(t *testing.T) {
	s := NewStore(filepath.Join(t.TempDir(), "captures"))
	k := wire.TrialKey{Trial: 3, Attempt: 2}
	var refused *wire.Error
	if _, _, err := s.Read("one", k, 0, 10); !errors.As(err, &refused) || refused.Code != wire.CodeNotFound {
		t.Fatalf("a capture that is not there: %v", err)
	}
	if err := s.ForgetWhere(func(string) bool { return true }); err != nil {
		t.Fatalf("nothing to forget: %v", err)
	}
	for _, run := range []string{"one", "two"} {
		if err := os.MkdirAll(filepath.Dir(s.Path(run, k)), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(s.Path(run, k), []byte("0123456789"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(filepath.Join(filepath.Dir(filepath.Dir(s.Path("one", k))), "decided"), 0o700); err != nil {
		t.Fatal(err)
	}
	if runs := s.Runs(); !slices.Equal(runs, []string{"one", "two"}) {
		t.Errorf("there are captures of %q", runs)
	}
	for _, c := range []struct {
		offset int64
		limit  int
		want   string
	}{{0, 4, "0123"}, {8, 4, "89"}, {10, 4, ""}, {99, 4, ""}} {
		if data, size, err := s.Read("one", k, c.offset, c.limit); err != nil || string(data) != c.want || size != 10 {
			t.Errorf("%d bytes from %d: %q of %d, %v", c.limit, c.offset, data, size, err)
		}
	}
	for run, want := range map[string]string{"two": "captures of one are", "three": "captures of one, two are"} {
		err := noRoom(10<<20, filepath.Dir(s.Path(run, k)))
		if err.Code != wire.CodeDiskFull || !strings.Contains(err.Cure, want) ||
			!strings.Contains(err.Cure, "fieldmesh nodes forget one") {
			t.Errorf("no room for a capture of %s: %v", run, err)
		}
	}
	if err := s.ForgetWhere(func(run string) bool { return run == "one" }); err != nil {
		t.Fatal(err)
	}
	if _, _, err := s.Read("one", k, 0, 1); !errors.As(err, &refused) {
		t.Errorf("the other run's capture is still there: %v", err)
	}
	if err := s.Forget("one"); err != nil {
		t.Errorf("forget a run without captures: %v", err)
	}
	for range 2 {
		if err := s.Remove("two", k); err != nil {
			t.Error(err)
		}
	}
	if _, _, err := s.Read("two", k, 0, 1); !errors.As(err, &refused) {
		t.Errorf("the capture is still there: %v", err)
	}
	if runs := s.Runs(); len(runs) != 0 {
		t.Errorf("there are captures of %q", runs)
	}
	if err := noRoom(10<<20, filepath.Dir(s.Path("one", k))); strings.Contains(err.Cure, "captures of") {
		t.Errorf("no room, and no captures: %v", err)
	}
}
