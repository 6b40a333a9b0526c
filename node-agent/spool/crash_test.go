package spool

import (
	"bufio"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strconv"
	"testing"
	"time"

	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// crashDir makes a copy of the test binary the writer that is killed.
const crashDir = "FIELDMESH_SPOOL_CRASH_DIR"

func TestMain(m *testing.M) {
	if dir := os.Getenv(crashDir); dir != "" {
		if err := writeForEver(dir); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
	os.Exit(m.Run())
}

// writeForEver appends, and prints each position that is reported as durable.
func writeForEver(dir string) error {
	s, err := Open(dir, "n1", Options{SegmentBytes: 20_000, MinFreeBytes: -1, SyncEvery: 2 * time.Millisecond})
	if err != nil {
		return err
	}
	go func() {
		for seq := uint64(0); s.Wait(context.Background(), seq) == nil; {
			seq = s.Position().Seq
			fmt.Println(seq)
		}
	}()
	for i := 0; ; i++ {
		if _, err := s.Append(wire.Header{}, event(i)); err != nil {
			return err
		}
		if i%50 == 0 {
			time.Sleep(time.Millisecond)
		}
	}
}

func TestKilledWriterLosesNothingDurable(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	dir := t.TempDir()
	for round := range 6 {
		reported := killWriter(t, dir, 20+rng.IntN(150))
		s, err := Open(dir, "n1", noFloor)
		if err != nil {
			t.Fatal(err)
		}
		got := seqs(t, s, 0, 1000)
		if uint64(len(got)) < reported {
			t.Fatalf("round %d: %d records are left, %d were reported as durable", round, len(got), reported)
		}
		wantRange(t, got, 1, uint64(len(got)))
		t.Logf("round %d: %d reported, %d there, %+v", round, reported, len(got), s.Recovered())
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// killWriter runs a writer, kills it some time after its first report, and
// gives the newest seq that it reported.
func killWriter(t *testing.T, dir string, afterMs int) (reported uint64) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^$")
	cmd.Env = append(os.Environ(), crashDir+"="+dir)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var kill *time.Timer
	for lines := bufio.NewScanner(out); lines.Scan(); {
		if kill == nil {
			kill = time.AfterFunc(time.Duration(afterMs)*time.Millisecond, func() { _ = cmd.Process.Kill() })
		}
		if reported, err = strconv.ParseUint(lines.Text(), 10, 64); err != nil {
			t.Fatalf("writer said %q", lines.Text())
		}
	}
	if err := cmd.Wait(); err == nil || kill == nil {
		t.Fatalf("the writer ended by itself: %v", err)
	}
	return reported
}
