package main

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Mode is which tests are run.
type Mode string

const (
	short Mode = "test"  // all but the long ones
	all   Mode = "all"   // every test
	soak  Mode = "soak"  // those with a long form, in that form
	bench Mode = "bench" // those that print figures
)

// What the tests of a mode look for in their environment.
const (
	soakVariable  = "FIELDMESH_SOAK"
	benchVariable = "FIELDMESH_BENCH"
)

// Need is what a suite needs of the machine's processors.
type Need string

const (
	busy    Need = "busy"    // it uses them, measures no time, and bears to have little of them
	waiting Need = "waiting" // its tests mostly wait, and bear one another
	light   Need = "light"   // they wait for at least four fifths of their time, and bear anything beside them
	timed   Need = "timed"   // it measures what a busy machine would change, and keeps none busy itself
	alone   Need = "alone"   // it measures that too, and uses the processors itself
)

// pool is how many suites, or tests of a waiting suite, of a need run at a time.
type pool struct {
	need    Need
	atATime int
	// idle has them have what the others leave of the processors (sched(7),
	// SCHED_IDLE): whoever else wakes up runs at once.
	idle bool
}

// lanes run side by side; the pools of a lane follow one another. Three that wait
// beside a busy suite of the same priority make one another late on two processors;
// light ones do not, and when they are done a fourth that waits runs in their place.
// Those that are busy run on beside the timed and the lone ones, which get a processor
// at once when they wake up.
var lanes = [][]pool{{{need: busy, atATime: 2, idle: true}}, {{need: light, atATime: 1}, {need: waiting, atATime: 1}},
	{{need: waiting, atATime: 3}, {need: timed, atATime: 3}, {need: alone, atATime: 1}}}

// oneByOne is the lane in which nothing runs beside anything.
var oneByOne = [][]pool{{{need: busy, atATime: 1}, {need: waiting, atATime: 1}, {need: light, atATime: 1},
	{need: timed, atATime: 1}, {need: alone, atATime: 1}}}

// guestPrefix comes before the kernel in the name of a guest's suite, and
// "-timed" after it when its tests measure time.
const guestPrefix = "guest-"

// Suite is one line of suites.txt, and the lines "long" and "first" below it.
type Suite struct {
	Name          string // a package's folder, "app", or "guest" and a kernel
	Need          Need
	BudgetS, AllS float64 // what it may take, in the modes test and all
	Long          []string
	First         []string // tests that take a minute or more, and begin before all others
}

// isPackage reports whether the suite is a Go package that runs on this machine.
func (s Suite) isPackage() bool { return s.Name != "app" && !strings.HasPrefix(s.Name, guestPrefix) }

// budgetS is what the suite may take in a mode; 0 is no limit.
func (s Suite) budgetS(m Mode) float64 {
	switch m {
	case short:
		return s.BudgetS
	case all:
		return s.AllS
	}
	return 0
}

// read reads suites.txt.
func read(path string) ([]Suite, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var out []Suite
	scan := bufio.NewScanner(f)
	for n := 1; scan.Scan(); n++ {
		words := strings.Fields(strings.SplitN(scan.Text(), "#", 2)[0])
		if len(words) == 0 {
			continue
		}
		if len(out) > 0 && words[0] == "long" && len(words) > 2 {
			out[len(out)-1].Long = append(out[len(out)-1].Long, words[1])
			continue
		}
		if len(out) > 0 && words[0] == "first" && len(words) == 2 {
			out[len(out)-1].First = append(out[len(out)-1].First, words[1])
			continue
		}
		s, err := parse(words)
		if err != nil {
			return nil, fmt.Errorf("%s:%d: %w", path, n, err)
		}
		out = append(out, s)
	}
	return out, scan.Err()
}

func parse(words []string) (Suite, error) {
	if len(words) != 4 {
		return Suite{}, fmt.Errorf("want a suite, its need and two budgets in seconds, or \"long\", a test and what "+
			"it proves; got %q", words)
	}
	s := Suite{Name: words[0], Need: Need(words[1])}
	if !slices.Contains([]Need{busy, waiting, light, timed, alone}, s.Need) {
		return s, fmt.Errorf("need %q: want %s, %s, %s, %s or %s", s.Need, busy, waiting, light, timed, alone)
	}
	var err error
	if s.BudgetS, err = strconv.ParseFloat(words[2], 64); err != nil {
		return s, fmt.Errorf("budget %q: want seconds", words[2])
	}
	if s.AllS, err = strconv.ParseFloat(words[3], 64); err != nil {
		return s, fmt.Errorf("budget %q: want seconds", words[3])
	}
	return s, nil
}

// choose returns the suites that have tests in a mode, and among them those
// that are named.
func choose(list []Suite, m Mode, names []string) ([]Suite, error) {
	if !slices.Contains([]Mode{short, all, soak, bench}, m) {
		return nil, fmt.Errorf("unknown mode %q: want %s, %s, %s or %s", m, short, all, soak, bench)
	}
	var out []Suite
	for _, s := range list {
		if len(names) > 0 && !slices.Contains(names, s.Name) {
			continue
		}
		if s.isPackage() {
			patterns, err := s.patterns(m)
			if err != nil {
				return nil, err
			}
			if len(patterns) == 0 {
				continue
			}
		} else if m == bench || m == soak && s.Name == "app" || m == short && s.BudgetS == 0 {
			continue
		}
		out = append(out, s)
	}
	if len(out) < max(1, len(names)) {
		return nil, fmt.Errorf("mode %s has no suite, or not every one, of %q: test/suites/suites.txt lists them", m,
			names)
	}
	return out, nil
}

var (
	testFunction = regexp.MustCompile(`(?m)^func ((?:Test|Fuzz)\w+)\(`)
	endToEnd     = regexp.MustCompile(`(?m)^//go:build .*\be2e\b`)
)

// patterns returns the values of -test.run with which a package's tests are run
// in a mode, one process each: those in files with the build tag e2e, or in a
// package that reads the mode's variable those with the mode in their name.
func (s Suite) patterns(m Mode) ([]string, error) {
	files, err := filepath.Glob(filepath.Join(s.Name, "*_test.go"))
	if err != nil {
		return nil, err
	}
	var tests []string
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		switch {
		case m == soak && strings.Contains(string(data), soakVariable):
			return []string{"Soak"}, nil
		case m == bench && strings.Contains(string(data), benchVariable):
			return []string{"^TestBench"}, nil
		case m == soak, m == bench, !endToEnd.Match(data):
			continue
		}
		for _, f := range testFunction.FindAllStringSubmatch(string(data), -1) {
			if s.has(f[1], m) {
				tests = append(tests, f[1])
			}
		}
	}
	if len(tests) == 0 {
		return nil, nil
	}
	if s.Need != waiting {
		tests = []string{strings.Join(tests, "|")}
	}
	for i := range tests {
		tests[i] = "^(" + tests[i] + ")$"
	}
	return tests, nil
}

// has reports whether a test runs in the modes short or all. One with "Soak"
// in its name has a short form, or skips itself.
func (s Suite) has(test string, m Mode) bool {
	for _, prefix := range []string{"TestMain", "TestGuest", "TestReset", "TestBench"} {
		if strings.HasPrefix(test, prefix) {
			return false
		}
	}
	return m == all || !slices.Contains(s.Long, test)
}
