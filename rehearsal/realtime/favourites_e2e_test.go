//go:build e2e

package realtime

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"net"
	"testing"
	"time"

	"fieldmesh.dev/fieldmesh/rehearsal/medium"
	"fieldmesh.dev/fieldmesh/rehearsal/medium/phy"
)

// Kernels behind TAP devices have no favourites either: senders on a circle, whose numbers are
// drawn again each time, get the same share through whatever their number. The p-value is of a
// permutation test of the share's trend over the numbers. Draws have the seeds 0 to 9.
func TestE2ELiveNodesHaveNoFavourites(t *testing.T) {
	const draws, senders, window = 10, 5, 3 * time.Second
	var shares [draws][senders]float64
	for draw := range uint64(draws) {
		t.Run(fmt.Sprint("draw ", draw), func(t *testing.T) {
			order := rand.New(rand.NewPCG(draw, 6)).Perm(senders)
			cfg := testConfig(phy.Standard80211b, 11, senders+1)
			cfg.Seed, cfg.RTSThresholdBytes = draw, 1
			f := newFieldAt(t, cfg, func(n int, _ time.Duration) (float64, float64) {
				if n == senders {
					return 0, 0
				}
				at := 2 * math.Pi * float64(order[n]) / senders
				return 10 * math.Cos(at), 10 * math.Sin(at)
			})
			f.flood(t, senders)
			time.Sleep(time.Second) // addresses are known, queues full
			var before [senders]uint64
			for i := range senders {
				before[i] = arrived(f.live.Counters(i))
			}
			time.Sleep(window)
			total := 0.0
			for i := range senders {
				shares[draw][i] = float64(arrived(f.live.Counters(i)) - before[i])
				total += shares[draw][i]
			}
			for i := range senders {
				shares[draw][i] *= senders / total
			}
			t.Logf("shares by number: %.3f", shares[draw])
		})
	}
	if p := trendMatters(shares[:]); p <= 0.01 {
		t.Errorf("shares depend on numbers: p = %.4f", p)
	} else {
		t.Logf("p = %.3f", p)
	}
}

func arrived(c medium.Counters) uint64 { return c.Attempts - c.AttemptsFailed.Total() }

// flood lets all nodes but the last send it four times what the channel has for each, until the
// test ends.
func (f *field) flood(t *testing.T, to int) {
	t.Helper()
	open := func(node int, f2 func() (net.Conn, error)) (c net.Conn) {
		f.nodes[node].Do(t, func() (err error) {
			c, err = f2()
			return err
		})
		t.Cleanup(func() { _ = c.Close() })
		return c
	}
	address := net.JoinHostPort(nodeIP(to), "5001")
	open(to, func() (net.Conn, error) { // nobody reads it; without it the kernel would answer
		at, err := net.ResolveUDPAddr("udp4", address)
		if err != nil {
			return nil, err
		}
		return net.ListenUDP("udp4", at)
	})
	for i := range to {
		c := open(i, func() (net.Conn, error) { return net.Dial("udp4", address) })
		go func() {
			datagram := make([]byte, 1000)
			for range time.Tick(10 * time.Millisecond) {
				for range 5 {
					if _, err := c.Write(datagram); errors.Is(err, net.ErrClosed) {
						return
					}
				}
			}
		}()
	}
}

// trendMatters is how often shares exchanged within their draws rise or fall with the number as
// much as these do.
func trendMatters(draws [][5]float64) float64 {
	const permutations = 20_000
	rng := rand.New(rand.NewPCG(1, 5))
	trend := func() (sum float64) {
		for _, draw := range draws {
			for i, v := range draw {
				sum += v * (float64(i) - float64(len(draw)-1)/2)
			}
		}
		return math.Abs(sum)
	}
	was, as := trend(), 1
	for range permutations {
		for d := range draws {
			rng.Shuffle(len(draws[d]), func(i, j int) { draws[d][i], draws[d][j] = draws[d][j], draws[d][i] })
		}
		if trend() >= was*(1-1e-12) {
			as++
		}
	}
	return float64(as) / (permutations + 1)
}
