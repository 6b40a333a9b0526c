package preflight

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/unix"
)

// leastRoomBytes is what the disk of the runs must have free when one is begun or
// resumed: some trials' worth. How much a whole campaign takes, nobody knows before.
const leastRoomBytes = 100e6

// Room refuses a folder for runs, or the place where it would be made, whose disk is full.
func Room(runs string) error {
	dir, err := filepath.Abs(runs)
	if err != nil {
		return fmt.Errorf("find %s: %w", runs, err)
	}
	var st unix.Statfs_t
	for err = unix.Statfs(dir, &st); errors.Is(err, unix.ENOENT) && dir != "/"; err = unix.Statfs(dir, &st) {
		dir = filepath.Dir(dir)
	}
	if err != nil {
		return fmt.Errorf("find how much room %s has: %w", runs, err)
	}
	blocks := st.Bavail
	if os.Geteuid() == 0 { // who may use those that are kept for root
		blocks = st.Bfree
	}
	// Some file systems tell no sizes.
	if free := blocks * uint64(st.Bsize); st.Blocks > 0 && free < leastRoomBytes {
		return fmt.Errorf("%s: its disk has %.1f MB free, and a run is begun with %.0f MB at least; make room, "+
			"or name a folder on another disk", runs, float64(free)/1e6, leastRoomBytes/1e6)
	}
	return nil
}

// SameDisk reports whether two folders are on one file system, as far as it can be
// told.
func SameDisk(a, b string) bool {
	device := func(path string) (uint64, bool) {
		info, err := os.Stat(path)
		if err != nil {
			return 0, false
		}
		st, ok := info.Sys().(*syscall.Stat_t)
		if !ok {
			return 0, false
		}
		return uint64(st.Dev), true
	}
	x, okX := device(a)
	y, okY := device(b)
	return okX && okY && x == y
}
