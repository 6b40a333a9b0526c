package simtest

import (
	"errors"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"fieldmesh.dev/fieldmesh/protocols/manet"
	"fieldmesh.dev/fieldmesh/protocols/manet/simulation"
)

// Hostile is an attack on a grid of six nodes that carries traffic: noise, and
// altered copies of real packets, from forty addresses.
type Hostile struct {
	Seeds int
	// Make makes nodes whose tables are bounded to few entries.
	Make func(seed uint64) simulation.Maker
	// Repair, where set, makes lengths of an altered packet right, so that more
	// of it is read.
	Repair  func(data []byte)
	Carrier bool // it carries data itself
	// Limit is the most entries that a table may have.
	Limit func(table string) int
}

// Test asks that no node panics and none grows without bound.
func (h *Hostile) Test(t *testing.T) {
	for seed := uint64(1); seed <= uint64(h.Seeds); seed++ {
		sim := h.attacked(t, seed)
		if err := sim.Run(30 * time.Second); err != nil {
			t.Fatal(err)
		}
		for i := range sim.Nodes() {
			for table, size := range sim.State(i).TableSizes {
				if size > h.Limit(table) {
					t.Errorf("seed %d: node %d has %d entries in table %s", seed, i, size, table)
				}
			}
		}
	}
}

// Attack is Hostile's test of a protocol that carries no data, of two seeds. A node is made as by Variants; bound gives
// it its seed and how many entries its tables may have. The tables that are named may have the square of that.
func Attack[C any, N manet.Node](t *testing.T, variant func(seed uint64, interfaces []manet.Interface) (C, bool),
	build func(C) (N, error), bound func(c *C, seed uint64, entries int), squared ...string) {
	t.Helper()
	const entries = 256
	made := Variants(variant, build, func(c *C, seed uint64, _ uint32) { bound(c, seed, entries) })
	h := Hostile{Seeds: 2, Make: made, Limit: func(table string) int {
		if slices.Contains(squared, table) {
			return entries * entries
		}
		return entries
	}}
	h.Test(t)
}

// attacked makes the grid and its attack.
func (h *Hostile) attacked(t *testing.T, seed uint64) *simulation.Sim {
	t.Helper()
	r := rand.New(rand.NewPCG(seed, 4))
	sim, err := simulation.New(simulation.Config{Seed: seed, Nodes: 6, Radio: Rough(), Make: h.Make(seed),
		Carrier: h.Carrier, Promiscuous: h.Carrier})
	if err != nil {
		t.Fatal(err)
	}
	sim.Grid(3)
	sim.Flow(0, 5, 100, 200*time.Millisecond, 2*time.Second, 30*time.Second)
	sim.Flow(5, 1, 100, 300*time.Millisecond, 2*time.Second, 30*time.Second)
	var seen [][]byte
	see := func(data []byte) {
		if len(seen) < 500 {
			seen = append(seen, append([]byte(nil), data...))
		}
	}
	sim.OnPacket = func(_ int, s manet.Send) { see(s.Data) }
	sim.OnTransmit = func(_ int, s manet.Transmit) { see(s.Packet) }
	var attack func()
	attack = func() {
		for range 20 {
			to, p := r.IntN(6), h.packet(r, seen)
			if h.Carrier {
				sim.InjectWhole(to, manet.Received{From: p.From, Overheard: !p.Unicast, Packet: p.Data})
			} else {
				sim.Inject(to, p)
			}
		}
		sim.At(sim.Now()+20*time.Millisecond, attack)
	}
	sim.At(5*time.Second, attack)
	return sim
}

// packet is noise, or a real packet of which a few bytes are others.
func (h *Hostile) packet(r *rand.Rand, seen [][]byte) manet.Packet {
	p := manet.Packet{From: simulation.Address(r.IntN(40), 0), TTL: r.IntN(256), Unicast: r.IntN(2) == 0}
	if len(seen) == 0 || r.IntN(4) == 0 {
		p.Data = make([]byte, r.IntN(200))
		for i := range p.Data {
			p.Data[i] = byte(r.Uint32())
		}
		return p
	}
	p.Data = append([]byte(nil), seen[r.IntN(len(seen))]...)
	for range 1 + r.IntN(4) {
		p.Data[r.IntN(len(p.Data))] = byte(r.Uint32())
	}
	if h.Repair != nil {
		h.Repair(p.Data)
	}
	return p
}

// Malformed reports whether a parser refused what a fuzz test gave it, and
// fails the test if it did so by another error than manet.ErrMalformed.
func Malformed(t *testing.T, err error) bool {
	t.Helper()
	if err != nil && !errors.Is(err, manet.ErrMalformed) {
		t.Fatalf("error %v is not ErrMalformed", err)
	}
	return err != nil
}
