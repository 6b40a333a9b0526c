package propagation

import (
	"math"
	"testing"
	"time"
)

const testWaveM = SpeedOfLightMps / 2437e6

func power(k *FaderKind, f *Fader, lower, higher Place, at time.Duration) float64 {
	return k.Power(f, k.Spot(lower), k.Spot(higher), at)
}

// The autocorrelation of the scattered part is J0(2π f_d τ) = J0(2π d/λ) when one of the nodes moves (Clarke; Jakes,
// Microwave Mobile Communications, 1974), and the product of both nodes' when both do, whatever their directions (Akki
// and Haber, 1986): so it is for two that drive side by side.
func TestFadingDecorrelatesAsBessel(t *testing.T) {
	const links = 20000
	kind := NewFaderKind(FadingConfig{Model: "rayleigh"}, testWaveM)
	for _, c := range []struct {
		what          string
		lower, higher Place // by how far each moves, in wavelengths
	}{
		{"the higher", Place{}, Place{0, 0.1}},
		{"the higher", Place{}, Place{0, 0.25}},
		{"the higher", Place{}, Place{0, 0.38}}, // J0 is 0 at 0.38
		{"the higher", Place{}, Place{0, 0.6}},
		{"the lower", Place{0, 0.1}, Place{}},
		{"the lower", Place{0.25, 0}, Place{}},
		{"the lower", Place{0, 0.38}, Place{}},
		{"the lower", Place{0, 0.6}, Place{}},
		{"side by side", Place{0.1, 0}, Place{0.1, 0}},
		{"side by side", Place{0, 0.2}, Place{0, 0.2}},
		{"side by side", Place{0.6, 0}, Place{0.6, 0}},
		{"towards each other", Place{0.1, 0}, Place{-0.1, 0}},
		{"towards each other", Place{0.2, 0}, Place{-0.2, 0}},
		{"across", Place{0.15, 0}, Place{0, 0.3}},
	} {
		moved := func(x, y float64, by Place) Place { return Place{x + by.XM*testWaveM, y + by.YM*testWaveM} }
		// For a complex Gaussian the powers' correlation is the field's squared. As many waves take their number's
		// inverse off it.
		var p0, p1, both float64
		for i := range links {
			f := NewFader(6, i, i+1)
			a := power(kind, f, Place{7, 3}, Place{107, 23}, 0)
			b := power(kind, f, moved(7, 3, c.lower), moved(107, 23, c.higher), 0)
			p0, p1, both = p0+a/links, p1+b/links, both+a*b/links
		}
		bessel := func(by Place) float64 { return math.J0(2 * math.Pi * math.Hypot(by.XM, by.YM)) }
		got, want := both/(p0*p1)-1, math.Pow(bessel(c.lower)*bessel(c.higher), 2)-1.0/faderWaves
		t.Logf("%s, by %v and %v wavelengths: correlation of power %.3f, want %.3f; mean power %.3f", c.what, c.lower,
			c.higher, got, want, p0)
		if math.Abs(got-want) > 0.04 || math.Abs(p0-1) > 0.03 {
			t.Errorf("%s, by %v and %v wavelengths: correlation %g, want %g; mean power %g, want 1", c.what, c.lower,
				c.higher, got, want, p0)
		}
	}
}

// With scatterers that move, the field of two nodes that stand decorrelates as the bell of the TGn
// models says: exp(-2π f_d τ / 3), a bell without its cut-off being Lorentz's.
func TestMovingScatterersFadeStandingNodes(t *testing.T) {
	const links, speedMps = 20000, 0.5
	kind := NewFaderKind(FadingConfig{Model: "rayleigh", ScattererMps: speedMps}, testWaveM)
	for _, seconds := range []float64{0.02, 0.05, 0.1, 0.3} {
		var p0, p1, both float64
		for i := range links {
			f := NewFader(6, i, i+1)
			power := func(at float64) float64 { return power(kind, f, Place{}, Place{100, 20}, time.Duration(at*1e9)) }
			a, b := power(1), power(1+seconds)
			p0, p1, both = p0+a/links, p1+b/links, both+a*b/links
		}
		got, want := both/(p0*p1)-1, math.Exp(-2*2*math.Pi*speedMps/testWaveM*seconds/3)
		t.Logf("after %g s: correlation of power %.3f, want %.3f; mean power %.3f", seconds, got, want, p0)
		if math.Abs(got-want) > 0.07 || math.Abs(p1-1) > 0.03 { // as for Bessel
			t.Errorf("after %g s: correlation %g, want %g; mean power %g, want 1", seconds, got, want, p1)
		}
	}
}

// The tables of phasors against the sum of cosines that they stand for, in powers that
// matter: 30 dB below the mean and above.
func TestFaderAgainstItsFormula(t *testing.T) {
	for _, cfg := range []FadingConfig{{Model: "rayleigh"}, {Model: "rician", KFactorDb: 6}} {
		kind, worst := NewFaderKind(cfg, testWaveM), 0.0
		for i := range 5000 {
			f := NewFader(3, i, i+1)
			sin, cos := math.Sincos(float64(i))
			a, b := Place{2000 * cos, 500 * sin}, Place{3000 * sin, 3000 * cos}
			sin, cos = math.Sincos(2 * math.Pi * (math.Hypot(b.XM-a.XM, b.YM-a.YM)/testWaveM + float64(f.line)/(1<<16)))
			re, im := kind.line*cos, kind.line*sin
			for n, phase := range f.phases {
				turns := float64(phase) / (1 << 16)
				for at, w := range map[Place]faderTurn{a: otherTurns[f.others][n/4], b: f.turns[n/4]} {
					cos, sin := float64(w.cos), float64(w.sin)
					for range n % 4 { // a quarter of a turn further
						cos, sin = -sin, cos
					}
					turns += (at.XM*cos + at.YM*sin) / (1 << 15) / testWaveM
				}
				s, c := math.Sincos(2 * math.Pi * turns)
				re, im = re+kind.scatter*c, im+kind.scatter*s
			}
			if want := re*re + im*im; want > 1e-3 {
				worst = math.Max(worst, math.Abs(RatioToDb(power(kind, f, a, b, 0)/want)))
			}
		}
		t.Logf("%s: at most %.3f dB from the formula", cfg.Model, worst)
		if worst > 0.2 {
			t.Errorf("%s: %g dB from the formula", cfg.Model, worst)
		}
	}
}

// What is written out against the loop over waves that it stands for, to the bit.
func TestFaderSumsAllWaves(t *testing.T) {
	const seed = 11
	s := newStream(seed, 0, 0, 0)
	far := func() int64 { return int64(s.next()) >> 20 } // to 1000 km on either side
	for i := range 20000 {
		f := NewFader(seed, i, i+1)
		ax, ay, bx, by := far(), far(), far(), far()
		var there, back uint32
		for n, p := range f.phases {
			a, b := otherTurns[f.others][n/4], f.turns[n/4]
			cosA, sinA, cosB, sinB := int64(a.cos), int64(a.sin), int64(b.cos), int64(b.sin)
			along := uint16((ax*cosA + ay*sinA + bx*cosB + by*sinB) >> waveShift)
			across := uint16((ay*cosA - ax*sinA + by*cosB - bx*sinB) >> waveShift)
			switch n % 4 {
			case 0:
				there += packed[(p+along)>>phaseShift]
			case 1:
				there += packed[(p+across)>>phaseShift]
			case 2:
				back += packed[(p-along)>>phaseShift]
			case 3:
				back += packed[(p-across)>>phaseShift]
			}
		}
		if gotThere, gotBack := f.sum(&otherTurns[f.others], ax, ay, bx, by); gotThere != there || gotBack != back {
			t.Fatalf("seed %d, fader %d at %d %d, %d %d: sums %d and %d, want %d and %d", seed, i, ax, ay, bx, by,
				gotThere, gotBack, there, back)
		}
	}
}
