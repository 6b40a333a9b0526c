package durable_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"fieldmesh.dev/fieldmesh/internal/durable"
)

func TestFolder(t *testing.T) {
	if err := durable.Folder(t.TempDir()); err != nil {
		t.Error(err)
	}
	if err := durable.Folder(filepath.Join(t.TempDir(), "none")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a folder that is missing: %v", err)
	}
	// /proc's folders refuse it as the file systems do that are meant.
	if err := durable.Folder("/proc/self"); err != nil {
		t.Errorf("a file system that has no such call: %v", err)
	}
	for err, want := range map[error]bool{unix.EINVAL: true, &os.PathError{Err: unix.ENOTSUP}: true, unix.EIO: false,
		unix.ENOSPC: false} {
		if got := durable.Unknown(err); got != want {
			t.Errorf("%v: %v, want %v", err, got, want)
		}
	}
}

func TestReplace(t *testing.T) {
	path := filepath.Join(t.TempDir(), "word")
	for _, text := range []string{"one", "a longer one", ""} {
		if err := durable.Replace(path, text); err != nil {
			t.Fatal(err)
		}
		got, err := os.ReadFile(path)
		if err != nil || string(got) != text {
			t.Errorf("%q, %v; want %q", got, err, text)
		}
	}
	if entries, err := os.ReadDir(filepath.Dir(path)); err != nil || len(entries) != 1 {
		t.Errorf("%v is left, %v", entries, err)
	}
	if err := durable.Replace(filepath.Join(t.TempDir(), "none", "word"), ""); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("in a folder that is missing: %v", err)
	}
}
