package propagation

import (
	"math"
	"testing"
)

// Shadowing over independent links of several fields: mean 0, the deviation asked for, and a
// correlation of exp(-d/d0) when one end moves, and the product when both do.
func TestShadowingVarianceAndCorrelation(t *testing.T) {
	const seed, fields, links = 11, 8, 1000
	for _, cfg := range []ShadowingConfig{
		{SigmaDb: 7.5, DecorrelationM: 500}, {SigmaDb: 4.3, DecorrelationM: 8.3}, // Gudmundson's suburb and city
		{SigmaDb: 6, DecorrelationM: 20, NodeCorrelation: 0.25},
	} {
		correlation := func(ax, by float64) (correlation, mean float64) {
			for n := range uint64(fields) {
				f := NewShadowField(seed+n, cfg)
				at := func(link int, ax, by float64) float64 {
					// Far apart, so that no two links have an end's part in common.
					x := 100 * cfg.DecorrelationM * float64(link)
					return f.AtDb(link, links+link, f.Cell(x+ax, 50),
						f.Cell(x, by-100*cfg.DecorrelationM))
				}
				for i := range links {
					was := at(i, 0, 0)
					mean += was / links / fields
					correlation += was * at(i, ax, by) / links / fields / (cfg.SigmaDb * cfg.SigmaDb)
				}
			}
			return correlation, mean
		}
		variance, mean := correlation(0, 0)
		t.Logf("seeds from %d, %+v: mean %.3f dB, variance %.3f of what was asked", seed, cfg, mean, variance)
		// Standard errors over 8000 links are 1.1 and 1.6 %.
		if math.Abs(mean) > 0.045*cfg.SigmaDb {
			t.Errorf("seeds from %d: mean %g dB", seed, mean)
		}
		if math.Abs(variance-1) > 0.065 {
			t.Errorf("seeds from %d: variance %g of what was asked", seed, variance)
		}
		for _, d := range []float64{0.1, 0.25, 0.5, 1, 2} {
			one, _ := correlation(d*cfg.DecorrelationM, 0)
			both, _ := correlation(d*cfg.DecorrelationM, -d*cfg.DecorrelationM)
			c := 2 * cfg.NodeCorrelation
			wantOne := (1-c)*math.Exp(-d) + c*(1+math.Exp(-d))/2
			wantBoth := (1-c)*math.Exp(-2*d) + c*math.Exp(-d)
			t.Logf("moved by %g d0: correlation %.3f, want %.3f; both %.3f, want %.3f", d, one, wantOne, both, wantBoth)
			if math.Abs(one-wantOne) > 0.05 || math.Abs(both-wantBoth) > 0.05 {
				t.Errorf("seeds from %d: moved by %g d0: correlation %g, want %g; both ends %g, want %g", seed, d, one,
					wantOne, both, wantBoth)
			}
		}
	}
}

// Two links of one node whose other ends are far apart have the correlation asked for; two
// without a common node none.
func TestShadowsOfOneNodesLinksCorrelate(t *testing.T) {
	const seeds = 4000
	far := [][2]float64{{}, {9000, 500}, {-400, 7000}, {6000, -5000}}
	for _, want := range []float64{0, 0.3, 0.5} {
		cfg := ShadowingConfig{SigmaDb: 5, DecorrelationM: 20, NodeCorrelation: want}
		common, apart, variance := 0.0, 0.0, 0.0
		for seed := range uint64(seeds) {
			f := NewShadowField(seed, cfg)
			at := func(n int) Cell { return f.Cell(far[n][0], far[n][1]) }
			link := func(a, b int) float64 { return f.AtDb(a, b, at(a), at(b)) / cfg.SigmaDb }
			common += link(0, 1) * link(0, 2) / seeds
			apart += link(0, 1) * link(2, 3) / seeds
			variance += link(0, 1) * link(0, 1) / seeds
		}
		t.Logf("seeds 0 to %d: correlation %.3f, want %.1f; without a common node %.3f; variance %.3f", seeds-1, common,
			want, apart, variance)
		// The standard error of each is below 0.023.
		if math.Abs(common-want) > 0.08 || math.Abs(apart) > 0.08 || math.Abs(variance-1) > 0.1 {
			t.Errorf("correlation %g of one node's links, want %g; of others %g, want 0; variance %g", common, want,
				apart, variance)
		}
	}
}

// The ends of a short link see nearly the same obstacles: its loss spreads by
// √(1 + 2ρ·e^(−d/d₀)) times what was asked for, as the guide says.
func TestAShortLinksShadowSpreadsAsTheGuideSays(t *testing.T) {
	const seeds = 8000
	for _, d := range []float64{4, 20, 60} {
		cfg := ShadowingConfig{SigmaDb: 5, DecorrelationM: 20, NodeCorrelation: 0.5}
		variance := 0.0
		for seed := range uint64(seeds) {
			f := NewShadowField(seed, cfg)
			db := f.AtDb(0, 1, f.Cell(0, 0), f.Cell(d, 0)) / cfg.SigmaDb
			variance += db * db / seeds
		}
		want := 1 + 2*cfg.NodeCorrelation*math.Exp(-d/cfg.DecorrelationM)
		t.Logf("seeds 0 to %d, %g m: variance %.3f, want %.3f", seeds-1, d, variance, want)
		if math.Abs(variance-want) > 0.1 { // its standard error is below 0.03
			t.Errorf("at %g m: variance %g, want %g", d, variance, want)
		}
	}
}

// Over many seeds Gudmundson's published figures must come back: 0.82 at 100 m,
// 0.3 at 10 m.
func TestShadowingGivesGudmundsonsFigures(t *testing.T) {
	for _, v := range []struct {
		cfg  ShadowingConfig
		d    float64
		want float64
	}{
		{ShadowingConfig{SigmaDb: 7.5, DecorrelationM: 500}, 100, 0.82},
		{ShadowingConfig{SigmaDb: 4.3, DecorrelationM: 8.3}, 10, 0.30},
	} {
		const seeds = 8000
		sum := 0.0
		for seed := range uint64(seeds) {
			f := NewShadowField(seed, v.cfg)
			far := f.Cell(40, 0)
			sum += f.AtDb(0, 1, f.Cell(0, 0), far) * f.AtDb(0, 1, f.Cell(0, v.d), far)
		}
		got := sum / seeds / (v.cfg.SigmaDb * v.cfg.SigmaDb)
		t.Logf("%g m: correlation %.3f, published %.2f", v.d, got, v.want)
		if math.Abs(got-v.want) > 0.05 {
			t.Errorf("%+v: correlation %g over %g m, published %g", v.cfg, got, v.d, v.want)
		}
	}
}
