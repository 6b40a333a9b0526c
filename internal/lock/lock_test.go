package lock

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func TestOneHolds(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	if held, err := IsHeld(path); held || err != nil {
		t.Errorf("before it is there: %v, %v", held, err)
	}
	f, err := Hold(path)
	if err != nil {
		t.Fatal(err)
	}
	if held, err := IsHeld(path); !held || err != nil {
		t.Errorf("held: %v, %v", held, err)
	}
	if _, err := Hold(path); !errors.Is(err, ErrHeld) {
		t.Errorf("twice: %v", err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	if held, err := IsHeld(path); held || err != nil {
		t.Errorf("freed: %v, %v", held, err)
	}
}

func TestWhoLooksDoesNotKeepAFileFromItsHolder(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	looking, err := os.Create(path)
	if err == nil {
		err = unix.Flock(int(looking.Fd()), unix.LOCK_SH)
	}
	if err != nil {
		t.Fatal(err)
	}
	var closing sync.WaitGroup
	defer closing.Wait()
	closing.Go(func() {
		time.Sleep(within / 4)
		if err := looking.Close(); err != nil {
			t.Error(err)
		}
	})
	f, err := Hold(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Error(err)
	}
}

const another = 65534 // a user without privileges

// asAnother does something as another user sees the file system.
func asAnother(t *testing.T, do func()) {
	t.Helper()
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := unix.Setfsuid(another); err != nil {
		t.Fatal(err)
	}
	do()
	if err := unix.Setfsuid(0); err != nil {
		t.Fatal(err)
	}
}

// What root does once in the folder of a user keeps that user out of nothing.
func TestRootLeavesTheFileToTheOwnerOfItsFolder(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can leave files in folders of others")
	}
	dir := t.TempDir()
	if err := errors.Join(os.Chmod(filepath.Dir(dir), 0o711), os.Chmod(dir, 0o700),
		os.Chown(dir, another, another)); err != nil {
		t.Fatal(err)
	}
	mode := unix.Umask(0o077)
	defer unix.Umask(mode)
	path := filepath.Join(dir, "lock")
	former := filepath.Join(dir, "former") // by a version that left it as it was
	if err := os.WriteFile(former, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, p := range []string{path, former} {
		f, err := Hold(p)
		if err != nil {
			t.Fatal(err)
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
		asAnother(t, func() {
			f, err := Hold(p)
			if err != nil {
				t.Error(err)
				return
			}
			if _, err := Hold(p); !errors.Is(err, ErrHeld) {
				t.Errorf("twice: %v", err)
			}
			if err := f.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

// Who may read another's file may hold it.
func TestAReadableFileOfAnotherIsHeld(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can become somebody else")
	}
	dir := t.TempDir()
	path := filepath.Join(dir, "lock")
	if err := errors.Join(os.WriteFile(path, []byte("x"), 0o600), os.Chmod(path, 0o644), os.Chmod(dir, 0o711),
		os.Chmod(filepath.Dir(dir), 0o711)); err != nil {
		t.Fatal(err)
	}
	asAnother(t, func() {
		f, err := Hold(path)
		if err != nil {
			t.Error(err)
			return
		}
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	})
}

// Where a folder lets nobody make the file, that is the error: not that there is no such file, or folder.
func TestAFolderThatCannotBeWrittenIsNotMissing(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can become somebody else")
	}
	dir := t.TempDir()
	if err := errors.Join(os.Chmod(dir, 0o711), os.Chmod(filepath.Dir(dir), 0o711)); err != nil {
		t.Fatal(err)
	}
	asAnother(t, func() {
		if _, err := Hold(filepath.Join(dir, "lock")); !errors.Is(err, fs.ErrPermission) {
			t.Errorf("%v, want that it is not permitted", err)
		}
	})
}

// A link in a user's folder gives that user no file of root's.
//
//attack:local a user links the lock of a folder to a file of root's | no link is followed, no linked file given away
func TestALinkGivesNothingAway(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root has what others have not")
	}
	dir := t.TempDir()
	secret := filepath.Join(t.TempDir(), "secret")
	hard, soft, dangling := filepath.Join(dir, "hard"), filepath.Join(dir, "soft"), filepath.Join(dir, "dangling")
	if err := errors.Join(os.WriteFile(secret, nil, 0o600), os.Link(secret, hard), os.Symlink(secret, soft),
		os.Symlink(filepath.Join(dir, "made"), dangling), os.Chown(dir, another, another)); err != nil {
		t.Fatal(err)
	}
	f, err := Hold(hard)
	if err == nil {
		err = f.Close()
	}
	if err != nil {
		t.Error(err)
	}
	for _, link := range []string{soft, dangling} {
		if _, err := Hold(link); !errors.Is(err, unix.ELOOP) {
			t.Errorf("%s: %v", link, err)
		}
	}
	var st unix.Stat_t
	if err := unix.Stat(secret, &st); err != nil || st.Uid != 0 {
		t.Errorf("the file of root's is now of user %d, %v", st.Uid, err)
	}
}

// A pipe in a user's folder keeps nobody waiting for its other end.
//
//attack:local a user puts a pipe at the lock of a folder | it is refused at once
func TestAPipeHoldsNobodyUp(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can become somebody else")
	}
	dir := t.TempDir()
	path := filepath.Join(dir, "lock")
	if err := errors.Join(unix.Mkfifo(path, 0o600), os.Chmod(path, 0o644), os.Chmod(dir, 0o711),
		os.Chmod(filepath.Dir(dir), 0o711)); err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		if _, err := Hold(path); err == nil || !strings.Contains(err.Error(), "no regular file") {
			t.Errorf("its owner: %v", err)
		}
		if _, err := IsHeld(path); err == nil || !strings.Contains(err.Error(), "no regular file") {
			t.Errorf("who looks: %v", err)
		}
		asAnother(t, func() {
			if _, err := Hold(path); err == nil || !strings.Contains(err.Error(), "no regular file") {
				t.Errorf("another: %v", err)
			}
		})
	}()
	select {
	case <-done:
	case <-time.After(10 * time.Second):
		t.Fatal("it waits for whoever opens the pipe to write")
	}
}
