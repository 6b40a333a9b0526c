// Package power lets a test in a guest (test/testnet/guest) cut the
// machine's power: a disk that outlives it, the number of the boot, and the
// cut. After it the guest boots again on the same disk and runs the same test
// from its beginning; all else in the guest is as new. A suite of such tests is
// a boot of its own: their names begin with TestReset.
package power

import (
	"os"
	"os/exec"
	"strconv"
	"syscall"
	"testing"
	"time"

	"fieldmesh.dev/fieldmesh/test/testnet/hwsim"
)

const (
	device = "/dev/vda"
	folder = "/disk"
)

// Boot is the number of this boot, from 1.
func Boot(t testing.TB) int {
	t.Helper()
	hwsim.NeedGuest(t)
	n, err := strconv.Atoi(os.Getenv("FIELDMESH_GUEST_BOOT"))
	if err != nil {
		t.Fatalf("FIELDMESH_GUEST_BOOT: %v", err)
	}
	return n
}

// Disk is the folder of a disk that outlives the boot; the first boot makes
// its file system.
func Disk(t testing.TB) string {
	t.Helper()
	for _, m := range []string{"virtio_blk", "ext4"} {
		hwsim.Modprobe(t, m)
	}
	hwsim.Await(t, time.Minute, "the disk", func() bool { _, err := os.Stat(device); return err == nil })
	if Boot(t) == 1 {
		if out, err := exec.Command("mkfs.ext4", "-q", "-F", device).CombinedOutput(); err != nil {
			t.Fatalf("make a file system: %v\n%s", err, out)
		}
	}
	if err := os.MkdirAll(folder, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mount(device, folder, "ext4", 0, ""); err != nil {
		t.Fatalf("mount %s: %v", device, err)
	}
	return folder
}

// Cut cuts the power: what was written to the disk and not synced is lost. It
// does not return. A test that has failed does not come back.
func Cut(t testing.TB) {
	t.Helper()
	if t.Failed() {
		t.FailNow()
	}
	t.Logf("power is cut in boot %d", Boot(t))
	if err := syscall.Kill(1, syscall.SIGUSR1); err != nil { // the guest's init
		t.Fatal(err)
	}
	time.Sleep(time.Minute)
	t.Fatal("the guest was not reset within a minute")
}
