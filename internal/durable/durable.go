// Package durable makes changes of files and folders survive a loss of power.
package durable

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// Folder makes durable which files a folder has. Some file systems (CIFS, 9p, FUSE) know no such call: what they do
// for a folder they do by themselves, and they say that it is invalid or not supported.
func Folder(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("open folder to sync: %w", err)
	}
	err = f.Sync()
	if Unknown(err) {
		err = nil
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return fmt.Errorf("sync folder %q: %w", path, err)
	}
	return nil
}

// Unknown reports whether an error of a folder's sync says that the file system has no such call.
func Unknown(err error) bool {
	return errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOTSUP) || errors.Is(err, unix.ENOSYS)
}

// Replace writes a file for its owner alone, so that a crash leaves the old one or the new one. What it is written to
// first is beside it, with ".new" after its name.
func Replace(path, text string) error {
	f, err := os.OpenFile(path+".new", os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	if err := os.Rename(path+".new", path); err != nil {
		return err
	}
	return Folder(filepath.Dir(path))
}
