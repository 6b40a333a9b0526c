package yamlfault

import (
	"errors"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
)

// The words are those of the parser, which may change them with its version.
func TestExplain(t *testing.T) {
	type file struct {
		Nodes map[string]struct{ Key string }
	}
	for text, want := range map[string]string{
		"nodes:\n\ta: {key: b}\n":      "indent it by spaces",
		"a: 1\nnodes:2\nb: 3\n":        "a colon and a space behind it",
		"title: a: b\n":                "into quotes",
		"nodes:\n  - a\n":              "a list stands where keys",
		"nodes:\n  a: text\n":          "a text stands where keys",
		"nodes: {a: {key: [1, 2}\n":    "',' or ']' must be specified",
		"nodes:\n  a: {key: \"open}\n": "could not find end character",
	} {
		var located yaml.Error
		err := yaml.Unmarshal([]byte(text), &file{})
		if !errors.As(err, &located) {
			t.Errorf("%q: %v has no message of the parser", text, err)
			continue
		}
		if got := Explain(located.GetMessage()); !strings.Contains(got, want) {
			t.Errorf("%q: %q, want %q in it", text, got, want)
		}
	}
}
