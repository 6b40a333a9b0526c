package keys

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"syscall"
	"testing"
)

// A file that this user may not read says what to do, and that does not let others at a key.
func TestAFileThatMayNotBeReadIsToldWithTheCure(t *testing.T) {
	for most, want := range map[fs.FileMode]string{
		0o640: fmt.Sprintf("permission denied; run as root: chgrp %d /k/f && chmod 640 /k/f", os.Getgid()),
		0o600: fmt.Sprintf("permission denied; run as root: chown %d /k/f && chmod 600 /k/f", os.Getuid()),
	} {
		err := unreadable(&fs.PathError{Op: "open", Path: "/k/f", Err: syscall.EACCES}, "/k/f", most)
		if err == nil || !strings.HasSuffix(err.Error(), want) || !errors.Is(err, fs.ErrPermission) {
			t.Errorf("it says %v, want %s", err, want)
		}
	}
	if err := unreadable(nil, "/k/f", 0o600); err != nil {
		t.Error(err)
	}
}
