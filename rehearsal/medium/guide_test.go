package medium

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"
)

// The guide names, beside each constant, the test that checks it.
func TestGuideNamesTestsThatExist(t *testing.T) {
	root := filepath.Join("..", "..")
	guide, err := os.ReadFile(filepath.Join(root, "field-guides", "rehearsal-field.md"))
	if err != nil {
		t.Fatal(err)
	}
	exist := map[string]bool{}
	for _, folder := range []string{"rehearsal/medium", "rehearsal/medium/propagation",
		"rehearsal/medium/ratecontrol", "rehearsal/medium/ht", "rehearsal/realtime",
		"rehearsal/mobility", "rehearsal/field", "test/journeys", "test/virtual"} {
		files, err := filepath.Glob(filepath.Join(root, folder, "*_test.go"))
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range files {
			text, err := os.ReadFile(f)
			if err != nil {
				t.Fatal(err)
			}
			for _, m := range regexp.MustCompile(`(?m)^func (Test\w+)\(`).FindAllSubmatch(text, -1) {
				exist[string(m[1])] = true
			}
		}
	}
	named := regexp.MustCompile("`(Test\\w+)`").FindAllSubmatch(guide, -1)
	for _, m := range named {
		if !exist[string(m[1])] {
			t.Errorf("the guide names %s, which does not exist", m[1])
		}
	}
	if len(named) < 30 {
		t.Errorf("the guide names %d tests, was it read?", len(named))
	}
}
