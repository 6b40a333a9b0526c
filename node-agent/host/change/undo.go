package change

import (
	"errors"
	"slices"
	"strings"
)

// Undo is how a change is taken back: plain data, written to disk before the
// change is made. There is nothing in it that was not so when the change was
// prepared, and its verbs are idempotent.
type Undo interface {
	// revert takes the change back in the namespace that it was made in, whether it
	// was made, half made or never made. note says what of it had gone by itself.
	revert(k *Kernel) (note string, err error)
	// void reports whether there is nothing left to take back: what the change
	// was made on has gone, or has been made again under its name.
	void(k *Kernel) bool
	// on is the interface that the change was made on, as it was called then; 0: none.
	on() (name string, index int)

	// Place is the namespace that the change was made in.
	Place() *Netns
	// bound reports whether the change goes with that namespace.
	bound() bool
	// revertLasting takes back what neither a boot nor a namespace takes along.
	revertLasting(k *Kernel) error
}

// placed is in every undo: for a change that goes with its namespace, with all
// that it made.
type placed struct {
	Netns Netns `json:"world"`
}

func (p *placed) Place() *Netns             { return &p.Netns }
func (*placed) on() (string, int)           { return "", 0 }
func (*placed) bound() bool                 { return true }
func (*placed) revertLasting(*Kernel) error { return nil }

// inTurn takes the parts of a change back, the later ones too when one fails.
func inTurn(parts ...func() (note string, err error)) (string, error) {
	var notes []string
	var errs []error
	for _, part := range parts {
		note, err := part()
		if note != "" && !slices.Contains(notes, note) {
			notes = append(notes, note)
		}
		errs = append(errs, err)
	}
	return strings.Join(notes, ", "), errors.Join(errs...)
}
