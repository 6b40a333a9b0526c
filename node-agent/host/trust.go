package host

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/unix"
)

// trusted resolves a path and sees to it that nobody but root (and the user
// that this process runs as) could have put there what is there, or can
// exchange it: neither the thing itself nor a directory above it may be
// written by others. A sticky directory, in which others cannot rename what is
// not theirs, will do as a directory above.
func trusted(path string) (string, os.FileInfo, error) {
	if !filepath.IsAbs(path) {
		return "", nil, fmt.Errorf("%q is not an absolute path", path)
	}
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return "", nil, err
	}
	info, err := os.Lstat(real)
	if err != nil {
		return "", nil, err
	}
	for p := real; ; p = filepath.Dir(p) {
		at, err := os.Lstat(p)
		if err != nil {
			return "", nil, err
		}
		if p != real && androidData(p, at) {
			continue
		}
		owner := at.Sys().(*syscall.Stat_t).Uid // what Lstat gives on Linux
		if owner != 0 && int(owner) != os.Geteuid() {
			return "", nil, fmt.Errorf("%s belongs to user %d, it must be root's", p, owner)
		}
		sticky := p != real && at.IsDir() && at.Mode()&os.ModeSticky != 0
		if at.Mode().Perm()&0o022 != 0 && !sticky {
			return "", nil, fmt.Errorf("%s can be written by others than its owner (mode %04o)", p, at.Mode().Perm())
		}
		if p == filepath.Dir(p) {
			return real, info, nil
		}
	}
}

// CheckConfiguration refuses a configuration that others could have written: it says what
// root may be asked to do, and which programs root starts.
func CheckConfiguration(path string) error {
	path, err := filepath.Abs(path)
	if err != nil {
		return fmt.Errorf("check configuration: %w", err)
	}
	if _, _, err := trusted(path); err != nil {
		return fmt.Errorf("check configuration: %w; root does what this file says, so nobody else may change it: run "+
			"sudo chown root and sudo chmod go-w on it and on the folders above it", err)
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
