package plan

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// designFile is a small campaign with a design put into it.
func designFile(factors, design string) []byte {
	return []byte(strings.NewReplacer("FACTORS", factors, "DESIGN", design).Replace(`
fieldmesh: 1
name: small
title: a small design
nodes:
  alpha: {mesh_address: 10.77.0.1/24}
  bravo: {mesh_address: 10.77.0.2/24}
trial:
  car: alpha
  roadside: bravo
  sender: car
  receiver: roadside
  speed_mps: 5
  duration_s: 10
  course: {kind: depart, start_m: 10, accel_mps2: 2.5, brake_mps2: 4}
  gate: {speed_band: true, hold_s: 0.5, timeout_s: 60, lead_s: 0.5}
  radio: {mode: none}
  tcp: {variant: reno}
  traffic: {bulk: {kind: iperf3_tcp}}
factors: FACTORS
design: DESIGN
acceptance: {speed_band_mps: 0.5, attempts_max: 3}
`))
}

const (
	speeds   = `{key: speed_mps, levels: [2, 4, 6]}`
	variants = `{key: tcp.variant, levels: {a: reno, b: cubic}}`
	cars     = `{levels: {one: {car: alpha, roadside: bravo}, two: {car: bravo, roadside: alpha}}}`
)

func parsed(t *testing.T, raw []byte) *Campaign {
	t.Helper()
	c, err := Parse("small.yaml", raw)
	if err != nil {
		t.Fatalf("parse:\n%v\n%s", err, raw)
	}
	return c
}

func cellOf(x wire.Trial) string { return fmt.Sprint(x.Factors) }

func TestEveryBlockHoldsEachCellOnce(t *testing.T) {
	for seed := range 20 {
		c := parsed(t, designFile("{speed: "+speeds+", tcp: "+variants+"}",
			fmt.Sprintf("{repetitions: 7, order: randomised_blocks, seed: %d}", seed)))
		blocks := map[int][]string{}
		for i, x := range schedule(t, c) {
			if x.Number != i+1 || x.Block != x.Repetition {
				t.Fatalf("seed %d: trial %d has number %d, block %d, repetition %d", seed, i+1, x.Number, x.Block,
					x.Repetition)
			}
			blocks[x.Block] = append(blocks[x.Block], cellOf(x))
		}
		if len(blocks) != 7 {
			t.Fatalf("seed %d: %d blocks, want 7", seed, len(blocks))
		}
		for b, cells := range blocks {
			slices.Sort(cells)
			if len(cells) != 6 || len(slices.Compact(cells)) != 6 {
				t.Fatalf("seed %d: block %d holds %v", seed, b, cells)
			}
		}
	}
}

func orderOf(t *testing.T, c *Campaign) string {
	t.Helper()
	var out []string
	for _, x := range schedule(t, c) {
		out = append(out, cellOf(x)+x.Direction)
	}
	return strings.Join(out, "\n")
}

func TestSeedDecidesTheOrder(t *testing.T) {
	file := func(seed, repetitions int) []byte {
		return designFile("{speed: "+speeds+", tcp: "+variants+"}",
			fmt.Sprintf("{repetitions: %d, order: randomised_blocks, seed: %d, balance: {direction: [outbound, "+
				"inbound]}}", repetitions, seed))
	}
	first := orderOf(t, parsed(t, file(1, 4)))
	if again := orderOf(t, parsed(t, file(1, 4))); first != again {
		t.Error("one seed gave two orders")
	}
	seen := map[string]bool{first: true}
	for seed := 2; seed <= 11; seed++ {
		seen[orderOf(t, parsed(t, file(seed, 4)))] = true
	}
	if len(seen) != 11 {
		t.Errorf("11 seeds gave %d orders", len(seen))
	}
	if longer := orderOf(t, parsed(t, file(1, 5))); !strings.HasPrefix(longer, first) {
		t.Error("another repetition changed the blocks before it")
	}
}

func TestAsListedKeepsTheFilesOrder(t *testing.T) {
	c := parsed(t, designFile("{tcp: "+variants+", speed: "+speeds+"}", "{repetitions: 2, order: as_listed}"))
	var got []string
	for _, x := range schedule(t, c) {
		got = append(got, x.Factors["tcp"]+x.Factors["speed"])
	}
	want := []string{"a2", "a4", "a6", "b2", "b4", "b6", "a2", "a4", "a6", "b2", "b4", "b6"}
	if !slices.Equal(got, want) {
		t.Errorf("order %v, want %v", got, want)
	}
}

// TestDirectionIsBalanced: within a cell the directions take turns, so their
// numbers differ by at most one; and within a block half of the cells have
// either, so that a block is not a direction.
func TestDirectionIsBalanced(t *testing.T) {
	for seed := range 20 {
		for _, repetitions := range []int{1, 2, 5, 10} {
			c := parsed(t, designFile("{speed: "+speeds+", tcp: "+variants+"}",
				fmt.Sprintf("{repetitions: %d, order: randomised_blocks, seed: %d, balance: {direction: [outbound, "+
					"inbound]}}", repetitions, seed)))
			cells, blocks, last := map[string]int{}, map[int]int{}, map[string]string{}
			for _, x := range schedule(t, c) {
				if last[cellOf(x)] == x.Direction {
					t.Fatalf("seed %d: cell %s is driven %s twice running", seed, cellOf(x), x.Direction)
				}
				last[cellOf(x)] = x.Direction
				sign := map[string]int{"outbound": 1, "inbound": -1}[x.Direction]
				if sign == 0 {
					t.Fatalf("seed %d: direction %q", seed, x.Direction)
				}
				cells[cellOf(x)] += sign
				blocks[x.Block] += sign
			}
			for cell, n := range cells {
				if n*n != repetitions%2 {
					t.Errorf("seed %d: cell %s of %d repetitions has %+d outbound", seed, cell, repetitions, n)
				}
			}
			for b, n := range blocks {
				if n != 0 {
					t.Errorf("seed %d: block %d has %+d outbound", seed, b, n)
				}
			}
		}
	}
}

// TestWholePlotsChangeOnceABlock: within a block the car's unit changes as
// often as it must, and either unit comes first in some block.
func TestWholePlotsChangeOnceABlock(t *testing.T) {
	c := parsed(t, designFile("{speed: "+speeds+", unit: "+cars+", tcp: "+variants+"}",
		"{repetitions: 20, order: randomised_blocks, seed: 3, whole_plots: [unit]}"))
	first, orders := map[string]int{}, map[string]int{}
	block, changes, car, within := 0, 0, "", ""
	for _, x := range append(schedule(t, c), wire.Trial{Block: 21}) {
		if x.Block != block {
			if block > 0 && changes != 1 {
				t.Errorf("block %d changes the car's unit %d times, want once", block, changes)
			}
			orders[within]++
			block, changes, car, within = x.Block, 0, x.Car, ""
			first[car]++
		}
		if x.Car != car {
			changes, car = changes+1, x.Car
		}
		within += x.Factors["speed"] + x.Factors["tcp"] + " "
	}
	if first["alpha"] == 0 || first["bravo"] == 0 {
		t.Errorf("first in the car: %v, want each at times", first)
	}
	if len(orders) < 20 {
		t.Errorf("20 blocks have %d orders", len(orders)-1)
	}
}

func TestLevelsMayLayOverAnything(t *testing.T) {
	c := parsed(t, designFile(`{load: {levels: {none: {}, some: {traffic: {noise: {kind: cbr, bitrate_bps: 100000, payload_bytes: 512, from: receiver, to: sender, port: 6000}}}}},
  band: {key: acceptance.speed_band_mps, levels: [0.4, 0.8]}, radio: {key: radio, levels: {off: {mode: none}}}}`,
		"{repetitions: 1, order: as_listed}"))
	trials := schedule(t, c)
	if len(trials) != 4 {
		t.Fatalf("%d trials, want 4", len(trials))
	}
	bitrate, payload := 100000.0, 512
	for i, x := range trials {
		if got, want := *x.Acceptance.SpeedBandMps, []float64{0.4, 0.8, 0.4, 0.8}[i]; got != want {
			t.Errorf("trial %d: band %g, want %g", i+1, got, want)
		}
		if len(x.Traffic) != 1+i/2 {
			t.Fatalf("trial %d has %d flows", i+1, len(x.Traffic))
		}
	}
	noise := trials[3].Traffic[1]
	if noise.Kind != wire.KindCBR || !noise.Background || noise.From != "bravo" || noise.To != "alpha" ||
		*noise.BitrateBps != bitrate || *noise.PayloadBytes != payload || noise.Streams != 1 {
		t.Errorf("constant bit rate flow %+v", noise)
	}
	if bulk := trials[3].Traffic[0]; noise.ClientPort == bulk.ClientPort || bulk.Port != 5201 {
		t.Errorf("flows %+v and %+v", bulk, noise)
	}
}
