package fleet

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"time"

	"fieldmesh.dev/fieldmesh/internal/lock"
)

const (
	lockFile = ".fleet.lock"
	// lockPatience is for how long another process may be at it: each reads and writes one small file.
	lockPatience = 10 * time.Second
)

// alone does something to a fleet's files while no other process does: what one read and the other wrote in between
// would be lost, a revocation too.
func alone(dir string, do func() error) error {
	until := time.Now().Add(lockPatience)
	held, err := lock.Hold(filepath.Join(dir, lockFile))
	for errors.Is(err, lock.ErrHeld) && time.Now().Before(until) {
		held, err = lock.Hold(filepath.Join(dir, lockFile))
	}
	if errors.Is(err, fs.ErrNotExist) {
		return do() // which says that there is no such folder
	}
	if err != nil {
		return fmt.Errorf("change the fleet of %s: %w", dir, err)
	}
	return errors.Join(do(), held.Close())
}
