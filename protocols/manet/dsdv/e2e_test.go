//go:build e2e

package dsdv_test

import (
	"bufio"
	"cmp"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"fieldmesh.dev/fieldmesh/protocols/manet"
	"fieldmesh.dev/fieldmesh/protocols/manet/dsdv"
	"fieldmesh.dev/fieldmesh/protocols/manet/simulation"
)

func TestPropertiesMore(t *testing.T) { protocol.MoreProperties(t) }

// chained is what a chain of six did whose third node was away from 150 s to 300 s.
type chained struct {
	first, back manet.Time // when the first packet came from end to end, of all and after that
	packets     int        // of DSDV
}

// On a chain ways are found, broken and found again as late as in ns-2, and as much is said: the medians of as many
// seeds. The times of either lie up to half a minute apart.
func TestE2ENS2FindsItsWaysAsLate(t *testing.T) {
	if _, err := exec.LookPath("ns"); err != nil {
		t.Skip("needs ns-2: install Debian's package ns2")
	}
	const seeds = 41
	var got, want []chained
	for seed := range seeds {
		want = append(want, ns2Chain(t, seed+1))
		got = append(got, ourChain(t, uint64(seed+1)))
	}
	for _, c := range []struct {
		what   string
		of     func(chained) float64
		within float64
	}{
		{"first packet, s", func(c chained) float64 { return c.first.Seconds() }, 5},
		{"first packet once the node is back, s", func(c chained) float64 { return c.back.Seconds() }, 5},
		{"packets of DSDV", func(c chained) float64 { return float64(c.packets) }, 20},
	} {
		ours, theirs := median(got, c.of), median(want, c.of)
		t.Logf("%s: %.1f, ns-2's %.1f", c.what, ours, theirs)
		if d := ours - theirs; d > c.within || d < -c.within {
			t.Errorf("%s: %.1f, want ns-2's %.1f to %.0f", c.what, ours, theirs, c.within)
		}
	}
}

func median(all []chained, of func(chained) float64) float64 {
	slices.SortFunc(all, func(a, b chained) int { return cmp.Compare(of(a), of(b)) })
	return of(all[len(all)/2])
}

func (c *chained) arrived(at manet.Time) {
	if c.first == 0 {
		c.first = at
	}
	if c.back == 0 && at > 300*time.Second {
		c.back = at
	}
}

// late starts a node when all hear: ns-2's do from the beginning.
type late struct{ *dsdv.Node }

func (l late) Handle(now manet.Time, e manet.Event) []manet.Action {
	start := manet.TimerKey{Kind: 255}
	switch e {
	case manet.Start{}:
		return []manet.Action{manet.SetTimer{Key: start, At: time.Second}}
	case manet.Timer{Key: start}:
		e = manet.Start{}
	}
	return l.Node.Handle(now, e)
}

func ourChain(t *testing.T, seed uint64) (out chained) {
	t.Helper()
	sim, err := simulation.New(simulation.Config{Seed: seed, Nodes: 6, Radio: simulation.DefaultRadio(),
		Make: func(_ int, interfaces []manet.Interface, seed uint64) (manet.Node, error) {
			node, err := dsdv.New(dsdv.Broch(interfaces, seed))
			return late{node}, err
		}})
	if err != nil {
		t.Fatal(err)
	}
	sim.Chain()
	sim.At(150*time.Second, func() { sim.Cut(1, 2); sim.Cut(2, 3) })
	sim.At(300*time.Second, func() { sim.Connect(1, 2); sim.Connect(2, 3) })
	sim.Flow(0, 5, 100, time.Second, time.Second, 400*time.Second)
	for now, before := manet.Time(0), int64(0); now <= 400*time.Second; now += 100 * time.Millisecond {
		if err := sim.Run(now); err != nil {
			t.Fatal(err)
		}
		if sim.Data.Delivered > before {
			out.arrived(now)
		}
		before = sim.Data.Delivered
	}
	for i := range sim.Nodes() {
		out.packets += int(sim.Stats(i).Packets)
	}
	return out
}

func ns2Chain(t *testing.T, seed int) (out chained) {
	t.Helper()
	trace := filepath.Join(t.TempDir(), "trace")
	if text, err := exec.Command("ns", "testdata/chain.tcl", strconv.Itoa(seed), trace).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	f, err := os.Open(trace)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		// event, time, node, layer, flags, packet, kind
		w := strings.Fields(lines.Text())
		switch {
		case len(w) < 7:
		case w[0] == "s" && w[3] == "RTR" && w[6] == "message":
			out.packets++
		case w[0] == "r" && w[3] == "AGT" && w[6] == "cbr":
			at, err := strconv.ParseFloat(w[1], 64)
			if err != nil {
				t.Fatal(err)
			}
			out.arrived(time.Duration(at * 1e9))
		}
	}
	return out
}
