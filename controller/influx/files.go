package influx

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// recordFile is one of the archive's files of records; they only grow.
type recordFile struct {
	rel  string // with slashes, relative to the run
	node string
	key  wire.TrialKey // zero: records of no trial
	late bool          // came after their attempt was sealed
	size int64
}

// inAttempt: the file lies in an attempt's own folder.
func (f recordFile) inAttempt() bool { return f.key != (wire.TrialKey{}) && !f.late }

var attemptDir = regexp.MustCompile(`^(\d+)-a(\d+)$`)

// list finds the files of records: attempts in order, and for each the
// controller's file first, because it dates the others; records of no trial last.
func list(dir string) ([]recordFile, error) {
	var out []recordFile
	add := func(sub string, key wire.TrialKey, late bool) error {
		entries, err := os.ReadDir(filepath.Join(dir, filepath.FromSlash(sub)))
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("list records: %w", err)
		}
		for _, e := range entries {
			node, ok := strings.CutSuffix(e.Name(), ".ndjson")
			if !ok || strings.HasPrefix(node, ".") {
				continue
			}
			info, err := e.Info()
			if err != nil {
				return fmt.Errorf("list records: %w", err)
			}
			out = append(out, recordFile{rel: sub + "/" + e.Name(), node: node, key: key, late: late,
				size: info.Size()})
		}
		return nil
	}
	err := errors.Join(
		eachAttempt(dir, "trials", func(name string, k wire.TrialKey) error {
			return add("trials/"+name+"/records", k, false)
		}),
		eachAttempt(dir, "late", func(name string, k wire.TrialKey) error { return add("late/"+name, k, true) }),
		add("between", wire.TrialKey{}, false),
	)
	slices.SortStableFunc(out, compareFiles)
	return out, err
}

func compareFiles(a, b recordFile) int {
	last := func(f recordFile) int {
		if f.key == (wire.TrialKey{}) {
			return 1
		}
		return 0
	}
	first := func(f recordFile) int {
		if f.node == controllerNode {
			return 0
		}
		return 1
	}
	return cmp.Or(last(a)-last(b), cmp.Compare(a.key.Trial, b.key.Trial), cmp.Compare(a.key.Attempt, b.key.Attempt),
		first(a)-first(b))
}

func eachAttempt(dir, sub string, do func(name string, k wire.TrialKey) error) error {
	entries, err := os.ReadDir(filepath.Join(dir, sub))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("list attempts: %w", err)
	}
	for _, e := range entries {
		m := attemptDir.FindStringSubmatch(e.Name())
		if m == nil {
			continue
		}
		trial, err1 := strconv.Atoi(m[1])
		attempt, err2 := strconv.Atoi(m[2])
		if err1 != nil || err2 != nil {
			continue // more digits than a number has: not an attempt
		}
		if err := do(e.Name(), wire.TrialKey{Trial: trial, Attempt: attempt}); err != nil {
			return err
		}
	}
	return nil
}

// sealed reports whether an attempt is closed: nothing is added to its folder.
func sealed(dir string, f recordFile) bool {
	_, err := os.Stat(filepath.Join(dir, filepath.FromSlash(f.rel), "../../MANIFEST.sha256"))
	return err == nil
}
