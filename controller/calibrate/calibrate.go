package calibrate

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"gonum.org/v1/gonum/stat"

	"fieldmesh.dev/fieldmesh/controller/archive"
)

const (
	// exponentHalfMost is how wide half the exponent's interval may be: beyond
	// it, it does not tell free space from a dense city.
	exponentHalfMost = 1.5
	// shadowLeastDb: less is not told from rounding, fading and fixes.
	shadowLeastDb = 0.5
)

// Result is what a run reports about its radio. What it cannot tell is absent,
// and Open says why.
type Result struct {
	Survey
	Exponent *Estimate
	// GainDbi is of each antenna, both taken to be alike: half of what the link
	// has over free space at one metre. It holds everything that is the same on
	// all links: cables, cars, the reading of the radios; and the mean, over the
	// samples, of the units' differences that are not known.
	GainDbi      *Estimate
	ShadowDb     *Estimate // standard deviation
	CorrelationM *Estimate
	OwnDb        Estimate            // standard deviation of single samples about that
	PowerDb      map[string]Estimate // unit → difference of its power from the units' mean
	AntennaDb    map[string]Estimate // unit → difference of its antenna's gain from the units' mean
	Open         []string

	middleM float64 // of the correlation distances that go with the signals
}

// Run fits a run, without the last so many of its repetitions. Of a rehearsal whose
// campaign says no power it asks for the usual one of the radio by name.
func Run(a *archive.Archive, holdOut int, usualDbm func(radio string) float64) (*Result, error) {
	s, err := gather(a, holdOut, usualDbm)
	if err != nil {
		return nil, err
	}
	r, err := s.fit()
	if err != nil {
		return nil, fmt.Errorf("calibrate run %q: %w", s.Run, err)
	}
	return r, nil
}

// fit infers everything from the samples.
func (s *Survey) fit() (*Result, error) {
	d := s.design()
	post, err := infer(s.samples, d.columns)
	if err != nil {
		return nil, err
	}
	r := &Result{Survey: *s, OwnDb: post.deviation(func(own float64) float64 { return own }), Open: s.leftOut()}
	r.loss(post, d)
	r.shadowing(post)
	r.units(post, d)
	return r, nil
}

func (r *Result) open(format string, args ...any) {
	r.Open = append(r.Open, fmt.Sprintf(format, args...))
}

func (r *Result) loss(post *posterior, d design) {
	if d.distance < 0 {
		r.open("path-loss exponent and antenna gain: all signals are from one distance")
		return
	}
	n := post.combination(d.only(d.distance))
	if half := (n.High - n.Low) / 2; half > exponentHalfMost {
		r.open("path-loss exponent and antenna gain: distances from %.0f to %.0f m tell the exponent to ± %.1f only",
			r.NearM, r.FarM, half)
		return
	}
	g := post.combination(d.common())
	r.Exponent, r.GainDbi = &n, &Estimate{g.Value / 2, g.Low / 2, g.High / 2}
}

func (r *Result) shadowing(post *posterior) {
	sigma := post.deviation(func(own float64) float64 { return 1 - own })
	d0, known := post.correlation()
	switch {
	case sigma.Low < shadowLeastDb || post.unshadowed():
		r.open("shadowing: its standard deviation may be below %g dB, which is not told from rounding, fading and the "+
			"fixes' errors (at most %.1f dB)", shadowLeastDb, sigma.High)
	case !known:
		r.ShadowDb, r.middleM = &sigma, d0.Value
		r.open("shadowing's correlation distance: anything between %.0f and %.0f m goes with these signals; a "+
			"scenario has %.0f m, because none at all would be farther off", d0.Low, d0.High, d0.Value)
	default:
		r.ShadowDb, r.CorrelationM, r.middleM = &sigma, &d0, d0.Value
	}
}

func (r *Result) units(post *posterior, d design) {
	switch {
	case r.unnamed:
		r.open("units' differences: a node of the campaign bears no unit")
		return
	case len(r.Survey.units) < 2:
		r.open("units' differences: there is one unit")
		return
	}
	names := strings.Join(r.Survey.units, " and ")
	if d.powerKnown {
		r.PowerDb = d.differences(post, r.Survey.units, d.power)
	} else {
		r.open("power of %s: it takes links that join all units, each of them heard both ways", names)
	}
	if d.antennaKnown {
		r.AntennaDb = d.differences(post, r.Survey.units, d.antenna)
	} else {
		r.open("antenna gains of %s: only their sums over links are in the signals, which is in the antenna gain of "+
			"all; three units that meet each other would tell them apart", names)
	}
}

// design is the model's columns over the samples.
type design struct {
	columns  [][]float64
	distance int // column; negative: all samples are at one distance
	// power and antenna are, by unit but the last, the columns of its differences.
	power, antenna           []int
	powerKnown, antennaKnown bool
}

// design makes the columns. A unit's differences sum to zero, so the last unit's
// is what the others leave. Columns that others can stand for are left out;
// their family is not known then, though the rest of it still takes what it must.
func (s *Survey) design() design {
	d := design{distance: -1}
	add := func(value func(sample) float64) int {
		c := make([]float64, len(s.samples))
		for i, x := range s.samples {
			c[i] = value(x)
		}
		if !independent(d.columns, c) {
			return -1
		}
		d.columns = append(d.columns, c)
		return len(d.columns) - 1
	}
	add(func(sample) float64 { return 1 })
	d.distance = add(func(x sample) float64 { return -10 * math.Log10(x.distanceM) })
	last := s.units[len(s.units)-1]
	is := func(unit, name string) float64 {
		switch name {
		case unit:
			return 1
		case last:
			return -1
		}
		return 0
	}
	for _, u := range s.units[:len(s.units)-1] {
		d.power = append(d.power, add(func(x sample) float64 { return is(u, x.tx) }))
	}
	for _, u := range s.units[:len(s.units)-1] {
		d.antenna = append(d.antenna, add(func(x sample) float64 { return is(u, x.tx) + is(u, x.rx) }))
	}
	d.powerKnown, d.antennaKnown = !slices.Contains(d.power, -1), !slices.Contains(d.antenna, -1)
	if d.powerKnown && !d.antennaKnown {
		d.powerKnown = s.bothWays()
	}
	return d
}

// bothWays reports whether each link was heard in both directions, and all units are
// joined by links: differences of power do not hang on the antennas then.
func (s *Survey) bothWays() bool {
	heard := map[[2]string]bool{}
	for _, x := range s.samples {
		heard[[2]string{x.tx, x.rx}] = true
	}
	for way := range heard {
		if !heard[[2]string{way[1], way[0]}] {
			return false
		}
	}
	joined := map[string]bool{s.units[0]: true}
	for n := 0; n < len(joined); {
		n = len(joined)
		for way := range heard {
			if joined[way[0]] {
				joined[way[1]] = true
			}
		}
	}
	return len(joined) == len(s.units)
}

// only picks one coefficient.
func (d design) only(column int) []float64 {
	w := make([]float64, len(d.columns))
	w[column] = 1
	return w
}

// common picks what all links have. Of a family that is not known, columns that are
// left hold what some links have besides; which links those are hangs on the units'
// names, and their mean over the samples does not.
func (d design) common() []float64 {
	w := d.only(0)
	mean := func(known bool, family []int) {
		for _, c := range family {
			if !known && c >= 0 {
				w[c] = stat.Mean(d.columns[c], nil)
			}
		}
	}
	mean(d.powerKnown, d.power)
	mean(d.antennaKnown, d.antenna)
	return w
}

// differences are every unit's, the last one's too.
func (d design) differences(post *posterior, units []string, columns []int) map[string]Estimate {
	out := map[string]Estimate{}
	rest := make([]float64, len(d.columns))
	for i, c := range columns {
		out[units[i]] = post.combination(d.only(c))
		rest[c] = -1
	}
	out[units[len(units)-1]] = post.combination(rest)
	return out
}

// independent reports whether a column is not a sum of others, to within
// rounding.
func independent(columns [][]float64, c []float64) bool {
	rest := slices.Clone(c)
	var basis [][]float64
	for _, known := range append(slices.Clone(columns), rest) {
		v := slices.Clone(known)
		whole := length(v)
		for range 2 { // twice, for the sake of rounding
			for _, b := range basis {
				dot := 0.0
				for i := range v {
					dot += v[i] * b[i]
				}
				for i := range v {
					v[i] -= dot * b[i]
				}
			}
		}
		left := length(v)
		if left <= 1e-8*whole || whole == 0 {
			return false // columns that are held are independent, so it is the last
		}
		for i := range v {
			v[i] /= left
		}
		basis = append(basis, v)
	}
	return true
}

func length(v []float64) float64 {
	sum := 0.0
	for _, x := range v {
		sum += x * x
	}
	return math.Sqrt(sum)
}
