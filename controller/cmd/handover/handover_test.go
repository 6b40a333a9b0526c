package handover

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

func TestSudoCaller(t *testing.T) {
	for name, c := range map[string]struct {
		euid     int
		uid, gid string
		want     *account
	}{
		"by sudo":         {0, "1000", "1001", &account{1000, 1001}},
		"root by itself":  {0, "", "", nil},
		"sudo by root":    {0, "0", "0", nil},
		"not root":        {1000, "1000", "1000", nil},
		"no number":       {0, "ada", "1000", nil},
		"a negative one":  {0, "-1", "1000", nil},
		"all ones (none)": {0, "4294967295", "1000", nil},
	} {
		got := sudoCaller(c.euid, func(key string) string {
			return map[string]string{"SUDO_UID": c.uid, "SUDO_GID": c.gid}[key]
		})
		if (got == nil) != (c.want == nil) || got != nil && *got != *c.want {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
	}
}

// given lays out a run beside another one, hands the run over, and returns what was
// given, in that order.
func given(t *testing.T, runsThere bool) []string {
	t.Helper()
	dir := t.TempDir()
	runs := filepath.Join(dir, "runs")
	files := []string{"runs/new/run.json", "runs/new/trials/1/records.ndjson", "runs/.keys/new.key", "outside/file"}
	if runsThere {
		files = append(files, "runs/old/run.json", "runs/.keys/old.key")
		if err := os.MkdirAll(filepath.Join(runs, ".keys"), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	var got []string
	h := by(runs, func(in *os.Root, name string) error {
		path, err := filepath.Rel(dir, filepath.Join(in.Name(), name))
		got = append(got, path)
		return err
	})
	for _, f := range files {
		path := filepath.Join(dir, f)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(filepath.Join(dir, "outside"), filepath.Join(runs, "new", "link")); err != nil {
		t.Fatal(err)
	}
	if err := h.Give(filepath.Join(runs, "new")); err != nil {
		t.Fatal(err)
	}
	if err := h.Give(filepath.Join(runs, "refused")); err != nil {
		t.Errorf("a run that left nothing: %v", err)
	}
	if err := h.Give(filepath.Join(dir, "outside")); err == nil {
		t.Error("a folder that is not a run's is given")
	}
	return slices.Compact(got)
}

// What sudo had root make belongs to whoever called it: a folder after what it holds,
// a link and not what it leads to, and nothing of another run.
//
//attack:local a link or another folder in place of a run that sudo has root give away | no link is followed
func TestARunIsGivenToWhoeverCalledSudo(t *testing.T) {
	run := []string{"runs/new/trials/1/records.ndjson", "runs/new/trials/1", "runs/new/trials", "runs/new/run.json",
		"runs/new/link", "runs/new", "runs/.keys/new.key"}
	if got := given(t, true); !slices.Equal(got, run) {
		t.Errorf("beside another run are given\n%q, want\n%q", got, run)
	}
	got := given(t, false)
	if want := append(run, "runs/.keys", "runs"); !slices.Equal(got[:len(want)], want) {
		t.Errorf("with the folder of runs are given\n%q, want\n%q", got, want)
	}
	if err := (*Handover)(nil).Give("runs/new"); err != nil {
		t.Errorf("without sudo: %v", err)
	}
}
