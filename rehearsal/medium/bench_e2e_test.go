//go:build e2e

package medium

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"fieldmesh.dev/fieldmesh/rehearsal/medium/phy"
	"fieldmesh.dev/fieldmesh/rehearsal/medium/propagation"
	"fieldmesh.dev/fieldmesh/test/testnet"
)

// row prints one goal beside what was measured.
func row(what, measured, goal string) {
	fmt.Printf("medium: %-58s %-34s goal %s\n", what, measured, goal)
}

// Frames a second on one hop without a limit: the core, MAC and PHY as they
// are, in model time and so as fast as the processor goes.
func TestBenchOneHopUnlimited(t *testing.T) {
	testnet.NeedSet(t, "FIELDMESH_BENCH", "a benchmark")
	for _, payload := range []int{64, 1500} {
		delivered := 0
		sink := sinkFunc(func(int, time.Duration) { delivered++ })
		c := mustCore(t, testConfig(phy.Standard80211g, 54, 2), line(5), sink)
		frame := ethernet(0, 1, 0, payload)
		began := time.Now()
		for time.Since(began) < 2*time.Second {
			for c.QueueRoom(0) > 0 {
				c.Enqueue(0, frame)
			}
			c.Advance(c.Now() + 5*time.Millisecond)
		}
		perS := float64(delivered) / time.Since(began).Seconds()
		row(fmt.Sprintf("one hop unlimited, %d bytes", payload),
			fmt.Sprintf("%.0f frames/s, %.0f Mbit/s", perS, perS*float64(8*payload)/1e6), ">= 300000 frames/s")
	}
}

// How the core's cost grows from 10 to 200 nodes at the same density: a flow of
// 100 kbit/s from every second node to its neighbour, everybody moving. A node pays for its
// neighbours only, so the cost of a node stays nearly the same.
func TestBenchGrowthWithNodes(t *testing.T) {
	testnet.NeedSet(t, "FIELDMESH_BENCH", "a benchmark")
	type cost struct {
		nodes int
		share float64
	}
	var costs []cost
	for _, nodes := range []int{10, 20, 50, 100, 150, 200} {
		cfg := disc(testConfig(phy.Standard80211b, 11, nodes), 550)
		at := grid(10, 200)
		c := mustCore(t, cfg, func(n int, now time.Duration) (float64, float64) {
			x, y := at(n, now)
			return x + 10*now.Seconds(), y
		}, sinkFunc(func(int, time.Duration) {}))
		rng := rand.New(rand.NewPCG(1, 1))
		began := time.Now()
		const model = 20 * time.Second
		for c.Now() < model {
			// 8.5 frames a second and sender: 1 ms steps, at random.
			for n := 0; n+1 < nodes; n += 2 {
				if rng.Float64() < 0.0085 {
					c.Enqueue(n, ethernet(n, n+1, 0, 1500))
				}
			}
			c.Advance(c.Now() + time.Millisecond)
		}
		costs = append(costs, cost{nodes, 100 * float64(time.Since(began)) / float64(model)})
	}
	for _, c := range costs {
		row(fmt.Sprintf("core, %3d moving nodes, %3d flows of 100 kbit/s", c.nodes, c.nodes/2),
			fmt.Sprintf("%.2f %% of a core, %.3f %% a node", c.share, c.share/float64(c.nodes)), "a node's share stays")
	}
	top := costs[len(costs)-1].share
	for _, c := range costs {
		fmt.Printf("medium: %4d nodes |%s %.2f %%\n", c.nodes, strings.Repeat("#", int(60*c.share/top)), c.share)
	}
}

// What a frame costs where 200 saturated nodes move under Rayleigh fading and shadowing.
func TestBenchCrowdWithFadingAndShadowing(t *testing.T) {
	testnet.NeedSet(t, "FIELDMESH_BENCH", "a benchmark")
	c, frames := crowd(t)
	var flows []flow
	for i := range 200 {
		flows = append(flows, flow{i, i ^ 1})
	}
	saturate(c, 1500, 10*time.Millisecond, flows...) // faders are made, queues filled
	hearers := 0
	for i := range 200 {
		hearers += len(c.links.hearers(i))
	}
	began := testnet.CPUTime(t)
	for *frames = 0; *frames < 50_000; {
		saturate(c, 1500, 50*time.Millisecond, flows...) // which makes its Ethernet frames again each time
	}
	perFrame := (testnet.CPUTime(t) - began) / time.Duration(*frames)
	row(fmt.Sprintf("200 moving nodes, fading and shadowing, %d hear each", hearers/200),
		fmt.Sprintf("%.1f µs of CPU a frame", float64(perFrame)/1e3), "<= 10 µs")
}

// grid puts nodes in rows of so many.
func grid(columns int, spacingM float64) Locate {
	return func(n int, _ time.Duration) (float64, float64) {
		return float64(n%columns) * spacingM, float64(n/columns) * spacingM
	}
}

// crowd is 200 nodes that move, all of them with traffic for a neighbour, with fading and
// shadowing.
func crowd(t testing.TB) (c *Core, frames *int) {
	const nodes = 200
	cfg := testConfig(phy.Standard80211g, 24, nodes)
	cfg.Propagation = propagation.Config{Model: "two_ray_ground"}
	cfg.Shadowing = propagation.ShadowingConfig{SigmaDb: 6, DecorrelationM: 20}
	cfg.Fading = propagation.FadingConfig{Model: "rayleigh"}
	frames = new(int)
	cfg.Trace = func(e Trace) {
		if e.Event == "tx" {
			*frames++
		}
	}
	at, rng := grid(10, 200), rand.New(rand.NewPCG(1, 9))
	var velocity [nodes][2]float64
	for i := range velocity {
		velocity[i] = [2]float64{20*rng.Float64() - 10, 20*rng.Float64() - 10}
	}
	c = mustCore(t, cfg, func(n int, now time.Duration) (float64, float64) {
		x, y := at(n, now)
		return x + velocity[n][0]*now.Seconds(), y + velocity[n][1]*now.Seconds()
	}, sinkFunc(func(int, time.Duration) {}))
	return c, frames
}
