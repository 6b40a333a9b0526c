package host

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

func line(t testing.TB, e entry) []byte {
	t.Helper()
	l, err := encodeEntry(e)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func prepared(id uint64, c Change) entry {
	return entry{ID: id, State: statePrepared, Scope: ScopeRun, Change: &c, Undo: &undo{
		World:   world{Boot: "b", Namespace: 1, Cookie: 2},
		Sysctls: []setting{{Parts: []string{"net", "ipv4", "tcp_sack"}, Value: "1"}},
	}}
}

func TestEveryChangeSurvivesTheJournal(t *testing.T) {
	mtu, hello := 1400, 0.5
	all := []Change{linkUp(), address("fd77::1/64"), route("10.77.9.0/24"), sysctl(sack, "0"), routingDaemon()}
	all[0].Link.MTUBytes = &mtu
	all[4].Daemon.HelloS = &hello
	var data []byte
	for i, c := range all {
		data = append(data, line(t, prepared(uint64(i+1), c))...)
	}
	r := replay(append(data, line(t, entry{ID: 3, State: stateUndone})...))
	if len(r.pending) != 4 || len(r.damage) != 0 || r.lastID != 5 {
		t.Fatalf("replayed %+v", r)
	}
	for i, want := range []int{0, 1, 3, 4} {
		if !reflect.DeepEqual(*r.pending[i].Change, all[want]) {
			t.Errorf("entry %d is %+v, want %+v", i, r.pending[i].Change, all[want])
		}
	}
}

func TestADamagedLineLosesNoOther(t *testing.T) {
	first, second, third := line(t, prepared(1, linkUp())), line(t, prepared(2, sysctl(sack, "0"))), line(t, prepared(3, route("10.77.9.0/24")))
	second[len(second)/2] ^= 1
	dir := t.TempDir()
	whole := bytes.Join([][]byte{first, second, third}, nil)
	if err := os.WriteFile(filepath.Join(dir, "journal"), append(bytes.Clone(whole), "0123abcd {\"id\":4"...), 0o600); err != nil {
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
	if _, err := os.Stat(filepath.Join(dir, "journal.damaged")); err != nil {
		t.Errorf("no copy of the damaged journal: %v", err)
	}
}

func TestAnEntryOfALaterVersionIsReported(t *testing.T) {
	body, err := json.Marshal(map[string]any{"id": 7, "state": "prepared", "scope": "run", "change": map[string]any{"radio": 1}, "undo": map[string]any{}})
	if err != nil {
		t.Fatal(err)
	}
	r := replay(seal(body))
	if len(r.pending) != 0 || len(r.damage) != 1 || !strings.Contains(r.damage[0], "radio") {
		t.Errorf("replayed %+v", r)
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
	f.Fuzz(func(t *testing.T, data []byte) {
		r := replay(data)
		if r.length > int64(len(data)) {
			t.Fatalf("sound part of %d bytes in a journal of %d", r.length, len(data))
		}
		for _, e := range r.pending {
			if e.Change == nil || e.Undo == nil {
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
