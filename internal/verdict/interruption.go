package verdict

import "fieldmesh.dev/fieldmesh/protocols/wire"

// InterruptionsMax bounds how many interrupted attempts a trial may have: an
// agent that crashes at every attempt must not be driven for ever. A person who
// retries a trial that was given up starts the count again.
const InterruptionsMax = 20

// Interruption is the error with which an attempt ends from outside. It says
// nothing of the trial: the attempt is interrupted, and the trial has as many
// attempts left as before.
type Interruption struct {
	Code wire.ReasonCode
	Text string
}

// Reason is what records and verdicts say of it.
func (i Interruption) Reason() wire.Reason { return wire.Reason{Code: i.Code, Text: i.Text} }

func (i Interruption) Error() string { return i.Reason().String() }
