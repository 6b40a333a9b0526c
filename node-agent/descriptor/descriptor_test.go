package descriptor

import (
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// What has to be there is told where that is why a call failed.
func TestWhatIsNeededIsToldWhereItIsMissing(t *testing.T) {
	for errno, tells := range map[unix.Errno]bool{unix.ENOSYS: true, unix.EPERM: true, unix.EACCES: true,
		unix.EMFILE: false, unix.EINVAL: false} {
		if told := strings.Contains(because(errno).Error(), "Linux 5.6"); told != tells {
			t.Errorf("%v: %v", errno, because(errno))
		}
	}
}
