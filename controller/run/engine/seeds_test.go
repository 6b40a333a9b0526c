package engine

import (
	"os"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
)

// schedules is how many are tried, and with FIELDMESH_SOAK how many.
const (
	schedules     = 3000
	soakSchedules = 100_000
)

// seeds calls f with seeds, on all processors, until it returns false.
func seeds(n int, f func(seed uint64) bool) {
	var next atomic.Uint64
	var wg sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		wg.Go(func() {
			for seed := next.Add(1); seed <= uint64(n) && f(seed); seed = next.Add(1) {
			}
		})
	}
	wg.Wait()
}

// A run keeps its promises, whatever is cut, killed, restarted, lost, late or
// done twice: no accepted trial is lost, none is accepted twice, a decision is
// on disk before any node learns it, one controller steers a node, and the run
// ends. FIELDMESH_SEED repeats one schedule.
func TestSoakSchedulesOfCuts(t *testing.T) {
	if text := os.Getenv("FIELDMESH_SEED"); text != "" {
		seed, err := strconv.ParseUint(text, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		w := newSimulation(seed, nil)
		w.trace = t.Logf
		if failure := w.run(); failure != "" {
			t.Fatalf("seed %d: %s", seed, failure)
		}
		return
	}
	n := schedules
	if os.Getenv("FIELDMESH_SOAK") != "" {
		n = soakSchedules
	}
	var failed atomic.Int32
	seeds(n, func(seed uint64) bool {
		if failure := newSimulation(seed, nil).run(); failure != "" {
			t.Errorf("FIELDMESH_SEED=%d: %s", seed, failure)
			return failed.Add(1) < 5
		}
		return true
	})
}

// The promises are checked well enough that deviations of the engine break them.
func TestPlantedMutantsAreFound(t *testing.T) {
	for _, m := range planted {
		t.Run(m.name, func(t *testing.T) {
			var by atomic.Uint64
			var how sync.Map
			seeds(schedules, func(seed uint64) bool {
				if failure := newSimulation(seed, &m).run(); failure != "" {
					how.Store(seed, failure)
					by.CompareAndSwap(0, seed)
				}
				return by.Load() == 0
			})
			if by.Load() == 0 {
				t.Fatalf("%d schedules do not notice", schedules)
			}
			failure, _ := how.Load(by.Load())
			t.Logf("seed %d: %s", by.Load(), failure)
		})
	}
}
