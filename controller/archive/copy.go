package archive

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"fieldmesh.dev/fieldmesh/controller/archive/ahead"
	"fieldmesh.dev/fieldmesh/internal/durable"
)

// ErrOtherRun is returned when the place of a copy holds another run.
var ErrOtherRun = errors.New("the folder holds another run")

// Copy makes, or brings up to date, a second copy of a run's folder at to. A file that is the same there is left alone,
// and so is one that somebody put there; one that the run has no more is taken away. Each is on disk there, whole,
// before the next is begun. A run with files that are not as they were written does not replace its copy, which may be
// the only whole one.
func Copy(from, to string) error {
	if err := copyable(from, to); err != nil {
		return fmt.Errorf("copy run %q to %q: %w", from, to, err)
	}
	if _, err := os.Stat(to); err == nil {
		findings, err := Verify(from)
		if err != nil {
			return fmt.Errorf("copy run %q: %w", from, err)
		}
		if bad := Altered(findings); len(bad) > 0 {
			return fmt.Errorf("copy run %q: %s; the copy in %q is left as it is: take the file from there, if "+
				"`fieldmesh verify` finds that one whole", from, bad[0], to)
		}
	}
	source, target := disk{root: from}, disk{root: to}
	files, err := source.walk(".")
	if err != nil {
		return fmt.Errorf("copy run %q: %w", from, err)
	}
	if !slices.Contains(files, runFile) { // its disk is gone by now
		return fmt.Errorf("copy run %q: %w", from, ErrNoRun)
	}
	if err := target.makeRoot(); err != nil {
		return fmt.Errorf("copy run %q to %q: %w", from, to, err)
	}
	wanted := map[string]bool{}
	for _, rel := range files {
		if strings.HasSuffix(rel, tmpSuffix) {
			continue
		}
		wanted[rel] = true
		if err := copyFile(source, target, rel); err != nil {
			return fmt.Errorf("copy run %q to %q: %w", from, to, err)
		}
	}
	there, err := target.walk(".")
	for _, rel := range there {
		if !wanted[rel] && passing(rel) {
			err = errors.Join(err, target.remove(rel))
		}
	}
	if err != nil {
		return fmt.Errorf("copy run %q to %q: %w", from, to, err)
	}
	return nil
}

// passing reports whether a run may have a file and later have it no more.
func passing(rel string) bool {
	return rel == manifestFile || rel == manifestSignature || strings.HasSuffix(rel, partSuffix) ||
		strings.HasSuffix(rel, tmpSuffix) || Derived(rel) && rel != MapFile && !strings.Contains("/"+rel, "/.")
}

// copyable refuses to write over another run, a run over itself, or over what it lacks.
func copyable(from, to string) error {
	var here, there stored
	if err := (disk{root: from}).readJSON(runFile, &here); err != nil {
		return errors.Join(ErrNoRun, err)
	}
	a, err := os.Stat(from)
	if err != nil {
		return err
	}
	if b, err := os.Stat(to); err == nil && os.SameFile(a, b) {
		return errors.New("that is the same folder")
	}
	err = (disk{root: to}).readJSON(runFile, &there)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		left, derr := os.ReadDir(to)
		if derr == nil && len(left) > 0 && !halfCopied(left) {
			return errors.New("the folder is not empty, and holds no run")
		}
		return nil
	case err != nil:
		return err
	case there.Run != here.Run || !there.CreatedWall.Equal(here.CreatedWall):
		return fmt.Errorf("%w: %s", ErrOtherRun, there.Run)
	}
	return ahead.Refuse(from, to)
}

// halfCopied: a copy that was interrupted before run.json came.
func halfCopied(left []os.DirEntry) bool {
	return !slices.ContainsFunc(left, func(e os.DirEntry) bool {
		name := e.Name()
		return !ours(name) && name != manifestFile && name != "trials" && name != "between" && name != "late" &&
			name != attachmentDir && name != movementDir && name != shardsDir && !Derived(name)
	})
}

func copyFile(source, target disk, rel string) error {
	if target.exists(rel) && target.size(rel) == source.size(rel) {
		a, _, err := source.sum(rel)
		b, _, terr := target.sum(rel)
		if err == nil && terr == nil && a == b {
			return nil
		}
	}
	return target.replaceBy(source.path(rel), rel)
}

// replaceBy writes a file whole that is read from elsewhere; a packet capture
// may be larger than memory.
func (d disk) replaceBy(from, rel string) (err error) {
	if err := d.mkdir(filepath.Dir(rel)); err != nil {
		return err
	}
	in, err := os.Open(from)
	if err != nil {
		return fmt.Errorf("copy %s: %w", rel, err)
	}
	defer func() { err = errors.Join(err, in.Close()) }()
	tmp := d.path(rel + tmpSuffix)
	out, err := os.OpenFile(tmp, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o644)
	if err != nil {
		return fmt.Errorf("copy %s: %w", rel, err)
	}
	_, err = io.Copy(out, in)
	if err == nil {
		err = out.Sync()
	}
	if err = errors.Join(err, out.Close()); err == nil {
		err = os.Rename(tmp, d.path(rel))
	}
	if err != nil {
		return fmt.Errorf("copy %s: %w", rel, err)
	}
	return durable.Folder(filepath.Dir(d.path(rel)))
}
