package pairing

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"fieldmesh.dev/fieldmesh/internal/keys"
	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// bundle makes a folder as a USB stick has it: every file may be read by all, and is a program's.
func bundle(t *testing.T, role string) (dir, pin string) {
	t.Helper()
	dir = t.TempDir()
	certPEM, keyPEM, pin, err := keys.New("alpha")
	if err != nil {
		t.Fatal(err)
	}
	if err := keys.SaveIdentity(dir, "node", certPEM, keyPEM); err != nil {
		t.Fatal(err)
	}
	list, err := keys.NewAuthorized(keys.Peer{Name: "desk", Role: role, Pin: strings.Repeat("c", 64)})
	if err != nil {
		t.Fatal(err)
	}
	if err := list.Save(filepath.Join(dir, "authorized.json")); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"node.key", "node.crt", "authorized.json"} {
		if err := os.Chmod(filepath.Join(dir, name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return dir, pin
}

// Keys from a stick, on which all may read all, are in the node as if it had made them itself: what the network face
// reads is the user's that it runs as, and whom it lets in, that user cannot change.
func TestKeysFromAStickAreTheReaders(t *testing.T) {
	stick, pin := bundle(t, wire.RoleController)
	const reader = 65534
	n := Node{Name: "alpha", KeysDir: filepath.Join(t.TempDir(), "keys"), UID: reader, GID: reader}
	controller, err := Adopt(stick, n)
	if err != nil || controller != strings.Repeat("c", 64) {
		t.Fatalf("it obeys %.12s… (%v)", controller, err)
	}
	own, err := keys.LoadIdentity(n.KeysDir)
	if err != nil || own.Pin != pin {
		t.Errorf("it has key %.12s… (%v)", own.Pin, err)
	}
	if _, err := Adopt(stick, n); err == nil || !strings.Contains(err.Error(), "paired already") {
		t.Errorf("over its keys: %v", err)
	}
	if os.Geteuid() != 0 {
		t.Skip("whose the files are can be set by root alone")
	}
	for name, want := range map[string]struct {
		uid  uint32
		mode fs.FileMode
	}{"": {0, 0o750}, "node.key": {reader, 0o600}, "node.crt": {0, 0o644}, "authorized.json": {0, 0o640}} {
		info, err := os.Stat(filepath.Join(n.KeysDir, name))
		if err != nil {
			t.Fatal(err)
		}
		st := info.Sys().(*syscall.Stat_t)
		if st.Uid != want.uid || st.Gid != reader || info.Mode().Perm() != want.mode {
			t.Errorf("%q is of %d:%d, mode %04o", name, st.Uid, st.Gid, info.Mode().Perm())
		}
	}
}

func TestWhatIsNoBundleIsNotTaken(t *testing.T) {
	good, _ := bundle(t, wire.RoleController)
	nobody, _ := bundle(t, wire.RoleApp)
	for want, c := range map[string]struct{ from, name string }{
		`are those of "alpha", and this node is "bravo"`: {good, "bravo"},
		"nobody in ":              {nobody, "alpha"},
		"keys that `fieldmesh ke": {t.TempDir(), "alpha"},
	} {
		n := Node{Name: c.name, KeysDir: filepath.Join(t.TempDir(), "keys"), UID: os.Getuid(), GID: os.Getgid()}
		if _, err := Adopt(c.from, n); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("it says %v, want %q", err, want)
		}
		if _, err := os.Stat(n.KeysDir); err == nil {
			t.Errorf("with %q it keeps keys", want)
		}
	}
}

// Keys that were copied by hand are given to the network face's user at the next start.
func TestCopiedKeysAreGivenToTheirReader(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root")
	}
	dir, _ := bundle(t, wire.RoleController)
	if err := keys.GiveToReader(dir, 65534, 65534); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(filepath.Join(dir, "node.key"))
	if err != nil || info.Sys().(*syscall.Stat_t).Uid != 65534 || info.Mode().Perm() != 0o600 {
		t.Errorf("the key is %+v (%v)", info, err)
	}
}
