package plan

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"fieldmesh.dev/fieldmesh/controller/papers"
	"fieldmesh.dev/fieldmesh/protocols/tcpcc"
	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// A campaign says whose question it puts; a paper that is not known is refused
// with those that are.
func TestACampaignNamesItsPaper(t *testing.T) {
	raw, err := os.ReadFile("../../campaigns/variants-chain.yaml")
	if err != nil {
		t.Fatal(err)
	}
	c, err := Parse("chain", raw)
	if err != nil {
		t.Fatal(err)
	}
	if c.Paper == nil || c.Paper.Name != "p2" || c.Paper.Scenario != "chain" {
		t.Errorf("paper %+v", c.Paper)
	}
	_, err = Parse("chain", []byte(strings.Replace(string(raw), "  name: p2", "  name: p9", 1)))
	if err == nil || !strings.Contains(err.Error(), "paper.name") ||
		!strings.Contains(err.Error(), "p1, p2, p3, p4, p5") {
		t.Errorf("%v", err)
	}
}

// What a paper states is of cells that its campaigns have: each claim that is
// tested has trials on both its sides, in one campaign.
func TestEveryClaimHasItsCells(t *testing.T) {
	published, err := papers.Read()
	if err != nil {
		t.Fatal(err)
	}
	campaigns, err := everyShipped()
	if err != nil {
		t.Fatal(err)
	}
	for key, files := range map[string][]string{"p1": {"velocity-powered.yaml"}, "p2 chain": {"variants-chain.yaml"},
		"p2 grid": {"variants-grid.yaml"}, "p2 random": {"variants-random.yaml"}, "p3": {"fixed-rto.yaml"},
		"p4": {"reference-tcp.yaml", "reference-tcp-settings.yaml"}, "p5": {"six-variants.yaml"}} {
		asked := map[string]bool{}
		paper, scenario, _ := strings.Cut(key, " ")
		for _, file := range files {
			c := campaigns[file]
			if c == nil {
				t.Fatalf("no campaign %s", file)
			}
			var trials []papers.Trial
			for _, x := range c.trials {
				if x.Repetition == 1 {
					trials = append(trials, papers.Trial{Repetition: 1, Facts: papers.Facts(x)})
				}
			}
			for _, claim := range published.Claims(paper, scenario) {
				asked[claim.ID] = asked[claim.ID] || claim.Relation == papers.None || hasCells(claim, trials)
			}
		}
		for _, claim := range published.Claims(paper, scenario) {
			if !asked[claim.ID] {
				t.Errorf("%s: no campaign has its cells: %s", claim.ID, claim.Text)
			}
		}
		if len(asked) == 0 {
			t.Errorf("%s claims nothing", paper)
		}
	}
}

// hasCells reports whether all comparisons of a claim would have pairs, or trials,
// if each of the trials had a value.
func hasCells(claim papers.Claim, trials []papers.Trial) bool {
	for i := range trials {
		trials[i].Values = map[string]float64{claim.Metric: 1}
	}
	parts := papers.Decide(claim, trials, func([]float64) (float64, *float64) { return 1, nil }).Parts
	return !slices.ContainsFunc(parts, func(p papers.Part) bool { return p.Verdict == papers.NotAsked })
}

// A client with a fixed RTO gives up long before any other. A paper's campaign in whose window that may happen says so.
func TestACampaignSaysWhenAFixedRTOEndsItsClients(t *testing.T) {
	campaigns, err := everyShipped()
	if err != nil {
		t.Fatal(err)
	}
	const heldMs = 2000 // a held SYN's timer (rto.bpf.c)
	givesUp, told := tcpcc.ClientGivesUpS(heldMs), 0
	for file, c := range campaigns {
		ends := slices.ContainsFunc(c.trials, func(x wire.Trial) bool {
			return x.TCP.FixedRTO && x.DurationS > givesUp
		})
		if c.Paper == nil || !ends {
			continue
		}
		told++
		want := fmt.Sprintf("gives up after %g s", givesUp)
		if !slices.ContainsFunc(c.Paper.Deviations, func(d string) bool { return strings.Contains(d, want) }) {
			t.Errorf("%s does not say that such a client %s", file, want)
		}
	}
	if told == 0 {
		t.Error("no campaign of a paper has a fixed RTO")
	}
}
