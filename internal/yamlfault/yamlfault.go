// Package yamlfault words what is wrong with a YAML file's syntax.
package yamlfault

import (
	"regexp"
	"strings"
	"sync"
)

// cures has what the parser says, and what to do about it.
var cures = []struct{ says, do string }{
	{"found character '\t'", "a tab begins the line; indent it by spaces"},
	{"non-map value is specified", "no key; a key has a colon and a space behind it, such as `key: value`"},
	{"mapping value is not allowed in this context", "a key stands where none can; indent it as far as the keys " +
		"beside it, and put a text with a colon and a space in it into quotes"},
	{"tab character cannot use as a map key", "a tab begins the line; indent it by spaces"},
	{"unexpected key name", "no key; a key has a colon and a space behind it, such as `key: value`"},
	{"',' or ']' must be specified", "a comma, or the ] that ends the list, is missing here"},
	{"',' or '}' must be specified", "a comma, or the } that ends the mapping, is missing here"},
	{"sequence end token ']' not found", "a list begins here with [, and no ] ends it"},
	{"could not find flow mapping end token '}'", "a mapping begins here with {, and no } ends it"},
	{"could not find end character of double-quoted text", "a text begins here with \", and no \" ends it"},
	{"could not find end character of single-quoted text", "a text begins here with ', and no ' ends it"},
	{"'`' is a reserved character", "no text begins with ` here; put the whole text into quotes"},
	{"'@' is a reserved character", "no text begins with @ here; put the whole text into quotes"},
	{"string was used where sequence is expected", "a text stands where a list is expected, such as [a, b]"},
	{"mapping was used where sequence is expected", "keys stand where a list is expected, such as [a, b]"},
	{"sequence was used where mapping is expected", "a list stands where keys with their values are expected"},
	{"string was used where mapping is expected", "a text stands where keys with their values are expected"},
}

// wanted is what a value of a type of Go is.
var wanted = map[string]string{
	"bool": "true or false", "string": "a text",
	"int": "a whole number, without a unit and without quotes", "float": "a number, without a unit and without quotes",
}

// forms are the messages that hold a word of the file, or of the program that reads it.
var forms = sync.OnceValue(func() struct{ twice, kind *regexp.Regexp } {
	return struct{ twice, kind *regexp.Regexp }{
		regexp.MustCompile(`^mapping key (".*") already defined at \[(\d+):\d+\]$`),
		regexp.MustCompile(`^cannot unmarshal .* of type (bool|string|int|float)\d*$`),
	}
})

// Explain returns what the parser's message means and what to do; the message itself
// where nothing is known to add.
func Explain(message string) string {
	for _, c := range cures {
		if strings.HasPrefix(message, c.says) {
			return c.do
		}
	}
	if m := forms().twice.FindStringSubmatch(message); m != nil {
		return "key " + m[1] + " is given twice, first in line " + m[2] + "; leave one of the two out"
	}
	if m := forms().kind.FindStringSubmatch(message); m != nil {
		return "expected " + wanted[m[1]]
	}
	return message
}
