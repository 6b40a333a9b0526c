package plan

import (
	"fmt"
	"slices"

	"fieldmesh.dev/fieldmesh/controller/plan/draw"
	"fieldmesh.dev/fieldmesh/controller/plan/tree"
	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// maxDrawn is how many flows one key of traffic can stand for: the most of the
// papers' is 50.
const maxDrawn = 100

// maxFlowName leaves room for a flow's number behind the name in the file.
const maxFlowName = 28

// flowsOf is how many flows a key of traffic stands for.
func flowsOf(m *tree.Node) int {
	if k := m.WholeAt("flows"); k != nil && !m.Child("flows").Bad {
		return max(1, *k)
	}
	return 1
}

// decodeFlows reads the flows that a key of traffic stands for: bulk, or
// bulk_1, bulk_2 and so on, on ports one after another.
func (c *check) decodeFlows(e tree.Entry) []wire.Flow {
	one := c.decodeFlow(e)
	if !e.Value.Child("flows").Fine() {
		return []wire.Flow{one}
	}
	var out []wire.Flow
	for k := range flowsOf(e.Value) {
		f := one
		f.Name, f.Port = fmt.Sprintf("%s_%d", e.Key, k+1), one.Port+k
		out = append(out, f)
	}
	return out
}

// drawnFlows judges flows whose ends are drawn.
func (c *check) drawnFlows(flows *tree.Node) {
	var all []wire.Flow
	for _, e := range flows.Entries {
		path := "traffic." + e.Key + "."
		from, to := c.flowEnd(e.Value, "from") == draw.Random, c.flowEnd(e.Value, "to") == draw.Random
		switch {
		case from != to:
			c.add(e.At, "trial.traffic.%s: one end is drawn and the other is not; allowed: from: random and to: "+
				"random, or neither", e.Key)
		case !from:
			c.unfit(path+"flows", "between two nodes that are named", "streams, or from: random and to: random")
			c.unfit(path+"total_bps", "without flows that are drawn", "bitrate_bps")
			c.unfit(path+"unique_ends", "between two nodes that are named", "leave it out")
		default:
			c.drawnNames(e)
		}
		all = append(all, c.decodeFlows(e)...)
	}
	nodes := slices.Compact(slices.Sorted(slices.Values(c.participants())))
	if lacking := draw.Lacking(len(nodes), all); lacking != "" {
		c.add(flows.Home, "trial.traffic: %s", lacking)
	}
}

func (c *check) drawnNames(e tree.Entry) {
	if len(e.Key) > maxFlowName && e.Value.Child("flows") != nil {
		c.add(e.At, "trial.traffic: %q is too long for a name of several flows; allowed: at most %d characters", e.Key,
			maxFlowName)
	}
	first, k := iperf3Port, flowsOf(e.Value)
	if port := e.Value.WholeAt("port"); port != nil {
		first = *port
	}
	if last := first + k - 1; last > 65535 || first < clientPortFirst && last >= clientPortFirst {
		c.add(e.At, "trial.traffic.%s.port: %d flows from port %d on meet ports that are not for servers; allowed: a "+
			"lower port", e.Key, k, first)
	}
}
