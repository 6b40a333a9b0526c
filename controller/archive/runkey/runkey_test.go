package runkey

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A run's folder was moved, and its name given to another run. The key of the former is the only copy.
func TestTheKeyOfARunThatWasMovedIsKept(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "monday")
	key := func(n byte) []byte { return bytes.Repeat([]byte{n}, 32) }
	is := func(n byte) {
		t.Helper()
		if got, err := Read(dir); err != nil || !bytes.Equal(got, key(n)) {
			t.Errorf("the key is %x, want %x: %v", got, key(n), err)
		}
	}
	for n := range byte(3) {
		if err := errors.Join(Keep(dir, key(n)), Keep(dir, key(n))); err != nil { // again after a crash
			t.Fatal(err)
		}
		is(n)
	}
	for n, want := range []string{"00", "01"} {
		path := File(dir) + []string{".former-1", ".former-2"}[n]
		text, err := os.ReadFile(path)
		if err != nil || string(text) != strings.Repeat(want, 32)+"\n" {
			t.Errorf("%s has %q: %v", path, text, err)
		}
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v, %v", path, info, err)
		}
	}
	// Without a key of its name, the error leads to the others.
	if err := os.Remove(File(dir)); err != nil {
		t.Fatal(err)
	}
	if _, err := Read(dir); !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), "monday.key.former-2") {
		t.Errorf("%v", err)
	}
	// A new run that is refused leaves things as they were.
	if err := errors.Join(Keep(dir, key(1)), Keep(dir, key(4)), Forget(dir)); err != nil {
		t.Fatal(err)
	}
	is(1)
	if left, err := filepath.Glob(File(dir) + "*"); err != nil || len(left) != 3 {
		t.Errorf("there are %v: %v", left, err)
	}
	// One that took nobody's place does, too.
	fresh := filepath.Join(filepath.Dir(dir), "tuesday")
	if err := errors.Join(Keep(fresh, key(5)), Forget(fresh)); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(File(fresh)); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%v", err)
	}
}
