//go:build e2e

package mesh

import (
	"fmt"
	"testing"
	"time"
)

// TestVectorChain: AOMDV, DSDV and ADV carry TCP over the five hops of a chain of
// six. Where routes are made on demand the first packet of all is not lost.
func TestVectorChain(t *testing.T) {
	for protocol, args := range map[string][]string{
		"aomdv": {"--fresh"},
		"dsdv":  {"--hello", "1s"},
		"adv":   {"--hello", "1s"},
	} {
		t.Run(protocol, func(t *testing.T) {
			f := newField(t, 6, 11, chain)
			f.route(t, protocol, args...)
			if protocol == "dsdv" {
				wait(t, 2*time.Minute, func() error {
					if there, back := f.hops(t, 0, 5), f.hops(t, 5, 0); there != 5 || back != 5 {
						return fmt.Errorf("%d hops there and %d back: %+v", there, back, f.state(t, 0))
					}
					return nil
				})
			}
			f.datagram(t, 0, 5)
			got := f.iperf(t, 0, 5, 5)
			// DSDV takes what TCP's own collisions cost for broken links, and may have no
			// route just then.
			if hops := f.hops(t, 0, 5); hops != 5 && protocol != "dsdv" {
				t.Errorf("the route is %d hops long, want 5: %+v", hops, f.state(t, 0))
			}
			if got.End.Received.Bytes < 1<<16 {
				t.Errorf("only %d bytes arrived", got.End.Received.Bytes)
			}
			t.Logf("%.2f Mbit/s, %d retransmissions", got.End.Received.Bps/1e6, got.End.Sent.Retransmits)
		})
	}
}
