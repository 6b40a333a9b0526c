package simulation

import (
	"fmt"
	"io"
	"math/rand/v2"
	"time"

	"fieldmesh.dev/fieldmesh/protocols/manet"
)

// Scale is a question of scale: nodes at a fixed density on a square, a number
// of constant flows between random pairs that can reach one another.
type Scale struct {
	Seed     uint64
	Nodes    int
	RangeM   float64
	Degree   float64 // others within range, on average
	SpeedMps float64 // at most, by Random Waypoint; 0: nobody moves
	Radio    Radio
	Make     Maker
	Feedback bool
	Carrier  bool // see Config; its nodes are given what they overhear
	Duration time.Duration

	Flows        int
	FlowStart    manet.Time
	PacketBytes  int
	PacketPeriod time.Duration

	Pcap     io.Writer // every control packet, where set
	PcapPort uint16
}

// ScaleResult is what a run gave. Rates are per node and second of virtual
// time. Unknown is absent.
type ScaleResult struct {
	Nodes         int     `json:"nodes"`
	Seed          uint64  `json:"seed"`
	DurationS     float64 `json:"duration_s"`
	NeighborsMean float64 `json:"neighbors_mean"`
	// until 99 % of the pairs that can have working routes
	ConvergedS  *float64 `json:"converged_s,omitempty"`
	RoutedShare *float64 `json:"routed_share,omitempty"` // of those pairs, at the end
	// mean of an on-demand protocol's successful discoveries
	DiscoveryMs    *float64           `json:"discovery_ms,omitempty"`
	Discoveries    int                `json:"discoveries,omitempty"`     //
	PacketsPerS    float64            `json:"packets_per_s"`             // control packets
	BytesPerS      float64            `json:"bytes_per_s"`               // of IP
	MessagesPerS   map[string]float64 `json:"messages_per_s"`            // by kind
	DataSent       int64              `json:"data_sent"`                 // packets
	DeliveredShare *float64           `json:"delivered_share,omitempty"` //
	HopsMean       *float64           `json:"hops_mean,omitempty"`
	DelayMs        *float64           `json:"delay_ms,omitempty"` // mean
	RouteChanges   float64            `json:"route_changes_per_s"`
}

// sampledPairs is how many pairs are followed to judge convergence.
const sampledPairs = 500

// Run answers the question. proactive says that the protocol keeps routes to
// all nodes, so that convergence can be judged.
func (c Scale) Run(proactive bool) (ScaleResult, error) {
	out := ScaleResult{Nodes: c.Nodes, Seed: c.Seed, DurationS: c.Duration.Seconds(),
		MessagesPerS: map[string]float64{}}
	sim, err := New(Config{Seed: c.Seed, Nodes: c.Nodes, Radio: c.Radio, Make: c.Make, Feedback: c.Feedback,
		Carrier: c.Carrier, Promiscuous: c.Carrier})
	if err != nil {
		return out, err
	}
	var capture *Capture
	if c.Pcap != nil {
		if capture, err = sim.CaptureTo(c.Pcap, c.PcapPort); err != nil {
			return out, err
		}
	}
	field := sim.Scatter(c.Seed, c.RangeM, c.Degree)
	if c.SpeedMps > 0 {
		field.Roam(min(1, c.SpeedMps), c.SpeedMps, c.Duration)
	}
	pairs := sim.pairs(c.Seed)
	c.startFlows(sim, pairs)
	var latency float64
	sim.OnReport = func(_ int, r manet.Report) {
		if r.Kind == "discovery_us" {
			out.Discoveries++
			latency += r.Value / 1000
		}
	}
	if proactive {
		sim.watchConvergence(pairs, &out)
	}
	if err := sim.Run(c.Duration); err != nil {
		return out, err
	}
	if capture != nil && capture.Err() != nil {
		return out, capture.Err()
	}
	if out.Discoveries > 0 {
		out.DiscoveryMs = ptr(latency / float64(out.Discoveries))
	}
	sim.summarise(&out)
	return out, nil
}

func ptr(v float64) *float64 { return &v }

// pairs draws pairs of nodes that can reach one another at the start.
func (s *Sim) pairs(seed uint64) [][2]int {
	r := rand.New(rand.NewPCG(seed, 5))
	part := s.Components()
	var out [][2]int
	for range 20 * sampledPairs {
		a, b := r.IntN(len(s.nodes)), r.IntN(len(s.nodes))
		if a != b && part[a] == part[b] && len(out) < sampledPairs {
			out = append(out, [2]int{a, b})
		}
	}
	return out
}

func (c Scale) startFlows(sim *Sim, pairs [][2]int) {
	for i := range min(c.Flows, len(pairs)) {
		start := c.FlowStart + time.Duration(i)*c.PacketPeriod/time.Duration(c.Flows)
		sim.Flow(pairs[i][0], pairs[i][1], c.PacketBytes, c.PacketPeriod, start, c.Duration)
	}
}

// watchConvergence looks at the pairs every quarter of a second until they
// have converged, and at the end.
func (s *Sim) watchConvergence(pairs [][2]int, out *ScaleResult) {
	end := time.Duration(out.DurationS * 1e9)
	var look func()
	look = func() {
		part := s.Components()
		able, routed := 0, 0
		for _, p := range pairs {
			if part[p[0]] != part[p[1]] {
				continue
			}
			able++
			if _, err := s.Path(p[0], p[1]); err == nil {
				routed++
			}
		}
		if able > 0 {
			out.RoutedShare = ptr(float64(routed) / float64(able))
			if out.ConvergedS == nil && *out.RoutedShare >= 0.99 {
				out.ConvergedS = ptr(s.now.Seconds())
			}
		}
		switch {
		case out.ConvergedS == nil && s.now+250*time.Millisecond < end:
			s.At(s.now+250*time.Millisecond, look)
		case s.now < end:
			s.At(end, look)
		}
	}
	s.At(250*time.Millisecond, look)
}

func (s *Sim) summarise(out *ScaleResult) {
	per := float64(len(s.nodes)) * out.DurationS
	links := 0
	for _, p := range s.ports {
		links += len(p.links)
	}
	out.NeighborsMean = float64(links) / float64(len(s.nodes))
	for _, n := range s.nodes {
		out.PacketsPerS += float64(n.Stats.Packets) / per
		out.BytesPerS += float64(n.Stats.Bytes) / per
		out.RouteChanges += float64(n.Stats.RouteChanges) / per
		for kind, count := range n.Stats.Messages {
			out.MessagesPerS[kind] += float64(count) / per
		}
	}
	out.DataSent = s.Data.Sent
	if s.Data.Sent > 0 {
		out.DeliveredShare = ptr(float64(s.Data.Delivered) / float64(s.Data.Sent))
	}
	if s.Data.Delivered > 0 {
		out.HopsMean = ptr(float64(s.Data.Hops) / float64(s.Data.Delivered))
		out.DelayMs = ptr(s.Data.Delay.Seconds() * 1000 / float64(s.Data.Delivered))
	}
}

// Check says what is wrong with the question.
func (c Scale) Check() error {
	switch {
	case c.Nodes < 2 || c.Nodes > 5000:
		return fmt.Errorf("--nodes %d: expected 2 to 5000", c.Nodes)
	case c.Degree <= 0 || c.RangeM <= 0:
		return fmt.Errorf("a degree of %g and a range of %g m, want both above 0", c.Degree, c.RangeM)
	case c.Duration < time.Second || c.Duration > 24*time.Hour:
		return fmt.Errorf("a duration of %v, want 1s to 24h", c.Duration)
	case c.SpeedMps < 0 || c.Flows < 0:
		return fmt.Errorf("a speed of %g m/s and %d flows, want neither below 0", c.SpeedMps, c.Flows)
	case c.Flows > 0 && c.PacketPeriod <= 0:
		return fmt.Errorf("a packet every %v, want more than 0", c.PacketPeriod)
	}
	return nil
}
