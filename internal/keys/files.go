package keys

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"golang.org/x/sys/unix"

	"fieldmesh.dev/fieldmesh/internal/durable"
)

// ErrNoIdentity is returned for a folder that holds no key.
var ErrNoIdentity = errors.New("no identity here")

// A folder holds one identity, in the pair of files that its owner's part names.
var fileStems = []string{"controller", "node", "app"}

// LoadIdentity reads the identity of a folder: controller.crt and
// controller.key, node.crt and node.key, or app.crt and app.key.
func LoadIdentity(dir string) (Identity, error) {
	var found []string
	for _, stem := range fileStems {
		_, err := os.Lstat(filepath.Join(dir, stem+".key"))
		if err == nil {
			found = append(found, stem)
		} else if !errors.Is(err, fs.ErrNotExist) {
			return Identity{}, fmt.Errorf("look for key in %q: %w", dir, err)
		}
	}
	switch len(found) {
	case 0:
		return Identity{}, fmt.Errorf("load identity of %q: %w: neither controller.key nor node.key nor app.key", dir,
			ErrNoIdentity)
	case 1:
	default:
		return Identity{}, fmt.Errorf("load identity of %q: it holds the keys of %q and %q; keep one in a folder", dir,
			found[0], found[1])
	}
	certPEM, err := os.ReadFile(filepath.Join(dir, found[0]+".crt"))
	if err != nil {
		return Identity{}, fmt.Errorf("load identity: %w", err)
	}
	keyPEM, err := readSecret(filepath.Join(dir, found[0]+".key"))
	if err != nil {
		return Identity{}, fmt.Errorf("load identity: %w", err)
	}
	identity, err := ParseIdentity(certPEM, keyPEM)
	if err != nil {
		return Identity{}, fmt.Errorf("load identity: %w; copy both %s.crt and %[2]s.key in %[3]q back from where "+
			"they are whole", err, found[0], dir)
	}
	return identity, nil
}

// SaveIdentity writes an identity's two files, <stem>.crt (0644) and
// <stem>.key (0600), into dir. It never writes over a key.
func SaveIdentity(dir, stem string, certPEM, keyPEM []byte) error {
	keyPath := filepath.Join(dir, stem+".key")
	if _, err := os.Lstat(keyPath); err == nil {
		return fmt.Errorf("save identity: %q exists already", keyPath)
	}
	if err := WriteFile(filepath.Join(dir, stem+".crt"), certPEM, 0o644); err != nil {
		return err
	}
	return WriteFile(keyPath, keyPEM, 0o600)
}

// readSecret reads a private file and refuses one that others can read.
func readSecret(path string) ([]byte, error) { return readOf(path, 0o600) }

// readList reads a file that says who is let in, and refuses one that others can
// change, or read without being of its group.
func readList(path string) ([]byte, error) { return readOf(path, 0o640) }

// readOf reads a file whose mode gives others no more than most does.
func readOf(path string, most fs.FileMode) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if mode := info.Mode().Perm(); mode&0o077&^most != 0 {
		return nil, fmt.Errorf("read %q: mode %04o lets other users at it; run: chmod %o %s", path, mode, most, path)
	}
	data, err := os.ReadFile(path)
	return data, unreadable(err, path, most)
}

// unreadable adds to an error of a file that this user may not read what to do as root.
func unreadable(err error, path string, most fs.FileMode) error {
	switch {
	case !errors.Is(err, fs.ErrPermission):
		return err
	case most&0o040 != 0:
		return fmt.Errorf("%w; run as root: chgrp %d %s && chmod %o %[3]s", err, os.Getgid(), path, most)
	}
	return fmt.Errorf("%w; run as root: chown %d %s && chmod %o %[3]s", err, os.Getuid(), path, most)
}

// ErrShared says that a folder of keys holds other files, too, as /etc does.
var ErrShared = errors.New("it holds other files than a node's keys")

// CheckAlone returns ErrShared for a folder that holds more than a node's keys. One
// that is not there holds nothing.
func CheckAlone(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("look into folder of keys: %w", err)
	}
	own := []string{"node.key", "node.crt", "authorized.json"}
	for _, e := range entries { // what a crash left of WriteFile begins with a dot
		if name := e.Name(); name[0] != '.' && !slices.Contains(own, name) {
			return fmt.Errorf("look into folder of keys %q: %w: %q; give the keys a folder of their own (keys_dir)",
				dir, ErrShared, name)
		}
	}
	return nil
}

// GiveToReader gives a node's key to the user that reads it, to that user alone, and makes the folder and the list of
// whom it lets in root's: whoever reads them as a member of the group cannot let in anybody. What is not there is left
// so, and a folder that holds other files, which is ErrShared.
func GiveToReader(dir string, uid, gid int) error {
	if err := CheckAlone(dir); err != nil {
		return err
	}
	// The folder comes first: nobody puts a link into it then.
	for _, f := range []struct {
		name  string
		flags int
		uid   int
		mode  fs.FileMode
	}{{"", unix.O_DIRECTORY, 0, 0o750}, {"authorized.json", 0, 0, 0o640}, {"node.crt", 0, 0, 0o644},
		{"node.key", 0, uid, 0o600}} {
		if err := give(filepath.Join(dir, f.name), f.flags, f.uid, gid, f.mode); err != nil {
			return err
		}
	}
	return nil
}

// give makes a file a user's, but not what a link leads to.
func give(path string, flags, uid, gid int, mode fs.FileMode) (err error) {
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|flags, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("give %q to its readers: %w", path, err)
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	var st unix.Stat_t
	if err := unix.Fstat(int(f.Fd()), &st); err != nil {
		return fmt.Errorf("look at %q: %w", path, err)
	}
	if st.Mode&unix.S_IFMT != unix.S_IFDIR && (st.Mode&unix.S_IFMT != unix.S_IFREG || st.Nlink != 1) {
		return fmt.Errorf("give %q to its readers: it is no file of its own; delete it, and pair again", path)
	}
	if err := errors.Join(f.Chown(uid, gid), f.Chmod(mode)); err != nil && !errors.Is(err, unix.EROFS) {
		return fmt.Errorf("give %q to its readers: %w", path, err)
	}
	return nil
}

// WriteFile puts a whole new file in the place of an old one: a reader, or a
// crash, meets the one or the other and no mixture.
func WriteFile(path string, data []byte, mode fs.FileMode) (err error) {
	temp, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*")
	if err != nil {
		return fmt.Errorf("write %q: %w", path, err)
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.Remove(temp.Name()))
		}
	}()
	_, writeErr := temp.Write(data)
	if err := errors.Join(writeErr, temp.Chmod(mode), temp.Sync(), temp.Close()); err != nil {
		return fmt.Errorf("write %q: %w", path, err)
	}
	if err := os.Rename(temp.Name(), path); err != nil {
		return fmt.Errorf("write %q: %w", path, err)
	}
	return durable.Folder(filepath.Dir(path))
}
