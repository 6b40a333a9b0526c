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

// contend lets n stations in one cell send to a sink, always having a frame, and returns the
// payload rate that arrived (Ethernet payload, Mbit/s), the share of attempts that failed and
// how many did.
func contend(t *testing.T, cfg Config, n, payloadBytes int, during time.Duration, tune func(*Core)) (mbps,
	failed, fails float64) {
	t.Helper()
	cfg.Propagation = propagation.Config{Model: "disc", RangeM: 1000} // no capture, no noise
	// More than a station sends between two looks at its queue.
	cfg.QueueFrames = 8
	sink := newRecorder(n + 1)
	c := mustCore(t, cfg, line(1), sink)
	tune(c)
	var flows []flow
	for i := range n {
		flows = append(flows, flow{i, n})
	}
	saturate(c, payloadBytes, during, flows...)
	var attempts float64
	for i := range n {
		k := c.Counters(i)
		attempts += float64(k.Attempts)
		fails += float64(k.AttemptsFailed.Total())
		if other := k.AttemptsFailed.Total() - k.AttemptsFailed[Collision]; other != 0 {
			t.Errorf("station %d: %d attempts failed for other reasons than collision", i, other)
		}
	}
	return float64(sink.bytes[n]) / float64(payloadBytes+14) * float64(payloadBytes) * 8 / during.Seconds() / 1e6,
		fails / attempts, fails
}

// dcfModel is the slotted model of n saturated stations.
type dcfModel struct {
	n       int
	w       float64 // CWmin + 1
	m       int     // doublings
	limit   int     // transmissions of a frame; 0 is no limit
	slotUs  float64
	frameUs float64 // the data frame
	okUs    float64 // from its end until the next slot, acknowledged
	badUs   float64 // the same after a collision
}

// solve finds the collision probability p and the payload frames a second.
//
// Bianchi, "Performance analysis of the IEEE 802.11 distributed coordination
// function", IEEE JSAC 18(3), 2000, eq. 7, 9 and 13; with a limit of retries Wu et al.,
// "Performance of reliable transport protocol over IEEE 802.11 wireless LAN",
// INFOCOM 2002: the mean over the stages reached instead.
func (d dcfModel) solve() (p, framesPerS float64) {
	tau := func(p float64) float64 {
		stages := d.limit
		if stages == 0 {
			stages = 10_000
		}
		// A cycle through the stages: attempts over slots.
		reach, attempts, slots := 1.0, 0.0, 0.0
		for i := range stages {
			w := d.w * math.Pow(2, math.Min(float64(i), float64(d.m)))
			attempts += reach
			slots += reach * (w + 1) / 2
			if reach *= p; reach < 1e-12 {
				break
			}
		}
		return attempts / slots
	}
	low, high := 0.0, 0.999
	for range 100 {
		p = (low + high) / 2
		if 1-math.Pow(1-tau(p), float64(d.n-1)) > p {
			low = p
		} else {
			high = p
		}
	}
	x := tau(p)
	busy := 1 - math.Pow(1-x, float64(d.n))
	one := float64(d.n) * x * math.Pow(1-x, float64(d.n-1))
	meanUs := (1-busy)*d.slotUs + one*(d.frameUs+d.okUs) + (busy-one)*(d.frameUs+d.badUs)
	return p, one / meanUs * 1e6
}

// collisions plays the slots of n saturated stations and returns the share of transmissions that
// collide. What a station does in a busy slot is all that differs between two models. By
// Bianchi's it counts down in it as in any other. By the standard it does not: it stops at a whole
// number of slots, of which at least one is left, and goes on after DIFS (10.3.4.2, 10.3.4.3). So in
// the slot after a busy one nobody can send but who sent last, if he draws 0. (Tinnirello, Bianchi,
// Xiao, "Refinements on IEEE 802.11 distributed coordination function modeling approaches", IEEE
// Trans. Veh. Tech. 59(3), 2010, have it as the anomalous slot.)
func (d dcfModel) collisions(seed uint64, transmissions int, countsInBusySlots bool) float64 {
	rng := rand.New(rand.NewPCG(seed, 8))
	left, failures := make([]int, d.n), make([]int, d.n)
	draw := func(i int) {
		left[i] = rng.IntN(int(d.w) << min(failures[i], d.m))
	}
	for i := range d.n {
		draw(i)
	}
	sent, lost := 0, 0
	for sent < transmissions {
		senders := 0
		for i := range d.n {
			senders += boolToInt(left[i] == 0)
		}
		for i := range d.n {
			switch {
			case left[i] > 0:
				if senders == 0 || countsInBusySlots {
					left[i]--
				}
			case senders == 1:
				failures[i] = 0
				draw(i)
			default:
				lost++
				failures[i]++
				if failures[i] == d.limit {
					failures[i] = 0
				}
				draw(i)
			}
		}
		sent += senders
	}
	return float64(lost) / float64(sent)
}

// refined is the share of transmissions that collide by Bianchi's chain with the standard's
// countdown, as Tinnirello, Bianchi and Xiao refine it: its slots are the idle ones. After w/2 of
// them on average, and no less than one, a station meets whoever sends then. Once in w it sends in
// the anomalous slot instead, in which it meets only those that it collided with and that draw 0,
// too. There is no limit of retries. Stations know nothing of each other, which is not so of two.
func (d dcfModel) refined() float64 {
	others := float64(d.n - 1)
	chain := func(tau float64) (sends, collides float64) {
		meets := 1 - math.Pow(1-tau, others)
		again := 1 / (2 * d.w) // how often one that has collided draws 0: the mean over its windows
		for range 50 {
			visits, first, slots, failures, zeros := 0.0, 0.0, 0.0, 0.0, 0.0
			reach, meetsAgain := 1.0, 0.0 // nobody, after an ACK
			for stage := range d.m + 1 {
				w := d.w * math.Pow(2, float64(stage))
				fail := (1-1/w)*meets + meetsAgain/w
				if stage == d.m {
					reach /= 1 - fail
				}
				visits += reach
				first += reach * (1 - 1/w)
				slots += reach * (1 - 1/w) * w / 2
				failures += reach * fail
				zeros += reach * fail / (d.w * math.Pow(2, float64(min(stage+1, d.m))))
				reach *= fail
				meetsAgain = (1 - math.Pow(1-tau*again, others)) / meets
			}
			sends, collides, again = first/slots, failures/visits, zeros/failures
		}
		return sends, collides
	}
	low, high := 1e-6, 0.9
	for range 60 {
		tau := (low + high) / 2
		if sends, _ := chain(tau); sends > tau {
			low = tau
		} else {
			high = tau
		}
	}
	_, collides := chain(low)
	return collides
}

// againstSlots compares collisions with the standard's slots played: they differ by chance only, of
// which four standard deviations are allowed (a collision fails two attempts at least). With
// five stations and more the same play by Bianchi's rule is his formula, whose stations know
// nothing of each other; of two that collided last, both know that they have doubled their windows.
func (d dcfModel) againstSlots(t *testing.T, what string, failed, fails float64) (played float64) {
	t.Helper()
	const seed, transmissions = 1, 1_000_000
	model, _ := d.solve()
	bianchi, played := d.collisions(seed, transmissions, true), d.collisions(seed, transmissions, false)
	t.Logf("%s: collisions %.4f; the standard's slots played %.4f (%+.1f %%), Bianchi's played %.4f, his formula "+
		"%.4f (%+.1f %% from it)", what, failed, played, 100*(failed/played-1), bianchi, model, 100*(failed/model-1))
	within(t, what+": collisions against the standard's slots", failed, played,
		4*math.Sqrt(2/fails+2/(played*transmissions)))
	if d.n >= 5 {
		within(t, what+": Bianchi's slots played against his formula", bianchi, model, 0.025)
	}
	return played
}

// contention is saturated stations in one cell, beside their model.
type contention struct {
	standard       string
	stations       int
	mbps, failed   float64
	played         float64 // the standard's slots
	refined        float64 // collisions by the model with the standard's countdown
	modelP, modelM float64 // the model's collisions, and its Mbit/s
}

const contendFor = 20 * time.Second

// contentions has Bianchi's model with what it lacks switched off: a frame is sent until it
// arrives, and after a collision all wait equally long (the standard lets those
// who sent go on after the ACK's time-out and the others after EIFS).
var contentions = once(func(t *testing.T) (all []contention) {
	for _, v := range []struct {
		standard            string
		rate                float64
		w                   float64
		m                   int
		slot, sifs, plcp    float64
		frame, ack, timeout float64
	}{
		// 1000 bytes of MSDU: 1000 + 8 LLC + 28 MAC = 1036 bytes of MPDU.
		{phy.Standard80211b, 11, 32, 5, 20, 10, 192, 192 + 754, 192 + 56, 10 + 20 + 192},
		{phy.Standard80211g, 54, 16, 6, 9, 10, 20, 20 + 4*39 + 6, 20 + 8 + 6, 10 + 9 + 20},
	} {
		for _, n := range []int{2, 5, 10, 20} {
			cfg := testConfig(v.standard, v.rate, n+1)
			cfg.ShortRetryLimit = math.MaxInt
			difs := v.sifs + 2*v.slot
			during := contendFor
			if n == 2 { // of whose frames few collide
				during *= 10
			}
			mbps, failed, fails := contend(t, cfg, n, 1000, during, func(c *Core) {
				c.phy.EIFS = time.Duration(v.timeout * 1e3)
			})
			model := dcfModel{n, v.w, v.m, 0, v.slot, v.frame, v.sifs + v.ack + difs, v.timeout}
			p, frames := model.solve()
			played := model.againstSlots(t, fmt.Sprintf("%s, %d stations", v.standard, n), failed, fails)
			all = append(all, contention{v.standard, n, mbps, failed, played, model.refined(), p,
				frames * 8000 / 1e6})
		}
	}
	return all
})

func TestSaturatedStationsAgainstBianchi(t *testing.T) {
	for _, c := range contentions(t) {
		t.Logf("%s, %2d stations: %.3f Mbit/s, model %.3f (%+.1f %%); collisions %.4f, model %.4f (%+.1f %%)",
			c.standard, c.stations, c.mbps, c.modelM, 100*(c.mbps/c.modelM-1), c.failed, c.modelP,
			100*(c.failed/c.modelP-1))
		within(t, fmt.Sprintf("%s, %d stations: throughput", c.standard, c.stations), c.mbps, c.modelM, 0.05)
		what := fmt.Sprintf("%s, %d stations: collision probability", c.standard, c.stations)
		within(t, what, c.failed, c.modelP, 0.10)
		within(t, what+", slots played", c.failed, c.played, 0.03)
		if c.stations >= 5 {
			within(t, what+", refined", c.failed, c.refined, 0.03)
		}
	}
}

// The standard's seven transmissions, against the model with as many.
func TestSaturatedStationsWithRetryLimit(t *testing.T) {
	for _, n := range []int{2, 5, 10, 20} {
		cfg := testConfig(phy.Standard80211b, 11, n+1)
		mbps, failed, fails := contend(t, cfg, n, 1000, 20*time.Second, func(c *Core) {
			c.phy.EIFS = 222 * time.Microsecond
		})
		model := dcfModel{n, 32, 5, shortRetryLimit, 20, 192 + 754, 10 + 192 + 56 + 50, 222}
		p, frames := model.solve()
		model.againstSlots(t, fmt.Sprintf("%d stations", n), failed, fails)
		want := frames * 8000 / 1e6
		t.Logf("%2d stations: %.3f Mbit/s, model %.3f (%+.1f %%); collisions %.4f, model %.4f (%+.1f %%)",
			n, mbps, want, 100*(mbps/want-1), failed, p, 100*(failed/p-1))
		within(t, fmt.Sprintf("%d stations: throughput", n), mbps, want, 0.05)
		within(t, fmt.Sprintf("%d stations: collision probability", n), failed, p, 0.10)
	}
}
