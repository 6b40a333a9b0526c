//go:build e2e

package papers_test

import (
	"bufio"
	"bytes"
	"encoding/csv"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write data/p2_ns2.csv and p2_ns2_grid.csv")

// The paper's simulator gives the figures of data/p2_ns2.csv, to the digit: it has one
// seed.
func TestE2ENS2GivesItsFiguresAgain(t *testing.T) {
	if _, err := exec.LookPath("ns"); err != nil {
		t.Skip("needs ns-2: install Debian's package ns2")
	}
	const file = "data/p2_ns2.csv"
	trace := filepath.Join(t.TempDir(), "trace")
	var out bytes.Buffer
	w := csv.NewWriter(&out)
	write := func(line ...string) {
		if err := w.Write(line); err != nil {
			t.Fatal(err)
		}
	}
	write("rate_mbps", "spacing_m", "sense_m", "moves", "routing", "variant", "throughput_kbit_s", "delay_ms",
		"first_arrival_s")
	for _, where := range [][]string{
		{"1", "105", "550", "stand"}, {"2", "105", "550", "stand"}, {"11", "105", "550", "stand"},
		{"1", "180", "550", "stand"}, {"1", "105", "440", "stand"}, {"11", "180", "440", "stand"},
		{"1", "105", "550", "out300"}, {"1", "105", "550", "out400"}, {"1", "105", "550", "out500"},
		{"1", "105", "550", "home"},
	} {
		for _, routing := range []string{"DSDV", "DSR", "AODV"} {
			for _, v := range [][2]string{{"tahoe", "TCP"}, {"reno", "TCP/Reno"}, {"newreno", "TCP/Newreno"},
				{"vegas", "TCP/Vegas"}} {
				args := append([]string{"testdata/chain.tcl"}, append(where, routing, v[1], trace)...)
				if text, err := exec.Command("ns", args...).CombinedOutput(); err != nil {
					t.Fatalf("ns %v: %v: %s", args, err, text)
				}
				throughput, delay, first := ofTrace(t, trace)
				write(append(where, strings.ToLower(routing), v[0], fmt.Sprintf("%.1f", throughput),
					fmt.Sprintf("%.2f", delay), fmt.Sprintf("%.1f", first))...)
			}
		}
	}
	w.Flush()
	keep(t, file, out.Bytes())
}

// So do those of data/p2_ns2_grid.csv, of the grid that stands. Throughput is the mean of the two
// connections.
func TestE2ENS2GivesTheGridsFiguresAgain(t *testing.T) {
	if _, err := exec.LookPath("ns"); err != nil {
		t.Skip("needs ns-2: install Debian's package ns2")
	}
	trace := filepath.Join(t.TempDir(), "trace")
	var out bytes.Buffer
	fmt.Fprintln(&out, "rate_mbps,spacing_m,sense_m,routing,variant,throughput_kbit_s,delay_ms")
	for _, where := range [][]string{{"1", "105", "550"}, {"2", "105", "550"}, {"11", "105", "550"}} {
		for _, routing := range []string{"DSR", "AODV"} {
			for _, v := range [][2]string{{"newreno", "TCP/Newreno"}, {"vegas", "TCP/Vegas"}} {
				args := append([]string{"testdata/grid.tcl"}, append(where, routing, v[1], trace)...)
				if text, err := exec.Command("ns", args...).CombinedOutput(); err != nil {
					t.Fatalf("ns %v: %v: %s", args, err, text)
				}
				throughput, delay, _ := ofTrace(t, trace)
				fmt.Fprintf(&out, "%s,%s,%s,%.1f,%.2f\n", strings.Join(where, ","), strings.ToLower(routing), v[0],
					throughput/2, delay)
			}
		}
	}
	keep(t, "data/p2_ns2_grid.csv", out.Bytes())
}

// ns-2 numbers packets of all agents together: divided by its highest ID + 1, a loss rate is about half
// of that by the data packets sent.
func TestE2ENS2NumbersACKsToo(t *testing.T) {
	if _, err := exec.LookPath("ns"); err != nil {
		t.Skip("needs ns-2: install Debian's package ns2")
	}
	trace := filepath.Join(t.TempDir(), "trace")
	args := []string{"testdata/chain.tcl", "1", "105", "550", "stand", "AODV", "TCP/Newreno", trace}
	if text, err := exec.Command("ns", args...).CombinedOutput(); err != nil {
		t.Fatalf("ns %v: %v: %s", args, err, text)
	}
	text, err := os.ReadFile(trace)
	if err != nil {
		t.Fatal(err)
	}
	highest, data := 0, 0
	for line := range strings.Lines(string(text)) {
		w := strings.Fields(line)
		if len(w) < 7 || w[0] != "s" || w[3] != "AGT" {
			continue
		}
		id, err := strconv.Atoi(w[5])
		if err != nil {
			t.Fatal(err)
		}
		highest = max(highest, id)
		if w[6] == "tcp" {
			data++
		}
	}
	if data == 0 || highest < data*19/10 || highest > data*21/10 {
		t.Errorf("the highest ID is %d, and %d data packets were sent", highest, data)
	}
}

// keep holds a file to what ns-2 gives, or writes it.
func keep(t *testing.T, file string, given []byte) {
	t.Helper()
	if *update {
		if err := os.WriteFile(file, given, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if kept, err := os.ReadFile(file); err != nil || !bytes.Equal(kept, given) {
		t.Errorf("%s is not what ns-2 gives (%v):\n%s", file, err, given)
	}
}

// ofTrace is what a trace has of TCP segments: payload of 512 bytes by the time
// from FTP's start at 1 s to the end at 360 s, the mean time from agent to agent, and
// when the first arrived.
func ofTrace(t *testing.T, path string) (kbitS, delayMs, firstS float64) {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	sent := map[string]float64{}
	received, waited := 0, 0.0
	for lines := bufio.NewScanner(f); lines.Scan(); {
		// event, time, node, layer, flags, packet, kind
		w := strings.Fields(lines.Text())
		if len(w) < 7 || w[3] != "AGT" || w[6] != "tcp" {
			continue
		}
		at, err := strconv.ParseFloat(w[1], 64)
		if err != nil {
			t.Fatal(err)
		}
		switch w[0] {
		case "s":
			sent[w[5]] = at
		case "r":
			if received++; received == 1 {
				firstS = at
			}
			waited += at - sent[w[5]]
		}
	}
	if received == 0 {
		t.Fatalf("%s: nothing arrived", path)
	}
	return float64(received) * 512 * 8 / 1000 / 359, 1000 * waited / float64(received), firstS
}
