// Package change holds the kinds of change that can be made to a machine, each
// with how it is taken back. It keeps no journal and answers nobody:
// node-agent/host does, and alone makes changes.
//
// A kind of change is one file, such as link.go, and a sample at the end of
// those in testdata/samples.json. The file has two structs of plain data: the
// change with its verbs (String, Target, check, prepare, apply) and its undo,
// which embeds placed (revert, void). `go generate ./node-agent/host` finds them
// by prepare and lists them in kinds.go, by the names that the socket and the
// journal know them by: held_rto for HeldRTO.
package change

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
)

// Change is one thing that the host process can do to the machine: a value of
// one of the types in kinds.
type Change interface {
	String() string
	// Target names what it acts on; two changes with one target follow on each other.
	Target() string
	// check says why the policy does not allow it; no reason: it does.
	check(p Policy) (reason, cure string)
}

// verbs are what changes of a kind do to the machine. U is their undo.
type verbs[U Undo] interface {
	Change
	// prepare reads what change id would alter. A *Refused says that it
	// cannot be made here.
	prepare(k *Kernel, id uint64) (U, error)
	// apply makes the change, or leaves it half made with an error; made
	// again, it changes nothing more.
	apply(k *Kernel, u U) error
}

// kind is a kind of change without its types.
type kind struct {
	change  reflect.Type
	decode  func(data []byte) (Change, error)
	undo    func() Undo // an empty one, to be decoded into
	prepare func(k *Kernel, id uint64, c Change) (Undo, error)
	apply   func(k *Kernel, c Change, u Undo) error
}

// of is the kind of the changes C, which are taken back by undos U.
func of[C verbs[PU], U any, PU interface {
	*U
	Undo
}]() kind {
	return kind{
		change: reflect.TypeFor[C](),
		decode: func(data []byte) (Change, error) {
			var c C
			err := DecodeStrict(data, &c)
			return c, err
		},
		undo:    func() Undo { return PU(new(U)) },
		prepare: func(k *Kernel, id uint64, c Change) (Undo, error) { return c.(C).prepare(k, id) },
		apply:   func(k *Kernel, c Change, u Undo) error { return c.(C).apply(k, u.(PU)) },
	}
}

// kindOf finds the kind of a change.
func kindOf(c Change) (name string, _ kind, err error) {
	for name, k := range kinds() {
		if k.change == reflect.TypeOf(c) {
			return name, k, nil
		}
	}
	return "", kind{}, fmt.Errorf("%T is not a kind of change", c)
}

// EmptyUndo is one of a change's kind, to be decoded into.
func EmptyUndo(c Change) (Undo, error) {
	_, kind, err := kindOf(c)
	if err != nil {
		return nil, err
	}
	return kind.undo(), nil
}

// Boxed is a change as the socket and the journal have it: {"link":{…}}.
type Boxed struct{ Change }

// MarshalJSON writes the change beneath the name of its kind.
func (b Boxed) MarshalJSON() ([]byte, error) {
	name, _, err := kindOf(b.Change)
	if err != nil {
		return nil, err
	}
	return json.Marshal(map[string]Change{name: b.Change})
}

// UnmarshalJSON reads a change of exactly one kind, with no member that is not known.
func (b *Boxed) UnmarshalJSON(data []byte) error {
	var members map[string]json.RawMessage
	if err := json.Unmarshal(data, &members); err != nil {
		return fmt.Errorf("decode change: %w", err)
	}
	if len(members) != 1 {
		return fmt.Errorf("decode change: %d kinds of change in one, there must be exactly 1", len(members))
	}
	for name, data := range members {
		k, known := kinds()[name]
		if !known {
			return fmt.Errorf("decode change: %.40q is not a kind of change", name)
		}
		var err error
		if b.Change, err = k.decode(data); err != nil {
			return fmt.Errorf("decode change of kind %s: %w", name, err)
		}
	}
	return nil
}

// Refused says that a change may not or cannot be made here, and that nothing
// was changed. It comes back whole from Client.Apply: use errors.As.
type Refused struct {
	Change string `json:"change"` // in words
	Reason string `json:"reason"`
	Cure   string `json:"cure,omitempty"` // what to do about it
}

func (r *Refused) Error() string {
	if r.Cure == "" {
		return fmt.Sprintf("refused %s: %s", r.Change, r.Reason)
	}
	return fmt.Sprintf("refused %s: %s (%s)", r.Change, r.Reason, r.Cure)
}

// DecodeStrict decodes one JSON value, with no member that is not known.
func DecodeStrict(line []byte, into any) error {
	dec := json.NewDecoder(bytes.NewReader(line))
	dec.DisallowUnknownFields()
	if err := dec.Decode(into); err != nil {
		return err
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return errors.New("more than one value in a line")
	}
	return nil
}
