package flags

import (
	"errors"
	"testing"

	"github.com/spf13/pflag"
)

func TestExplain(t *testing.T) {
	for arg, want := range map[string]string{
		"--road-m=400m":    `--road-m "400m": expected a number, without a unit`,
		"--time=2":         `--time "2": expected a time with its unit, such as 90s or 2h`,
		"--trial=one":      `--trial "one": expected a whole number`,
		"--speeds-mps=1;2": `--speeds-mps "1;2": expected numbers without units, and commas between them`,
		"--no-such":        "unknown flag: --no-such",
	} {
		f := pflag.NewFlagSet("test", pflag.ContinueOnError)
		f.Float64("road-m", 0, "")
		f.Duration("time", 0, "")
		f.Int("trial", 0, "")
		f.Float64Slice("speeds-mps", nil, "")
		if got := Explain(f.Parse([]string{arg})); got == nil || got.Error() != want {
			t.Errorf("%s: %v, want %s", arg, got, want)
		}
	}
	other := errors.New("other")
	if got := Explain(other); !errors.Is(got, other) {
		t.Errorf("another error became %v", got)
	}
}
