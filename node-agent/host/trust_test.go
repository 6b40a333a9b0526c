package host

import (
	"io/fs"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"
)

// seen is a directory as Lstat would show it.
type seen struct {
	uid, gid uint32
	mode     fs.FileMode
}

func (s seen) Name() string       { return "data" }
func (s seen) Size() int64        { return 0 }
func (s seen) Mode() fs.FileMode  { return s.mode | fs.ModeDir }
func (s seen) ModTime() time.Time { return time.Time{} }
func (s seen) IsDir() bool        { return true }
func (s seen) Sys() any           { return &syscall.Stat_t{Uid: s.uid, Gid: s.gid} }

// Only Android's /data, only of Android's system user, and only on Android.
//
//attack:local a state folder that others can write, from which root undoes
func TestAndroidsDataIsTrustedOnAndroidOnly(t *testing.T) {
	data := seen{androidSystem, androidSystem, 0o771}
	_, err := os.Stat("/system/build.prop")
	if android := err == nil; androidData("/data", data) != android {
		t.Errorf("/data of the system's services is trusted: %v; this is Android: %v", !android, android)
	}
	for name, bad := range map[string]bool{
		"another folder": androidData("/data/local", data), "a person's": androidData("/data",
			seen{1001, androidSystem, 0o771}),
		"another group's": androidData("/data", seen{androidSystem, 1001, 0o771}), "everybody's": androidData("/data",
			seen{androidSystem, androidSystem, 0o777}),
	} {
		if bad {
			t.Errorf("%s is trusted", name)
		}
	}
}

// A folder that the unit may not write is told with what the unit lets be written, and why.
func TestAStateDirThatCannotBeMadeIsToldWithTheUnit(t *testing.T) {
	// Nobody makes folders there, as nobody does below ProtectSystem=strict.
	_, _, err := lockDir("/sys/fieldmesh/host")
	if err == nil || !strings.Contains(err.Error(), "leave state_dir out, and mount the disk") {
		t.Errorf("it says %v", err)
	}
}
