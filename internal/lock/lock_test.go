package lock

import (
	"errors"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func TestOneHolds(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	if held, err := IsHeld(path); held || err != nil {
		t.Errorf("before it is there: %v, %v", held, err)
	}
	f, err := Hold(path)
	if err != nil {
		t.Fatal(err)
	}
	if held, err := IsHeld(path); !held || err != nil {
		t.Errorf("held: %v, %v", held, err)
	}
	if _, err := Hold(path); !errors.Is(err, ErrHeld) {
		t.Errorf("twice: %v", err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	if held, err := IsHeld(path); held || err != nil {
		t.Errorf("freed: %v, %v", held, err)
	}
}

func TestWhoLooksDoesNotKeepAFileFromItsHolder(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	looking, err := os.Create(path)
	if err == nil {
		err = unix.Flock(int(looking.Fd()), unix.LOCK_SH)
	}
	if err != nil {
		t.Fatal(err)
	}
	var closing sync.WaitGroup
	defer closing.Wait()
	closing.Go(func() {
		time.Sleep(within / 4)
		if err := looking.Close(); err != nil {
			t.Error(err)
		}
	})
	f, err := Hold(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Error(err)
	}
}
