package host

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// trusted resolves a path and sees to it that nobody but root (and the user
// that this process runs as) could have put there what is there, or can
// exchange it: neither the thing itself, nor a link or a directory on the way
// to it may be others'. It goes from the root down, so that nobody can change
// what has been looked at: whoever uses the path afterwards has the same thing.
func trusted(path string) (string, os.FileInfo, error) {
	if !filepath.IsAbs(path) {
		return "", nil, fmt.Errorf("%q is not an absolute path", path)
	}
	real, rest, links := "/", strings.Split(path, "/"), 0
	for {
		rest = slices.DeleteFunc(rest, func(name string) bool { return name == "" || name == "." })
		info, err := os.Lstat(real)
		if err != nil {
			return "", nil, err
		}
		link := info.Mode()&os.ModeSymlink != 0
		if err := rootsOwn(real, info, link || len(rest) > 0); err != nil {
			return "", nil, err
		}
		switch {
		case link:
			to, err := os.Readlink(real)
			if err != nil {
				return "", nil, err
			}
			if links++; links > mostLinks {
				return "", nil, &fs.PathError{Op: "resolve", Path: path, Err: unix.ELOOP}
			}
			real, rest = filepath.Dir(real), append(strings.Split(to, "/"), rest...)
			if filepath.IsAbs(to) {
				real = "/"
			}
		case len(rest) == 0:
			return real, info, nil
		default: // real has no links, so that its parent is that of its name
			real, rest = filepath.Join(real, rest[0]), rest[1:]
		}
	}
}

// mostLinks are the kernel's (MAXSYMLINKS of linux/namei.h).
const mostLinks = 40

// rootsOwn refuses what is others' or can be written by them. A sticky directory, in
// which others cannot rename what is not theirs, will do on the way to a thing.
func rootsOwn(p string, at os.FileInfo, onTheWay bool) error {
	if onTheWay && androidData(p, at) {
		return nil
	}
	owner := at.Sys().(*syscall.Stat_t).Uid // what Lstat gives on Linux
	if owner != 0 && int(owner) != os.Geteuid() {
		return fmt.Errorf("%s belongs to user %d, it must be root's", p, owner)
	}
	link := at.Mode()&os.ModeSymlink != 0 // whose mode says nothing
	sticky := onTheWay && at.IsDir() && at.Mode()&os.ModeSticky != 0
	if at.Mode().Perm()&0o022 != 0 && !sticky && !link {
		return fmt.Errorf("%s can be written by others than its owner (mode %04o)", p, at.Mode().Perm())
	}
	return nil
}

// CheckConfiguration refuses a configuration that others could have written: it says what
// root may be asked to do, and which programs root starts. Of one that passes, nobody but root
// can change before it is read what its path leads to.
func CheckConfiguration(path string) error {
	if !filepath.IsAbs(path) {
		folder, err := os.Getwd()
		if err != nil {
			return fmt.Errorf("check configuration: %w", err)
		}
		path = folder + "/" + path // not cleaned: the parent of a link is not that of its name
	}
	_, info, err := trusted(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("read configuration: %w", err)
	case err != nil:
		return fmt.Errorf("check configuration: %w; root does what this file says, so nobody else may change it: run "+
			"sudo chown root and sudo chmod go-w on it and on the folders above it", err)
	case !info.Mode().IsRegular():
		return fmt.Errorf("check configuration: %q is no file", path)
	}
	return nil
}

// androidSystem is AID_SYSTEM of Android's android_filesystem_config.h: the user
// of the system's own services.
const androidSystem = 1000

// androidData reports whether a path is Android's /data, which belongs to the
// system's services there: whoever is one of them rules the phone without our
// root, and there is no other place that is kept over a boot. On any other
// system user 1000 is a person.
func androidData(path string, at os.FileInfo) bool {
	stat := at.Sys().(*syscall.Stat_t)
	if path != "/data" || stat.Uid != androidSystem || stat.Gid != androidSystem || at.Mode().Perm()&0o002 != 0 {
		return false
	}
	_, err := os.Stat("/system/build.prop")
	return err == nil
}

// trustedBinary is the resolved path of a program that root may run.
func trustedBinary(path string) (string, error) {
	real, info, err := trusted(path)
	if err != nil {
		return "", err
	}
	if !info.Mode().IsRegular() || info.Mode().Perm()&0o111 == 0 {
		return "", fmt.Errorf("%s is not a program", real)
	}
	return real, nil
}

// lockDir makes dir when it is missing, checks it, and takes its lock; closing
// the file gives the lock back. It returns dir without symbolic links.
func lockDir(dir string) (*os.File, string, error) {
	// Searchable by all: the socket in it has an owner of its own.
	if err := os.MkdirAll(dir, 0o711); err != nil {
		return nil, "", fmt.Errorf("make state directory: %w", unwritable(err))
	}
	real, info, err := trusted(dir)
	if err != nil {
		return nil, "", fmt.Errorf("check state directory: %w; what root undoes is read from it", err)
	}
	if !info.IsDir() {
		return nil, "", fmt.Errorf("check state directory: %q is no directory", dir)
	}
	f, err := Lock(filepath.Join(real, "lock"))
	if errors.Is(err, unix.EWOULDBLOCK) {
		// A second one beside it would take what the first has changed for what was before.
		err = fmt.Errorf("%w: %s; stop that one first; only in another network namespace may this one have a "+
			"state_dir of its own instead", ErrRunning, dir)
	}
	return f, real, unwritable(err)
}

// unwritable says what keeps root from writing where others do: mostly the unit that it runs in.
func unwritable(err error) error {
	if errors.Is(err, unix.EROFS) || errors.Is(err, fs.ErrPermission) {
		return fmt.Errorf("%w; systemd's units of the package let the agent write below /var/lib/fieldmesh alone: "+
			"leave state_dir out, and mount the disk that is to keep the records there", err)
	}
	return err
}

// Lock takes the lock of a file, which it makes unless it is there; EWOULDBLOCK says that another process has it.
// Closing the file, or dying, ends it.
func Lock(path string) (*os.File, error) {
	f, _, err := openOwn(path)
	if err != nil {
		return nil, fmt.Errorf("open lock: %w", err)
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// ErrRunning says that another host process owns the state directory.
var ErrRunning = errors.New("another host process owns this state directory")
