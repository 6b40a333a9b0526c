package cmd

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
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

// Whoever looks for one of these commands in the other program is shown here.
func TestTheCommandsThatTheOtherProgramNamesAreHere(t *testing.T) {
	for _, name := range flags.Programs()["fieldmesh-agent"] {
		if c, _, err := Root().Find([]string{name}); err != nil || c.Name() != name {
			t.Errorf("there is no command %q: %v", name, err)
		}
	}
}
