package wire

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// checker holds a body to what may be in it. It keeps the first fault; after it
// every check passes.
type checker struct {
	of    string // what is checked, for messages: "plan: "
	path  []step // from the body to the struct whose fields are checked
	fault *Error
}

// step is a field that holds a struct, or an element of a list.
type step struct {
	field string
	index int // -1: no list
}

func (c *checker) part(field string) { c.element(field, -1) }

func (c *checker) element(field string, index int) { c.path = append(c.path, step{field, index}) }

func (c *checker) leave() { c.path = c.path[:len(c.path)-1] }

func (c *checker) err() error {
	if c.fault == nil {
		return nil
	}
	return c.fault
}

func (c *checker) that(ok bool, field, format string, args ...any) {
	if ok || c.fault != nil {
		return
	}
	var place strings.Builder
	for _, s := range c.path {
		place.WriteString(s.field)
		if s.index >= 0 {
			fmt.Fprintf(&place, "[%d]", s.index)
		}
		place.WriteByte('.')
	}
	c.fault = Errorf(CodeBadRequest, "%s%s%s: %s", c.of, place.String(), field, fmt.Sprintf(format, args...))
}

func (c *checker) match(field, value string, form *form) {
	c.that(form.MatchString(value), field, "%.80q is not %s", value, form.words)
}

func (c *checker) oneOf(field, value string, allowed ...string) {
	if !slices.Contains(allowed, value) {
		c.that(false, field, "%.80q is not one of %s", value, strings.Join(allowed, ", "))
	}
}

// text bounds a text's length in characters.
func (c *checker) text(field, value string, least, most int) {
	n := utf8.RuneCountInString(value)
	c.that(n >= least && n <= most, field, "%d characters long, want %d to %d", n, least, most)
}

func (c *checker) bytes(field string, value []byte, want int) {
	c.that(len(value) == want, field, "%d bytes, want %d", len(value), want)
}

// count bounds how many elements a list or a map has.
func (c *checker) count(field string, n, least, most int) { c.integer(field, n, least, most) }

func (c *checker) integer(field string, value, least, most int) {
	c.that(value >= least && value <= most, field, "%d is not within %d to %d", value, least, most)
}

func (c *checker) unsigned(field string, value, least, most uint64) {
	c.that(value >= least && value <= most, field, "%d is not within %d to %d", value, least, most)
}

// number fails for NaN too, which no comparison holds for.
func (c *checker) number(field string, value, least, most float64) {
	c.that(value >= least && value <= most, field, "%v is not within %v to %v", value, least, most)
}

func (c *checker) numberAbove(field string, value, least, most float64) {
	c.that(value > least && value <= most, field, "%v is not above %v and at most %v", value, least, most)
}
