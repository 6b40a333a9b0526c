package scene

import (
	"slices"
	"testing"
	"time"

	"fieldmesh.dev/fieldmesh/controller/plan"
	"fieldmesh.dev/fieldmesh/protocols/wire"
	"fieldmesh.dev/fieldmesh/rehearsal/field"
)

// expanded is a campaign's field, and its trials.
func expanded(t *testing.T, c *plan.Campaign) (field.Config, []wire.Trial) {
	t.Helper()
	cfg, err := Config(c)
	if err != nil {
		t.Fatal(err)
	}
	trials, err := c.Schedule()
	if err != nil {
		t.Fatal(err)
	}
	return cfg, trials
}

// P2's moving chain is cut for as long as its file says: until C and D have come back, no
// way leads from A to F.
func TestP2sChainIsCutAsItsFileSays(t *testing.T) {
	for scale, want := range map[string]struct{ cutS, wholeAgainS int }{
		"full": {67, 263}, "night": {33, 103}, "quick": {18, 39},
	} {
		c, err := Read("../../../campaigns/variants-chain.yaml", scale)
		if err != nil {
			t.Fatal(err)
		}
		cfg, trials := expanded(t, c)
		trial := trials[slices.IndexFunc(trials, func(t wire.Trial) bool { return !t.Still })]
		var cuts []int
		for s := range int(trial.DurationS) {
			links, err := field.Links(cfg, trial, time.Duration(s)*time.Second)
			if err != nil {
				t.Fatal(err)
			}
			if !leads(links, trial.Sender, trial.Receiver) {
				cuts = append(cuts, s)
			}
		}
		// The moment lies within the second before the first that is without a way.
		n := want.wholeAgainS - want.cutS - 1
		if len(cuts) != n || cuts[0] != want.cutS+1 || cuts[n-1] != want.wholeAgainS-1 {
			t.Errorf("%s: there is no way at %v s, want from %d to %d", scale, cuts, want.cutS, want.wholeAgainS)
		}
	}
}

func leads(links map[string][]string, from, to string) bool {
	reached := []string{from}
	for i := 0; i < len(reached); i++ {
		for _, n := range links[reached[i]] {
			if !slices.Contains(reached, n) {
				reached = append(reached, n)
			}
		}
	}
	return slices.Contains(reached, to)
}
