package archive

import (
	"os"
	"path/filepath"
	"testing"
)

// A run's folder that was moved to a larger disk, with a link in its place, is continued, finished and copied as any.
func TestARunsFolderMayBeALink(t *testing.T) {
	root := t.TempDir()
	dir, moved, second := filepath.Join(root, "run"), filepath.Join(root, "big"), filepath.Join(root, "second")
	a, err := Create(dir, crashPlan())
	must(t, err)
	must(t, a.Append("car", [][]byte{crashLine("car", 1, 1)}))
	must(t, a.Close())
	must(t, Copy(dir, second))
	must(t, os.Rename(dir, moved))
	must(t, os.Symlink(moved, dir))
	torn, err := os.OpenFile(filepath.Join(moved, "trials/0001-a1/records/car.ndjson"), os.O_APPEND|os.O_WRONLY, 0)
	must(t, err)
	_, err = torn.WriteString(`{"kind":"event","ver`)
	must(t, err)
	must(t, torn.Close())
	a, err = Open(dir)
	must(t, err)
	durable := map[string]uint64{}
	must(t, story(a, &durable))
	checkWhole(t, a, "by a link")
	must(t, a.Close())
	must(t, Copy(dir, second))
	for _, d := range []string{dir, moved, second} {
		if findings, err := Verify(d); err != nil || len(findings) > 0 {
			t.Errorf("%s: %v %v", d, findings, err)
		}
	}
	must(t, os.WriteFile(filepath.Join(moved, "stranger.txt"), nil, 0o644))
	if findings, err := Verify(dir); err != nil || len(findings) != 1 {
		t.Errorf("verify by the link: %v %v", findings, err)
	}
}
