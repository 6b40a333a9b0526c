// Package draw is what a campaign's seed decides: the order of a block, what is
// dealt to its cells, and the ends of flows. One seed draws the same for ever.
package draw

import (
	"fmt"
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
// cell with more flows has those of a cell with fewer. Flows with unique ends,
// which are drawn before all others, have no node in common.
//
// The first that is measured has the roles of sender and receiver. The first of kind
// cbr begins at its start_s, so that the warm-up is as long as the campaign has it.
func Ends(seed uint64, t *wire.Trial) {
	nodes := slices.Sorted(slices.Values(t.Nodes()))
	p := pairs{nodes, map[[2]string]bool{}, map[string]bool{}}
	for _, f := range t.Traffic {
		p.taken[Pair(f.From, f.To)] = f.From != Random
	}
	drawn := make([]bool, len(t.Traffic))
	for _, unique := range []bool{true, false} {
		for i := range t.Traffic {
			if f := &t.Traffic[i]; f.UniqueEnds == unique && f.From == Random && f.Across == "" { // see Across
				drawn[i] = p.draw(rand.New(rand.NewPCG(seed, streamOf(*f, *t))), f)
			}
		}
	}
	roles, constant := false, false
	for i := range t.Traffic {
		f := &t.Traffic[i]
		if f.Kind != wire.KindCBR || constant {
			start(seed, *t, f)
		}
		constant = constant || f.Kind == wire.KindCBR
		if roles || f.Background || f.Across != "" {
			continue
		}
		roles = true
		if drawn[i] {
			takeRoles(t, nodes, *f)
		}
	}
}

// pairs are those that flows can have, of nodes.
type pairs struct {
	nodes  []string
	taken  map[[2]string]bool // by a flow
	unique map[string]bool    // nodes that end a flow with unique ends
}

func (p pairs) free(f wire.Flow, a, b string) bool {
	return !p.taken[Pair(a, b)] && !(f.UniqueEnds && (p.unique[a] || p.unique[b]))
}

// draw gives a flow two nodes. That there are none left is a fault, and was reported.
func (p pairs) draw(r *rand.Rand, f *wire.Flow) bool {
	if !p.anyFree(*f) {
		return false
	}
	for {
		order := r.Perm(len(p.nodes))
		if f.From, f.To = p.nodes[order[0]], p.nodes[order[1]]; p.free(*f, f.From, f.To) {
			break
		}
	}
	p.taken[Pair(f.From, f.To)] = true
	if f.UniqueEnds {
		p.unique[f.From], p.unique[f.To] = true, true
	}
	return true
}

// Lacking says why so many nodes are too few for the flows whose ends are drawn, and
// what is allowed; "": they are enough.
func Lacking(nodes int, flows []wire.Flow) string {
	drawn, unique, named := 0, 0, map[[2]string]bool{}
	for _, f := range flows {
		switch from, to := f.From == Random, f.To == Random; {
		case from && to:
			drawn++
			if f.UniqueEnds {
				unique++
			}
		case !from && !to:
			named[Pair(f.From, f.To)] = true
		}
	}
	most := nodes * (nodes - 1) / 2
	left := nodes - 2*(unique-1) // for the last with unique ends: two must be without a named flow between them
	switch {
	case drawn > most:
		return fmt.Sprintf("%d flows are drawn and %d nodes take part, which have %d pairs; allowed: no more flows "+
			"than pairs", drawn, nodes, most)
	case drawn > 0 && drawn+len(named) > most:
		return fmt.Sprintf("flows to draw: %d, pairs of nodes without a flow yet: %d of %d; allowed: no more flows "+
			"than such pairs", drawn, most-len(named), most)
	case unique > 0 && (left < 2 || left*(left-1)/2 <= len(named)):
		return fmt.Sprintf("%d flows have unique_ends and %d nodes take part; allowed: two nodes for each of these "+
			"flows, with no named flow between them", unique, nodes)
	}
	return ""
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

func (p pairs) anyFree(f wire.Flow) bool {
	for i, a := range p.nodes {
		for _, b := range p.nodes[:i] {
			if p.free(f, a, b) {
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
