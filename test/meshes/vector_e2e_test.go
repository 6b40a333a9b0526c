//go:build e2e

package meshes

import (
	"fmt"
	"testing"
	"time"
)

// vectors are the protocols and how they are started: without waiting to be
// forgotten, and with dumps a second apart.
func vectors() map[string][]string {
	return map[string][]string{"aomdv": {"--fresh"}, "dsdv": {"--hello", "1s"}, "adv": {"--hello", "1s"}}
}

// awaitHops waits until a proactive protocol has routes of a length both ways.
func (f *field) awaitHops(t *testing.T, from, to, want int) {
	t.Helper()
	wait(t, 2*time.Minute, func() error {
		if there, back := f.hops(t, from, to), f.hops(t, to, from); there != want || back != want {
			return fmt.Errorf("%d hops there and %d back: %+v", there, back, f.state(t, from))
		}
		return nil
	})
}

func TestVectorDetour(t *testing.T) {
	for protocol, args := range vectors() {
		t.Run(protocol, func(t *testing.T) { detour(t, protocol, args...) })
	}
}

// TestVectorChain: AOMDV, DSDV and ADV carry TCP over the five hops of a chain of
// six. Where routes are made on demand the first packet of all is not lost.
func TestVectorChain(t *testing.T) {
	for protocol, args := range vectors() {
		t.Run(protocol, func(t *testing.T) {
			f := newField(t, 6, 11, chain)
			f.route(t, protocol, args...)
			if protocol == "dsdv" {
				f.awaitHops(t, 0, 5, 5)
			}
			f.datagram(t, 0, 5)
			got := f.bulk(t, 0, 5, 256<<10)
			f.reaches(t, 0, 5, 5)
			t.Logf("%.2f Mbit/s, %d retransmissions", got.End.Received.Bps/1e6, got.End.Sent.Retransmits)
		})
	}
}
