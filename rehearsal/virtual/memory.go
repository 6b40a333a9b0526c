package virtual

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// memoryFolder is where the kernel keeps its memory, in a file without a name:
// in memory if that has room and lets it be executed, as it must.
func memoryFolder(bytes int64) (string, error) {
	for _, dir := range []string{"/dev/shm", os.TempDir()} {
		var fs unix.Statfs_t
		if err := unix.Statfs(dir, &fs); err != nil {
			continue
		}
		if fs.Flags&unix.ST_NOEXEC == 0 && int64(fs.Bavail)*int64(fs.Bsize) >= bytes {
			return dir, nil
		}
	}
	return "", errors.Join(errNoRoom,
		fmt.Errorf("neither /dev/shm nor %s has %d MB and allows execution; set TMPDIR to a folder that does, "+
			"or ask for less with --memory-mb", os.TempDir(), bytes>>20))
}

var errNoRoom = errors.New("no room for the kernel's memory")
