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
		Port  int
		Share float64
		List  []string
		Yes   bool
	}
	for text, want := range map[string]string{
		"nodes:\n\ta: {key: b}\n":       "indent it by spaces",
		"a: 1\nnodes:2\nb: 3\n":         "a colon and a space behind it",
		"title: a: b\n":                 "into quotes",
		"nodes:\n  - a\n":               "a list stands where keys",
		"nodes:\n  a: text\n":           "a text stands where keys",
		"nodes: {a: {key: [1, 2}\n":     "a comma, or the ] that ends the list, is missing here",
		"nodes: {a: {key: [1] b: 2}}\n": "a comma, or the } that ends the mapping, is missing here",
		"nodes:\n  a: {key: \"open}\n":  "a text begins here with \", and no \" ends it",
		"nodes:\n  a: {key: 'open}\n":   "a text begins here with ', and no ' ends it",
		"list: [a\n":                    "a list begins here with [, and no ] ends it",
		"nodes: {a: {key: b}\n":         "a mapping begins here with {, and no } ends it",
		"port:1\nshare: 2\n":            "no key; a key has a colon and a space behind it",
		"\tport: 1\n":                   "a tab begins the line",
		"port: 1\nport: 2\n":            `key "port" is given twice, first in line 1; leave one of the two out`,
		"port: x\n":                     "expected a whole number, without a unit and without quotes",
		"share: 30min\n":                "expected a number, without a unit and without quotes",
		"yes: maybe\n":                  "expected true or false",
		"list: a\n":                     "a text stands where a list is expected",
		"list: {a: b}\n":                "keys stand where a list is expected",
		"port: `1`\n":                   "no text begins with ` here",
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
