package environment

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// A campaign that comes from elsewhere comes with a folder of its movement.
//
//attack:file a campaign whose movement is a link to another file of the reader's, which so gets into what is given
//attack:and away | a movement is read within the campaign's folder
//attack:file a campaign whose movement is a pipe or has no end | only a file of some hundred megabytes is read
func TestMovementIsReadBesideTheCampaignOnly(t *testing.T) {
	secret := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, []byte("secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		spoil func(path string) error
		want  string
	}{
		"a link out": {func(path string) error {
			return errors.Join(os.Remove(path), os.Symlink(secret, path))
		}, "escapes"},
		"a folder that leads out": {func(path string) error {
			dir := filepath.Dir(path)
			return errors.Join(os.Remove(path), os.Remove(dir), os.Symlink(filepath.Dir(secret), dir),
				os.WriteFile(filepath.Join(filepath.Dir(secret), filepath.Base(path)), []byte("secret"), 0o600))
		}, "escapes"},
		"a pipe": {func(path string) error {
			return errors.Join(os.Remove(path), syscall.Mkfifo(path, 0o600))
		}, "is not a file"},
		"without an end": {func(path string) error { return os.Truncate(path, 1<<40) }, "and may have"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			path := filepath.Join(dir, "movement", "walk.tcl")
			err := errors.Join(os.Mkdir(filepath.Dir(path), 0o700), os.WriteFile(path, []byte("walk"), 0o600))
			if err != nil {
				t.Fatal(err)
			}
			field := &Field{Mobility: &Mobility{File: "movement/walk.tcl"}}
			if files, err := field.ReadFiles(dir); err != nil || string(files["walk.tcl"]) != "walk" {
				t.Fatalf("%q, %v", files, err)
			}
			if err := c.spoil(path); err != nil {
				t.Fatal(err)
			}
			if files, err := field.ReadFiles(dir); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("read %d files, %v; want %q", len(files), err, c.want)
			}
		})
	}
}
