package cmd

import (
	"path/filepath"
	"strings"
	"testing"
)

// Every campaign that ships is shown with what it can tell, and each effect that
// it asks about has an interval.
func TestShippedCampaignsCanTellWhatTheyAsk(t *testing.T) {
	files, err := filepath.Glob("../../campaigns/*.yaml")
	if err != nil || len(files) < 10 {
		t.Fatalf("%d campaigns, %v", len(files), err)
	}
	for _, file := range files {
		var out strings.Builder
		c := PlanCommand()
		c.SetArgs([]string{"show", file})
		c.SetOut(&out)
		if err := c.Execute(); err != nil {
			t.Fatal(err)
		}
		_, effects, told := strings.Cut(out.String(), "can tell, if each is accepted")
		if !told || strings.Contains(effects, "the campaign asks about") {
			t.Errorf("%s: %s", file, effects)
		}
	}
}
