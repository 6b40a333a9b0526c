//go:build e2e

package medium

import (
	"fmt"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// All threads are of one priority: with the event thread above the others the
// process stood still within a minute of collecting garbage all the time.
func TestNoThreadStandsAboveAnother(t *testing.T) {
	startLiveWith(t, testConfig(Standard80211g, 54, 3), true, Options{})
	var seen map[string]int
	for range 100 {
		seen = map[string]int{}
		if err := eachThread(func(_ int, a *unix.SchedAttr) {
			seen[fmt.Sprintf("policy %d, priority %d", a.Policy, a.Priority)]++
		}); err != nil {
			t.Fatal(err)
		}
		if len(seen) == 1 && seen[fmt.Sprintf("policy %d, priority %d", unix.SCHED_FIFO, priority)] > 1 {
			return
		}
		time.Sleep(100 * time.Millisecond)
	}
	t.Errorf("threads by policy and priority: %v", seen)
}
