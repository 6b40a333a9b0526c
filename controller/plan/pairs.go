package plan

import (
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"slices"

	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// drawn stands for a flow's end that is drawn from the campaign's seed.
const drawn = "random"

// maxDrawn is how many flows one key of traffic can stand for: the most of the
// papers' is 50.
const maxDrawn = 100

// maxFlowName leaves room for a flow's number behind the name in the file.
const maxFlowName = 28

// flowsOf is how many flows a key of traffic stands for.
func flowsOf(m *node) int {
	if k := m.wholeAt("flows"); k != nil && !m.child("flows").bad {
		return max(1, *k)
	}
	return 1
}

// decodeFlows reads the flows that a key of traffic stands for: bulk, or
// bulk_1, bulk_2 and so on, on ports one after another.
func (c *check) decodeFlows(e entry) []wire.Flow {
	one := c.decodeFlow(e)
	if !e.value.child("flows").fine() {
		return []wire.Flow{one}
	}
	var out []wire.Flow
	for k := range flowsOf(e.value) {
		f := one
		f.Name, f.Port = fmt.Sprintf("%s_%d", e.key, k+1), one.Port+k
		out = append(out, f)
	}
	return out
}

// drawnFlows judges flows whose ends are drawn.
func (c *check) drawnFlows(flows *node) {
	pairs, named := 0, map[[2]string]bool{}
	for _, e := range flows.entries {
		path := "traffic." + e.key + "."
		from, to := c.flowEnd(e.value, "from") == drawn, c.flowEnd(e.value, "to") == drawn
		switch {
		case from != to:
			c.add(e.at, "trial.traffic.%s: one end is drawn and the other is not; allowed: from: random and to: "+
				"random, or neither", e.key)
		case !from:
			named[pair(c.flowEnd(e.value, "from"), c.flowEnd(e.value, "to"))] = true
			c.unfit(path+"flows", "between two nodes that are named", "streams, or from: random and to: random")
			c.unfit(path+"total_bps", "without flows that are drawn", "bitrate_bps")
		default:
			pairs += flowsOf(e.value)
			c.drawnNames(e)
		}
	}
	n := len(slices.Compact(slices.Sorted(slices.Values(c.participants()))))
	if most := n * (n - 1) / 2; pairs > most {
		c.add(flows.home, "trial.traffic: %d flows are drawn and %d nodes take part, which have %d pairs; allowed: "+
			"no more flows than pairs", pairs, n, most)
	} else if pairs > 0 && pairs+len(named) > most {
		c.add(flows.home, "trial.traffic: %d flows are drawn and %d of the %d pairs of nodes have a flow already; "+
			"allowed: no more flows than pairs", pairs, len(named), most)
	}
}

func (c *check) drawnNames(e entry) {
	if len(e.key) > maxFlowName && e.value.child("flows") != nil {
		c.add(e.at, "trial.traffic: %q is too long for a name of several flows; allowed: at most %d characters", e.key,
			maxFlowName)
	}
	first, k := iperf3Port, flowsOf(e.value)
	if port := e.value.wholeAt("port"); port != nil {
		first = *port
	}
	if last := first + k - 1; last > 65535 || first < clientPortFirst && last >= clientPortFirst {
		c.add(e.at, "trial.traffic.%s.port: %d flows from port %d on meet ports that are not for servers; allowed: a "+
			"lower port", e.key, k, first)
	}
}

// drawPairs gives the flows whose ends are drawn two nodes each: no two flows
// of a trial have the same two. They hang on seed, repetition and flow alone,
// so that the cells of a repetition differ in nothing but their factors, and a
// cell with more flows has those of a cell with fewer.
//
// The first that is measured has the roles of sender and receiver.
func drawPairs(seed uint64, t *wire.Trial) {
	nodes := slices.Sorted(slices.Values(t.Nodes()))
	taken := map[[2]string]bool{}
	for _, f := range t.Traffic {
		taken[pair(f.From, f.To)] = f.From != drawn
	}
	roles := false
	for i := range t.Traffic {
		f := &t.Traffic[i]
		if f.From != drawn || !pairIsFree(nodes, taken) { // none left is a fault, and was reported
			roles = roles || !f.Background
			continue
		}
		h := fnv.New64a()
		fmt.Fprintf(h, "%s/%d", f.Name, t.Repetition) // a hash takes everything
		r := rand.New(rand.NewPCG(seed, h.Sum64()))
		for {
			order := r.Perm(len(nodes))
			if f.From, f.To = nodes[order[0]], nodes[order[1]]; !taken[pair(f.From, f.To)] {
				break
			}
		}
		taken[pair(f.From, f.To)] = true
		if !roles && !f.Background {
			roles = true
			takeRoles(t, nodes, *f)
		}
	}
}

func pairIsFree(nodes []string, taken map[[2]string]bool) bool {
	for i, a := range nodes {
		for _, b := range nodes[:i] {
			if !taken[pair(a, b)] {
				return true
			}
		}
	}
	return false
}

func pair(a, b string) [2]string { return [2]string{min(a, b), max(a, b)} }

func takeRoles(t *wire.Trial, nodes []string, f wire.Flow) {
	t.Sender, t.Receiver = f.From, f.To
	t.Relays = slices.DeleteFunc(slices.Clone(nodes), func(n string) bool {
		return slices.Contains([]string{t.Sender, t.Receiver, t.Car, t.Roadside}, n)
	})
}
