package host

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"fieldmesh.dev/fieldmesh/node-agent/host/change"
)

const sack = "net.ipv4.tcp_sack"

// aRun is a run's life in short: two trials within a run.
func aRun(k *keeper) error {
	steps := []func() error{
		func() error {
			_, err := k.apply(ScopeRun, []change.Change{linkUp(), address("10.77.0.1/24")})
			return err
		},
		func() error {
			_, err := k.apply(ScopeTrial, []change.Change{sysctl(sack, "0"), route("10.77.9.0/24"), routingDaemon()})
			return err
		},
		func() error { _, err := k.apply(ScopeTrial, []change.Change{sysctl(sack, "1")}); return err },
		func() error { _, err := k.restore(ScopeTrial); return err },
		func() error { _, err := k.apply(ScopeTrial, []change.Change{sysctl(sack, "1")}); return err },
		func() error { _, err := k.restore(""); return err },
	}
	for _, step := range steps {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

// live runs a life that ends at a step, 0 for a whole one, and says how many
// steps it had.
func live(t *testing.T, m *machine, d *disk, at int, act func(*keeper) error) int {
	t.Helper()
	b := &bomb{at: at}
	m.bomb, d.bomb = b, b
	k := wake(t, m, d)
	if err := act(k); err != nil && !errors.Is(err, errCrash) {
		t.Fatalf("step %d: %v", at, err)
	}
	return b.step
}

func recovery(k *keeper) error {
	report, err := k.restore("")
	if err == nil && len(report.Failed) > 0 && !strings.Contains(report.Failed[0], errCrash.Error()) {
		return errors.New(report.Failed[0])
	}
	return err
}

// TestEveryCrashIsRecovered kills a life at each of its steps (each write,
// fsync and cut of the journal, each half of each change and undo) and, in
// journal writes, at each byte; it kills the recovery at each of its steps
// too. In the end the machine must be as it was, and nothing pending.
func TestEveryCrashIsRecovered(t *testing.T) {
	steps := live(t, newMachine(), &disk{}, 0, aRun)
	if steps < 40 {
		t.Fatalf("only %d steps", steps)
	}
	lives := 0
	for at := 1; at <= steps; at++ {
		last := -1 // bytes on the disk
		for torn := range maxEntryBytes {
			m, d := newMachine(), &disk{torn: torn}
			before := m.snapshot()
			live(t, m, d, at, aRun)
			if len(d.data) == last {
				break // no more bytes to tear
			}
			last = len(d.data)
			crashed, onDisk := m.snapshot(), slices.Clone(d.data)
			for second := 1; ; second++ {
				m.state, d.data = maps.Clone(crashed), slices.Clone(onDisk)
				took := live(t, m, d, second, recovery)
				live(t, m, d, 0, recovery)
				lives++
				if !maps.Equal(m.snapshot(), before) {
					t.Fatalf("killed at step %d (%d bytes torn) and in recovery at %d: machine is %v, was %v", at, torn,
						second, m.snapshot(), before)
				}
				if left := replay(d.data); len(left.pending) > 0 {
					t.Fatalf("killed at step %d (%d bytes torn) and in recovery at %d: %d changes still pending", at,
						torn, second, len(left.pending))
				}
				if took < second || torn > 0 {
					break
				}
			}
		}
	}
	t.Logf("%d steps, %d lives", steps, lives)
}

func TestAnErrorInACallUndoesThatCallOnly(t *testing.T) {
	for spoil := 1; spoil <= 6; spoil++ {
		m, d := newMachine(), &disk{bomb: &bomb{}}
		k := wake(t, m, d)
		if _, err := k.apply(ScopeRun, []change.Change{linkUp()}); err != nil {
			t.Fatal(err)
		}
		before := m.snapshot()
		m.spoil = spoil
		_, err := k.apply(ScopeTrial, []change.Change{sysctl(sack, "0"), route("10.77.9.0/24"), routingDaemon()})
		if err == nil || !strings.Contains(err.Error(), "the kernel says no") {
			t.Fatalf("write %d spoilt: error %v", spoil, err)
		}
		want := []string{"sysctl net.ipv4.tcp_sack=0", "route 10.77.9.0/24 dev wlan0", "daemon babeld"}[(spoil-1)/2]
		if !strings.Contains(err.Error(), want) {
			t.Errorf("error %q does not name %q", err, want)
		}
		if !maps.Equal(m.snapshot(), before) {
			t.Errorf("write %d spoilt: machine is %v, was %v", spoil, m.snapshot(), before)
		}
		if s := k.status(); !slices.Equal(s.Pending, []string{"link wlan0 up"}) {
			t.Errorf("pending %v", s.Pending)
		}
	}
}

func TestAFailedJournalWriteChangesNothing(t *testing.T) {
	m, d := newMachine(), &disk{bomb: &bomb{}}
	k := wake(t, m, d)
	before := m.snapshot()
	d.bomb = &bomb{at: 1} // a full disk
	if _, err := k.apply(ScopeRun, []change.Change{linkUp()}); err == nil {
		t.Fatal("applied without a journal")
	}
	if !maps.Equal(m.snapshot(), before) {
		t.Errorf("machine is %v, was %v", m.snapshot(), before)
	}
}

func TestARepeatedCallKeepsTheFirstUndo(t *testing.T) {
	m, d := newMachine(), &disk{bomb: &bomb{}}
	k := wake(t, m, d)
	before := m.snapshot()
	calls := []change.Change{sysctl(sack, "0"), address("10.77.0.1/24")}
	made, err := k.apply(ScopeTrial, calls)
	if err != nil || len(made) != 2 || made[0].What != "sysctl net.ipv4.tcp_sack=0" || made[0].Scope != ScopeTrial ||
		made[0].Action != "applied" {
		t.Fatalf("made %v, %v", made, err)
	}
	length := len(d.data)
	m.state["sysctl net.ipv4.tcp_sack/a"] = "drifted"
	if made, err = k.apply(ScopeTrial, calls); err != nil || len(made) != 0 {
		t.Fatalf("made %v again, %v", made, err)
	}
	if len(d.data) != length || len(k.status().Pending) != 2 {
		t.Error("a repetition was journalled")
	}
	if m.state["sysctl net.ipv4.tcp_sack/a"] != "sysctl net.ipv4.tcp_sack=0" {
		t.Error("a repetition did not make the change good")
	}
	if _, err := k.restore(""); err != nil || !maps.Equal(m.snapshot(), before) {
		t.Errorf("machine is %v, was %v, %v", m.snapshot(), before, err)
	}
	if len(d.data) != 0 {
		t.Errorf("journal holds %d bytes after everything was undone", len(d.data))
	}
}

func TestARepeatedCallLeavesAnOverridingChange(t *testing.T) {
	m, d := newMachine(), &disk{bomb: &bomb{}}
	k := wake(t, m, d)
	for _, step := range []struct{ scope, value string }{{ScopeRun, "0"}, {ScopeTrial, "1"}, {ScopeRun, "0"}} {
		if _, err := k.apply(step.scope, []change.Change{sysctl(sack, step.value)}); err != nil {
			t.Fatal(err)
		}
	}
	if got := m.state["sysctl net.ipv4.tcp_sack/a"]; got != "sysctl net.ipv4.tcp_sack=1" {
		t.Errorf("in force is %q", got)
	}
	if _, err := k.restore(ScopeTrial); err != nil || m.state["sysctl net.ipv4.tcp_sack/a"] !=
		"sysctl net.ipv4.tcp_sack=0" {
		t.Errorf("after the trial in force is %q, %v", m.state["sysctl net.ipv4.tcp_sack/a"], err)
	}
}

func TestScopesNest(t *testing.T) {
	m, d := newMachine(), &disk{bomb: &bomb{}}
	k := wake(t, m, d)
	if _, err := k.apply(ScopeTrial, []change.Change{sysctl(sack, "0")}); err != nil {
		t.Fatal(err)
	}
	var refused *change.Refused
	if _, err := k.apply(ScopeRun, []change.Change{linkUp()}); !errors.As(err, &refused) || refused.Cure == "" {
		t.Fatalf("a run's change inside a trial: %v", err)
	}
	if _, err := k.apply("week", []change.Change{linkUp()}); err == nil {
		t.Error("scope week is taken")
	}
	if _, err := k.restore("week"); err == nil {
		t.Error("scope week is restored")
	}
}

func TestAFailedUndoIsKeptAndTriedAgain(t *testing.T) {
	m, d := newMachine(), &disk{bomb: &bomb{}}
	k := wake(t, m, d)
	before := m.snapshot()
	all := []change.Change{linkUp(), address("10.77.0.1/24"), route("10.77.9.0/24")}
	if _, err := k.apply(ScopeRun, all); err != nil {
		t.Fatal(err)
	}
	stuck := address("10.77.0.1/24")
	m.deny[stuck.Target()] = errors.New("device is busy")
	report, err := k.restore("")
	if err != nil || len(report.Undone) != 2 || len(report.Failed) != 1 || !strings.Contains(report.Failed[0],
		"device is busy") {
		t.Fatalf("report %+v, %v", report, err)
	}
	if s := k.status(); len(s.Pending) != 1 || len(s.Failed) != 1 {
		t.Errorf("status %+v", s)
	}
	k = wake(t, m, d) // the next life knows it too
	if report, _ = k.restore(""); len(report.Failed) != 1 {
		t.Errorf("report of the next life %+v", report)
	}
	delete(m.deny, stuck.Target())
	if report, _ = k.restore(""); len(report.Undone) != 2 || len(report.Failed) != 0 || // the older link again, too
		!maps.Equal(m.snapshot(), before) {
		t.Errorf("report %+v, machine %v", report, m.snapshot())
	}
}

func TestWhatIsGoneIsUndone(t *testing.T) {
	m, d := newMachine(), &disk{bomb: &bomb{}}
	k := wake(t, m, d)
	if _, err := k.apply(ScopeRun, []change.Change{linkUp()}); err != nil {
		t.Fatal(err)
	}
	m.gone = linkUp().Target()
	report, err := k.restore("")
	if err != nil || !slices.Equal(report.Undone, []string{"link wlan0 up (interface is gone)"}) {
		t.Errorf("report %+v, %v", report, err)
	}
}

// A radio that was unplugged and is plugged in again is changed again, and how
// the new one was is what is put back.
func TestWhatIsThereAnewIsChangedAnew(t *testing.T) {
	m, d := newMachine(), &disk{bomb: &bomb{}}
	k := wake(t, m, d)
	if _, err := k.apply(ScopeRun, []change.Change{linkUp()}); err != nil {
		t.Fatal(err)
	}
	for _, name := range halves(linkUp()) {
		m.state[name] = "as the new one came"
	}
	m.gone = linkUp().Target()
	before := m.snapshot()
	if made, err := k.apply(ScopeRun, []change.Change{linkUp()}); err != nil || len(made) != 1 {
		t.Fatalf("made %+v, %v", made, err)
	}
	m.gone = ""
	k = wake(t, m, d) // the journal knows it too
	report, err := k.restore("")
	if err != nil || !slices.Equal(report.Undone, []string{"link wlan0 up"}) || !maps.Equal(m.snapshot(), before) {
		t.Errorf("report %+v, %v; machine %v, want %v", report, err, m.snapshot(), before)
	}
}

// Putting everything back takes its time for each change, so their number is
// bounded, and a call that would go beyond makes none of its changes.
//
//attack:face changes without end | 1,024 in force
func TestChangesInForceAreBounded(t *testing.T) {
	k := wake(t, newMachine(), &disk{bomb: &bomb{}})
	call := func(n int) []change.Change {
		var out []change.Change
		for i := range 200 {
			out = append(out, address(fmt.Sprintf("10.77.%d.%d/24", n, i+1)))
		}
		return out
	}
	n := 0
	for ; len(k.pending)+200 <= pendingMost; n++ {
		if _, err := k.apply(ScopeRun, call(n)); err != nil {
			t.Fatal(err)
		}
	}
	before := len(k.pending)
	var refused *change.Refused
	if _, err := k.apply(ScopeRun, call(n)); !errors.As(err, &refused) || len(k.pending) != before {
		t.Errorf("with %d changes in force, of at most %d: %v; now %d", before, pendingMost, err, len(k.pending))
	}
	if _, err := k.apply(ScopeRun, call(0)); err != nil {
		t.Errorf("what is in force is refused: %v", err)
	}
}

// busyMachine refuses an undo so many times: a lock is held, a daemon does not end in time.
type busyMachine struct {
	*machine
	undo    change.Undo
	denials int
}

func (b *busyMachine) Revert(u change.Undo) (string, error) {
	if b.denials > 0 && u.Place().Boot == b.undo.Place().Boot {
		b.denials--
		return "", errors.New("device is busy")
	}
	return b.machine.Revert(u)
}

// What the newer of two undos remembers is what the older change had made: undone
// alone, after the older one, it would bring that back.
func TestAnUndoThatFailsAtFirstIsNotTheLast(t *testing.T) {
	for _, denials := range []int{1, 2, 3} { // in the first pass; in both; in the next life's first, too
		m, d := newMachine(), &disk{bomb: &bomb{}}
		k := wake(t, m, d)
		before := m.snapshot()
		for _, step := range []struct{ scope, value string }{{ScopeRun, "0"}, {ScopeTrial, "1"}} {
			if _, err := k.apply(step.scope, []change.Change{sysctl(sack, step.value)}); err != nil {
				t.Fatal(err)
			}
		}
		newest := &busyMachine{machine: m, undo: k.pending[1].Undo, denials: denials}
		k.system = newest
		if report, err := k.restore(""); err != nil || len(report.Failed) != min(denials-1, 1) {
			t.Errorf("%d denials: report %+v, %v", denials, report, err)
		}
		if denials > 1 {
			k = wake(t, m, d)
			k.system = newest
			if report, err := k.restore(""); err != nil || len(report.Undone) != 2 || len(report.Failed) != 0 {
				t.Errorf("%d denials: report of the next life %+v, %v", denials, report, err)
			}
		}
		if after := m.snapshot(); !maps.Equal(after, before) || len(d.data) != 0 {
			t.Errorf("%d denials: machine is %v, was %v; the journal holds %d bytes", denials, after, before,
				len(d.data))
		}
	}
}

// A change that is undone, but to be undone again after a newer one, is not in force:
// it is made again when it is asked for, and a trial's end leaves what a run has made since.
func TestWhatIsToBeUndoneAgainIsNotInForce(t *testing.T) {
	m, d := newMachine(), &disk{bomb: &bomb{}}
	k := wake(t, m, d)
	before := m.snapshot()
	apply := func(scope, value string) {
		t.Helper()
		if _, err := k.apply(scope, []change.Change{sysctl(sack, value)}); err != nil {
			t.Fatal(err)
		}
		if got := m.state["sysctl net.ipv4.tcp_sack/a"]; got != "sysctl net.ipv4.tcp_sack="+value {
			t.Errorf("in force is %q, not %s", got, value)
		}
	}
	apply(ScopeTrial, "0")
	apply(ScopeTrial, "1")
	k.system = &busyMachine{machine: m, undo: k.pending[1].Undo, denials: 1 << 10}
	end := func() {
		t.Helper()
		report, err := k.restore(ScopeTrial)
		if err != nil || len(report.Failed) != 1 ||
			!slices.Equal(report.Undone, []string{"sysctl net.ipv4.tcp_sack=0"}) {
			t.Errorf("report %+v, %v", report, err)
		}
	}
	end()
	apply(ScopeTrial, "0")
	end()
	apply(ScopeRun, "1")
	if _, err := k.restore(ScopeTrial); err != nil || m.state["sysctl net.ipv4.tcp_sack/a"] !=
		"sysctl net.ipv4.tcp_sack=1" {
		t.Errorf("after the trial in force is %q, %v", m.state["sysctl net.ipv4.tcp_sack/a"], err)
	}
	k.system = m
	if _, err := k.restore(""); err != nil || !maps.Equal(m.snapshot(), before) || len(d.data) != 0 {
		t.Errorf("machine is %v, was %v, %v", m.snapshot(), before, err)
	}
}

// A newer undo that could not be noted is made again in the next life: the older ones
// must be, after it.
func TestAnUndoThatIsNotNotedIsNotTheLast(t *testing.T) {
	m, d := newMachine(), &disk{bomb: &bomb{}}
	k := wake(t, m, d)
	before := m.snapshot()
	steps := []struct {
		scope string
		c     change.Change
	}{{ScopeRun, linkUp()}, {ScopeTrial, sysctl(sack, "0")}, {ScopeTrial, sysctl(sack, "1")}}
	for _, step := range steps {
		if _, err := k.apply(step.scope, []change.Change{step.c}); err != nil {
			t.Fatal(err)
		}
	}
	k.journal.file = &fullOnce{disk: d}
	if report, err := k.restore(ScopeTrial); err != nil || len(report.Undone) != 2 ||
		len(report.Unrecorded) != 1 {
		t.Errorf("report %+v, %v", report, err)
	}
	k = wake(t, m, d)
	if _, err := k.restore(""); err != nil || !maps.Equal(m.snapshot(), before) || len(d.data) != 0 {
		t.Errorf("machine is %v, was %v, %v", m.snapshot(), before, err)
	}
}

// fullOnce is a disk that has no room for the first write.
type fullOnce struct {
	*disk
	told bool
}

func (f *fullOnce) WriteAt(p []byte, at int64) (int, error) {
	if !f.told {
		f.told = true
		return 0, errors.New("no space left on device")
	}
	return f.disk.WriteAt(p, at)
}

// stuck is a keeper whose newest change, a route, cannot be undone, and whose older one is.
func stuck(t *testing.T, scope string, older change.Change) (*machine, *disk, *keeper) {
	t.Helper()
	m, d := newMachine(), &disk{bomb: &bomb{}}
	k := wake(t, m, d)
	newest := route("10.77.9.0/24")
	if _, err := k.apply(scope, []change.Change{older, newest}); err != nil {
		t.Fatal(err)
	}
	m.deny[newest.Target()] = errors.New("device is busy")
	if report, err := k.restore(scope); err != nil || len(report.Failed) != 1 || len(report.Undone) != 1 {
		t.Fatalf("report %+v, %v", report, err)
	}
	return m, d, k
}

// While an undo keeps failing, what is undone stays so: its owner may have changed it.
func TestWhatIsUndoneIsItsOwners(t *testing.T) {
	m, d, k := stuck(t, ScopeRun, linkUp())
	for _, n := range halves(linkUp()) {
		m.state[n] = "the owner's"
	}
	k.restoreIf(func() bool { return true }) // as nobody came for half an hour
	k = wake(t, m, d)
	if report, err := k.restore(""); err != nil || len(report.Failed) != 1 || len(report.Undone) != 0 {
		t.Errorf("report %+v, %v", report, err)
	}
	for _, n := range halves(linkUp()) {
		if m.state[n] != "the owner's" {
			t.Errorf("%s is %q", n, m.state[n])
		}
	}
}

// lentMachine has an interface that its owner gets back up, and the undo of whose radio sets it down and then fails.
type lentMachine struct {
	*machine
	up bool
}

func (l *lentMachine) Revert(u change.Undo) (string, error) {
	note, err := l.machine.Revert(u)
	switch recall(u).Target {
	case lent().Target():
		l.up = true
	case linkUp().Target():
		l.up, err = false, errors.New("device is busy")
	}
	return note, err
}

func lent() change.Aside { return change.Aside{Interface: "wlan0"} }

// What an undo that fails again does on its way does not undo the older one, by which the owner has his interface back.
func TestAnUndoThatFailsTwiceIsNotTheLast(t *testing.T) {
	m, d := newMachine(), &disk{bomb: &bomb{}}
	k := wake(t, m, d)
	if _, err := k.apply(ScopeRun, []change.Change{lent(), linkUp()}); err != nil {
		t.Fatal(err)
	}
	l := &lentMachine{machine: m}
	k.system = l
	report, err := k.restore("")
	if err != nil || !slices.Equal(report.Undone, []string{lent().String()}) || len(report.Failed) != 1 || !l.up {
		t.Errorf("report %+v, %v; the interface is up: %t", report, err, l.up)
	}
}

// Whoever comes to hold the interface in a run is set aside at the next arming, and has it back after all that was made
// on it.
func TestAManagerThatComesInARunHasItsInterfaceLast(t *testing.T) {
	m, d := newMachine(), &disk{bomb: &bomb{}}
	k := wake(t, m, d)
	all := []change.Change{lent(), linkUp()}
	if _, err := k.apply(ScopeRun, all); err != nil {
		t.Fatal(err)
	}
	for _, name := range halves(lent()) {
		m.state[name] = "the manager's"
	}
	m.gone = lent().Target() // void
	if made, err := k.apply(ScopeRun, all); err != nil || len(made) != 1 {
		t.Fatalf("made %v, %v", made, err)
	}
	m.gone = ""
	k = wake(t, m, d) // the journal knows it too
	report, err := k.restore("")
	if err != nil || !slices.Equal(report.Undone, []string{linkUp().String(), lent().String()}) {
		t.Errorf("report %+v, %v", report, err)
	}
	for _, name := range halves(lent()) {
		if m.state[name] != "the manager's" {
			t.Errorf("%s is %q", name, m.state[name])
		}
	}
}

// A trial says what it has made and undone, and not what an earlier one has.
func TestATrialUndoesWhatItMade(t *testing.T) {
	_, _, k := stuck(t, ScopeTrial, sysctl(sack, "0"))
	for range 2 {
		if made, err := k.apply(ScopeTrial, []change.Change{linkUp()}); err != nil || len(made) != 1 {
			t.Fatalf("made %v, %v", made, err)
		}
		report, err := k.restore(ScopeTrial)
		if err != nil || !slices.Equal(report.Undone, []string{linkUp().String()}) {
			t.Errorf("report %+v, %v", report, err)
		}
	}
	if made, err := k.apply(ScopeTrial, []change.Change{sysctl(sack, "0")}); err != nil || len(made) != 1 {
		t.Errorf("of a change that was undone: made %v, %v", made, err)
	}
}

// What was undone is made as a new change, over what is in force now, and is taken back when its call fails.
func TestAChangeThatWasUndoneIsMadeAsANewOne(t *testing.T) {
	const name = "sysctl net.ipv4.tcp_sack/a"
	m, _, k := stuck(t, ScopeTrial, sysctl(sack, "0"))
	m.spoil = 3
	if _, err := k.apply(ScopeTrial, []change.Change{sysctl(sack, "0"), linkUp()}); err == nil || m.state[name] != "1" {
		t.Errorf("after %v in force is %q", err, m.state[name])
	}
	m, _, k = stuck(t, ScopeTrial, sysctl(sack, "0"))
	for _, step := range []struct{ scope, value string }{{ScopeRun, "1"}, {ScopeTrial, "0"}} {
		if _, err := k.apply(step.scope, []change.Change{sysctl(sack, step.value)}); err != nil ||
			m.state[name] != "sysctl net.ipv4.tcp_sack="+step.value {
			t.Errorf("%s: in force is %q, %v", step.scope, m.state[name], err)
		}
	}
}
