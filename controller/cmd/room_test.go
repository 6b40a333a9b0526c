package cmd

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"fieldmesh.dev/fieldmesh/controller/archive"
)

// largeVelocity is velocity with 198 nodes beside the road, each of which leaves files of every attempt.
func largeVelocity(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(shippedVelocity)
	if err != nil {
		t.Fatal(err)
	}
	large := strings.NewReplacer("repetitions: 2\n", "repetitions: 100\n",
		"nodes:\n", "nodes:\n  n[001-198]: {mesh_address: 10.77.1.1/16}\n", "10.77.0.1/24", "10.77.0.1/16",
		"10.77.0.2/24", "10.77.0.2/16", "trial:\n", "trial:\n  relays: [\"n[001-198]\"]\n").Replace(string(text))
	file := filepath.Join(t.TempDir(), "large.yaml")
	if err := os.WriteFile(file, []byte(large), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// A campaign whose run could not be read is not begun. A shard of it can be driven.
func TestARunThatNoArchiveHoldsIsNotBegun(t *testing.T) {
	const want = "design.repetitions: the archive of a run has room for "
	file := largeVelocity(t)
	begin := func(f rehearseFlags) error {
		if f.virtual.jobs > 0 {
			_, err := f.parts(file)
			return err
		}
		s, err := openSession(f.runFlags, file, archive.PlaceRehearsal)
		if err == nil {
			err = s.close()
		}
		return err
	}
	for name, change := range map[string]func(*rehearseFlags){
		"whole":    func(f *rehearseFlags) { f.virtual.jobs = 0 },
		"in parts": func(*rehearseFlags) {},
	} {
		f := jobsFlags(t.TempDir(), 2)
		change(&f)
		if err := begin(f); err == nil || !strings.HasPrefix(err.Error(), file+":") ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", name, err)
		}
		if left, err := os.ReadDir(f.runs); err == nil && len(left) > 0 {
			t.Errorf("%s: %v is left behind", name, left)
		}
	}
	f := jobsFlags(t.TempDir(), 0)
	f.shard = "2/20"
	if err := begin(f); err != nil {
		t.Errorf("a shard: %v", err)
	}
}
