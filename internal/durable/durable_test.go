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
