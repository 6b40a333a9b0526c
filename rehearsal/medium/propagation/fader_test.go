package propagation

import (
	"math"
	"testing"
	"time"
)

const testWaveM = SpeedOfLightMps / 2437e6

// The autocorrelation of the scattered part is J0(2π f_d τ) = J0(2π d/λ)
// (Clarke; Jakes, Microwave Mobile Communications, 1974).
func TestFadingDecorrelatesAsBessel(t *testing.T) {
	const links = 20000
	kind := NewFaderKind(FadingConfig{Model: "rayleigh"}, testWaveM)
	for _, d := range []float64{0.1, 0.25, 0.38, 0.6} { // in wavelengths; J0 is 0 at 0.38
		// For a complex Gaussian the powers' correlation is the field's squared.
		var p0, p1, both float64
		for i := range links {
			f := NewFader(6, i, i+1)
			a, b := kind.Power(f, 100, 20, 0), kind.Power(f, 100, 20+d*testWaveM, 0)
			p0, p1, both = p0+a/links, p1+b/links, both+a*b/links
		}
		got, want := both/(p0*p1)-1, math.Pow(math.J0(2*math.Pi*d), 2)
		t.Logf("moved by %g wavelengths: correlation of power %.3f, want %.3f; mean power %.3f", d, got, want, p0)
		// 20 waves take 1/20 off a Gaussian's.
		if math.Abs(got-want) > 0.07 || math.Abs(p0-1) > 0.03 {
			t.Errorf("moved by %g wavelengths: correlation %g, want %g; mean power %g, want 1", d, got, want, p0)
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
			a, b := kind.Power(f, 100, 20, time.Second), kind.Power(f, 100, 20, time.Second+time.Duration(seconds*1e9))
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
			x, y := 3000*math.Sin(float64(i)), 3000*math.Cos(float64(i))
			sin, cos := math.Sincos(2 * math.Pi * (math.Hypot(x, y)/testWaveM + float64(f.line)/(1<<16)))
			re, im := kind.line*cos, kind.line*sin
			for n, phase := range f.phases {
				w := f.turns[n/4]
				cos, sin := float64(w.cos), float64(w.sin)
				for range n % 4 { // a quarter of a turn further
					cos, sin = -sin, cos
				}
				turns := (x*cos+y*sin)/(1<<15)/testWaveM + float64(phase)/(1<<16)
				s, c := math.Sincos(2 * math.Pi * turns)
				re, im = re+kind.scatter*c, im+kind.scatter*s
			}
			if want := re*re + im*im; want > 1e-3 {
				worst = math.Max(worst, math.Abs(RatioToDb(kind.Power(f, x, y, 0)/want)))
			}
		}
		t.Logf("%s: at most %.3f dB from the formula", cfg.Model, worst)
		if worst > 0.2 {
			t.Errorf("%s: %g dB from the formula", cfg.Model, worst)
		}
	}
}
