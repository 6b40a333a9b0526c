// Package yamlfault words what is wrong with a YAML file's syntax.
package yamlfault

import "strings"

// cures has what the parser says, and what to do about it.
var cures = []struct{ says, do string }{
	{"found character '\t'", "a tab begins the line; indent it by spaces"},
	{"non-map value is specified", "no key; a key has a colon and a space behind it, such as `key: value`"},
	{"mapping value is not allowed in this context", "a key stands where none can; indent it as far as the keys " +
		"beside it, and put a text with a colon and a space in it into quotes"},
	{"sequence was used where mapping is expected", "a list stands where keys with their values are expected"},
	{"string was used where mapping is expected", "a text stands where keys with their values are expected"},
}

// Explain returns what the parser's message means and what to do; the message itself
// where nothing is known to add.
func Explain(message string) string {
	for _, c := range cures {
		if strings.HasPrefix(message, c.says) {
			return c.do
		}
	}
	return message
}
