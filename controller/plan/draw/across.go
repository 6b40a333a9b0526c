package draw

import (
	"cmp"
	"fmt"
	"hash/fnv"
	"maps"
	"math/rand/v2"
	"slices"

	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// Links are the nodes that each node hears and that hear it. The zero value has none.
type Links struct {
	names []string // sorted
	at    map[string]int
	to    [][]int
	known []*ways // from each node, as far as they were asked for
}

// LinksOf makes links of each node's, by its name.
func LinksOf(of map[string][]string) *Links {
	l := &Links{at: map[string]int{}}
	all := map[string]bool{}
	for node, others := range of {
		all[node] = true
		for _, other := range others {
			all[other] = true
		}
	}
	l.names = slices.Sorted(maps.Keys(all))
	l.to, l.known = make([][]int, len(l.names)), make([]*ways, len(l.names))
	for i, name := range l.names {
		l.at[name] = i
	}
	for node, others := range of {
		for _, other := range others {
			l.to[l.at[node]] = append(l.to[l.at[node]], l.at[other])
		}
	}
	return l
}

// Across gives flows that are to cross another's way their ends; at says which
// links there are so long after the window opened.
//
// The links that count are those when the flow begins or, until it can be led by
// them, those of every fifth second after. Of the nodes that relay the other flow
// on a way of fewest hops, it is led over the one on most of those ways; of
// several, over the one nearest to their middle, and then the first by name; over
// another only where no pair is free for that one. Its ends are drawn from the
// pairs of other nodes of whose own ways of fewest hops the greatest share leads
// over that node. They hang on seed, repetition, flow and links alone.
//
// A flow that can be led over no node as long as it lasts, because the other has
// no way or needs no relay, has two ends that are drawn as any others, and no
// AcrossNode.
func Across(seed uint64, t *wire.Trial, at func(atS float64) (*Links, error)) error {
	for i := range t.Traffic {
		f := &t.Traffic[i]
		if f.Across == "" {
			continue
		}
		k := slices.IndexFunc(t.Traffic, func(o wire.Flow) bool { return o.Name == f.Across })
		if k < 0 {
			return fmt.Errorf("draw the ends of flow %s: there is no flow %s", f.Name, f.Across)
		}
		relay, pairs, err := crossing(*f, t.Traffic[k], *t, at)
		if err != nil {
			return err
		}
		if len(pairs) == 0 {
			pairs = free(*t, "")
		}
		if len(pairs) == 0 {
			return fmt.Errorf("draw the ends of flow %s: every pair of nodes that do not end a measured flow has a "+
				"flow already; allowed: more relays, or fewer flows", f.Name)
		}
		r := rand.New(rand.NewPCG(seed, streamOf(*f, *t)))
		pair := pairs[r.IntN(len(pairs))]
		if r.IntN(2) == 1 {
			pair[0], pair[1] = pair[1], pair[0]
		}
		f.From, f.To, f.AcrossNode = pair[0], pair[1], relay
	}
	return nil
}

// streamOf is the stream of random numbers of a flow in a repetition.
func streamOf(f wire.Flow, t wire.Trial) uint64 {
	h := fnv.New64a()
	fmt.Fprintf(h, "%s/%d", f.Name, t.Repetition) // a hash takes everything
	return h.Sum64()
}

// everyS is how often links are looked at: in 5 s a node at 20 m/s goes less than
// half as far as ns-2's radio reaches.
const everyS = 5

// crossing finds the node over which f is led, and the pairs that its ends can be.
func crossing(f, crossed wire.Flow, t wire.Trial, at func(float64) (*Links, error)) (string, [][2]string, error) {
	for atS := f.StartS; atS < f.StartS+f.DurationS; atS += everyS {
		links, err := at(atS)
		if err != nil {
			return "", nil, err
		}
		for _, relay := range links.relays(crossed.From, crossed.To) {
			if pairs := links.pairsOver(relay, free(t, relay)); len(pairs) > 0 {
				return relay, pairs, nil
			}
		}
		if t.Still {
			break
		}
	}
	return "", nil, nil
}

// ways are those of fewest hops from a node, by the index of the node at their end.
type ways struct {
	hops   []int     // to it; unreached where there is no way
	number []float64 // how many ways
}

const unreached = -1

func (l *Links) from(node int) *ways {
	if l.known[node] != nil {
		return l.known[node]
	}
	w := &ways{slices.Repeat([]int{unreached}, len(l.names)), make([]float64, len(l.names))}
	w.hops[node], w.number[node] = 0, 1
	for next := []int{node}; len(next) > 0; next = next[1:] {
		for _, to := range l.to[next[0]] {
			if w.hops[to] == unreached {
				w.hops[to] = w.hops[next[0]] + 1
				next = append(next, to)
			}
			if w.hops[to] == w.hops[next[0]]+1 {
				w.number[to] += w.number[next[0]]
			}
		}
	}
	l.known[node] = w
	return w
}

// share of the ways from one node to another that lead over a third.
func (l *Links) share(node, to, over int) float64 {
	from, by := l.from(node), l.from(over)
	there, back := from.hops[over], by.hops[to]
	if there <= 0 || back <= 0 || there+back != from.hops[to] {
		return 0
	}
	return from.number[over] * by.number[to] / from.number[to]
}

// relays are the nodes on ways of fewest hops between two others, as Across ranks them.
func (l *Links) relays(from, to string) []string {
	i, isThere := l.at[from]
	j, reached := l.at[to]
	if !isThere || !reached || l.from(i).hops[j] < 2 { // no way, or no relay
		return nil
	}
	type relay struct {
		name   string
		share  float64
		beside int // hops off the middle, doubled
	}
	var all []relay
	for over, name := range l.names {
		if s := l.share(i, j, over); s > 0 {
			beside := l.from(i).hops[over] - l.from(over).hops[j]
			all = append(all, relay{name, s, max(beside, -beside)})
		}
	}
	slices.SortStableFunc(all, func(a, b relay) int {
		return cmp.Or(cmp.Compare(b.share, a.share), cmp.Compare(a.beside, b.beside))
	})
	var out []string
	for _, r := range all {
		out = append(out, r.name)
	}
	return out
}

// pairsOver are those of pairs of whose ways the greatest share leads over a node.
func (l *Links) pairsOver(over string, pairs [][2]string) (out [][2]string) {
	most := 0.0
	for _, p := range pairs {
		i, isThere := l.at[p[0]]
		j, reached := l.at[p[1]]
		if !isThere || !reached {
			continue
		}
		s := l.share(i, j, l.at[over])
		if s > most {
			most, out = s, nil
		}
		if s > 0 && s == most {
			out = append(out, p)
		}
	}
	return out
}

// free are the pairs of a trial's nodes, but for one, that end no measured flow
// and have no flow between them.
func free(t wire.Trial, but string) [][2]string {
	busy, taken := map[string]bool{but: true}, map[[2]string]bool{}
	for _, f := range t.Traffic {
		taken[Pair(f.From, f.To)] = true
		if !f.Background {
			busy[f.From], busy[f.To] = true, true
		}
	}
	nodes := slices.DeleteFunc(slices.Sorted(slices.Values(t.Nodes())), func(n string) bool { return busy[n] })
	var out [][2]string
	for i, a := range nodes {
		for _, b := range nodes[i+1:] {
			if !taken[Pair(a, b)] {
				out = append(out, [2]string{a, b})
			}
		}
	}
	return out
}
