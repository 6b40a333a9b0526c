package tcp

import "testing"

// Fu, Meng and Lu 2002, section 2: an overflowing queue is congestion, nodes out
// of range are a disconnection, errors are the channel's. A frame that the
// MAC gives up after its retries, because they collided, is a route change, and so
// is one without a route or an answer to ARP.
func TestCausesAreThePapers(t *testing.T) {
	for lost, want := range map[string]Cause{
		"queue_full":    CauseCongestion,
		"channel_error": CauseChannelError,
		"out_of_range":  CauseDisconnection,
		"collision":     CauseRouteChange,
		"no_route":      CauseRouteChange,
		"no_neighbour":  CauseRouteChange,
		"route_change":  CauseRouteChange,
		"radio_dead":    CauseCongestion, // what the paper does not name
	} {
		if got := CauseOf(lost); got != want {
			t.Errorf("%s is cause %d, want %d", lost, got, want)
		}
	}
}
