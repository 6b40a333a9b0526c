package trial

import (
	"errors"
	"fmt"

	"fieldmesh.dev/fieldmesh/internal/verdict"
	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// fault is an error that ends an attempt, with the code of its reason.
type fault struct {
	code wire.ReasonCode
	err  error
}

func faultf(code wire.ReasonCode, format string, args ...any) fault {
	return fault{code, fmt.Errorf(format, args...)}
}

func (f fault) Error() string { return f.reason().String() }

func (f fault) Unwrap() error { return f.err }

func (f fault) reason() wire.Reason { return wire.Reason{Code: f.code, Text: f.err.Error()} }

// coded is matched, with errors.Is, by every fault with the code.
type coded wire.ReasonCode

func (c coded) Error() string { return string(c) }

// Is reports whether target is the fault's code.
func (f fault) Is(target error) bool { return target == coded(f.code) }

// later is what ended an attempt, and what went wrong after that.
type later struct{ first, second error }

func (l later) Error() string { return l.first.Error() + "; " + l.second.Error() }

func (l later) Unwrap() []error { return []error{l.first, l.second} }

// join adds what went wrong later to what ended the attempt.
func join(reason, err error) error {
	switch {
	case err == nil:
		return reason
	case reason == nil:
		return err
	}
	return later{reason, err}
}

// reasonOf is what is recorded of an error that ended an attempt.
func reasonOf(err error) wire.Reason {
	switch e := err.(type) { //nolint:errorlint // each wrapping is looked into, from the outside
	case wire.Reason:
		return e
	case fault:
		return e.reason()
	case verdict.Interruption:
		return e.Reason()
	case later:
		return reasonOf(e.first).And(e.second.Error())
	case interface{ Unwrap() []error }: // of errors.Join
		all := e.Unwrap()
		r := reasonOf(all[0])
		for _, more := range all[1:] {
			r = r.And(more.Error())
		}
		return r
	}
	if inner := (fault{}); errors.As(err, &inner) { // wrapped by somebody who says where it was met
		return wire.Reason{Code: inner.code, Text: err.Error()}
	}
	return wire.Reason{Text: err.Error()}
}
