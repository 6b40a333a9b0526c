package simulation

import (
	"fmt"
	"slices"
	"time"

	"fieldmesh.dev/fieldmesh/protocols/manet"
)

// usableLoss is the loss of a frame above which a link does not count as one
// when reachability is judged.
const usableLoss = 0.5

// Components numbers each node with its part of the network, over links that
// work both ways; a node that is off has -1.
func (s *Sim) Components() []int {
	part := make([]int, len(s.nodes))
	for i := range part {
		part[i] = -1
	}
	for i, n := range s.nodes {
		if part[i] >= 0 || n.down {
			continue
		}
		part[i] = i
		for queue := []int{i}; len(queue) > 0; queue = queue[1:] {
			for _, p := range s.nodes[queue[0]].ports {
				for _, l := range s.ports[p].links {
					if to := s.ports[l.to].node; part[to] < 0 && s.works(p, l.to) {
						part[to] = i
						queue = append(queue, to)
					}
				}
			}
		}
	}
	return part
}

// works reports whether two ports hear one another well enough.
func (s *Sim) works(a, b int) bool {
	return !s.nodes[s.ports[a].node].down && !s.nodes[s.ports[b].node].down && s.hears(a, b) && s.hears(b, a)
}

func (s *Sim) hears(a, b int) bool {
	for _, l := range s.ports[a].links {
		if l.to == b {
			return l.loss <= usableLoss
		}
	}
	return false
}

// nextNode follows a node's route to another's first address by one hop. A
// link that does not work leads nowhere.
func (s *Sim) nextNode(from, to int) (int, error) {
	n := s.nodes[from]
	r, ok := n.lookup(Address(to, 0))
	if !ok {
		return -1, fmt.Errorf("node %d has no route to node %d", from, to)
	}
	hop := r.Next[0]
	p, ok := s.byAddr[hop.Addr]
	if !ok || !s.works(n.ports[hop.Interface], p) {
		return -1, fmt.Errorf("node %d's route to node %d goes over %v, which it does not hear", from, to, hop.Addr)
	}
	return s.ports[p].node, nil
}

// Path walks from a node to another along the routes. Its length is in hops.
func (s *Sim) Path(from, to int) (hops int, err error) {
	for at := from; at != to; hops++ {
		if hops > len(s.nodes) {
			return hops, fmt.Errorf("routes from node %d to node %d go round in a loop", from, to)
		}
		if at, err = s.nextNode(at, to); err != nil {
			return hops, err
		}
	}
	return hops, nil
}

// CheckPairs says what is wrong with the routes of a proactive protocol between
// all nodes that are on: a reachable node without a route that works, or a
// route to an unreachable one.
func (s *Sim) CheckPairs() error {
	part := s.Components()
	for a := range s.nodes {
		for b := range s.nodes {
			if err := s.checkPair(part, a, b); err != nil {
				return err
			}
		}
	}
	return nil
}

func (s *Sim) checkPair(part []int, a, b int) error {
	if a == b || part[a] < 0 {
		return nil
	}
	if part[a] != part[b] {
		if r, ok := s.nodes[a].lookup(Address(b, 0)); ok {
			return fmt.Errorf("node %d has a route to node %d, which it cannot reach, over %v", a, b, r.Next[0].Addr)
		}
		return nil
	}
	_, err := s.Path(a, b)
	return err
}

// LoopWatch looks for forwarding loops and how long they last.
type LoopWatch struct {
	sim    *Sim
	every  time.Duration
	since  map[[2]int]manet.Time // node and destination: in a loop without a break since
	Seen   int                   // loops that a node found itself in, each once
	Worst  time.Duration
	Report string // of the worst
	stamp  []int
}

// WatchLoops looks from now on, at an interval. A node that is in one loop and
// then another to the same destination counts as having been in one all along.
func (s *Sim) WatchLoops(every time.Duration) *LoopWatch {
	w := &LoopWatch{sim: s, every: every, since: map[[2]int]manet.Time{}, stamp: make([]int, len(s.nodes))}
	var look func()
	look = func() {
		w.look()
		s.At(s.now+every, look)
	}
	s.At(s.now+every, look)
	return w
}

func (w *LoopWatch) look() {
	in := map[[2]int]bool{}
	for destination := range w.sim.nodes {
		if w.sim.several {
			w.walkSeveral(destination, in)
			continue
		}
		clear(w.stamp)
		for from := range w.sim.nodes {
			w.walk(from, destination, in)
		}
	}
	for key := range in {
		if _, ok := w.since[key]; !ok {
			w.since[key] = w.sim.now
			w.Seen++
		}
		if lasted := w.sim.now - w.since[key]; lasted > w.Worst {
			w.Worst = lasted
			w.Report = fmt.Sprintf("node %d in a loop to node %d from %v until %v at least", key[0], key[1],
				w.since[key], w.sim.now)
		}
	}
	for key := range w.since {
		if !in[key] {
			delete(w.since, key)
		}
	}
}

// walk follows the routes from a node until they end, meet a walk from another
// node, or meet themselves: that is a loop, whose nodes are noted. Links need
// not work: a loop of routes counts as one even if a radio would break it.
func (w *LoopWatch) walk(from, destination int, in map[[2]int]bool) {
	mark := from + 1
	at := from
	for at != destination && w.stamp[at] == 0 {
		w.stamp[at] = mark
		next, ok := w.follow(at, destination)
		if !ok {
			return
		}
		at = next
	}
	if at == destination || w.stamp[at] != mark {
		return
	}
	for start := at; ; {
		in[[2]int{at, destination}] = true
		if at, _ = w.follow(at, destination); at == start {
			return
		}
	}
}

func (w *LoopWatch) follow(from, to int) (int, bool) {
	n := w.sim.nodes[from]
	if n.down {
		return 0, false
	}
	r, ok := n.lookup(Address(to, 0))
	if !ok {
		return 0, false
	}
	p, ok := w.sim.byAddr[r.Next[0].Addr]
	if !ok {
		return 0, false
	}
	return w.sim.ports[p].node, true
}

// walkSeveral is walk where routes have several next hops: those who are left
// when all who cannot go on, and then all whom nobody goes over, are taken
// away, are in loops or between two of them.
func (w *LoopWatch) walkSeveral(destination int, in map[[2]int]bool) {
	next, back := map[int][]int{}, map[int][]int{}
	for from, n := range w.sim.nodes {
		r, ok := n.lookup(Address(destination, 0))
		if n.down || !ok || from == destination {
			continue
		}
		for _, hop := range r.Next {
			if p, ok := w.sim.byAddr[hop.Addr]; ok {
				to := w.sim.ports[p].node
				next[from], back[to] = append(next[from], to), append(back[to], from)
			}
		}
	}
	left := map[int]bool{}
	for from := range next {
		left[from] = true
	}
	prune(left, next)
	prune(left, back)
	for node := range left {
		in[[2]int{node, destination}] = true
	}
}

// prune takes away, again and again, who has no edge to anyone left.
func prune(left map[int]bool, edges map[int][]int) {
	for changed := true; changed; {
		changed = false
		for node := range left {
			if !slices.ContainsFunc(edges[node], func(to int) bool { return left[to] }) {
				delete(left, node)
				changed = true
			}
		}
	}
}

// HasRoute reports whether a node has a route to another's first address.
func (s *Sim) HasRoute(from, to int) bool {
	_, ok := s.nodes[from].lookup(Address(to, 0))
	return ok
}
