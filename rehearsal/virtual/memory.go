package virtual

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// MemoryFolder is where kernels keep so much memory, in files without a name: in memory if
// that has room and lets it be executed, as it must. Such a file takes its room little by
// little, so kernels that are to run side by side ask once, for all.
func MemoryFolder(mb int) (string, error) {
	bytes := int64(mb) << 20
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
			"or ask for less with --memory-mb or fewer --jobs", os.TempDir(), mb))
}

var errNoRoom = errors.New("no room for the kernel's memory")
