// Package cuts holds the tests that cut: the controller, the agents' halves,
// the emulated field, the control link and the database are killed, stopped or
// cut off at random moments of a run, and the run has to come to its end with
// nothing lost, nothing repeated and nothing left behind. It has no code of its
// own. A failure prints its seed; FIELDMESH_SEED takes it up again.
package cuts
