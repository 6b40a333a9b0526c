package mobility

import (
	"math"
	"testing"
	"time"
)

// shareWithin is the share of trips between uniform places of a unit square that
// are at most so long, by the density of their length (Philip, "The probability
// distribution of the distance between two random points in a box", KTH 2007).
func shareWithin(length float64) float64 {
	const steps = 400
	sum, most := 0.0, min(length, math.Sqrt2)
	for i := range steps {
		l := (float64(i) + 0.5) / steps * most
		density := 2 * l * (l*l - 4*l + math.Pi)
		if l > 1 {
			root := math.Sqrt(l*l - 1)
			density = 2 * l * (4*root - (l*l + 2 - math.Pi) - 4*math.Atan(root))
		}
		sum += density * most / steps
	}
	return sum
}

// meanByRenewal is the mean speed of setdest's nodes at every beat of a clock, in a
// square: trips are renewals. A trip that began a time ago has its speed v, uniform
// up to most, with the chance that it is longer than v times that time.
func meanByRenewal(sideM, most float64, beat time.Duration, beats int) []float64 {
	const speeds = 400
	length := make([]float64, 2001) // of trips: the share within 2000ths of the diagonal
	for i := range length {
		length[i] = shareWithin(float64(i) / 2000 * math.Sqrt2)
	}
	within := func(m float64) float64 {
		at := m / sideM / math.Sqrt2 * 2000
		i := int(at)
		if i >= 2000 {
			return 1
		}
		return length[i] + (at-float64(i))*(length[i+1]-length[i])
	}
	ended := func(s float64) (share float64) { // of trips, a time after they began
		for i := range speeds {
			share += within((float64(i)+0.5)/speeds*most*s) / speeds
		}
		return share
	}
	dt := beat.Seconds()
	speed, chance := make([]float64, beats), make([]float64, beats) // by beats since a trip's start
	for k := range beats {
		for i := range speeds {
			v := (float64(i) + 0.5) / speeds * most
			speed[k] += v * (1 - within(v*float64(k)*dt)) / speeds
		}
		chance[k] = ended((float64(k)+0.5)*dt) - ended(max(float64(k)-0.5, 0)*dt)
	}
	starts, mean := make([]float64, beats), make([]float64, beats)
	for k := range beats {
		if k == 0 {
			starts[0] = 1
		}
		for j := range k {
			starts[k] += starts[j] * chance[k-j]
		}
		for j := range k + 1 {
			mean[k] += starts[j] * speed[k-j]
		}
	}
	return mean
}

// P3's nodes: from 0 to 20 m/s in a square of 1000 m without pauses, seen from 100 s
// to 1000 s. The calculation takes the lengths of consecutive trips for independent,
// which they are not quite, as they have a place in common; 1 % is for that.
func TestSetdestDecays(t *testing.T) {
	const nodes, from, to = 20_000, 100, 1000
	t.Logf("seed %d", seed)
	byRenewal := meanByRenewal(1000, 20, time.Second, to)
	want := 0.0
	for _, v := range byRenewal[from:] {
		want += v / (to - from)
	}
	model := Setdest{Area: Area{1000, 1000}, SpeedMaxMps: 20}
	sum, squares, atStart, late := 0.0, 0.0, 0.0, 0.0
	for i := range nodes {
		p, err := model.Path(seed, i, to*time.Second)
		if err != nil {
			t.Fatal(err)
		}
		v := way(p, from*time.Second, to*time.Second) / (to - from)
		sum, squares = sum+v, squares+v*v
		atStart += p.At(time.Millisecond).SpeedMps / nodes
		late += p.At(999*time.Second).SpeedMps / nodes
	}
	got := sum / nodes
	deviation := math.Sqrt(squares/nodes - got*got)
	t.Logf("mean speed %.3f m/s, by renewal %.3f; at the start %.2f, after 999 s %.2f", got, want, atStart, late)
	if !near(got, want, 4*deviation/math.Sqrt(nodes)+0.01*want) {
		t.Errorf("mean speed from %d s to %d s is %.3f m/s, by renewal %.3f m/s", from, to, got, want)
	}
	// A speed's own spread is below 6 m/s.
	if root := math.Sqrt(nodes); !near(atStart, 10, 4*6/root) || !near(late, byRenewal[999], 4*6/root+0.01*late) {
		t.Errorf("mean speed %.3f m/s at the start, %.3f m/s after 999 s; want 10 and %.3f", atStart, late,
			byRenewal[999])
	}
}

// way is how far a path leads between two times.
func way(p Path, from, to time.Duration) (m float64) {
	last := p.At(from)
	step := func(at time.Duration) {
		s := p.At(at)
		m += math.Hypot(s.XM-last.XM, s.YM-last.YM)
		last = s
	}
	for _, k := range p.knots {
		if k.At > from && k.At < to {
			step(k.At)
		}
	}
	step(to)
	return m
}

func TestSetdestStartsAnywhereAtRest(t *testing.T) {
	model := Setdest{Area: Area{400, 800}, SpeedMaxMps: 20, Pause: 30 * time.Second}
	x, y := 0.0, 0.0
	const nodes = 2000
	for i := range nodes {
		p, err := model.Path(seed, i, time.Hour)
		if err != nil {
			t.Fatal(err)
		}
		begin, end := p.At(0), p.At(30*time.Second)
		if begin.XM != end.XM || begin.YM != end.YM {
			t.Fatalf("node %d goes within its first pause", i)
		}
		x, y = x+begin.XM/nodes, y+begin.YM/nodes
		for _, k := range p.knots {
			if model.Area.Check(k.XM, k.YM) != nil {
				t.Fatalf("node %d is at %+v", i, k)
			}
		}
	}
	if root := math.Sqrt(nodes); !near(x, 200, 4*400/math.Sqrt(12)/root) || !near(y, 400, 4*800/math.Sqrt(12)/root) {
		t.Errorf("nodes start around %.1f m, %.1f m", x, y)
	}
	if _, err := (Setdest{Area: Area{400, 800}}).Path(1, 0, time.Second); err == nil {
		t.Error("nodes without a speed go")
	}
}

// P4's nodes start anywhere and all go at one speed.
func TestSetdestHasALeastSpeed(t *testing.T) {
	p, err := Setdest{Area: Area{400, 800}, SpeedMinMps: 5, SpeedMaxMps: 5}.Path(seed, 1, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	for at := time.Second; at < time.Hour; at += time.Minute {
		if v := p.At(at).SpeedMps; !near(v, 5, 1e-3) {
			t.Errorf("after %v at %g m/s", at, v)
		}
	}
	for _, least := range []float64{-1, 6, math.NaN()} {
		if (Setdest{Area: Area{400, 800}, SpeedMinMps: least, SpeedMaxMps: 5}).Check() == nil {
			t.Errorf("speeds from %g to 5 m/s are none", least)
		}
	}
}

// A trip that is too slow to end is seen in part, at its speed.
func TestTheSlowestTrip(t *testing.T) {
	p := Path{knots: trip([]Knot{{}}, 300, 400, 1e-12)}
	if s := p.At(maxTrip); p.Ends() != maxTrip || !near(math.Hypot(s.XM, s.YM), 1e-12*maxTrip.Seconds(), 1e-15) {
		t.Errorf("after %v at %+v", p.Ends(), s)
	}
}
