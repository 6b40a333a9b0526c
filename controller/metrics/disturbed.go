package metrics

import "fieldmesh.dev/fieldmesh/protocols/wire"

// Names of what disturbed an attempt and did not fail it.
const (
	RefusedPackets  = "refused_packets"
	FilteredPackets = "filtered_packets"
	SocketsLeft     = "nodes_with_sockets_left"
	StandstillMaxMs = "agent_standstill_max_ms"
)

var (
	refusedPackets = definition{RefusedPackets, "packets", "packets to the flows' ports from other addresses " +
		"than the plan's, which the nodes dropped from arming to the attempt's end: they had their time on " +
		"the air; sum over the nodes that can refuse"}
	filteredPackets = definition{FilteredPackets, "packets", "packets of the flows that a node's own packet " +
		"filter (firewall) stopped, on their way in or out; sum over the nodes that can count them"}
	socketsLeft = definition{SocketsLeft, "nodes", "nodes that could not end the attempt's connections or " +
		"what waited to be sent: these send in the next window"}
	standstillMax = definition{StandstillMaxMs, "ms", "longest time in the window in which the agent of a " +
		"node did not run; relays that relay_sample_hz samples less often than the rest are not watched"}
)

// disturbed tells what of the attempt was not as it should be, and was let pass.
func (s *set) disturbed() {
	var refused, filtered, left, still *float64
	add := func(to **float64, v float64) {
		if *to == nil {
			*to = new(float64)
		}
		**to += v
	}
	for _, r := range s.at.records {
		switch b := r.Body.(type) {
		case *wire.Edge:
			if b.Edge != "end" {
				continue
			}
			if b.Refused != nil {
				add(&refused, float64(*b.Refused))
			}
			if b.Filtered != nil {
				add(&filtered, float64(*b.Filtered))
			}
			add(&left, 0)
			if b.Error != "" {
				add(&left, 1)
			}
		case *wire.Lateness:
			if b.Source == wire.LateAgent && (still == nil || b.WorstUs/1e3 > *still) {
				still = new(b.WorstUs / 1e3)
			}
		}
	}
	s.put("", refusedPackets, refused)
	s.put("", filteredPackets, filtered)
	s.put("", socketsLeft, left)
	s.put("", standstillMax, still)
}
