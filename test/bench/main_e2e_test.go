//go:build e2e

package bench

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"text/tabwriter"

	"fieldmesh.dev/fieldmesh/test/testnet"
)

// programs is the folder of the built programs; other users can enter it.
var programs string

// row is one goal's line of the table.
type row struct {
	goal      string // what is measured
	measured  string
	reference string // what stands beside it
	figure    string // what is judged
	limit     string
	met       bool
}

var (
	table []row
	notes []string // what the figures mean exactly
)

func TestMain(m *testing.M) {
	if path := os.Getenv(samplerVariable); path != "" {
		if err := sampleUntilTold(path); err != nil {
			fmt.Fprintln(os.Stderr, "sampler:", err)
			os.Exit(1)
		}
		return
	}
	if address := os.Getenv(strangersVariable); address != "" {
		if err := strangersUntilTold(address); err != nil {
			fmt.Fprintln(os.Stderr, "strangers:", err)
			os.Exit(1)
		}
		return
	}
	code, err := withPrograms(m.Run)
	if err == nil {
		err = printTable()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		code = 1
	}
	os.Exit(code)
}

func withPrograms(run func() int) (code int, err error) {
	if os.Geteuid() != 0 || os.Getenv("FIELDMESH_BENCH") == "" {
		return run(), nil // every bench skips itself, saying so
	}
	if programs, err = testnet.OpenFolder(); err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(programs)) }()
	// As they are shipped: see the Makefile.
	if err := testnet.BuildPrograms(programs, "-trimpath", "-tags", "nethttpomithttp2", "-ldflags",
		"-s -w -buildid="); err != nil {
		return 0, err
	}
	return run(), nil
}

// begin skips a bench unless benches are asked for.
func begin(t *testing.T) {
	t.Helper()
	testnet.NeedSet(t, "FIELDMESH_BENCH", "a benchmark")
}

func report(r row, note string, args ...any) {
	table = append(table, r)
	notes = append(notes, r.goal+": "+fmt.Sprintf(note, args...))
}

func printTable() error {
	if len(table) == 0 {
		return nil
	}
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	lines := []string{"", "GOAL\tMEASURED\tBESIDE IT\tFIGURE\tWANTED\t"}
	for _, r := range table {
		lines = append(lines, strings.Join([]string{r.goal, r.measured, r.reference, r.figure, r.limit,
			map[bool]string{true: "met", false: "MISSED"}[r.met]}, "\t"))
	}
	if _, err := fmt.Fprintln(w, strings.Join(lines, "\n")); err != nil {
		return err
	}
	if err := w.Flush(); err != nil {
		return err
	}
	_, err := fmt.Fprintf(os.Stdout, "\n%s\n", strings.Join(notes, "\n"))
	return err
}

// median and the 95th percentile by nearest rank.
func median(v []float64) float64 { return rank(v, 0.5) }

func rank(v []float64, share float64) float64 {
	sorted := slices.Sorted(slices.Values(v))
	return sorted[min(int(share*float64(len(sorted))), len(sorted)-1)]
}
