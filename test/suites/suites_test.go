package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

func listed(t *testing.T) []Suite {
	t.Helper()
	t.Chdir("../..")
	list, err := read("test/suites/suites.txt")
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// Every package whose tests need more than the compiler is listed once.
func TestEverySuiteIsListed(t *testing.T) {
	list := listed(t)
	out, err := exec.Command("git", "grep", "-lE", `^//go:build .*\be2e\b|`+benchVariable+`|`+soakVariable, "--",
		"*_test.go").Output()
	if err != nil {
		t.Skipf("git grep: %v: not a checkout", err)
	}
	packages := map[string]bool{}
	for file := range strings.Lines(string(out)) {
		packages[filepath.Dir(strings.TrimSpace(file))] = true
	}
	delete(packages, "test/suites")
	// Those that run in a guest only.
	delete(packages, "test/radios")
	delete(packages, "test/testnet/hwsim")
	seen := map[string]bool{}
	for _, s := range list {
		if seen[s.Name] {
			t.Errorf("%s is listed twice", s.Name)
		}
		seen[s.Name] = true
		if s.isPackage() && !packages[s.Name] {
			t.Errorf("%s is listed and has no test with the build tag e2e", s.Name)
		}
		delete(packages, s.Name)
	}
	for name := range packages {
		t.Errorf("%s has tests with the build tag e2e and is not in suites.txt", name)
	}
}

// Each test that is called long exists where suites.txt says.
func TestLongTestsExist(t *testing.T) {
	for _, s := range listed(t) {
		pattern := filepath.Join(s.Name, "*_test.go")
		if !s.isPackage() {
			pattern = "*/*/*_test.go"
		}
		var all []string
		files, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			for _, f := range testFunction.FindAllStringSubmatch(string(data), -1) {
				all = append(all, f[1])
			}
		}
		for _, name := range s.Long {
			if s.Name != "app" && !slices.Contains(all, name) {
				t.Errorf("%s has no %s", s.Name, name)
			}
		}
		for _, name := range s.First {
			if !slices.Contains(all, name) || s.Need != waiting {
				t.Errorf("%s has no %s, or is not one whose tests are processes each", s.Name, name)
			}
		}
	}
}

func TestLongTestsAreLeftToTheLongForm(t *testing.T) {
	s := Suite{Name: "test/suites", Long: []string{"TestB"}}
	for _, c := range []struct {
		test string
		mode Mode
		want bool
	}{
		{"TestA", short, true}, {"TestB", short, false}, {"TestB", all, true},
		{"TestMain", all, false}, {"TestGuestA", all, false}, {"TestBenchA", all, false},
	} {
		if got := s.has(c.test, c.mode); got != c.want {
			t.Errorf("%s in mode %s: %v, want %v", c.test, c.mode, got, c.want)
		}
	}
}

const printed = `=== RUN   TestGood
    a_test.go:1: all is well
--- PASS: TestGood (0.10s)
=== RUN   TestBad
=== RUN   TestBad/part
    a_test.go:2: it is 3, want 4
--- FAIL: TestBad (12.50s)
    --- FAIL: TestBad/part (0.00s)
--- SKIP: TestAbsent (0.00s)
FAIL
`

func TestAFailureOfTheAppIsSummedUp(t *testing.T) {
	r := result{suite: Suite{Name: "app"}, output: []byte("[ERROR] Tests run: 1, Failures: 1, Errors: 0, " +
		"Skipped: 0, Time elapsed: 15.47 s <<< FAILURE! -- in dev.x.ATest\n" +
		"[ERROR] dev.x.ATest.it is so -- Time elapsed: 15.47 s <<< FAILURE!\n" +
		"org.junit.ComparisonFailure: expected:<a> but was:<b>\n\tat org.junit.Assert.assertEquals(Assert.java:117)\n")}
	want := "app dev.x.ATest.it is so -- Time elapsed: 15.47 s <<< FAILURE!\n" +
		"    org.junit.ComparisonFailure: expected:<a> but was:<b>\n"
	if got := string(r.summary()); got != want {
		t.Errorf("the summary is\n%s\nwant\n%s", got, want)
	}
}

func TestAFailureIsShownWithoutWhatPassed(t *testing.T) {
	r := result{output: []byte(printed), tests: testsIn([]byte(printed))}
	if len(r.tests) != 3 || r.tests[1].name != "TestBad" || r.tests[1].tookS != 12.5 {
		t.Fatalf("tests: %+v", r.tests)
	}
	got := string(r.failure())
	if strings.Contains(got, "all is well") || !strings.Contains(got, "it is 3, want 4") ||
		!strings.Contains(got, "--- FAIL: TestBad") {
		t.Errorf("the failure is shown as\n%s", got)
	}
	r.suite.Name = "test/x"
	want := "    a_test.go:2: it is 3, want 4\ntest/x --- FAIL: TestBad (12.50s)\ntest/x --- FAIL: TestBad/part " +
		"(0.00s)\n"
	if got := string(r.summary()); got != want {
		t.Errorf("the conclusion repeats\n%s, want\n%s", got, want)
	}
	whole := result{output: []byte("panic: it broke\n")}
	if string(whole.failure()) != "panic: it broke\n" {
		t.Errorf("a suite that broke off is shown as %q", whole.failure())
	}
}

func TestBadLinesAreRefused(t *testing.T) {
	for text, want := range map[string]string{
		"test/truth alone 1":                 ":1: want a suite",
		"test/truth soon 1 2":                `:1: need "soon"`,
		"\ntest/truth alone x 2":             `:2: budget "x"`,
		"long TestA that no suite has above": ":1: want a suite",
	} {
		path := filepath.Join(t.TempDir(), "suites.txt")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := read(path); err == nil || !regexp.MustCompile(regexp.QuoteMeta(want)).MatchString(err.Error()) {
			t.Errorf("%q: got %v, want it to say %s", text, err, want)
		}
	}
}
