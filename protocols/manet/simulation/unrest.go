package simulation

import (
	"math/rand/v2"
	"slices"
	"time"

	"fieldmesh.dev/fieldmesh/protocols/manet"
)

// Unrest is what happens to a network before it comes to rest.
type Unrest struct {
	Every   time.Duration // between two mishaps
	Until   manet.Time    // then all nodes are on, and links stay
	Reboots bool          // nodes lose their state, or are off for a while
	OneWay  bool          // links that work in one direction only come up too
	Mend    bool          // at rest there are none of those left
}

// Disturb draws a random connected graph with some links more than a tree, and
// lets links come and go, and nodes reboot, until the network rests. All of it
// follows from the seed; what is left at the end need not be connected.
func (s *Sim) Disturb(seed uint64, u Unrest) {
	r := rand.New(rand.NewPCG(seed, 3))
	n := len(s.nodes)
	for i := 1; i < n; i++ {
		s.Connect(i, r.IntN(i))
	}
	for range n / 2 {
		if a, b := r.IntN(n), r.IntN(n); a != b {
			s.Connect(a, b)
		}
	}
	off := map[int]bool{}
	var mishap func()
	mishap = func() {
		s.mishap(r, u, off)
		if s.now+u.Every < u.Until {
			s.At(s.now+u.Every, mishap)
		}
	}
	s.At(u.Every, mishap)
	s.At(u.Until, func() {
		if u.Mend {
			s.cutOneWay()
		}
		for i := range s.nodes {
			if off[i] {
				s.fail(s.Reboot(i))
			}
		}
	})
}

func (s *Sim) mishap(r *rand.Rand, u Unrest, off map[int]bool) {
	a, b := r.IntN(len(s.nodes)), r.IntN(len(s.nodes))
	if a == b {
		return
	}
	switch kind := r.IntN(8); {
	case kind < 3:
		s.Connect(a, b)
	case kind < 6:
		s.cutSome(r, a)
	case kind == 6 && u.OneWay:
		s.SetLink(a, b, 0, 0, 1)
	case kind == 7 && u.Reboots:
		if off[a] = !off[a] && r.IntN(2) == 0; off[a] {
			s.PowerOff(a)
		} else {
			s.fail(s.Reboot(a))
		}
	}
}

// cutSome ends one of a node's links.
func (s *Sim) cutSome(r *rand.Rand, a int) {
	p := s.ports[s.nodes[a].ports[0]]
	if len(p.links) > 0 {
		s.Cut(a, s.ports[p.links[r.IntN(len(p.links))].to].node)
	}
}

func (s *Sim) cutOneWay() {
	for i, p := range s.ports {
		p.links = slices.DeleteFunc(p.links, func(l link) bool { return !s.hears(l.to, i) })
	}
}

func (s *Sim) fail(err error) {
	if err != nil && s.err == nil {
		s.err = err
	}
}

// SetRadio changes the medium from now on.
func (s *Sim) SetRadio(r Radio) { s.config.Radio = r }
