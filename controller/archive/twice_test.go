package archive

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
)

// Of two that make a run of one name at once, as two merges, one does it, and the other says so and harms nothing.
func TestARunIsMadeWholeByOne(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "runs", "whole")
	must(t, createWhole(dir, crashPlan(), func(a *Archive) error {
		other := func(*Archive) error { return a.Note("the other one's") }
		if err := createWhole(dir, crashPlan(), other); !errors.Is(err, ErrLocked) {
			t.Errorf("the other: %v", err)
		}
		durable := map[string]uint64{}
		return story(a, &durable)
	}))
	if findings, err := Verify(dir); err != nil || len(findings) > 0 {
		t.Errorf("%v %v", findings, err)
	}
	if err := createWhole(dir, crashPlan(), nil); !errors.Is(err, ErrExists) {
		t.Errorf("again: %v", err)
	}
	if left, err := os.ReadDir(filepath.Dir(dir)); err != nil || len(left) != 1 {
		t.Errorf("left %v, %v", left, err)
	}
}
