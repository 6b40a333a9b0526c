package spool

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"fieldmesh.dev/fieldmesh/internal/sumline"
	"fieldmesh.dev/fieldmesh/test/fuzz"
)

// FuzzOpen opens a folder whose newest segment holds anything at all: it must
// open, read without end or repetition, and go on.
func FuzzOpen(f *testing.F) {
	good := sumline.Append(nil, []byte(
		`{"kind":"event","version":1,"node":"n1","epoch":"0","seq":1,"t_boot_ns":1,"level":"info","text":"a"}`))
	f.Add(good)
	f.Add(good[:len(good)-5])
	f.Add(append(bytes.Clone(good), good...))
	f.Add(bytes.Repeat([]byte{0}, 100))
	f.Add([]byte("\n\n\n"))
	f.Add(sumline.Append(nil, []byte(`{"seq":18446744073709551615}`)))
	f.Add(sumline.Append(nil, []byte(`{"seq":99999999999999999999}`)))
	f.Add(append(sumline.Append(nil, []byte(`{"seq":7}`)), sumline.Append([]byte("damage\n"), []byte(`{"seq":3}`))...))
	fuzz.Run(f, func(t *testing.T, data []byte) {
		dir, remove := fuzz.Folder(t)
		defer remove()
		for name, content := range map[string][]byte{epochFile: []byte("0123456789abcdef\n"),
			filepath.Base(segmentPath("", 1)): data} {
			if err := os.WriteFile(filepath.Join(dir, name), content, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		s, err := Open(dir, "n1", noFloor)
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		before := s.Position().Seq
		after, prev := uint64(0), uint64(0)
		for range 1000 {
			lines, last, err := s.Read(after, 1)
			if err != nil {
				t.Fatal(err)
			}
			if len(lines) == 0 {
				break
			}
			if last <= prev {
				t.Fatalf("seq %d after %d", last, prev)
			}
			after, prev = last, last
		}
		appendN(t, s, 1)
		mustSync(t, s)
		if lines, last, err := s.Read(before, 2); len(lines) != 1 || last != before+1 || err != nil {
			t.Fatalf("after recovery: %d lines, last %d, %v", len(lines), last, err)
		}
	})
}
