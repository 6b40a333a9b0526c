// Package reach tells what may have failed because another machine is out of reach from what the machine itself cannot
// do.
package reach

import "errors"

// Error is of a network that has not taken a station in. Its access point may be out of reach; it may as well be off,
// or have another passphrase, which a station cannot tell apart.
type Error struct{ Err error }

func (e Error) Error() string { return e.Err.Error() }

// Unwrap returns the error as it is told.
func (e Error) Unwrap() error { return e.Err }

// Is reports whether an error may come from being out of reach.
func Is(err error) bool { return errors.As(err, new(Error)) }
