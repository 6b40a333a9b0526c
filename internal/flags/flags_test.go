package flags

import (
	"errors"
	"testing"
	"testing/fstest"

	"github.com/spf13/cobra"
)

func TestExplain(t *testing.T) {
	for arg, want := range map[string]string{
		"--road-m=400m":    `--road-m "400m": expected a number, without a unit`,
		"--time=2":         `--time "2": expected a time with its unit, such as 90s or 2h`,
		"--trial=one":      `--trial "one": expected a whole number`,
		"--speeds-mps=1;2": `--speeds-mps "1;2": expected numbers without units, and commas between them`,
		"--no-such":        "unknown flag: --no-such; `test --help` lists what there is",
		"--road":           "unknown flag: --road; did you mean --road-m?",
	} {
		c := &cobra.Command{Use: "test"}
		f := c.Flags()
		f.Float64("road-m", 0, "")
		f.Duration("time", 0, "")
		f.Int("trial", 0, "")
		f.Float64Slice("speeds-mps", nil, "")
		if got := Explain(c, f.Parse([]string{arg})); got == nil || got.Error() != want {
			t.Errorf("%s: %v, want %s", arg, got, want)
		}
	}
	other := errors.New("other")
	if got := Explain(&cobra.Command{}, other); !errors.Is(got, other) {
		t.Errorf("another error became %v", got)
	}
}

func TestArgumentsThatAreNotTaken(t *testing.T) {
	root := &cobra.Command{Use: "root"}
	root.AddCommand(&cobra.Command{Use: "check", Run: func(*cobra.Command, []string) {}},
		&cobra.Command{Use: "show", Run: func(*cobra.Command, []string) {}})
	for _, c := range []struct {
		of   cobra.PositionalArgs
		args []string
		want string
	}{
		{None, nil, ""},
		{None, []string{"x"}, "root takes no argument, and \"x\" is one; `root --help` lists its flags"},
		{Below, nil, ""},
		{Below, []string{"chekc"}, `unknown command "chekc" for "root"; did you mean "check"?`},
		{Below, []string{"explain"}, `unknown command "explain" for "root"; it has check, show`},
	} {
		err := c.of(root, c.args)
		if (err == nil) != (c.want == "") || err != nil && err.Error() != c.want {
			t.Errorf("%q: %v, want %q", c.args, err, c.want)
		}
	}
}

func TestDescribe(t *testing.T) {
	texts := fstest.MapFS{
		"help/root.txt":       {Data: []byte("The whole\n\nLong.\n\nMore.\n\nExamples:\n  root check\n")},
		"help/plan.txt":       {Data: []byte("Plans\n")},
		"help/plan-check.txt": {Data: []byte("Check a plan\n\nNot this.\n")},
	}
	root, plan := &cobra.Command{Use: "root"}, &cobra.Command{Use: "plan"}
	check := &cobra.Command{Use: "check FILE", Long: "Its own."}
	root.AddCommand(plan)
	plan.AddCommand(check)
	Describe(root, texts)
	for _, c := range []struct {
		of                   *cobra.Command
		short, long, example string
	}{
		{root, "The whole", "Long.\n\nMore.", "  root check"},
		{plan, "Plans", "", ""},
		{check, "Check a plan", "Its own.", ""},
	} {
		if c.of.Short != c.short || c.of.Long != c.long || c.of.Example != c.example {
			t.Errorf("%s has %q, %q and %q", c.of.CommandPath(), c.of.Short, c.of.Long, c.of.Example)
		}
	}
	delete(texts, "help/plan.txt")
	defer func() {
		if recover() == nil {
			t.Error("a missing text was passed over")
		}
	}()
	Describe(root, texts)
}
