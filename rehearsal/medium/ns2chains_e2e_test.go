//go:build e2e

package medium

import (
	"errors"
	"fmt"
	"os/exec"
	"testing"
)

// Chains of 1 to 8 hops in Debian's ns-2: they carry what the file has of them, beside which
// TestChainsCarryWhatOtherSimulatorsCarry has the emulated radio.
func TestE2ENS2sChainsCarryAsMuchHere(t *testing.T) {
	if _, err := exec.LookPath("ns"); err != nil {
		t.Skip("needs ns-2: install Debian's package ns2")
	}
	keepChains(t, ns2Name, func(s chainScenario) (mean chainResult) {
		kind, window, seeds := "CBR", 1, 3
		if s.kind == chainTCP {
			kind, window, seeds = "Newreno", s.n, 1
		}
		for seed := range seeds {
			mean.kbitS += ns2Chain(t, kind, s.hops, window, seed+1) / float64(seeds)
		}
		return mean
	})
	TestChainsCarryWhatOtherSimulatorsCarry(t)
}

// ns2Chain is what ns-2 carries, in kbit/s.
func ns2Chain(t *testing.T, kind string, hops, window, seed int, more ...string) (kbitS float64) {
	t.Helper()
	again := 0
	out, err := exec.Command("ns", append([]string{"testdata/chain.tcl", fmt.Sprint(hops), "2", kind,
		fmt.Sprint(window), fmt.Sprint(seed)}, more...)...).Output()
	if err == nil {
		_, err = fmt.Sscan(string(out), &kbitS, &again)
	}
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		err = fmt.Errorf("%w: %s", err, exit.Stderr)
	}
	if err != nil || again != 0 {
		t.Fatalf("ns chain.tcl: %v, %d segments went again, in %q", err, again, out)
	}
	return kbitS
}
