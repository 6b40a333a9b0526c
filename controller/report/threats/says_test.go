package threats

import (
	"strings"
	"testing"
)

func says(t *testing.T, text string, words ...string) {
	t.Helper()
	for _, w := range words {
		if !strings.Contains(text, w) {
			t.Errorf("it does not say %q: %.300s", w, text)
		}
	}
}
