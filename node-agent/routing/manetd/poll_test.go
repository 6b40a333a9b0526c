package manetd

import (
	"errors"
	"os"
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"fieldmesh.dev/fieldmesh/protocols/manet"
)

// One wait is for packets and for the clock, and ends when it is told to.
func TestThePollerWaitsForPacketsAndForTheClock(t *testing.T) {
	p, err := openPoller()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = p.close() }() // tells what stop has told
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _, _ = r.Close(), w.Close() }()
	fd, err := unix.Dup(int(r.Fd()))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = unix.Close(fd) }()
	if err := unix.SetNonblock(fd, true); err != nil {
		t.Fatal(err)
	}
	var got []byte
	if err := p.add(fd, func(manet.Time) error {
		b := make([]byte, 1)
		n, err := readNow(fd, b)
		got = append(got, b[:n]...)
		return err
	}); err != nil {
		t.Fatal(err)
	}
	round := func() {
		t.Helper()
		n, err := p.wait()
		if err == nil {
			err = p.read(n, 0)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	began := time.Now()
	if err := p.set(0, 20*time.Millisecond); err != nil {
		t.Fatal(err)
	}
	round()
	if took := time.Since(began); took < 20*time.Millisecond || len(got) > 0 || p.setTo != 0 {
		t.Errorf("the clock woke it after %s, set to %s, read %q", took, p.setTo, got)
	}
	if err := p.set(0, time.Hour); err != nil {
		t.Fatal(err)
	}
	if _, err := w.WriteString("ab"); err != nil {
		t.Fatal(err)
	}
	round()
	round() // what one call did not read is reported again
	if string(got) != "ab" {
		t.Errorf("read %q", got)
	}
	if _, err := readNow(fd, make([]byte, 1)); !errors.Is(err, unix.EAGAIN) {
		t.Errorf("reading what is not there: %v", err)
	}
	ended := make(chan error)
	go func() {
		_, err := p.wait()
		ended <- err
	}()
	if err := p.stop(); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; err == nil {
		t.Error("stopped, it says that there is something to read")
	}
}

// A timer that may be late wakes nobody before it must, and goes with the next
// that does.
func TestTimersThatMayBeLateGoTogether(t *testing.T) {
	var all timers
	key := func(kind uint8) manet.TimerKey { return manet.TimerKey{Kind: kind} }
	all.set(manet.SetTimer{Key: key(1), At: 10, Slack: 90})
	all.set(manet.SetTimer{Key: key(2), At: 40})
	all.set(manet.SetTimer{Key: key(3), At: 30, Slack: 5})
	all.set(manet.SetTimer{Key: key(4), At: 60})
	all.stop(key(4))
	if at := all.next(); at != 35 {
		t.Errorf("wakes at %d, want 35", at)
	}
	var took []uint8
	for {
		k, ok := all.take(35)
		if !ok {
			break
		}
		took = append(took, k.Kind)
	}
	if !slices.Equal(took, []uint8{1, 3}) {
		t.Errorf("at 35 timers %v went, want 1 and 3", took)
	}
	if at := all.next(); at != 40 {
		t.Errorf("wakes at %d, want 40", at)
	}
	all.stop(key(2))
	if all.next() != never {
		t.Error("a stopped timer is left")
	}
}
