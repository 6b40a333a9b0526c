package spool

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"fieldmesh.dev/fieldmesh/protocols/wire"
	"fieldmesh.dev/fieldmesh/test/testnet"
)

// telling is a spool whose damage is reported by an event of the attempt behind it.
func telling(opt Options, told *[]Damage) Options {
	opt.Damaged = func(d Damage) (wire.Header, wire.Body) {
		*told = append(*told, d)
		return wire.Header{TBootNs: 7, Run: d.Next.Run, Trial: d.Next.Trial, Attempt: d.Next.Attempt},
			&wire.Event{Level: "error", Text: d.String()}
	}
	return opt
}

// spoil damages lines of a segment.
func spoil(t *testing.T, path string, lines ...int) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	all := bytes.SplitAfter(text, []byte("\n"))
	for _, i := range lines {
		all[i][len(all[i])/2] ^= 1
	}
	if err := os.WriteFile(path, bytes.Join(all, nil), 0o600); err != nil {
		t.Fatal(err)
	}
}

// errorsIn lists the records of a spool that are errors, each as run, trial, attempt and text.
func errorsIn(t *testing.T, s *Spool) (out []string) {
	t.Helper()
	mustSync(t, s)
	lines, _, err := s.Read(0, 1000)
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range lines {
		var r wire.Record
		if err := json.Unmarshal(line, &r); err != nil {
			t.Fatal(err)
		}
		if e, is := r.Body.(*wire.Event); is && e.Level == "error" {
			out = append(out, fmt.Sprintf("%s %d.%d: %s", r.Run, r.Trial, r.Attempt, e.Text))
		}
	}
	return out
}

const lost = "are lost: the spool's lines that are damaged on the disk:"

// A node that starts after a fault of its disk records what it has lost, once for each attempt.
func TestDamageThatOpenFindsIsRecorded(t *testing.T) {
	dir := t.TempDir()
	s := mustOpen(t, dir, noFloor)
	appendOf(t, s, "r", 1, 4)
	appendOf(t, s, "r", 2, 4)
	path := s.segments[0].path
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	spoil(t, path, 0, 2, 5)
	var told []Damage
	s = mustOpen(t, dir, telling(noFloor, &told))
	want := []string{"r 1.1: records after 0 and before 4 " + lost + " 2",
		"r 2.2: records after 5 and before 7 " + lost + " 1"}
	if got := errorsIn(t, s); !slices.Equal(got, want) || len(told) != 2 {
		t.Errorf("recorded is\n%s\nwant\n%s\nwas asked for %d records", strings.Join(got, "\n"),
			strings.Join(want, "\n"), len(told))
	}
	for range 2 { // starts without a controller
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		s = mustOpen(t, dir, telling(noFloor, &told))
		seqs(t, s, 0, 1000)
		if got := errorsIn(t, s); !slices.Equal(got, want) || len(told) != 2 {
			t.Errorf("after another start recorded is\n%s\nwas asked for %d records", strings.Join(got, "\n"),
				len(told))
		}
		if g := s.segments[0]; g.told == nil || g.told.Seq != 10 {
			t.Errorf("the damaged segment is kept until %+v is confirmed, want record 10", g.told)
		}
	}
	if err := s.Confirm(wire.Confirmation{Run: "r", Seq: s.Position().Seq, Over: true}); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	told = nil
	s = mustOpen(t, dir, telling(noFloor, &told))
	if seq := s.Position().Seq; len(told) != 0 || seq != 10 || len(s.Status().UnconfirmedRuns) > 0 {
		t.Errorf("after everything is confirmed %d are reported; the newest record is %d", len(told), seq)
	}
}

// Damage in an older segment is found by who reads it, and keeps the segment until that one has the record of it.
func TestDamageThatIsReadKeepsItsSegmentUntilItIsTold(t *testing.T) {
	dir := t.TempDir()
	var told []Damage
	s := mustOpen(t, dir, telling(greedy, &told))
	appendOf(t, s, "r", 1, 12)
	newest := s.Position().Seq
	first, second := s.segments[1], s.segments[2]
	spoil(t, first.path, int(second.first-first.first)-1)
	wantRange(t, seqs(t, s, 0, 3)[:second.first-2], 1, second.first-2)
	seqs(t, s, 0, 1000)
	want := []string{fmt.Sprintf("r 1.1: records after %d and before %d %s 1", second.first-2, second.first, lost)}
	if got := errorsIn(t, s); !slices.Equal(got, want) || len(told) != 1 {
		t.Fatalf("recorded is %q, want %q; was asked for %d records", got, want, len(told))
	}
	if err := confirm(s, "r", newest); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(first.path); err != nil || s.segments[0] != first {
		t.Errorf("the damaged segment is gone before its damage is known: %v; the first is %+v", err, s.segments[0])
	}
	if err := confirm(s, "r", s.Position().Seq); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(first.path); err == nil {
		t.Error("the damaged segment stays after its damage is known")
	}
}

// A full spool takes no record of damage; it is told when the damage is read again.
func TestDamageIsToldWhenThereIsRoom(t *testing.T) {
	var told []Damage
	s := mustOpen(t, t.TempDir(), telling(greedy, &told))
	appendOf(t, s, "r", 1, 12)
	spoil(t, s.segments[1].path, 0)
	s.opt.QuotaBytes = 1
	seqs(t, s, 0, 1000)
	s.opt.QuotaBytes = greedy.QuotaBytes
	if seqs(t, s, 0, 1000); len(told) != 2 {
		t.Fatalf("was asked for %d records", len(told))
	}
	if got := errorsIn(t, s); len(got) != 1 {
		t.Errorf("recorded is %q", got)
	}
}

// The record of damage is signed at once: of an attempt that is over nothing else comes that would have it signed.
func TestTheRecordOfDamageIsSigned(t *testing.T) {
	dir := t.TempDir()
	s := mustOpen(t, dir, noFloor)
	appendN(t, s, 3)
	path := s.segments[0].path
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	spoil(t, path, 0)
	var told []Damage
	opt := telling(noFloor, &told)
	opt.Sign = testnet.Identity(t, "n1").Sign
	s = mustOpen(t, dir, opt)
	mustSync(t, s)
	lines, _, err := s.Read(3, 10)
	if err != nil || len(lines) != 2 {
		t.Fatalf("%d records, %v", len(lines), err)
	}
	var r wire.Record
	if err := json.Unmarshal(lines[1], &r); err != nil {
		t.Fatal(err)
	}
	if b, is := r.Body.(*wire.Signature); !is || b.FirstSeq != 4 || b.LastSeq != 4 || r.Trial != 1 {
		t.Errorf("after the record of damage comes %+v %+v", r.Header, r.Body)
	}
}
