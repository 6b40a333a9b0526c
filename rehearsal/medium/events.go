package medium

import "fieldmesh.dev/fieldmesh/rehearsal/medium/eventqueue"

// event is of a station, and carries its generation; of evTxEnd and evDetect, of a transmission.
type event = eventqueue.Event

// In the order in which those of one time run: a frame that ends makes room for
// one that begins, and one that begins at a detection's end is still in it.
const (
	evTxEnd   eventqueue.Kind = iota // a transmission leaves the air
	evUnheard                        // nothing may have followed another's RTS
	evTimeout                        // no CTS or ACK came
	evRespond                        // SIFS after a reception, or after CTS
	evBeacon                         // a beacon of a station's own is due
	evAccess                         // a station's backoff ran out
	evDetect                         // receivers decide which frame they lock on to
	evRelease                        // frames have waited for those before them for long; gen is their sender
)
