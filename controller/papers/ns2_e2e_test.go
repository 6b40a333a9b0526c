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

var update = flag.Bool("update", false, "write data/p2_ns2.csv")

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
	if *update {
		if err := os.WriteFile(file, out.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if kept, err := os.ReadFile(file); err != nil || !bytes.Equal(kept, out.Bytes()) {
		t.Errorf("%s is not what ns-2 gives (%v):\n%s", file, err, out.Bytes())
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
