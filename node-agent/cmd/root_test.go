package cmd

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"fieldmesh.dev/fieldmesh/internal/flags"
)

//attack:local agent.yaml, or a folder above it, that others can write
func TestRootReadsNoConfigurationOfOthers(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("not root, who alone is refused it")
	}
	path := filepath.Join(t.TempDir(), "agent.yaml")
	if err := os.WriteFile(path, []byte("node: car\ninterface: wlan0\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := loadConfig(path); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(path, 0o666); err != nil {
		t.Fatal(err)
	}
	if _, err := loadConfig(path); err == nil || !strings.Contains(err.Error(), "can be written by others") {
		t.Error(errors.Join(errors.New("a file that everybody can write is read"), err))
	}
}

// A link in a folder of others can lead to root's file while it is looked at, and to a pipe or another file while it
// is read.
//
//attack:local a link to root's agent.yaml in a folder of others, who exchange it between the look and the reading |
//attack:and root follows no link of others, and reads nothing before it has looked
func TestRootFollowsNoLinkOfOthersToAConfiguration(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("not root, who alone is refused it")
	}
	dir := t.TempDir()
	roots, own, others := filepath.Join(dir, "agent.yaml"), filepath.Join(dir, "link"), filepath.Join(dir, "others")
	links := []string{filepath.Join(others, "agent.yaml"), filepath.Join(dir, "of another user"),
		filepath.Join(dir, "on")}
	pipe := filepath.Join(dir, "pipe")
	err := errors.Join(os.WriteFile(roots, []byte("node: car\ninterface: wlan0\n"), 0o644), os.Mkdir(others, 0o755),
		os.Symlink(roots, own), os.Symlink(roots, links[0]), os.Symlink(roots, links[1]),
		os.Symlink(links[0], links[2]),
		os.Chown(others, 1000, 1000), os.Lchown(links[1], 1000, 1000), syscall.Mkfifo(pipe, 0o600))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{own, dir + "/./others/../link"} {
		if _, err := loadConfig(path); err != nil && path == own || err == nil && path != own {
			t.Errorf("%s: %v", path, err)
		}
	}
	for _, path := range links {
		if _, err := loadConfig(path); err == nil || !strings.Contains(err.Error(), "belongs to user 1000") {
			t.Errorf("%s: %v", path, err)
		}
	}
	if _, err := loadConfig(pipe); err == nil || !strings.Contains(err.Error(), "is no file") {
		t.Errorf("a pipe: %v", err)
	}
}

// Whoever looks for one of these commands in the other program is shown here.
func TestTheCommandsThatTheOtherProgramNamesAreHere(t *testing.T) {
	for _, name := range flags.Programs()["fieldmesh-agent"] {
		if c, _, err := Root().Find([]string{name}); err != nil || c.Name() != name {
			t.Errorf("there is no command %q: %v", name, err)
		}
	}
}
