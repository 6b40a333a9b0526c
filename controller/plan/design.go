package plan

import (
	"slices"

	model "fieldmesh.dev/fieldmesh/controller/design"
	"fieldmesh.dev/fieldmesh/controller/plan/draw"
	"fieldmesh.dev/fieldmesh/controller/plan/tree"
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
	at     tree.Position
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

func (p *parse) readDesign(root *tree.Node) {
	n := root.Child("design")
	if n == nil {
		return
	}
	f := &p.findings
	p.schema.design().check(f, "design", n)
	if n.Shape != tree.Map {
		return
	}
	d := &p.design
	if r := n.WholeAt("repetitions"); r != nil {
		d.repetitions = *r
	}
	d.order = n.TextAt("order")
	if seed := n.NumberAt("seed"); seed != nil {
		d.seed = uint64(*seed)
	} else if d.order == orderBlocks && n.Child("seed") == nil {
		f.Add(n.Home, `design: key "seed" is missing; allowed: a whole number from 0 up to %d, from which the order is drawn`, int64(maxSeed))
	}
	if plots := n.Child("whole_plots"); plots.Fine() {
		if d.order == orderListed && !p.archived {
			f.Add(plots.Home, "design.whole_plots: it is not allowed with order: as_listed, which it leaves as it is; "+
				"allowed: order: randomised_blocks, or leave it out and list these factors first")
		}
		for _, item := range plots.Items {
			d.wholeNames = append(d.wholeNames, item.Text)
			d.wholePlots = append(d.wholePlots, slices.Index(p.factorNames(), item.Text))
		}
	}
	p.readBalance(root, n.Child("balance"))
	p.readStopWhen(n.Child("stop_when"))
}

func (p *parse) factorNames() []string {
	out := []string{}
	for _, x := range p.factors {
		out = append(out, x.name)
	}
	return out
}

// readAsks reads the effects that the campaign's question is about.
func (p *parse) readAsks(n *tree.Node) {
	if n == nil {
		return
	}
	effects := append(model.Words(), p.factorNames()...)
	slices.Sort(effects)
	list{1, len(effects), reference{"effect", slices.Compact(effects)}, true}.check(&p.findings, "asks", n)
	if !n.Fine() || n.Shape != tree.List {
		return
	}
	for _, item := range n.Items {
		p.asks = append(p.asks, item.Text)
	}
}

// readBalance reads the balanced keys: single values of any key that no factor sets.
func (p *parse) readBalance(root, n *tree.Node) {
	f := &p.findings
	if n == nil || !wantShape(f, "design.balance", n, tree.Map, "a mapping from dotted keys of a trial to lists "+
		"of values") {
		return
	}
	taken := map[string]string{}
	for _, x := range p.factors {
		for _, path := range x.paths() {
			taken[path] = x.name
		}
	}
	for _, e := range n.Entries {
		path := join("design.balance", e.Key)
		key := tree.NewText(e.Key, e.At)
		target := p.keyRule(root, "design.balance", key)
		if target == nil {
			continue
		}
		if owner, both := taken[e.Key]; both {
			f.Add(e.At, "%s: factor %s sets this key; allowed: a factor or a balance for a key, not both", path, owner)
			continue
		}
		l := list{2, maxBalanced, target, true}
		l.check(f, path, e.Value)
		if e.Value.Bad {
			continue
		}
		b := balance{key: e.Key, at: e.At}
		for _, item := range e.Value.Items {
			if item.Shape == tree.Map || item.Shape == tree.List {
				f.Add(item.At, "%s: %s cannot be balanced; allowed: single values", path, item.Show())
				continue
			}
			b.values = append(b.values, level{label(item), item.At, tree.Nest(e.Key, item)})
		}
		p.design.balance = append(p.design.balance, b)
	}
}

// orderOf is the cells of block b (from 1) in the order of driving; each block holds every cell once.
func (d design) orderOf(b int, cells []cell) []int {
	order, plots := make([]int, len(cells)), make([]string, len(cells))
	for c := range cells {
		order[c] = c
		for _, i := range d.wholePlots {
			plots[c] += cells[c].levels[i].label + "\x00"
		}
	}
	if d.order == orderBlocks {
		draw.Order(d.seed, b, order, plots)
	}
	return order
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
		draw.Offsets(d.seed, k, offsets)
	}
	return func(cell, block int) int { return (offsets[cell] + block - 1) % values }
}
