package simulation

import (
	"math"
	"math/rand/v2"
	"time"

	"fieldmesh.dev/fieldmesh/protocols/manet"
)

// Chain connects each node with the next.
func (s *Sim) Chain() {
	for i := 1; i < len(s.nodes); i++ {
		s.Connect(i-1, i)
	}
}

// Grid connects nodes in rows of a width with their four neighbours.
func (s *Sim) Grid(width int) {
	for i := range s.nodes {
		if (i+1)%width != 0 && i+1 < len(s.nodes) {
			s.Connect(i, i+1)
		}
		if i+width < len(s.nodes) {
			s.Connect(i, i+width)
		}
	}
}

// Field is a square on which nodes stand or move; two that are within range
// hear one another, the worse the nearer to its end.
type Field struct {
	sim    *Sim
	SideM  float64
	RangeM float64
	at     []point
	random *rand.Rand
}

type point struct{ x, y float64 }

// greyFrom is the share of the range from which frames begin to be lost, up
// to greyLoss at its end.
const (
	greyFrom = 0.8
	greyLoss = 0.4
)

// Scatter places all nodes at random so that a node has the given number of
// others within its range, on average and away from the borders: the density
// stays the same as nodes grow.
func (s *Sim) Scatter(seed uint64, rangeM, degree float64) *Field {
	n := float64(len(s.nodes))
	f := &Field{sim: s, RangeM: rangeM, SideM: math.Sqrt(n * math.Pi * rangeM * rangeM / degree),
		random: rand.New(rand.NewPCG(seed, 2))}
	for range s.nodes {
		f.at = append(f.at, point{f.random.Float64() * f.SideM, f.random.Float64() * f.SideM})
	}
	f.relink()
	return f
}

// relink makes the links again from the positions, looking only at nodes in
// adjacent squares of the range's size.
func (f *Field) relink() {
	cells := map[[2]int][]int{}
	cell := func(p point) [2]int { return [2]int{int(p.x / f.RangeM), int(p.y / f.RangeM)} }
	for i, p := range f.at {
		cells[cell(p)] = append(cells[cell(p)], i)
		f.sim.ports[f.sim.nodes[i].ports[0]].links = nil
	}
	for i, p := range f.at {
		c := cell(p)
		links := &f.sim.ports[f.sim.nodes[i].ports[0]].links
		for dx := -1; dx <= 1; dx++ {
			for dy := -1; dy <= 1; dy++ {
				for _, j := range cells[[2]int{c[0] + dx, c[1] + dy}] {
					if d := math.Hypot(p.x-f.at[j].x, p.y-f.at[j].y) / f.RangeM; j != i && d <= 1 {
						*links = append(*links, link{f.sim.nodes[j].ports[0], greyLoss * max(d-greyFrom, 0) /
							(1 - greyFrom)})
					}
				}
			}
		}
	}
}

// Roam moves all nodes by Random Waypoint without pauses, each leg at a speed
// drawn evenly between two, in steps of a second, until an end. Speeds above 0
// keep the mean from falling to nothing over time.
func (f *Field) Roam(minMps, maxMps float64, until manet.Time) {
	to := make([]point, len(f.at))
	mps := make([]float64, len(f.at))
	copy(to, f.at)
	var step func()
	step = func() {
		for i := range f.at {
			p := &f.at[i]
			d := math.Hypot(to[i].x-p.x, to[i].y-p.y)
			if d <= mps[i] {
				*p = to[i]
				to[i] = point{f.random.Float64() * f.SideM, f.random.Float64() * f.SideM}
				mps[i] = minMps + f.random.Float64()*(maxMps-minMps)
				continue
			}
			p.x += (to[i].x - p.x) / d * mps[i]
			p.y += (to[i].y - p.y) / d * mps[i]
		}
		f.relink()
		if f.sim.now+time.Second < until {
			f.sim.At(f.sim.now+time.Second, step)
		}
	}
	f.sim.At(f.sim.now+time.Second, step)
}
