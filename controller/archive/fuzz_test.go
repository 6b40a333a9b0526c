package archive

import (
	"os"
	"path/filepath"
	"testing"

	"fieldmesh.dev/fieldmesh/test/fuzz"
)

// Whatever a node sends as a record: it is stored or set aside, and the
// archive opens and reads again.
func FuzzAppend(f *testing.F) {
	for _, seed := range []string{
		string(crashLine("car", 1, 1)), string(crashLine("car", 9, 0)), `{}`,
		`{"kind":"event","node":"car","epoch":"e","seq":1}`,
		`{"kind":"new-kind","node":"car","epoch":"e","seq":2,"trial":1,"attempt":1,"x":[1,2]}`,
		`{"kind":"gps","node":"car","epoch":"e","seq":1,"mode":"x"}`,
		`{"kind":"event","node":"car","epoch":"../..","seq":1,"trial":1,"attempt":99999999}`, "null", "[]", "\n", "",
	} {
		f.Add([]byte(seed))
	}
	fuzz.Run(f, func(t *testing.T, line []byte) {
		folder, remove := fuzz.Folder(t)
		defer remove()
		dir := filepath.Join(folder, "run")
		a, err := Create(dir, crashPlan())
		if err != nil {
			t.Fatal(err)
		}
		stored := a.Append("car", [][]byte{line}) == nil
		if err := a.Close(); err != nil {
			t.Fatal(err)
		}
		b, err := Open(dir)
		if err != nil {
			t.Fatalf("after %q: %v", line, err)
		}
		defer b.Close()
		n := 0
		for _, err := range b.Between() {
			if err != nil {
				t.Fatalf("after %q: %v", line, err)
			}
			n++
		}
		all, err := b.All(1, 1)
		if err != nil {
			t.Fatalf("after %q: %v", line, err)
		}
		if n += len(all); n > 1 || (n == 1 && !stored) {
			t.Fatalf("%q left %d records, stored %v", line, n, stored)
		}
	})
}

// A manifest may hold anything: Verify finds fault and goes on.
//
//attack:archive a record, or a manifest, that names a path | names are checked before a file is opened
func FuzzManifest(f *testing.F) {
	f.Add([]byte("# 3 bytes: run.json\n0123456789012345678901234567890123456789012345678901234567890123  run.json\n"))
	f.Add([]byte("x  ../../etc/passwd\n"))
	f.Add([]byte("# bytes: \n\n  \n"))
	fuzz.Run(f, func(t *testing.T, manifest []byte) {
		dir, remove := fuzz.Folder(t)
		defer remove()
		if err := os.WriteFile(filepath.Join(dir, manifestFile), manifest, 0o644); err != nil {
			t.Fatal(err)
		}
		findings, err := Verify(dir)
		if err != nil || len(findings) == 0 {
			t.Errorf("a folder without a run: %v, %v", findings, err)
		}
	})
}
