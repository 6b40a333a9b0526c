package gps

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"fieldmesh.dev/fieldmesh/internal/keys"
)

// FindProgram looks for gpsd where distributions put it: an ordinary user's PATH may lack
// the directory.
func FindProgram() (path string, err error) {
	for _, p := range []string{"/usr/sbin/gpsd", "/usr/local/sbin/gpsd", "/usr/bin/gpsd"} {
		if path, err := exec.LookPath(p); err == nil {
			return path, nil
		}
	}
	return "", errors.New("gpsd is not installed: sudo apt-get install gpsd")
}

// CopyProgram copies gpsd into a folder, to be started from there. AppArmor, as Debian and
// Ubuntu set it up, lets the installed one open serial ports, and no pseudo-terminal as a
// Line is.
func CopyProgram(dir string) (path string, err error) {
	installed, err := FindProgram()
	if err != nil {
		return "", err
	}
	program, err := os.ReadFile(installed)
	if err != nil {
		return "", fmt.Errorf("copy gpsd: %w", err)
	}
	path = filepath.Join(dir, "gpsd")
	return path, keys.WriteFile(path, program, 0o755)
}
