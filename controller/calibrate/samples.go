// Package calibrate fits what a rehearsal assumes of a road to what a run
// recorded: how signal falls with distance, how it varies about that, and how
// hardware units differ. It tells how certain each is, and leaves out what the
// run cannot tell. It judges nothing of what TCP made of the radio.
package calibrate

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"fieldmesh.dev/fieldmesh/controller/archive"
	"fieldmesh.dev/fieldmesh/controller/metrics"
	"fieldmesh.dev/fieldmesh/controller/metrics/wifi"
	"fieldmesh.dev/fieldmesh/controller/plan/environment"
	"fieldmesh.dev/fieldmesh/protocols/wire"
)

const (
	// nearestM: nearer than this the error of a fix, some 3 m, is a third of the
	// distance.
	nearestM = 10.0
	// silentShare of a stretch's moments without a signal, from which on what is
	// heard there is a selection of the lucky.
	silentShare = 0.02
	stretches   = 20 // into which the moments are cut by distance
)

// ErrAndroid is returned where the only signals are what Android says about a Wi-Fi.
var ErrAndroid = errors.New("the run's signals are those of an access point outside the plan, as Android tells apps " +
	"about every 3 s (records of kind wifi): neither a link between two nodes nor of a known moment; calibrate by " +
	"a run whose nodes' agents read the radio")

// ErrNothing is returned for a run without a signal at a known distance.
var ErrNothing = errors.New("no accepted attempt has a signal between nodes whose places are known by GPS")

// sample is one signal at known places.
type sample struct {
	attempt int    // the number of its first pass
	pass    int    // over the attempts and the links' directions
	link    string // the two nodes, whichever heard, and the repetition where each has shadows of its own
	tx, rx  string // units
	power   power
	// gainDb is the signal less the power, and less what free space takes on the
	// first metre.
	gainDb    float64
	distanceM float64
	a, b      metrics.Place // of the link's nodes in the order of their names
	passes    float64       // whose mean it is
}

// moment is a sample, or a silence at a distance.
type moment struct {
	sample
	heard bool
}

// Survey is what a run has to fit to.
type Survey struct {
	Run      string
	HeldOut  []int // repetitions that are not used
	Attempts int   // accepted, with a signal that is left
	Heard    int   // signals at known places that are left
	// CutM is the distance from which on more than 2 % of the moments were
	// silent. What was heard from there on is left out: it is what shadowing and
	// fading let through. Absent: it was heard everywhere.
	CutM        *float64
	NearM, FarM float64 // distances of what is left
	Used        int     // places that are left, each way of a link by itself
	// PowerDbm is taken, on average, where trials do not say theirs. Absent: all do.
	PowerDbm  *float64
	powerFrom string

	units   []string          // of the samples
	unnamed bool              // a node bears no unit
	untold  map[[2]string]int // in how many attempts nothing is known of what the second node heard of the first
	samples []sample
}

// gather reads the accepted attempts of a run, but none of what was driven after it had enough.
func gather(a *archive.Archive, holdOut int, usualDbm func(radio string) float64) (*Survey, error) {
	attempts, err := a.Trials()
	if err != nil {
		return nil, fmt.Errorf("list trials: %w", err)
	}
	attempts = slices.DeleteFunc(attempts, func(at archive.Attempt) bool {
		t, planned := a.Trial(at.Trial)
		return !planned || !a.Drives(t) || at.Verdict == nil || at.Verdict.Outcome != wire.Accepted
	})
	out, err := heldOut(a, attempts, holdOut)
	if err != nil {
		return nil, err
	}
	assumed, err := rehearsed(a.Info(), usualDbm)
	if err != nil {
		return nil, err
	}
	s := &Survey{Run: a.Info().Run, HeldOut: out, untold: map[[2]string]int{}}
	var origin *metrics.Origin
	var all []moment
	byAndroid := false
	for _, at := range attempts {
		if t, _ := a.Trial(at.Trial); slices.Contains(out, t.Repetition) {
			continue
		}
		loaded, err := metrics.Load(a, at.TrialKey)
		if err != nil {
			return nil, err
		}
		byAndroid = byAndroid || wifi.Any(loaded.Records())
		if o, ok := loaded.Origin(); ok && origin == nil {
			origin = &o
		}
		if origin == nil {
			continue
		}
		found := s.passes(loaded, a.Info().Plan.Nodes, *origin,
			sample{attempt: len(all), power: powerOf(loaded, assumed)})
		if a.Info().ChannelDraws == environment.DrawsPerRepetition {
			for i := range found {
				found[i].link += fmt.Sprintf(" %d", loaded.Trial().Repetition)
			}
		}
		all = append(all, found...)
	}
	err = s.choose(all)
	if errors.Is(err, ErrNothing) && byAndroid {
		err = fmt.Errorf("calibrate run %q: %w", s.Run, ErrAndroid)
	}
	return s, err
}

// heldOut are the last n repetitions that the attempts are of. Parked passes are of none,
// and are always used.
func heldOut(a *archive.Archive, attempts []archive.Attempt, n int) ([]int, error) {
	var of []int
	for _, at := range attempts {
		if t, _ := a.Trial(at.Trial); t.Repetition > 0 {
			of = append(of, t.Repetition)
		}
	}
	slices.Sort(of)
	of = slices.Compact(of)
	if n < 0 || n > 0 && n >= len(of) {
		return nil, fmt.Errorf("calibrate run %q: hold out %d of the %d repetitions that have an accepted trial: one "+
			"at least must be left to calibrate by", a.Info().Run, n, len(of))
	}
	return of[len(of)-n:], nil
}

// passes are an attempt's moments, of each measured link both ways: only where
// data flow is silence a sign of weakness. Passes are numbered from the attempt's
// number on, which the sample tells with its power.
func (s *Survey) passes(at metrics.Attempt, nodes []wire.PlanNode, o metrics.Origin, of sample) []moment {
	t := at.Trial()
	unit := func(node string) string {
		for _, n := range nodes {
			if n.Name == node && n.Unit != "" {
				return n.Unit
			}
		}
		s.unnamed = true
		return node
	}
	var out []moment
	seen := map[[2]string]bool{}
	for _, f := range t.Traffic {
		for _, way := range [][2]string{{f.From, f.To}, {f.To, f.From}} {
			if seen[way] {
				continue
			}
			seen[way] = true
			if at.Untold(way[1], way[0]) {
				s.untold[way]++
				continue
			}
			base := of
			base.pass, base.link = of.attempt+len(out), min(way[0], way[1])+" "+max(way[0], way[1])
			base.tx, base.rx = unit(way[0]), unit(way[1])
			out = append(out, listened(base, way[0] < way[1], at.Hears(way[1], way[0], o),
				of.power.dbm-freeSpaceDb(t.Radio))...)
		}
	}
	return out
}

// listened turns what a node heard into moments; offsetDb is the signal at one
// metre by the power alone. Silence counts from the first
// signal on, since nothing flows until a connection is begun; where nothing is
// ever heard, all of it counts.
func listened(base sample, ordered bool, heard []metrics.Heard, offsetDb float64) []moment {
	first := max(0, slices.IndexFunc(heard, func(h metrics.Heard) bool { return h.SignalDbm != nil }))
	var out []moment
	for _, h := range heard[first:] {
		m := moment{sample: base, heard: h.SignalDbm != nil}
		m.a, m.b = h.Of, h.At
		if !ordered {
			m.a, m.b = h.At, h.Of
		}
		m.distanceM = apartM(h.Of, h.At)
		if m.heard {
			m.gainDb = *h.SignalDbm - offsetDb
		}
		out = append(out, m)
	}
	return out
}

// freeSpaceDb is Friis's loss on the first metre of a channel (Rappaport,
// Wireless Communications, 2nd ed., section 4.2), as the emulated radio has it.
func freeSpaceDb(r wire.Radio) float64 {
	channel := cmp.Or(r.Channel, wire.DefaultChannel)
	mhz := 2407 + 5*float64(channel)
	switch {
	case channel > 14:
		mhz = 5000 + 5*float64(channel)
	case channel == 14: // IEEE 802.11-2020, 15.4.4.3
		mhz = 2484
	}
	return 20 * math.Log10(4*math.Pi*mhz*1e6/299792458)
}

func apartM(p, q metrics.Place) float64 { return math.Hypot(p.EastM-q.EastM, p.NorthM-q.NorthM) }

// choose leaves out what is too near or a selection, and thins the rest.
func (s *Survey) choose(all []moment) error {
	near := 0
	all = slices.DeleteFunc(all, func(m moment) bool {
		if m.distanceM < nearestM && m.heard {
			near++
		}
		return m.distanceM < nearestM
	})
	s.CutM = cutM(all)
	var kept []sample
	heard, attempts := 0, map[int]bool{}
	for _, m := range all {
		if !m.heard {
			continue
		}
		heard++
		if s.CutM == nil || m.distanceM < *s.CutM {
			kept = append(kept, m.sample)
			attempts[m.attempt] = true
		}
	}
	switch {
	case heard == 0 && near > 0:
		return fmt.Errorf("calibrate run %q: all signals (%d) are from nearer than %g m, where a fix's error is a "+
			"third of the distance and more: drive passes that reach farther", s.Run, near, nearestM)
	case heard == 0 && len(s.untold) > 0:
		return fmt.Errorf("calibrate run %q: %w; not known: %s", s.Run, ErrNothing, strings.Join(s.leftOut(), "; "))
	case heard == 0:
		return fmt.Errorf("calibrate run %q: %w", s.Run, ErrNothing)
	case len(kept) == 0:
		return fmt.Errorf("calibrate run %q: none of %d signals is left: from %.0f m on, the least distance, more "+
			"than %g %% of the moments were silent; drive passes whose data flow and are heard near by (see Weak "+
			"signals in field-guides/calibration.md)", s.Run, heard, *s.CutM, 100*silentShare)
	}
	s.Attempts, s.Heard = len(attempts), len(kept)
	s.takePower(kept)
	s.samples = cells(kept)
	s.Used = len(s.samples)
	s.NearM, s.FarM = math.Inf(1), 0
	for _, x := range s.samples {
		s.NearM, s.FarM = min(s.NearM, x.distanceM), max(s.FarM, x.distanceM)
		s.units = append(s.units, x.tx, x.rx)
	}
	slices.Sort(s.units)
	s.units = slices.Compact(s.units)
	return nil
}

// leftOut says of which ways of links nothing is known, and why.
func (s *Survey) leftOut() (out []string) {
	for way, n := range s.untold {
		out = append(out, fmt.Sprintf("what %s heard of %s, in %d accepted attempts: its radio never told both a "+
			"signal and when it heard it, or the address of %[2]s is not known", way[1], way[0], n))
	}
	slices.Sort(out)
	return out
}

// cutM is where the first stretch of distance begins in which too many moments
// are silent. Choosing by distance, not by signal, leaves the fit unbiased.
func cutM(all []moment) *float64 {
	sorted := slices.Clone(all)
	slices.SortStableFunc(sorted, func(x, y moment) int { return cmp.Compare(x.distanceM, y.distanceM) })
	size := max(1, len(sorted)/stretches)
	for from := 0; from < len(sorted); from += size {
		part := sorted[from:min(from+size, len(sorted))]
		silent := 0
		for _, m := range part {
			if !m.heard {
				silent++
			}
		}
		if float64(silent) > silentShare*float64(len(part)) {
			return new(part[0].distanceM)
		}
	}
	return nil
}

const (
	// cellM is about what a fix errs by: closer places are not told apart.
	cellM = 5.0
	// mostCells of one link keep a fit to seconds: its work grows with the cube.
	mostCells = 200
)

// cells makes one sample, for each way of a link, of all that was heard at about
// one place: what is heard there again and again tells the same each time. Of a
// pass only what was heard nearest to the place counts. Places are as close
// together as fixes allow, or as there may be of them.
func cells(all []sample) []sample {
	for size := cellM; ; size *= 2 {
		if out := gathered(all, size); work(out) <= mostCells*mostCells*mostCells {
			return out
		}
	}
}

// work is what a fit takes: the cubes of the links' numbers of samples.
func work(samples []sample) int {
	of, sum := map[string]int{}, 0
	for _, x := range samples {
		of[x.link]++
	}
	for _, n := range of {
		sum += n * n * n
	}
	return sum
}

// visit is a pass through a cell: a place of a link, told by its first sample.
type visit struct {
	leader, pass int
	tx           string
}

func gathered(all []sample, sizeM float64) []sample {
	var leaders []sample
	nearest, off := map[visit]sample{}, map[visit]float64{}
	var order []visit
	for _, x := range all {
		i := slices.IndexFunc(leaders, func(l sample) bool { return l.link == x.link && movedM(x, l) < sizeM })
		if i < 0 {
			i = len(leaders)
			leaders = append(leaders, x)
		}
		v, d := visit{i, x.pass, x.tx}, movedM(x, leaders[i])
		_, seen := nearest[v]
		if !seen {
			order = append(order, v)
		}
		if !seen || d < off[v] {
			nearest[v], off[v] = x, d
		}
	}
	index := map[visit]int{}
	var out []sample
	for _, v := range order {
		x := nearest[v]
		v.pass = 0
		i, seen := index[v]
		if !seen {
			i = len(out)
			index[v] = i
			out = append(out, sample{link: x.link, tx: x.tx, rx: x.rx, a: leaders[v.leader].a, b: leaders[v.leader].b})
		}
		o := &out[i]
		o.passes++
		o.gainDb += (x.gainDb - o.gainDb) / o.passes
		o.distanceM += (x.distanceM - o.distanceM) / o.passes
	}
	return out
}

// movedM is how far both ends of a link lie from where they were.
func movedM(x, y sample) float64 { return apartM(x.a, y.a) + apartM(x.b, y.b) }
