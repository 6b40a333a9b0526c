package study

import (
	"strings"
	"testing"
)

func TestAsk(t *testing.T) {
	for in, want := range map[string]string{
		"a\n\n": "a, 2", " b \nc\n": "b, c", "\n\nmore\n": "1, 2", "a\n": "",
	} {
		first, second := "1", "2"
		var out strings.Builder
		err := ask(strings.NewReader(in), &out, []question{{prompt: "one", answer: &first}, {prompt: "two",
			answer: &second}})
		if got := first + ", " + second; (err == nil) != (want != "") || err == nil && got != want {
			t.Errorf("%q: %s, %v; want %s", in, got, err, want)
		}
		if !strings.HasPrefix(out.String(), "one [1]: ") {
			t.Errorf("%q: asked %q", in, out.String())
		}
	}
}
