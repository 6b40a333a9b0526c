//go:build e2e

package meshes

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"fieldmesh.dev/fieldmesh/rehearsal/mobility"
	"fieldmesh.dev/fieldmesh/test/testnet"
)

// Fields of many nodes. In the grid the radios reach the neighbours of the same
// row and column (120 m) and not those across the corner (170 m).
const (
	gridSide     = 5
	gridSpacingM = 120
	bulkBytes    = 1 << 18
)

func grid() []mobility.Place {
	return mobility.Grid(gridSide*gridSide, gridSide, mobility.Place{}, gridSpacingM)
}

// TestGrid: two of the protocols, one of either kind, carry TCP from one corner
// of a grid of 25 to the other. TestSoakGrid has all of them.
func TestGrid(t *testing.T) {
	for _, name := range []string{"olsr", "aodv"} {
		t.Run(name, func(t *testing.T) { carry(t, contenderOf(t, name), grid(), 0, gridSide*gridSide-1) })
	}
}

func TestSoakGrid(t *testing.T) {
	testnet.NeedSet(t, "FIELDMESH_SOAK", "takes long")
	for _, c := range contenders() {
		t.Run(c.name, func(t *testing.T) { carry(t, c, grid(), 0, gridSide*gridSide-1) })
	}
}

// TestSoakRandom: 50 nodes at random places of a field as long as eight reaches
// and two wide, as the papers' is; the flow goes between those two that are the
// most hops apart.
func TestSoakRandom(t *testing.T) {
	testnet.NeedSet(t, "FIELDMESH_SOAK", "takes long")
	places, from, to, hops := scattered(t, 50, 1200, 300)
	t.Logf("from n%d to n%d it is %d hops", from+1, to+1, hops)
	if hops < 5 {
		t.Fatalf("the longest way of the field is %d hops", hops)
	}
	for _, c := range contenders() {
		t.Run(c.name, func(t *testing.T) { carry(t, c, places, from, to) })
	}
}

// carry has a protocol carry a flow over a field: the first packet is not lost,
// TCP gets through over no fewer hops than there are, and goes another way when
// the first relay goes out of range.
func carry(t *testing.T, c contender, places []mobility.Place, from, to int) {
	t.Helper()
	var gone atomic.Int32 // the node that is far away, counted from 1
	f := newField(t, len(places), 11, func(node int, _ time.Duration) (xM, yM float64) {
		if int32(node+1) == gone.Load() {
			return 1e5, 1e5
		}
		return places[node].XM, places[node].YM
	})
	least := hopsFrom(places, from, -1)[to]
	began := time.Now()
	f.begin(t, c)
	if c.proactive {
		f.awaitRoutes(t, c, from, to)
		t.Logf("%s: routes after %.1f s", c.name, time.Since(began).Seconds())
	}
	asked := time.Now()
	f.datagram(t, from, to)
	t.Logf("%s: the first packet took %.2f s", c.name, time.Since(asked).Seconds())
	first := f.bulk(t, from, to, bulkBytes)
	before, hops := f.awaitWay(t, c, from, to, least)
	t.Logf("%s: %d bytes over TCP took %.1f s, %d retransmissions; afterwards %d hops: %s", c.name, bulkBytes,
		first.End.Received.Seconds, first.End.Sent.Retransmits, hops, names(before))
	relay := before[1]
	if hopsFrom(places, from, relay)[to] < 0 {
		t.Fatalf("without n%d there is no way: another seed is wanted", relay+1)
	}
	gone.Store(int32(relay + 1))
	cut := time.Now()
	probe := f.udp(t, from, to)
	var after []int
	wait(t, 3*time.Minute, func() error {
		passed := probe.send(t, time.Second)
		after, hops = f.trace(t, c, from, to)
		if !passed || hops < least || slices.Contains(after, relay) {
			return fmt.Errorf("with n%d out of range a packet passed: %v; the way is %s", relay+1, passed, names(after))
		}
		return nil
	})
	t.Logf("%s: without n%d packets passed again after %.1f s, %d hops: %s", c.name, relay+1, time.Since(cut).Seconds(),
		hops, names(after))
	second := f.bulk(t, from, to, bulkBytes)
	t.Logf("%s: over the detour they took %.1f s", c.name, second.End.Received.Seconds)
}

// hopsFrom is how many hops each node is from one, −1 for those out of reach;
// without a node, where one is named.
func hopsFrom(places []mobility.Place, from, without int) []int {
	out := make([]int, len(places))
	for i := range out {
		out[i] = -1
	}
	out[from] = 0
	for queue := []int{from}; len(queue) > 0; queue = queue[1:] {
		for i := range places {
			if i != without && out[i] < 0 && near(places[queue[0]], places[i]) {
				out[i] = out[queue[0]] + 1
				queue = append(queue, i)
			}
		}
	}
	return out
}

func near(a, b mobility.Place) bool {
	x, y := a.XM-b.XM, a.YM-b.YM
	return x*x+y*y <= rangeM*rangeM
}

// scattered puts nodes at random places, so that each reaches each over others,
// whichever other node is away, and gives the two that are the most hops apart.
func scattered(t *testing.T, nodes int, widthM, depthM float64) (places []mobility.Place, from, to, hops int) {
	t.Helper()
	for seed := uint64(1); seed < 10_000; seed++ {
		random := rand.New(rand.NewPCG(seed, 0))
		places = make([]mobility.Place, nodes)
		for i := range places {
			places[i] = mobility.Place{XM: widthM * random.Float64(), YM: depthM * random.Float64()}
		}
		if !firm(places) {
			continue
		}
		t.Logf("seed %d", seed)
		for i := range places {
			for k, n := range hopsFrom(places, i, -1) {
				if n > hops {
					from, to, hops = i, k, n
				}
			}
		}
		return places, from, to, hops
	}
	t.Fatal("no seed gives a field that holds together")
	return nil, 0, 0, 0
}

// firm reports whether every node reaches every other with any third one away.
func firm(places []mobility.Place) bool {
	for without := range places {
		from := 0
		if without == 0 {
			from = 1
		}
		for i, n := range hopsFrom(places, from, without) {
			if n < 0 && i != without {
				return false
			}
		}
	}
	return true
}
