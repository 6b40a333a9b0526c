package flags

import (
	"errors"
	"fmt"
	"strings"
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
		"-trail":           "unknown flag: -trail; did you mean --trial?",
		"-x":               "unknown shorthand flag: 'x' in -x; `test --help` lists what there is",
		"--label=red":      `--label "red": expected NAME=VALUE`,
		"--beside=2":       "--beside is called --phy-of now",
	} {
		c := &cobra.Command{Use: "test"}
		f := c.Flags()
		f.Float64("road-m", 0, "")
		f.Duration("time", 0, "")
		f.Int("trial", 0, "")
		f.Float64Slice("speeds-mps", nil, "")
		f.StringToString("label", nil, "")
		f.Var(Former("phy-of"), "beside", "")
		if got := Explain(c, f.Parse([]string{arg})); got == nil || got.Error() != want {
			t.Errorf("%s: %v, want %s", arg, got, want)
		}
	}
	other := errors.New("other")
	if got := Explain(&cobra.Command{}, other); !errors.Is(got, other) {
		t.Errorf("another error became %v", got)
	}
}

func TestAddress(t *testing.T) {
	for value, fine := range map[string]bool{":7480": true, "[::1]:0": true, "7480": false, "desk": false,
		"desk:x":    false,
		"127.0.0.1": false} {
		err := Address("listen", value, ":7447")
		want := fmt.Sprintf("--listen %q: expected HOST:PORT, such as :7447", value)
		if (err == nil) != fine || err != nil && err.Error() != want {
			t.Errorf("%s: %v", value, err)
		}
	}
}

// A command of the program that is looked for below another.
func TestACommandInAnotherPlace(t *testing.T) {
	do := func(*cobra.Command, []string) {}
	root, plan := &cobra.Command{Use: "root"}, &cobra.Command{Use: "plan"}
	root.AddCommand(plan, &cobra.Command{Use: "explain", Run: do})
	plan.AddCommand(&cobra.Command{Use: "check", Run: do})
	root.AddCommand(&cobra.Command{Use: "rehear", Run: do}) // near, but not it
	for name, c := range map[string]struct {
		below *cobra.Command
		want  string
	}{
		"explain":  {plan, "`root explain`?"},
		"check":    {root, "`root plan check`?"},
		"rehearse": {root, "`fieldmesh rehearse`?"},
		"up":       {plan, "`fieldmesh-agent up`?"},
	} {
		err := Below(c.below, []string{name})
		if err == nil || !strings.HasSuffix(err.Error(), "; did you mean "+c.want) {
			t.Errorf("%s: %v, want %s", name, err, c.want)
		}
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
