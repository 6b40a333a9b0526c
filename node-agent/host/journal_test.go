package host

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"syscall"
	"testing"

	"fieldmesh.dev/fieldmesh/node-agent/host/change"
	"fieldmesh.dev/fieldmesh/protocols/wire"
	"fieldmesh.dev/fieldmesh/test/fuzz"
	"fieldmesh.dev/fieldmesh/test/testnet"
)

func line(t testing.TB, e entry) []byte {
	t.Helper()
	l, err := encodeEntry(e)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func prepared(id uint64, c change.Change) entry {
	u := blankUndo(c)
	*u.Place() = change.Netns{Boot: "b", Namespace: 1, Cookie: 2}
	return entry{ID: id, State: statePrepared, Scope: ScopeRun, Change: change.Boxed{Change: c}, Undo: u}
}

func TestEveryChangeSurvivesTheJournal(t *testing.T) {
	link, daemon := linkUp(), routingDaemon()
	link.MTUBytes, daemon.HelloS = ptr(1400), ptr(0.5)
	all := []change.Change{link, address("fd77::1/64"), route("10.77.9.0/24"), sysctl(sack, "0"), daemon}
	var data []byte
	for i, c := range all {
		data = append(data, line(t, prepared(uint64(i+1), c))...)
	}
	r := replay(append(data, line(t, entry{ID: 3, State: stateUndone})...))
	if len(r.pending) != 4 || len(r.damage) != 0 || r.lastID != 5 {
		t.Fatalf("replayed %+v", r)
	}
	for i, want := range []int{0, 1, 3, 4} {
		if !reflect.DeepEqual(r.pending[i].Change.Change, all[want]) {
			t.Errorf("entry %d is %+v, want %+v", i, r.pending[i].Change, all[want])
		}
	}
}

func TestADamagedLineLosesNoOther(t *testing.T) {
	first, second, third := line(t, prepared(1, linkUp())), line(t, prepared(2, sysctl(sack, "0"))),
		line(t, prepared(3, route("10.77.9.0/24")))
	second[len(second)/2] ^= 1
	dir := t.TempDir()
	whole := bytes.Join([][]byte{first, second, third}, nil)
	if err := os.WriteFile(filepath.Join(dir, "journal"), append(bytes.Clone(whole), "0123abcd {\"id\":4"...),
		0o600); err != nil {
		t.Fatal(err)
	}
	j, r, err := openJournal(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := j.close(); err != nil {
			t.Error(err)
		}
	}()
	if len(r.pending) != 2 || len(r.damage) != 1 || !strings.Contains(r.damage[0], "journal line 2") {
		t.Errorf("replayed %+v", r)
	}
	if got, err := os.ReadFile(filepath.Join(dir, "journal")); err != nil || !bytes.Equal(got, whole) {
		t.Errorf("torn tail is not cut: %q, %v", got, err)
	}
}

// What cannot be read is not undone, and whoever looks is told so, in each life, though the journal is emptied. Each
// damaged journal is kept.
func TestDamageIsToldAndKept(t *testing.T) {
	cfg := testConfig(t)
	if err := os.MkdirAll(cfg.StateDir, 0o700); err != nil {
		t.Fatal(err)
	}
	var damaged [][]byte
	for id := range uint64(2) {
		lost := line(t, prepared(2*id+1, linkUp()))
		lost[len(lost)/2] ^= 1
		damaged = append(damaged, append(lost, line(t, entry{ID: 2*id + 2, State: stateUndone})...))
		if err := os.WriteFile(filepath.Join(cfg.StateDir, "journal"), damaged[id], 0o600); err != nil {
			t.Fatal(err)
		}
		var log testnet.Output
		cfg.Log = slog.New(slog.NewTextHandler(&log, nil))
		c, stop := begin(t, cfg, newMachine())
		for range 2 {
			if s, err := c.Status(t.Context()); err != nil || len(s.Failed) != int(id)+1 ||
				!strings.Contains(s.Failed[0], "journal line 1: checksum does not hold; undo by hand") {
				t.Errorf("status %+v, %v", s, err)
			}
			if r, err := c.Restore(t.Context(), ScopeTrial); err != nil || len(r.Failed) > 0 {
				t.Errorf("restored a trial %+v, %v", r, err)
			}
			if r, err := c.Restore(t.Context(), ""); err != nil || len(r.Failed) != int(id)+1 {
				t.Errorf("restored %+v, %v", r, err)
			}
		}
		if err := stop(); err == nil || !strings.Contains(err.Error(), "journal line 1") {
			t.Errorf("it ended with %v", err)
		}
		if !strings.Contains(log.String(), "level=ERROR msg=\"a change may not be undone") {
			t.Errorf("the log says\n%s", log.String())
		}
	}
	kept, err := filepath.Glob(filepath.Join(cfg.StateDir, "journal.damaged-*"))
	if err != nil || len(kept) != len(damaged) {
		t.Fatalf("kept are %q, %v", kept, err)
	}
	for _, path := range kept {
		data, err := os.ReadFile(path)
		if err != nil || !slices.ContainsFunc(damaged, func(d []byte) bool { return bytes.Equal(d, data) }) {
			t.Errorf("%s holds %q, %v", path, data, err)
		}
	}
}

// damagedJournal writes a journal to a state directory: what it can undo, and a line before it that is damaged.
func damagedJournal(t *testing.T, cfg Config, m *machine, c change.Change) (data []byte) {
	t.Helper()
	d := &disk{bomb: &bomb{}}
	if _, err := wake(t, m, d).apply(ScopeRun, []change.Change{c}); err != nil {
		t.Fatal(err)
	}
	lost := line(t, prepared(9, linkUp()))
	lost[len(lost)/2] ^= 1
	data = append(lost, d.data...)
	if err := errors.Join(os.MkdirAll(cfg.StateDir, 0o700),
		os.WriteFile(filepath.Join(cfg.StateDir, "journal"), data, 0o600)); err != nil {
		t.Fatal(err)
	}
	return data
}

func byHandAll(k *keeper) (wire.RestoreReport, error) { return k.restoreByHand("") }

// Of a damaged journal that cannot be copied, as on a full disk, all that can be read is undone; it stays as it is, and
// takes no changes.
func TestADamagedJournalThatCannotBeKeptIsUndone(t *testing.T) {
	m, cfg := newMachine(), testConfig(t)
	before := m.snapshot()
	data := damagedJournal(t, cfg, m, sysctl(sack, "0"))
	path := filepath.Join(cfg.StateDir, "journal")
	if err := os.Mkdir(fmt.Sprintf("%s.damaged-%08x", path, crc32.Checksum(data, castagnoli())), 0o700); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if r, err := offline(cfg, m, byHandAll); err != nil || len(r.Undone) != 1 || len(r.Failed) != 1 ||
			!strings.Contains(r.Failed[0], path+" says") || len(r.Unrecorded) == 0 {
			t.Fatalf("restored %+v, %v", r, err)
		}
		if !maps.Equal(m.snapshot(), before) {
			t.Errorf("machine is %v, was %v", m.snapshot(), before)
		}
	}
	c, stop := begin(t, cfg, m)
	if _, err := c.Apply(t.Context(), ScopeRun, []change.Change{linkUp()}); err == nil ||
		!strings.Contains(err.Error(), "is a directory; make "+path+" writable") {
		t.Errorf("a change without its undo on disk: %v", err)
	}
	if err := stop(); err == nil || !strings.Contains(err.Error(), "journal line 1") {
		t.Errorf("it ended with %v", err)
	}
	if now, err := os.ReadFile(path); err != nil || !bytes.Equal(now, data) {
		t.Errorf("the journal is %q, %v", now, err)
	}
}

// stiff is a journal's file that cannot be cut.
type stiff struct {
	*bytes.Reader
	*disk
}

func (stiff) Truncate(int64) error { return syscall.EIO }

// A torn tail that cannot be cut keeps nothing in force, and nothing is written after it.
func TestATornTailThatCannotBeCut(t *testing.T) {
	m, d := newMachine(), &disk{bomb: &bomb{}}
	before := m.snapshot()
	if _, err := wake(t, m, d).apply(ScopeRun, []change.Change{sysctl(sack, "0")}); err != nil {
		t.Fatal(err)
	}
	d.data = append(d.data, "0123abcd {"...)
	was := bytes.Clone(d.data)
	j, r, err := readJournal(stiff{bytes.NewReader(was), d}, filepath.Join(t.TempDir(), "journal"), false)
	if err != nil {
		t.Fatal(err)
	}
	k := newKeeper(m, j, r, testPolicy(), quiet())
	if report, err := k.restore(""); err != nil || len(report.Undone) != 1 || len(report.Unrecorded) != 1 {
		t.Errorf("restored %+v, %v", report, err)
	}
	if _, err := k.apply(ScopeRun, []change.Change{linkUp()}); !errors.Is(err, syscall.EIO) {
		t.Errorf("a change without its undo on disk: %v", err)
	}
	if !maps.Equal(m.snapshot(), before) || !bytes.Equal(d.data, was) {
		t.Errorf("machine is %v, was %v; the journal is %q", m.snapshot(), before, d.data)
	}
}

// Nobody may see what a script restores, as at a phone's boot, nor a life of the agent that ends before it answers: the
// next tells all the same what could not be read, and each does until the copy is deleted.
func TestDamageIsToldUntilItsCopyIsDeleted(t *testing.T) {
	m, cfg := newMachine(), testConfig(t)
	before := m.snapshot()
	damagedJournal(t, cfg, m, sysctl(sack, "0"))
	j, _, err := openJournal(cfg.StateDir)
	if err == nil { // it is the same damage in a journal that has grown
		err = errors.Join(j.append(entry{ID: 99, State: stateUndone}), j.close())
	}
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		r, err := offline(cfg, m, func(k *keeper) (wire.RestoreReport, error) { return k.restore("") })
		if err != nil || len(r.Failed) != 1 {
			t.Errorf("restored %+v, %v", r, err)
		}
	}
	if !maps.Equal(m.snapshot(), before) {
		t.Errorf("machine is %v, was %v", m.snapshot(), before)
	}
	untrusted := filepath.Join(t.TempDir(), "babeld")
	if err := errors.Join(os.WriteFile(untrusted, nil, 0o600), os.Chmod(untrusted, 0o777)); err != nil {
		t.Fatal(err)
	}
	cut := cfg
	cut.Binaries = map[string]string{"babeld": untrusted}
	if err := serve(t.Context(), cut, m); err == nil || !strings.Contains(err.Error(), "check binary of babeld") {
		t.Fatalf("with an untrusted babeld it ended with %v", err)
	}
	for range 2 {
		c, stop := begin(t, cfg, m)
		if s, err := c.Status(t.Context()); err != nil || len(s.Failed) != 1 ||
			!strings.Contains(s.Failed[0], "journal line 1: checksum does not hold; undo by hand") {
			t.Errorf("status %+v, %v", s, err)
		}
		if err := stop(); err == nil || !strings.Contains(err.Error(), "journal line 1") {
			t.Errorf("it ended with %v", err)
		}
	}
	kept, err := filepath.Glob(filepath.Join(cfg.StateDir, "journal.damaged-*"))
	if err != nil || len(kept) != 1 {
		t.Fatalf("kept are %q, %v", kept, err)
	}
	if err := os.Remove(kept[0]); err != nil {
		t.Fatal(err)
	}
	if r, err := offline(cfg, m, byHandAll); err != nil || len(r.Failed) != 0 {
		t.Errorf("with its copy deleted, it is told again: %+v, %v", r, err)
	}
}

// Whoever deletes a copy, and has everything put back, hears no more about its damage from the host process that runs.
func TestTheNextRestoreForgetsADeletedCopy(t *testing.T) {
	m, cfg := newMachine(), testConfig(t)
	damagedJournal(t, cfg, m, sysctl(sack, "0"))
	c, stop := begin(t, cfg, m)
	if s, err := c.Status(t.Context()); err != nil || len(s.Failed) != 1 || s.Damaged != 1 ||
		!strings.HasSuffix(s.Failed[0], "delete this file, then run fieldmesh-agent restore") {
		t.Errorf("status %+v, %v", s, err)
	}
	if r, err := c.Restore(t.Context(), ""); err != nil || len(r.Failed) != 1 || r.Damaged != 1 {
		t.Errorf("restored %+v, %v", r, err)
	}
	kept, err := filepath.Glob(filepath.Join(cfg.StateDir, "journal.damaged-*"))
	if err != nil || len(kept) != 1 {
		t.Fatalf("kept are %q, %v", kept, err)
	}
	if err := os.Remove(kept[0]); err != nil {
		t.Fatal(err)
	}
	if r, err := c.Restore(t.Context(), ""); err != nil || len(r.Failed) != 0 || r.Damaged != 0 {
		t.Errorf("with its copy deleted: restored %+v, %v", r, err)
	}
	if s, err := c.Status(t.Context()); err != nil || len(s.Failed) != 0 || s.Damaged != 0 {
		t.Errorf("with its copy deleted: status %+v, %v", s, err)
	}
	if err := stop(); err != nil {
		t.Errorf("with its copy deleted it ended with %v", err)
	}
}

func TestAnEntryOfALaterVersionIsReported(t *testing.T) {
	body, err := json.Marshal(map[string]any{"id": 7, "state": "prepared", "scope": "run",
		"change": map[string]any{"radio": 1}, "undo": map[string]any{}})
	if err != nil {
		t.Fatal(err)
	}
	r := replay(seal(body))
	if len(r.pending) != 0 || len(r.damage) != 1 || !strings.Contains(r.damage[0], "radio") {
		t.Errorf("replayed %+v", r)
	}
}

// TestAnAgentBeforeThisOneIsUndone: the samples have every kind of change, and
// every part of an undo, in the form in which agents are in the field. Their
// journal is read whole, written again as it was, and undone: in another boot,
// by what outlives one.
func TestAnAgentBeforeThisOneIsUndone(t *testing.T) {
	data := sampleJournal(t)
	if first := "f528ac2b {\"id\":1,\"state\":\"prepared\","; !bytes.HasPrefix(data, []byte(first)) {
		t.Errorf("a line begins with %.40s, and began with %s", data, first)
	}
	r := replay(data)
	if len(r.pending) != bytes.Count(data, []byte("\n")) || len(r.damage) > 0 {
		t.Fatalf("%d of %d entries, damage %q", len(r.pending), bytes.Count(data, []byte("\n")), r.damage)
	}
	var again []byte
	for _, e := range r.pending {
		again = append(again, line(t, e)...)
	}
	if !bytes.Equal(again, data) {
		t.Errorf("written again it is\n%s\nand was\n%s", again, data)
	}
	d := &disk{data: data, bomb: &bomb{}}
	later, err := change.NewKernel(t.TempDir(), nil, 0, "", quiet())
	if err != nil {
		t.Fatal(err)
	}
	k := newKeeper(later, &journal{file: d, size: r.length}, r, change.Policy{}, quiet())
	report, err := k.restore("")
	if err != nil || len(report.Failed) > 0 || len(d.data) > 0 {
		t.Errorf("failed %q, %v; %d bytes are left of the journal", report.Failed, err, len(d.data))
	}
	slices.Reverse(report.Undone)
	var want []string
	for _, s := range samples(t) {
		want = append(want, s.Undone)
	}
	if !slices.Equal(report.Undone, want) {
		t.Errorf("undone\n%s\nwant\n%s", strings.Join(report.Undone, "\n"), strings.Join(want, "\n"))
	}
}

// FuzzReplay: whatever is in the file, replaying it neither panics nor invents
// a change; and what was whole before a torn tail stays.
func FuzzReplay(f *testing.F) {
	good := append(line(f, prepared(1, linkUp())), line(f, prepared(2, routingDaemon()))...)
	f.Add(good)
	f.Add(good[:len(good)-7])
	f.Add(append(bytes.Clone(good), line(f, entry{ID: 2, State: stateUndone})...))
	f.Add([]byte("00000000 {}\n"))
	fuzz.Run(f, func(t *testing.T, data []byte) {
		r := replay(data)
		if r.length > int64(len(data)) {
			t.Fatalf("sound part of %d bytes in a journal of %d", r.length, len(data))
		}
		for _, e := range r.pending {
			if e.Change.Change == nil || e.Undo == nil {
				t.Fatalf("entry %d without change or undo", e.ID)
			}
		}
		if again := replay(data[:r.length]); len(again.pending) != len(r.pending) {
			t.Fatalf("%d pending, after the tail was cut %d", len(r.pending), len(again.pending))
		}
		if after := replay(append(bytes.Clone(good), data...)); after.length < int64(len(good)) {
			t.Fatalf("only %d sound bytes of %d before the tail", after.length, len(good))
		}
	})
}
