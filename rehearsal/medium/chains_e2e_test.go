//go:build e2e

package medium

import (
	"encoding/csv"
	"math"
	"os"
	"slices"
	"strconv"
	"testing"
)

// keepChains holds the file's figures of a simulator to what it says now, or writes them.
func keepChains(t *testing.T, simulator string, now func(chainScenario) chainResult) {
	t.Helper()
	kept := map[chainScenario]chainResult{}
	if _, err := os.Stat(chainsFile); err == nil {
		kept = otherChains(t)
	}
	for _, s := range chainScenarios() {
		if s.simulator != simulator {
			continue
		}
		is := now(s)
		if *update {
			kept[s] = is
		} else if was := kept[s]; math.Abs(is.kbitS-was.kbitS) > 1e-4*was.kbitS ||
			math.Abs(is.delayUs-was.delayUs) > 1e-4*was.delayUs {
			t.Errorf("%+v: %+v, and %s has %+v", s, is, chainsFile, was)
		}
	}
	if !*update {
		return
	}
	rows := [][]string{{"simulator", "kind", "n", "pause_us", "retries", "hops", "kbit_s", "delay_us"}}
	for _, s := range chainScenarios() {
		row := []string{s.simulator, s.kind}
		for _, n := range []int{s.n, s.pauseUs, s.retries, s.hops} {
			row = append(row, strconv.Itoa(n))
		}
		r := kept[s]
		rows = append(rows, append(row, strconv.FormatFloat(r.kbitS, 'g', 7, 64),
			strconv.FormatFloat(r.delayUs, 'g', 7, 64)))
	}
	f, err := os.Create(chainsFile)
	if err != nil {
		t.Fatal(err)
	}
	w := csv.NewWriter(f)
	if err := w.WriteAll(slices.Clip(rows)); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
}
