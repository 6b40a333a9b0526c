package spool

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"slices"
	"testing"

	"fieldmesh.dev/fieldmesh/internal/keys"
	"fieldmesh.dev/fieldmesh/protocols/wire"
	"fieldmesh.dev/fieldmesh/test/testnet"
)

// last is an event that ends what it belongs to.
func last(b wire.Body) bool {
	e, ok := b.(*wire.Event)
	return ok && e.Level == "last"
}

// add appends a record at a moment of the boot clock.
func add(t *testing.T, s *Spool, atNs int64, run string, trial int, level string) {
	t.Helper()
	h := wire.Header{TBootNs: atNs, Run: run, Trial: trial, Attempt: min(trial, 1)}
	if _, err := s.Append(h, &wire.Event{Level: level}); err != nil {
		t.Fatal(err)
	}
}

// vouched checks every signature of a spool, and returns which records each is on.
func vouched(t *testing.T, s *Spool, pin string) (on [][]uint64, after []uint64) {
	t.Helper()
	mustSync(t, s)
	lines, _, err := s.Read(0, 1000)
	if err != nil {
		t.Fatal(err)
	}
	open := map[subject][]wire.Record{}
	sums := map[subject][]byte{}
	for _, line := range lines {
		var r wire.Record
		if err := json.Unmarshal(line, &r); err != nil {
			t.Fatal(err)
		}
		k := subject{r.Run, wire.TrialKey{Trial: r.Trial, Attempt: r.Attempt}}
		b, ok := r.Body.(*wire.Signature)
		if !ok {
			sum := sha256.Sum256(line)
			open[k], sums[k] = append(open[k], r), append(sums[k], sum[:]...)
			continue
		}
		all := sha256.Sum256(sums[k])
		got, err := keys.Signed{Key: b.Key, Signature: b.Signature}.Check(b.Message(r.Header))
		if err != nil || got != pin || b.SHA256 != hex.EncodeToString(all[:]) || b.Records != uint64(len(open[k])) ||
			b.FirstSeq != open[k][0].Seq || b.LastSeq != open[k][len(open[k])-1].Seq || r.Run != open[k][0].Run {
			t.Errorf("signature %d is %+v, by %s, %v; on %d records, sum %x", r.Seq, b, got, err, len(open[k]), all)
		}
		var seqs []uint64
		for _, one := range open[k] {
			seqs = append(seqs, one.Seq)
		}
		on, after = append(on, seqs), append(after, b.AfterSeq)
		delete(open, k)
		delete(sums, k)
	}
	return on, after
}

func TestRecordsAreSigned(t *testing.T) {
	id := testnet.Identity(t, "n1")
	dir := t.TempDir()
	opt := Options{MinFreeBytes: -1, Sign: id.Sign, Last: last}
	s := mustOpen(t, dir, opt)
	add(t, s, 0, "r", 0, "info")      // 1
	add(t, s, 1, "r", 1, "info")      // 2
	add(t, s, 2, "r", 1, "last")      // 3, signed by 4
	add(t, s, 3, "r", 2, "info")      // 5
	add(t, s, 4, "r", 0, "info")      // 6
	add(t, s, 10e9, "r", 0, "info")   // 7, signed by 8: ten seconds after 1
	add(t, s, 11e9, "r", 2, "last")   // 9, signed by 10: eleven seconds after 5
	add(t, s, 12e9, "", 0, "info")    // 11
	add(t, s, 12e9, "r2", 0, "info")  // 12
	if err := s.Close(); err != nil { // 13 and 14
		t.Fatal(err)
	}
	s = mustOpen(t, dir, opt)
	add(t, s, 13e9, "r2", 0, "last") // 15, signed by 16
	on, after := vouched(t, s, id.Pin)
	want := [][]uint64{{2, 3}, {1, 6, 7}, {5, 9}, {11}, {12}, {15}}
	wantAfter := []uint64{0, 4, 8, 0, 0, 0}
	if len(on) != len(want) {
		t.Fatalf("signed: %v, want %v", on, want)
	}
	for i := range want {
		if testnet.JSON(t, on[i]) != testnet.JSON(t, want[i]) || after[i] != wantAfter[i] {
			t.Errorf("signature %d is on %v after %d, want %v after %d", i, on[i], after[i], want[i], wantAfter[i])
		}
	}
}

// What cannot be signed is a record all the same, and is signed with what follows.
func TestRecordsThatCannotBeSignedAreTaken(t *testing.T) {
	id := testnet.Identity(t, "n1")
	fails := true
	s := mustOpen(t, t.TempDir(), Options{MinFreeBytes: -1, Last: last, Sign: func(m []byte) (keys.Signed, error) {
		if fails {
			return keys.Signed{}, errors.New("no")
		}
		return id.Sign(m)
	}})
	add(t, s, 0, "r", 1, "last")
	if on, _ := vouched(t, s, id.Pin); len(on) != 0 {
		t.Errorf("signed %v", on)
	}
	fails = false
	add(t, s, 1, "r", 1, "last")
	if on, _ := vouched(t, s, id.Pin); len(on) != 1 || len(on[0]) != 2 {
		t.Errorf("signed %v, want both records", on)
	}
}

// A run of a name that a former run had, whose archive was deleted, has a chain of
// its own.
func TestARunOfAFormersNameHasItsOwnChain(t *testing.T) {
	id := testnet.Identity(t, "n1")
	s := mustOpen(t, t.TempDir(), Options{MinFreeBytes: -1, Sign: id.Sign, Last: last})
	add(t, s, 1, "r1", 1, "info")
	add(t, s, 2, "r1", 1, "last")
	s.Begin("r1")
	add(t, s, 3, "r1", 1, "info")
	add(t, s, 4, "r1", 1, "last")
	if _, after := vouched(t, s, id.Pin); !slices.Equal(after, []uint64{0, 0}) {
		t.Errorf("the signatures follow %v, want none a signature of the former run", after)
	}
}
