package calibrate

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"fieldmesh.dev/fieldmesh/controller/metrics"
)

// met are samples of links between units from 15 to 165 m, both ways, each link with a gain of its own.
func met(dice *rand.Rand, links [][2]string, gainDb []float64) *Survey {
	s := &Survey{}
	for i, l := range links {
		for x := 15.0; x <= 165; x += cellM {
			for _, way := range [][2]string{l, {l[1], l[0]}} {
				s.samples = append(s.samples, sample{link: l[0] + " " + l[1], tx: way[0], rx: way[1], passes: 1,
					distanceM: x, b: metrics.Place{EastM: x},
					gainDb: gainDb[i] - 30*math.Log10(x) + 0.3*dice.NormFloat64()})
			}
		}
		s.units = append(s.units, l[0], l[1])
	}
	slices.Sort(s.units)
	s.units = slices.Compact(s.units)
	return s
}

// Where the antennas' differences are not told, what the links have in common is their mean, whatever the units are
// called: not the gain of the link that leaves no column of its own.
func TestTheGainOfAllDoesNotHangOnNames(t *testing.T) {
	const seed = 4
	dice := rand.New(rand.NewPCG(seed, 0))
	for _, car := range []string{"a", "bb", "d"} {
		r, err := met(dice, [][2]string{{car, "b"}, {car, "c"}}, []float64{10, 0}).fit()
		if err != nil {
			t.Fatal(err)
		}
		// Each link's gain is of two ends.
		if r.AntennaDb != nil || r.GainDbi == nil || math.Abs(r.GainDbi.Value-2.5) > 0.7 {
			t.Errorf("seed %d, car %q: gain %+v, antennas %v, want about 2.5 dBi and no antennas", seed, car, r.GainDbi,
				r.AntennaDb)
		}
	}
}

// Between units that no links join, what one link's antennas have over another's may as well be power: none is told.
func TestPowerOfUnitsThatNoLinksJoinIsNotTold(t *testing.T) {
	const seed = 5
	r, err := met(rand.New(rand.NewPCG(seed, 0)), [][2]string{{"a", "b"}, {"c", "d"}}, []float64{6, 0}).fit()
	if err != nil {
		t.Fatal(err)
	}
	if open := strings.Join(r.Open, "\n"); r.PowerDb != nil || r.AntennaDb != nil ||
		!strings.Contains(open, "power of a and b and c and d: ") {
		t.Errorf("seed %d: power %v, antennas %v; said: %s", seed, r.PowerDb, r.AntennaDb, open)
	}
	if r.GainDbi == nil || math.Abs(r.GainDbi.Value-1.5) > 0.7 {
		t.Errorf("seed %d: gain %+v, want about 1.5 dBi", seed, r.GainDbi)
	}
}

// Units whose links join them one after the other are compared though they never met.
func TestPowerIsToldAlongAChainOfLinks(t *testing.T) {
	const seed = 6
	s := met(rand.New(rand.NewPCG(seed, 0)), [][2]string{{"d", "a"}, {"b", "c"}, {"c", "d"}}, []float64{6, 0, 3})
	for i, x := range s.samples {
		s.samples[i].gainDb += map[string]float64{"a": 3, "b": -3}[x.tx]
	}
	r, err := s.fit()
	if err != nil {
		t.Fatal(err)
	}
	for unit, want := range map[string]float64{"a": 3, "b": -3, "c": 0, "d": 0} {
		if got, told := r.PowerDb[unit]; !told || math.Abs(got.Value-want) > 0.3 {
			t.Errorf("seed %d: power of %s is %+v, want about %g dB; not known: %v", seed, unit, got, want, r.Open)
		}
	}
}
