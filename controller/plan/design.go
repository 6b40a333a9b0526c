package plan

import (
	"math/rand/v2"
	"slices"

	model "fieldmesh.dev/fieldmesh/controller/design"
)

// design is how cells become an order, as read.
type design struct {
	repetitions int
	order       string
	seed        uint64
	wholePlots  []int // indices of factors
	wholeNames  []string
	balance     []balance
	stopWhen    *StopWhen
}

// balance is one key whose values are spread over the repetitions of a cell.
type balance struct {
	key    string
	at     position
	values []level
}

func (d design) public() Design {
	out := Design{Repetitions: d.repetitions, Order: d.order, Seed: d.seed, WholePlots: d.wholeNames,
		StopWhen: d.stopWhen}
	for _, b := range d.balance {
		if out.Balance == nil {
			out.Balance = map[string][]string{}
		}
		for _, v := range b.values {
			out.Balance[b.key] = append(out.Balance[b.key], v.label)
		}
	}
	return out
}

const (
	orderBlocks = "randomised_blocks"
	orderListed = "as_listed"
	// maxSeed is the largest integer that every reader of JSON keeps exact.
	maxSeed = 1<<53 - 1
	// maxBalanced is how many values of a key can be balanced.
	maxBalanced = 20
)

func (s schema) design() object {
	return object{[]field{
		required("repetitions", number{1, 1000, false, true, ""}, "How often each cell is driven, once a block"),
		required("order", choice{orderBlocks, orderListed}, "Order of the cells in a block"),
		optional("seed", number{0, maxSeed, false, true, ""}, "What the order and drawn flows follow from"),
		optional("whole_plots", list{1, maxFactors, reference{"factor", s.factors}, true},
			"Factors that change seldom within a block, as who drives in which car"),
		optional("balance", anything{}, // a balanced key can be any key of a trial
			"Keys of a trial, dotted, whose values are spread evenly over a cell's repetitions"),
		optional("stop_when", s.stopWhen(), "When the run stops by itself; absent: all repetitions are driven"),
	}}
}

func (p *parse) readDesign(root *node) {
	n := root.child("design")
	if n == nil {
		return
	}
	f := &p.findings
	p.schema.design().check(f, "design", n)
	if n.shape != shapeMap {
		return
	}
	d := &p.design
	if r := n.wholeAt("repetitions"); r != nil {
		d.repetitions = *r
	}
	d.order = n.textAt("order")
	if seed := n.numberAt("seed"); seed != nil {
		d.seed = uint64(*seed)
	} else if d.order == orderBlocks && n.child("seed") == nil {
		f.add(n.home, `design: key "seed" is missing; allowed: a whole number from 0 up to %d, from which the order is drawn`, int64(maxSeed))
	}
	if plots := n.child("whole_plots"); plots.fine() {
		for _, item := range plots.items {
			d.wholeNames = append(d.wholeNames, item.text)
			d.wholePlots = append(d.wholePlots, slices.Index(p.factorNames(), item.text))
		}
	}
	p.readBalance(root, n.child("balance"))
	p.readStopWhen(n.child("stop_when"))
}

func (p *parse) factorNames() []string {
	out := []string{}
	for _, x := range p.factors {
		out = append(out, x.name)
	}
	return out
}

// readAsks reads the effects that the campaign's question is about.
func (p *parse) readAsks(n *node) {
	if n == nil {
		return
	}
	effects := append(model.Words(), p.factorNames()...)
	slices.Sort(effects)
	list{1, len(effects), reference{"effect", slices.Compact(effects)}, true}.check(&p.findings, "asks", n)
	if !n.fine() || n.shape != shapeList {
		return
	}
	for _, item := range n.items {
		p.asks = append(p.asks, item.text)
	}
}

// readBalance reads the balanced keys: single values of any key that no
// factor sets.
func (p *parse) readBalance(root, n *node) {
	f := &p.findings
	if n == nil || !wantShape(f, "design.balance", n, shapeMap, "a mapping from dotted keys of a trial to lists "+
		"of values") {
		return
	}
	taken := map[string]string{}
	for _, x := range p.factors {
		for _, path := range x.paths() {
			taken[path] = x.name
		}
	}
	for _, e := range n.entries {
		path := join("design.balance", e.key)
		key := textNode(e.key, e.at)
		target := p.keyRule(root, "design.balance", key)
		if target == nil {
			continue
		}
		if owner, both := taken[e.key]; both {
			f.add(e.at, "%s: factor %s sets this key; allowed: a factor or a balance for a key, not both", path, owner)
			continue
		}
		l := list{2, maxBalanced, target, true}
		l.check(f, path, e.value)
		if e.value.bad {
			continue
		}
		b := balance{key: e.key, at: e.at}
		for _, item := range e.value.items {
			if item.shape == shapeMap || item.shape == shapeList {
				f.add(item.at, "%s: %s cannot be balanced; allowed: single values", path, item.show())
				continue
			}
			b.values = append(b.values, level{label(item), item.at, nest(e.key, item)})
		}
		p.design.balance = append(p.design.balance, b)
	}
}

// Random numbers: PCG (math/rand/v2) seeded with the campaign's seed and a
// stream. Block b draws its order from stream b, so that more repetitions
// leave the earlier blocks as they were; balanced key k draws from stream
// balanceStream + k.
const balanceStream = 1 << 32

// order is the cells of block b (from 1) in the order of driving.
//
// Every block holds each cell once. Within a block the levels of the
// whole-plot factors come in random order, and under each of their
// combinations the other cells in random order: a split-plot design, for
// factors (such as which laptop is in the car) that cannot change between any
// two trials. Without whole plots it is a randomised complete block.
func (d design) orderOf(b int, cells []cell) []int {
	order := make([]int, len(cells))
	for i := range order {
		order[i] = i
	}
	if d.order != orderBlocks {
		return order
	}
	r := rand.New(rand.NewPCG(d.seed, uint64(b)))
	r.Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
	if len(d.wholePlots) == 0 {
		return order
	}
	// Plots are ranked by where the shuffle put their first cell. That ranks
	// all orders of plots alike, since every plot has as many cells; the order
	// within a plot stays the shuffle's.
	rank := map[string]int{}
	for i, c := range order {
		if plot := d.plotOf(cells[c]); rank[plot] == 0 {
			rank[plot] = i + 1
		}
	}
	slices.SortStableFunc(order, func(x, y int) int { return rank[d.plotOf(cells[x])] - rank[d.plotOf(cells[y])] })
	return order
}

// plotOf names a cell's whole plot.
func (d design) plotOf(c cell) string {
	plot := ""
	for _, i := range d.wholePlots {
		plot += c.levels[i].label + "\x00"
	}
	return plot
}

// balanced says which value of balanced key k the cells have in a block
// (from 1): cell c has value (offset of c + block) mod values. So a cell's
// repetitions take the values in turn, as evenly as their numbers divide. The
// offsets are dealt to the cells at random and as evenly, so that no value
// goes with one block or one factor's level.
func (d design) balanced(k, cells int) func(cell, block int) int {
	values := len(d.balance[k].values)
	offsets := make([]int, cells)
	for i := range offsets {
		offsets[i] = i % values
	}
	if d.order == orderBlocks {
		r := rand.New(rand.NewPCG(d.seed, balanceStream+uint64(k)))
		r.Shuffle(cells, func(i, j int) { offsets[i], offsets[j] = offsets[j], offsets[i] })
	}
	return func(cell, block int) int { return (offsets[cell] + block - 1) % values }
}
