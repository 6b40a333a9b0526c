// Package draw is what a campaign's seed decides: the order of a block, what is
// dealt to its cells, and the ends of flows. One seed draws the same for ever.
package draw

import (
	"math"
	"math/rand/v2"
	"slices"

	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// Random numbers: PCG (math/rand/v2) seeded with the campaign's seed and a
// stream. Block b draws its order from stream b, so that more repetitions
// leave the earlier blocks as they were; balanced key k draws from stream
// balanceStream + k.
// A flow draws its ends from a stream of its own, and when it begins from the
// campaign's seed with every bit turned in the same stream.
const balanceStream = 1 << 32

// Order shuffles the cells of block b (from 1); plots are the cells' whole plots.
//
// The levels of the whole-plot factors come in random order, and under each of
// their combinations the other cells in random order: a split-plot design, for
// factors (such as which laptop is in the car) that cannot change between any
// two trials. Where all cells are of one plot it is a randomised complete block.
func Order(seed uint64, b int, cells []int, plots []string) {
	shuffle(rand.New(rand.NewPCG(seed, uint64(b))), cells)
	// Plots are ranked by where the shuffle put their first cell. That ranks
	// all orders of plots alike, since every plot has as many cells; the order
	// within a plot stays the shuffle's.
	rank := map[string]int{}
	for i, c := range cells {
		if rank[plots[c]] == 0 {
			rank[plots[c]] = i + 1
		}
	}
	slices.SortStableFunc(cells, func(x, y int) int { return rank[plots[x]] - rank[plots[y]] })
}

// Offsets shuffles what is dealt to the cells for balanced key k.
func Offsets(seed uint64, k int, offsets []int) {
	shuffle(rand.New(rand.NewPCG(seed, balanceStream+uint64(k))), offsets)
}

func shuffle(r *rand.Rand, all []int) {
	r.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
}

// Random stands for a flow's end that is drawn.
const Random = "random"

// Ends gives the flows whose ends are drawn two nodes each: no two flows
// of a trial have the same two. They depend on seed, repetition and flow alone,
// so that the cells of a repetition differ in nothing but their factors, and a
// cell with more flows has those of a cell with fewer.
//
// The first that is measured has the roles of sender and receiver.
func Ends(seed uint64, t *wire.Trial) {
	nodes := slices.Sorted(slices.Values(t.Nodes()))
	taken := map[[2]string]bool{}
	for _, f := range t.Traffic {
		taken[Pair(f.From, f.To)] = f.From != Random
	}
	roles := false
	for i := range t.Traffic {
		f := &t.Traffic[i]
		start(seed, *t, f)
		if f.Across != "" {
			continue // see Across
		}
		if f.From != Random || !pairIsFree(nodes, taken) { // none left is a fault, and was reported
			roles = roles || !f.Background
			continue
		}
		r := rand.New(rand.NewPCG(seed, streamOf(*f, *t)))
		for {
			order := r.Perm(len(nodes))
			if f.From, f.To = nodes[order[0]], nodes[order[1]]; !taken[Pair(f.From, f.To)] {
				break
			}
		}
		taken[Pair(f.From, f.To)] = true
		if !roles && !f.Background {
			roles = true
			takeRoles(t, nodes, *f)
		}
	}
}

// start draws when a flow begins that has a span of time for it, to the
// millisecond; its end stays.
func start(seed uint64, t wire.Trial, f *wire.Flow) {
	if f.StartWithinS == nil {
		return
	}
	r := rand.New(rand.NewPCG(^seed, streamOf(*f, t)))
	later := math.Floor(r.Float64()**f.StartWithinS*1e3) / 1e3
	f.StartS = math.Round((f.StartS+later)*1e3) / 1e3
	f.DurationS = math.Round((f.DurationS-later)*1e3) / 1e3
}

func pairIsFree(nodes []string, taken map[[2]string]bool) bool {
	for i, a := range nodes {
		for _, b := range nodes[:i] {
			if !taken[Pair(a, b)] {
				return true
			}
		}
	}
	return false
}

// Pair is two nodes, whichever way.
func Pair(a, b string) [2]string { return [2]string{min(a, b), max(a, b)} }

func takeRoles(t *wire.Trial, nodes []string, f wire.Flow) {
	t.Sender, t.Receiver = f.From, f.To
	t.Relays = slices.DeleteFunc(slices.Clone(nodes), func(n string) bool {
		return slices.Contains([]string{t.Sender, t.Receiver, t.Car, t.Roadside}, n)
	})
}
