package preflight

import (
	"path/filepath"
	"testing"
)

// A folder of runs that is yet to be made has the room of the disk that it will be on.
func TestRoomIsThatOfTheDisk(t *testing.T) {
	if err := Room(filepath.Join(t.TempDir(), "runs", "of", "mine")); err != nil {
		t.Error(err)
	}
	if err := Room("/proc/runs"); err != nil { // a file system without sizes
		t.Error(err)
	}
}
