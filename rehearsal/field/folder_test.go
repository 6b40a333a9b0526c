package field

import (
	"path/filepath"
	"strings"
	"testing"
)

// The longest names of a run and of a node leave room for every socket below the
// default folder, and names that differ have folders that differ.
func TestFoldersAreShortEnoughForSockets(t *testing.T) {
	const (
		base     = "/var/lib/fieldmesh/rehearsal" // default of --field-dir
		longest  = "host/daemons/babeld.sock"     // the longest that an agent refuses its state_dir for
		pathMost = 107                            // sockaddr_un holds 108 bytes with the closing zero (unix(7))
	)
	run, name := strings.Repeat("r", 200), strings.Repeat("n", 32)
	n := node{Node: Node{Name: name}, dir: nodeFolder(filepath.Join(Folder(base, run), "field15"), name)}
	if path := filepath.Join(n.stateDir(), longest); len(path) > pathMost {
		t.Errorf("%s has %d bytes, and a socket's path has at most %d", path, len(path), pathMost)
	}
	if Folder(base, run) == Folder(base, run+"r") || nodeFolder(base, name) == nodeFolder(base, name[1:]) {
		t.Error("two names have one folder")
	}
	if got, want := Folder(base, "velocity"), filepath.Join(base, "velocity"); got != want {
		t.Errorf("a short name's folder is %s, want %s", got, want)
	}
}
