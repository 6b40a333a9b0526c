// Package words writes numbers as all sections of the report, and the commands,
// have them.
package words

import (
	"fmt"
	"math"
	"strings"
)

// Count says how many there are of something.
func Count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// Pooled says over what means are, and why they have no interval.
func Pooled(over []string) string {
	return fmt.Sprintf("The means are over all levels of %s, and have no interval: trials of different cells are no "+
		"sample of one.", strings.Join(over, ", "))
}

// Percent prints a confidence: 95 %, 99.3 %.
func Percent(level float64) string { return fmt.Sprintf("%.3g %%", 100*level) }

// Signed prints a number with its sign, and a true minus.
func Signed(v float64) string { return strings.Replace(fmt.Sprintf("%+.3g", v), "-", "−", 1) }

// Digits prints three significant digits, and no exponent where whole numbers do.
func Digits(v float64) string {
	format := "%.3g"
	if math.Abs(v) >= 100 && math.Abs(v) < 1e7 {
		format = "%.0f"
	}
	return strings.Replace(fmt.Sprintf(format, v), "-", "−", 1)
}
