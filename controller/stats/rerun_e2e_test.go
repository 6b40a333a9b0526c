//go:build e2e

package stats

import (
	"math"
	"os/exec"
	"testing"
)

// The committed numbers are those that scipy and statsmodels give: the script
// that wrote them is run again, in the environment that scripts/setup makes.
func TestGoldenNumbersAreWhatTheScriptWrites(t *testing.T) {
	const python = "../../.tools/venv/bin/python"
	out, err := exec.Command(python, "testdata/golden.py").Output()
	if err != nil {
		t.Fatalf("run testdata/golden.py by %s, which scripts/setup provides: %v", python, err)
	}
	want, got := committed(t), readGolden(t, out)
	// The numbers drawn are the same to the last digit, what is computed of them
	// is not on every processor.
	for i, m := range got.Mixed {
		for j := range m.Beta {
			approx(t, "mixed: coefficient", m.Beta[j], want.Mixed[i].Beta[j], searched)
		}
	}
	for i, m := range got.OLS {
		for j := range m.Beta {
			approx(t, "OLS: SE", m.SE[j], want.OLS[i].SE[j], closed)
			approx(t, "OLS: p", m.P[j], want.OLS[i].P[j], closed)
		}
	}
	for i, m := range got.Apart {
		for j := range m.Beta {
			approx(t, "apart: SE", m.SE[j], want.Apart[i].SE[j], closed)
		}
	}
	for i, p := range got.Power {
		approx(t, "power", p[3], want.Power[i][3], closed)
	}
	for i, h := range got.Holm {
		for j := range h.Adjusted {
			approx(t, "Holm", h.Adjusted[j], want.Holm[i].Adjusted[j], closed)
		}
	}
	for i, q := range got.Quantiles {
		approx(t, "quantile", q[2], want.Quantiles[i][2], closed)
	}
	if len(got.Quantiles) != len(want.Quantiles) || len(got.Mixed) != len(want.Mixed) || len(got.Apart) !=
		len(want.Apart) || math.IsNaN(got.Mixed[0].S2) {
		t.Errorf("the script writes other cases than are committed")
	}
}
