// Package lock holds files for one process; the kernel frees them at its end.
package lock

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

// ErrHeld is returned for a file that another process holds.
var ErrHeld = errors.New("another process holds it")

// within is for how long a file is tried: who asks IsHeld holds it for a moment.
const within = 200 * time.Millisecond

// Hold opens a file, which it makes, and holds it until that is closed. One that root makes, in a folder of
// somebody else, is theirs.
func Hold(path string) (*os.File, error) {
	f, err := open(path)
	if err != nil {
		return nil, fmt.Errorf("open lock: %w", err)
	}
	giveToOwner(f, filepath.Dir(path))
	err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	for until := time.Now().Add(within); errors.Is(err, unix.EWOULDBLOCK) && time.Now().Before(until); {
		time.Sleep(within / 20)
		err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	}
	if errors.Is(err, unix.EWOULDBLOCK) {
		return nil, errors.Join(ErrHeld, f.Close())
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("lock %s: %w", path, err), f.Close())
	}
	return f, nil
}

// open follows no link and waits for nobody: root may be at work in a folder of somebody else.
func open(path string) (*os.File, error) {
	f, err := regular(path, os.O_RDWR|os.O_CREATE|unix.O_NOFOLLOW)
	if errors.Is(err, fs.ErrPermission) { // another user's, who lets it be read: that is enough to hold it
		readable, readErr := regular(path, os.O_RDONLY|unix.O_NOFOLLOW)
		if !errors.Is(readErr, fs.ErrPermission) && !errors.Is(readErr, fs.ErrNotExist) {
			return readable, readErr
		}
	}
	return f, err
}

// regular opens a regular file. The opening of a pipe would wait for its other end.
func regular(path string, flag int) (*os.File, error) {
	f, err := os.OpenFile(path, flag|unix.O_NONBLOCK, 0o644)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%s is no regular file (%s): remove it", path, info.Mode().Type())
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// giveToOwner gives an empty file of root's to the owner of its folder, who would be kept out. That
// some file systems know no owners does not matter: there nobody is kept out.
func giveToOwner(f *os.File, dir string) {
	var file, folder unix.Stat_t
	if os.Geteuid() != 0 || unix.Fstat(int(f.Fd()), &file) != nil || unix.Stat(dir, &folder) != nil {
		return
	}
	if file.Uid == 0 && folder.Uid != 0 && file.Mode&unix.S_IFMT == unix.S_IFREG && file.Nlink == 1 && file.Size == 0 {
		_ = f.Chown(int(folder.Uid), int(folder.Gid))
	}
}

// IsHeld reports whether any process holds a file.
func IsHeld(path string) (bool, error) {
	f, err := regular(path, os.O_RDONLY)
	if errors.Is(err, os.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("open lock: %w", err)
	}
	defer f.Close() // which frees it
	err = unix.Flock(int(f.Fd()), unix.LOCK_SH|unix.LOCK_NB)
	if err != nil && !errors.Is(err, unix.EWOULDBLOCK) {
		return false, fmt.Errorf("lock %s: %w", path, err)
	}
	return err != nil, nil
}
