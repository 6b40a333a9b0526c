// Package handover gives what sudo had root make to whoever called sudo.
package handover

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"fieldmesh.dev/fieldmesh/controller/archive/runkey"
)

// account is a user as the kernel knows it.
type account struct{ uid, gid int }

// sudoCaller is who called sudo for this program, nil for nobody. getenv is os.Getenv.
func sudoCaller(euid int, getenv func(string) string) *account {
	uid, uidErr := strconv.ParseUint(getenv("SUDO_UID"), 10, 31)
	gid, gidErr := strconv.ParseUint(getenv("SUDO_GID"), 10, 31)
	if euid != 0 || uidErr != nil || gidErr != nil || uid == 0 {
		return nil
	}
	return &account{int(uid), int(gid)}
}

// Handover gives a run that root has made to whoever called sudo, so that they can
// report and export it by themselves: other runs stay whose they are.
type Handover struct {
	made  []string // folders that were not there before the run, the innermost first
	chown func(in *os.Root, name string) error
}

// New looks at the folder of runs before a run is begun in it. It is nil
// where nobody called sudo.
func New(runs string) *Handover {
	to := sudoCaller(os.Geteuid(), os.Getenv)
	if to == nil {
		return nil
	}
	return by(runs, func(in *os.Root, name string) error { return in.Lchown(name, to.uid, to.gid) })
}

func by(runs string, chown func(*os.Root, string) error) *Handover {
	h := &Handover{chown: chown}
	for _, dir := range []string{filepath.Dir(runkey.File(filepath.Join(runs, "run"))), runs} {
		if _, err := os.Stat(dir); err != nil {
			h.made = append(h.made, dir)
		}
	}
	return h
}

// Give gives the run in a folder, its key, and the folders that were made for them.
func (h *Handover) Give(dir string) error {
	if h == nil {
		return nil
	}
	err := h.giveRun(dir)
	for _, made := range h.made {
		if _, none := os.Stat(made); none == nil {
			err = errors.Join(err, h.giveIn(filepath.Dir(made), filepath.Base(made)))
		}
	}
	if err != nil {
		return fmt.Errorf("give the run to whoever called sudo: %w", err)
	}
	return nil
}

func (h *Handover) giveRun(dir string) error {
	root, err := os.OpenRoot(dir)
	if errors.Is(err, fs.ErrNotExist) { // the run was refused, and left nothing
		return nil
	}
	if err != nil {
		return err
	}
	defer root.Close()
	// Whose folder this lies in may have put another in its place.
	if _, err := root.Lstat("run.json"); err != nil {
		return err
	}
	var names []string
	err = fs.WalkDir(root.FS(), ".", func(name string, _ fs.DirEntry, err error) error {
		names = append(names, name)
		return err
	})
	// A folder after what it holds: nobody else can change it before.
	for _, name := range slices.Backward(names) {
		err = errors.Join(err, h.chown(root, name))
	}
	runs := filepath.Dir(dir)
	key, keyErr := filepath.Rel(runs, runkey.File(dir))
	return errors.Join(err, keyErr, h.giveIn(runs, key))
}

// giveIn gives one file or folder below another, without what it holds.
func (h *Handover) giveIn(dir, name string) error {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	return errors.Join(h.chown(root, name), root.Close())
}
