package wire

import (
	"regexp"
	"sync"
)

// form is what a text must look like. It is compiled when it is first asked
// for: all of them together take half a megabyte, in every process that links
// this package and asks for none.
type form struct {
	pattern  string
	words    string // the same in words
	once     sync.Once
	compiled *regexp.Regexp
}

func formOf(pattern, words string) *form { return &form{pattern: pattern, words: words} }

// MatchString reports whether a text is of the form.
func (f *form) MatchString(s string) bool {
	f.once.Do(func() { f.compiled = regexp.MustCompile(f.pattern) })
	return f.compiled.MatchString(s)
}
