package host

import (
	"errors"
	"slices"
	"strings"
)

// undo is how a change is taken back: plain data, written to disk before the
// change is made. There is nothing in it that was not so when the change was
// prepared, and its verbs are idempotent.
type undo interface {
	// revert takes the change back in the namespace that it was made in, whether it
	// was made, half made or never made. note says what of it had gone by itself.
	revert(k *kernel) (note string, err error)
	// void reports whether there is nothing left to take back: what the change
	// was made on has gone, or has been made again under its name.
	void(k *kernel) bool

	// place is the namespace that the change was made in.
	place() *bootNetns
	// bound reports whether the change goes with that namespace.
	bound() bool
	// revertLasting takes back what neither a boot nor a namespace takes along.
	revertLasting(k *kernel) error
}

// placed is in every undo: for a change that goes with its namespace, with all
// that it made.
type placed struct {
	Netns bootNetns `json:"world"`
}

func (p *placed) place() *bootNetns         { return &p.Netns }
func (*placed) bound() bool                 { return true }
func (*placed) revertLasting(*kernel) error { return nil }

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

// system is the machine as the keeper sees it: kernel in production.
type system interface {
	prepare(id uint64, c Change) (undo, error)
	apply(c Change, u undo) error
	revert(u undo) (note string, err error)
	void(u undo) bool
}
