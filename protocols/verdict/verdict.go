// Package verdict judges one attempt at a trial by its covariates: speed, GPS,
// clock and lateness, never by its throughput. The initiator's agent uses it
// provisionally with its own records, the controller finally with everybody's.
// It is pure: records in, verdict out; no file, no clock, no network.
package verdict

import "fieldmesh.dev/fieldmesh/protocols/wire"

// Scope says what the judge may know. A provisional verdict has only the
// initiator's own records and skips what those cannot tell: the other nodes'
// windows, the clocks' alignment, and the medium's lateness.
type Scope struct{ Final bool }

// Outcomes of an attempt, as they stand in wire.Verdict.
const (
	Accepted = "accepted"
	Rejected = "rejected"
	Failed   = "failed"
)

// Judge gives the verdict on one attempt from the records of its nodes.
// Records of other trials and attempts are passed over.
func Judge(t wire.Trial, attempt int, records []wire.Record, scope Scope) wire.Verdict {
	return wire.Verdict{TrialKey: wire.TrialKey{Trial: t.Number, Attempt: attempt}, Outcome: Accepted, Final: scope.Final}
}
