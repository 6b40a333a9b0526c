package medium

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"fieldmesh.dev/fieldmesh/rehearsal/medium/phy"
	"fieldmesh.dev/fieldmesh/rehearsal/medium/propagation"
)

// Nodes are numbered at random in each draw, so that their numbers are
// exchangeable: what a node gets may depend on where it stands, never on its number.
// The draws have the seeds 0 to 19.
const numberDraws = 20

// numbersMatter is the p-value of two permutation tests together: under exchange of
// the values within each draw, how often do the sums by number differ as much as they do,
// and how often do they rise or fall as much with the number? It stops early where that
// is often (Besag and Clifford, "Sequential Monte Carlo p-values", Biometrika 78(2), 1991).
func numbersMatter(values [][]float64) float64 {
	const permutations, often = 40_000, 20
	rng := rand.New(rand.NewPCG(1, 5))
	statistics := func() (spread, trend float64) {
		for i := range values[0] {
			of := 0.0
			for _, draw := range values {
				of += draw[i]
			}
			spread += of * of
			trend += of * (float64(i) - float64(len(values[0])-1)/2)
		}
		return spread, math.Abs(trend)
	}
	spreadWas, trendWas := statistics()
	spreads, trends, done := 1, 1, 1
	for ; done < permutations && min(spreads, trends) < often; done++ {
		for _, draw := range values {
			rng.Shuffle(len(draw), func(i, j int) { draw[i], draw[j] = draw[j], draw[i] })
		}
		spread, trend := statistics()
		spreads += boolToInt(spread >= spreadWas*(1-1e-12))
		trends += boolToInt(trend >= trendWas*(1-1e-12))
	}
	return math.Min(1, 2*float64(min(spreads, trends))/float64(done))
}

// ringed places n nodes, in random order, on a circle around one more, whose
// number is random too.
func ringed(rng *rand.Rand, n int, radiusM float64) (locate Locate, middle int, others []int) {
	order := rng.Perm(n + 1)
	for i, place := range order {
		if place == n {
			middle = i
		} else {
			others = append(others, i)
		}
	}
	return func(node int, _ time.Duration) (float64, float64) {
		if node == middle {
			return 0, 0
		}
		at := 2 * math.Pi * float64(order[node]) / float64(n)
		return radiusM * math.Cos(at), radiusM * math.Sin(at)
	}, middle, others
}

// shares is what saturated senders get through, to one node or to all, each as a
// share of their mean.
func shares(t *testing.T, cfg Config, locate Locate, from []int, to, bytes int) []float64 {
	t.Helper()
	cfg.QueueFrames = 2
	sink := newRecorder(len(cfg.Nodes))
	c := mustCore(t, cfg, locate, sink)
	var flows []flow
	for _, i := range from {
		flows = append(flows, flow{i, to})
	}
	saturate(c, bytes, time.Second, flows...)
	got := make([]float64, len(from))
	for i := range from {
		for node := range cfg.Nodes {
			got[i] += float64(sink.delivered[[2]int{node, from[i]}])
		}
	}
	total := sum(got)
	for i := range got {
		got[i] *= float64(len(got)) / total
	}
	return got
}

// Nobody does better for his number: saturated nodes as far from the middle as each
// other share alike, in every model of propagation, with data, RTS and broadcasts. On the
// ring some are hidden from each other (log_distance) or heard and not understood (disc).
func TestNoFavourites(t *testing.T) {
	channels := []Config{
		{Propagation: propagation.Config{Model: "free_space"}},
		{Propagation: propagation.Config{Model: "log_distance", Exponent: 3}},
		{Propagation: propagation.Config{Model: "two_ray_ground"}},
		{Propagation: propagation.Config{Model: "disc", RangeM: 200}},
		{Propagation: propagation.Config{Model: "free_space"},
			Shadowing: propagation.ShadowingConfig{SigmaDb: 4, DecorrelationM: 20},
			Fading:    propagation.FadingConfig{Model: "rayleigh"}},
		{Radio: phy.RadioNS2WaveLAN},
		{Radio: phy.RadioOFDMRecent, Propagation: propagation.Config{Model: "log_distance", Exponent: 3}},
	}
	traffic := []struct {
		name         string
		standard     string
		rate         float64
		bytes, limit int
	}{
		{"data", phy.Standard80211b, 1, 300, 0},
		{"data", phy.Standard80211g, 6, 300, 0},
		{"RTS", phy.Standard80211b, 11, 1000, 1},
		{"broadcasts", phy.Standard80211b, 11, 92, 0},
	}
	sizes := []int{2, 20}
	// Together the cases find a difference that is not there once in 100 times.
	least := 0.01 / float64(len(channels)*len(traffic)*len(sizes))
	for _, channel := range channels {
		for _, v := range traffic {
			for _, n := range sizes {
				if _, err := phy.RadioNamed(channel.Radio, v.standard); err != nil {
					continue
				}
				cfg := testConfig(v.standard, v.rate, n+1)
				cfg.Radio = channel.Radio
				cfg.Propagation, cfg.Shadowing, cfg.Fading = channel.Propagation, channel.Shadowing, channel.Fading
				cfg.RTSThresholdBytes = v.limit
				var values [][]float64
				first, last := 0.0, 0.0
				for draw := range uint64(numberDraws) {
					cfg.Seed = draw
					locate, to, from := ringed(rand.New(rand.NewPCG(draw, 6)), n, 150)
					if v.name == "broadcasts" {
						to = toAll
					}
					got := shares(t, cfg, locate, from, to, v.bytes)
					first, last = first+got[0]/numberDraws, last+got[n-1]/numberDraws
					values = append(values, got)
				}
				p := numbersMatter(values)
				what := fmt.Sprintf("%s%s %s, %s at %g Mbit/s, %d nodes: p = %.4f, the first has %.3f of the mean "+
					"and the last %.3f", channel.Radio, channel.Propagation.Model, channel.Fading.Model, v.name, v.rate,
					n, p, first, last)
				t.Log(what)
				if p <= least {
					t.Errorf("numbers matter: %s", what)
				}
			}
		}
	}
}

// One sender at 10 m and one at 16 m: the near one's advantage is that of its place,
// whichever number it has.
func TestNearerNodesAdvantageIsItsPlaces(t *testing.T) {
	var values [][]float64
	for draw := range uint64(numberDraws) {
		cfg := testConfig(phy.Standard80211g, 6, 3)
		cfg.Seed = draw
		var near []float64
		for first := range 2 {
			places := []float64{10, -16, 0}
			places[0], places[first] = places[first], places[0]
			got := shares(t, cfg, func(n int, _ time.Duration) (float64, float64) { return places[n], 0 },
				[]int{0, 1}, 2, 300)
			near = append(near, got[first])
		}
		values = append(values, near)
	}
	first, last := 0.0, 0.0
	for _, draw := range values {
		first, last = first+draw[0]/numberDraws, last+draw[1]/numberDraws
	}
	p := numbersMatter(values)
	t.Logf("the nearer has %.3f of the mean as the first, %.3f as the last: p = %.4f", first, last, p)
	if p <= 0.01 {
		t.Errorf("the nearer of two has %g of the mean as the first and %g as the last", first, last)
	}
}

// Frames that begin within the detection time are resolved together, whoever is
// first: the stronger by the capture ratio is received, of two equal ones none.
func TestOrderWithinTheDetectionTimeDoesNotMatter(t *testing.T) {
	for _, v := range []struct {
		standard    string
		rate        float64
		detectionUs int
	}{{phy.Standard80211b, 1, 15}, {phy.Standard80211g, 6, 4}} {
		for _, farM := range []float64{10, 60} {
			for afterUs := 1 - v.detectionUs; afterUs < v.detectionUs; afterUs++ {
				cfg := testConfig(v.standard, v.rate, 3)
				deaf := 0.0 // nobody defers
				cfg.CarrierSenseDbm = &deaf
				sink := newRecorder(3)
				c := mustCore(t, cfg, func(n int, _ time.Duration) (float64, float64) {
					return []float64{-farM, 0, 10}[n], 0
				}, sink)
				for us := range 2*v.detectionUs + 1 {
					c.Advance(time.Second + time.Duration(us)*time.Microsecond)
					if us == v.detectionUs {
						c.Enqueue(0, ethernet(0, -1, 1, 500))
					}
					if us == v.detectionUs+afterUs {
						c.Enqueue(2, ethernet(2, -1, 2, 500))
					}
				}
				c.Advance(2 * time.Second)
				far, near := sink.delivered[[2]int{1, 1}], sink.delivered[[2]int{1, 2}]
				if far != 0 || near != boolToInt(farM == 60) {
					t.Errorf("%s, other sender at %g m, the near one %d µs after it: far frame delivered %d "+
						"times, near %d", v.standard, farM, afterUs, far, near)
				}
			}
		}
	}
}

// Frames that two hosts hand over at one moment go out at one moment, also when the
// first is on the air already as the second comes.
func TestFramesOfOneMomentCollideWhoeverIsFirst(t *testing.T) {
	const at = time.Second
	sent := starts(t, testConfig(phy.Standard80211b, 1, 3), line(5), 3, 2*time.Second, func(c *Core) {
		c.Advance(at)
		for _, from := range []int{1, 0} {
			c.Enqueue(from, ethernet(from, -1, 0, 500))
			c.Advance(at)
		}
		c.Advance(at + time.Microsecond)
		c.Enqueue(2, ethernet(2, -1, 0, 500))
	})
	if sent[0][0] != at || sent[1][0] != at || sent[2][0] < at+4*time.Millisecond {
		t.Errorf("frames handed over at %s start at %s and %s, one that comes later at %s", at, sent[0][0], sent[1][0],
			sent[2][0])
	}
}
