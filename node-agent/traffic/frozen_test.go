package traffic

import (
	"os"
	"path/filepath"
	"testing"
)

func TestAFrozenControlGroupIsSeen(t *testing.T) {
	for name, c := range map[string]struct {
		groups string
		file   string
		text   string
		frozen bool
	}{
		"version 2":                   {"0::/app/7\n", "app/7/cgroup.events", "populated 1\nfrozen 1\n", true},
		"version 2, running":          {"0::/app/7\n", "app/7/cgroup.events", "populated 1\nfrozen 0\n", false},
		"beside version 1":            {"4:cpu:/x\n0::/app/7\n", "unified/app/7/cgroup.events", "frozen 1\n", true},
		"version 1":                   {"6:freezer:/app\n0::/\n", "freezer/app/freezer.state", "FROZEN\n", true},
		"version 1, on its way":       {"6:freezer:/app\n", "freezer/app/freezer.state", "FREEZING\n", true},
		"version 1, running":          {"6:freezer:/app\n", "freezer/app/freezer.state", "THAWED\n", false},
		"another group is frozen":     {"0::/mine\n", "app/7/cgroup.events", "frozen 1\n", false},
		"a kernel that does not tell": {"0::/app/7\n", "other", "", false},
		"no groups":                   {"", "other", "", false},
	} {
		dir := t.TempDir()
		for path, text := range map[string]string{"proc/12/cgroup": c.groups, "sys/" + c.file: c.text} {
			path = filepath.Join(dir, path)
			if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if got := frozen(filepath.Join(dir, "proc"), filepath.Join(dir, "sys"), 12); got != c.frozen {
			t.Errorf("%s: %t", name, got)
		}
		if frozen(filepath.Join(dir, "proc"), filepath.Join(dir, "sys"), 13) {
			t.Errorf("%s: a process that is gone is frozen", name)
		}
	}
}
