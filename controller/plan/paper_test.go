package plan

import (
	"os"
	"strings"
	"testing"
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
