package main

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// overdueFactor is how many times its budget a suite may take before the run
// fails for it. On a machine that others use too, the same program has taken
// one and a half times its processor time within a minute, and a suite twice its
// budget: one that takes longer does more than it did.
const overdueFactor = 3.0

// slowest is how many tests the conclusion names.
const slowest = 10

// test is a top-level test that a suite ran.
type test struct {
	name, outcome string // PASS, FAIL or SKIP
	tookS         float64
	from, to      int // its output
}

var verdictLine = regexp.MustCompile(`(?m)^\s*--- (PASS|FAIL|SKIP): (\w+) \((\d+\.\d+)s\)$`)

// testsIn finds the top-level tests in the output of -test.v or `go test`.
func testsIn(output []byte) []test {
	var out []test
	last := 0
	for _, m := range verdictLine.FindAllSubmatchIndex(output, -1) {
		took, err := strconv.ParseFloat(string(output[m[6]:m[7]]), 64)
		if err != nil {
			continue // the pattern has it be a number
		}
		out = append(out, test{
			name: string(output[m[4]:m[5]]), outcome: string(output[m[2]:m[3]]), tookS: took,
			from: last, to: m[1],
		})
		last = m[1]
	}
	return out
}

// line is what is printed when the suite has ended.
func (r result) line(budgetS float64) string {
	word := "ok  "
	switch {
	case r.err != nil:
		word = "FAIL"
	case r.overdue:
		word = "SLOW"
	}
	limit := ""
	if budgetS > 0 {
		limit = fmt.Sprintf(" of %.0f", budgetS)
	}
	counts := map[string]int{}
	for _, t := range r.tests {
		counts[t.outcome]++
	}
	skipped := ""
	if counts["SKIP"] > 0 {
		skipped = fmt.Sprintf(", %d skipped", counts["SKIP"])
	}
	return fmt.Sprintf("%s  %-32s %4.0f%s s  %d tests%s", word, r.suite.Name, r.tookS, limit,
		counts["PASS"]+counts["FAIL"], skipped)
}

// failure returns the output of a suite that failed without that of its tests
// that passed.
func (r result) failure() []byte {
	if !slices.ContainsFunc(r.tests, func(t test) bool { return t.outcome == "FAIL" }) {
		return r.output
	}
	var out []byte
	end := 0
	for _, t := range r.tests {
		if t.outcome == "FAIL" {
			out = append(out, r.output[t.from:t.to]...)
		}
		end = t.to
	}
	return append(out, r.output[end:]...)
}

// saidByTest is a line that a test wrote by its Error, Fatal or Log.
var saidByTest = regexp.MustCompile(`(?m)^\s+\w+_test\.go:\d+: .*$`)

// failedVerdict is the line of a test or subtest that failed.
var failedVerdict = regexp.MustCompile(`(?m)^\s*(--- FAIL: .*)$`)

// failedOfApp is what Maven prints of one of the app's tests that failed: its name, and why.
var failedOfApp = regexp.MustCompile(`(?m)^\[ERROR\] (.+ -- Time elapsed: .+ <<< \w+!)\n(.*)$`)

// repeatedLines is how many of a failed test's own lines the conclusion repeats.
const repeatedLines = 20

// summary returns the failed tests of the suite, with the last lines that each
// wrote itself: what a reader of the end of a long run sees.
func (r result) summary() []byte {
	var out bytes.Buffer
	for _, t := range r.tests {
		if t.outcome != "FAIL" {
			continue
		}
		lines := saidByTest.FindAll(r.output[t.from:t.to], -1)
		for _, line := range lines[max(0, len(lines)-repeatedLines):] {
			fmt.Fprintf(&out, "%s\n", line)
		}
	}
	// Those of subtests follow their test's.
	for _, m := range failedVerdict.FindAllSubmatch(r.output, -1) {
		fmt.Fprintf(&out, "%s %s\n", r.suite.Name, m[1])
	}
	for _, m := range failedOfApp.FindAllSubmatch(r.output, -1) {
		fmt.Fprintf(&out, "%s %s\n    %s\n", r.suite.Name, m[1], m[2])
	}
	return out.Bytes()
}

// conclude prints what took longest, what was skipped and what failed, and
// returns an error when something did.
func (r *runner) conclude(tookS interface{ Seconds() float64 }) error {
	type named struct {
		test
		suite string
	}
	var ran []named
	for _, res := range r.results {
		for _, t := range res.tests {
			ran = append(ran, named{t, res.suite.Name})
		}
	}
	outcomes := map[string]int{}
	for _, t := range ran {
		outcomes[t.outcome]++
		if t.outcome == "SKIP" && !strings.Contains(t.name, "Soak") {
			fmt.Printf("skipped: %s %s\n", t.suite, t.name)
		}
	}
	slices.SortFunc(ran, func(a, b named) int { return cmp.Compare(b.tookS, a.tookS) })
	fmt.Printf("%d suites, %d tests in %.0f s. The slowest tests:\n", len(r.results), len(ran), tookS.Seconds())
	for _, t := range ran[:min(slowest, len(ran))] {
		fmt.Printf("%7.1f s  %s %s\n", t.tookS, t.suite, t.name)
	}
	fmt.Printf("%d passed, %d failed, %d skipped\n", outcomes["PASS"], outcomes["FAIL"], outcomes["SKIP"])
	if path := os.Getenv("FIELDMESH_TIMES"); path != "" {
		var all bytes.Buffer
		for _, res := range r.results {
			fmt.Fprintf(&all, "%s\t-\t%.1f\t%.1f\n", res.suite.Name, res.tookS, res.cpuS)
			for name, cpuS := range res.cpuOf {
				fmt.Fprintf(&all, "%s\tCPU %s\t%.1f\n", res.suite.Name, name, cpuS)
			}
		}
		for _, t := range ran {
			fmt.Fprintf(&all, "%s\t%s\t%.1f\n", t.suite, t.name, t.tookS)
		}
		if err := os.WriteFile(path, all.Bytes(), 0o644); err != nil {
			return err
		}
	}
	var problems []error
	for _, res := range r.results {
		if res.err != nil {
			fmt.Printf("%s", res.summary())
			problems = append(problems, fmt.Errorf("%s failed", res.suite.Name))
		} else if res.overdue {
			problems = append(problems, fmt.Errorf("%s took %.0f s, more than %g times its budget: make it "+
				"quicker, or raise its budget in test/suites/suites.txt and say why",
				res.suite.Name, res.tookS, overdueFactor))
		}
	}
	return errors.Join(problems...)
}
