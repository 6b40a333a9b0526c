// Package flags words what is wrong with a command line's flags. Which flags
// there are, and what they do, is their command's business.
package flags

import (
	"errors"
	"fmt"

	"github.com/spf13/pflag"
)

// expected is what a flag of a type wants, by pflag's names of types.
var expected = map[string]string{
	"float64":      "a number, without a unit",
	"float64Slice": "numbers without units, and commas between them",
	"int":          "a whole number",
	"intSlice":     "whole numbers, and commas between them",
	"duration":     "a time with its unit, such as 90s or 2h",
	"bool":         "true or false",
}

// Explain returns err, in plain words where it is about a value that a flag does not take.
func Explain(err error) error {
	bad, ok := errors.AsType[*pflag.InvalidValueError](err)
	if !ok || expected[bad.GetFlag().Value.Type()] == "" {
		return err
	}
	f := bad.GetFlag()
	return fmt.Errorf("--%s %q: expected %s", f.Name, bad.GetValue(), expected[f.Value.Type()])
}
