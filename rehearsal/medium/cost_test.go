package medium

import (
	"math/rand/v2"
	"testing"
	"time"
)

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
	cfg := testConfig(Standard80211g, 24, nodes)
	cfg.Propagation = PropagationConfig{Model: "two_ray_ground"}
	cfg.Shadowing = ShadowingConfig{SigmaDb: 6, DecorrelationM: 20}
	cfg.Fading = FadingConfig{Model: fadingRayleigh}
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
