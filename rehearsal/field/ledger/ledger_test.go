package ledger

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"
)

func TestLocksNumberFieldsAndSweepSparesTheLiving(t *testing.T) {
	dir := t.TempDir()
	a, lockA, err := Claim(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer lockA.Close()
	b, lockB, err := Claim(dir)
	if err != nil || a != 0 || b != 1 {
		t.Fatalf("numbers %d and %d (%v)", a, b, err)
	}
	for _, id := range []int{a, b} {
		if err := (Ledger{ID: id}).Save(dir); err != nil {
			t.Fatal(err)
		}
	}
	if err := lockB.Close(); err != nil { // its owner dies
		t.Fatal(err)
	}
	if _, err := Sweep(dir); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(Path(dir, a)); err != nil {
		t.Errorf("the living field's ledger: %v", err)
	}
	if _, err := os.Stat(Path(dir, b)); err == nil {
		t.Error("the dead field's ledger is left")
	}
	if _, err := (Ledger{ID: 1, Namespaces: []string{"production"}}).remove(); err == nil {
		t.Error("a ledger may name any namespace")
	}
}

// A field that is ending holds its folder, and the next one waits for it.
func TestAFolderHasOneFieldAtATime(t *testing.T) {
	dir := t.TempDir()
	first, err := LockFolder(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	impatient, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := LockFolder(impatient, dir); !errors.Is(err, context.Canceled) {
		t.Errorf("two fields in one folder: %v", err)
	}
	time.AfterFunc(50*time.Millisecond, func() { _ = first.Close() })
	second, err := LockFolder(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := second.Close(); err != nil {
		t.Error(err)
	}
}

// What a killed field leaves of sockets goes with its namespaces.
func TestSweepTakesSocketsAlong(t *testing.T) {
	dir := t.TempDir()
	if err := (Ledger{ID: 3}).Save(dir); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"field-3-car.sock", "field-31-car.sock"} {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := Sweep(dir); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(dir, "field-3-car.sock")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the dead field's socket: %v", err)
	}
	if _, err := os.Stat(filepath.Join(dir, "field-31-car.sock")); err != nil {
		t.Errorf("another field's socket: %v", err)
	}
}
