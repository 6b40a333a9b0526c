package medium

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"fieldmesh.dev/fieldmesh/rehearsal/medium/errorrate"
	"fieldmesh.dev/fieldmesh/rehearsal/medium/phy"
	"fieldmesh.dev/fieldmesh/rehearsal/medium/propagation"
)

// The card's manual: 8 % of 1024 bytes lost at these powers.
func TestOrinocoHasItsDocumentedSensitivity(t *testing.T) {
	p, err := phy.New(phy.Config{Standard: phy.Standard80211b, Radio: phy.RadioDSSSOrinoco})
	if err != nil {
		t.Fatal(err)
	}
	noiseFigureDb, powerDbm := phy.RadioDefaults(phy.RadioDSSSOrinoco)
	if powerDbm != 15 {
		t.Errorf("the card sends at %g dBm, documented are 15", powerDbm)
	}
	for i, dbm := range []float64{-91, -88, -85, -82} {
		m := p.Modes[i]
		lost := phy.LostShare(m.LogSuccess(propagation.DbToRatio(dbm)/p.NoiseMw(noiseFigureDb), 8*1024))
		within(t, "lost at the sensitivity", lost, 0.08, 0.01)
		if loss := propagation.RatioToDb(m.Loss); loss < 0 || loss > 3 {
			t.Errorf("%g Mbit/s: %.2f dB worse than its noise figure says, want 0 to 3", m.RateMbps, loss)
		}
	}
}

// The SNR at which 10 % and 1 % of 1458 bytes are lost by link-level simulation
// (convolutional code, soft decisions, AWGN): Patidar, Roy, Henderson, Mohandass, "Link-to-system
// mapping for ns-3 Wi-Fi OFDM error models", WNS3 2017, interpolated between the points that ns-3
// tabulates. They have no BPSK at rate 3/4, which is 3 dB below QPSK in any model.
func TestRecentOFDMAgainstPublishedLinkSimulation(t *testing.T) {
	p, err := phy.New(phy.Config{Standard: phy.Standard80211g, Radio: phy.RadioOFDMRecent})
	if err != nil {
		t.Fatal(err)
	}
	hard := mustPHY(t, phy.Standard80211g)
	published := map[float64][2]float64{6: {0.86, 1.53}, 9: {6.37 - 3.01, 7.06 - 3.01}, 12: {3.89, 4.54},
		18: {6.37, 7.06}, 24: {9.63, 10.45}, 36: {12.72, 13.53}, 48: {17.02, 17.96}, 54: {18.31, 19.22}}
	for i, m := range p.Modes {
		for j, lost := range []float64{0.1, 0.01} {
			needs := func(m phy.Mode) float64 {
				return propagation.RatioToDb(errorrate.LeastSNR(lost, func(snr float64) float64 {
					return phy.LostShare(m.LogSuccess(snr, phy.PayloadBits(&m, 1458)))
				}))
			}
			got, was, want := needs(m), needs(hard.Modes[i]), published[m.RateMbps][j]
			t.Logf("%g Mbit/s: %g of the frames lost at %.2f dB, published %.2f, hard decisions %.2f", m.RateMbps, lost,
				got, want, was)
			if math.Abs(got-want) > 0.15 {
				t.Errorf("%g Mbit/s: %g of the frames lost at %.2f dB, published %.2f", m.RateMbps, lost, got, want)
			}
			if was < got+1 || was > got+5 {
				t.Errorf("%g Mbit/s: hard decisions need %.2f dB, soft ones %.2f: want 1 to 5 more", m.RateMbps, was,
					got)
			}
		}
	}
}

// The tables against the formulas, between their points.
func TestCurvesAgainstFormulas(t *testing.T) {
	const seed = 1
	rng := rand.New(rand.NewPCG(seed, 0))
	everyRadio(t, func(what string, p *phy.PHY) {
		soft := strings.HasPrefix(what, phy.RadioOFDMRecent) || p.HT != nil
		for _, m := range p.Modes {
			for range 300 {
				db := errorrate.CurveFromDb + (errorrate.CurveToDb-errorrate.CurveFromDb)*rng.Float64()
				snr := propagation.DbToRatio(db)
				of := errorrate.Scheme{Modulation: m.Modulation, Code: m.Code, Soft: soft}
				want := -math.Log1p(-of.SymbolErrorRate(snr))
				got := m.Curve.At(snr)
				if want > 0.1 {
					continue // the bound's upper end: no frame survives
				}
				if want > 1e-9 && math.Abs(got/want-1) > 0.003 || want <= 1e-9 && got > 1e-8 {
					t.Errorf("seed %d: %s %g Mbit/s at %g dB: %g, formula %g", seed, what, m.RateMbps,
						propagation.RatioToDb(snr), got, want)
				}
			}
		}
	})
}

// Noise figure and power where nothing else is said.
func TestRadiosHaveTheirOwnNoiseAndPower(t *testing.T) {
	for name, want := range map[string][2]float64{"": {10, 20}, phy.RadioOFDM2003: {10, 20},
		phy.RadioOFDMRecent: {7, 20}, phy.RadioHT20: {7, 20}, phy.RadioDSSSOrinoco: {10, 15},
		phy.RadioNS2WaveLAN: {10, 24.5}, phy.RadioDisc: {10, 20}} {
		if noiseFigureDb, powerDbm := phy.RadioDefaults(name); noiseFigureDb != want[0] || powerDbm != want[1] {
			t.Errorf("radio %q: noise figure %g dB, power %g dBm, want %g", name, noiseFigureDb, powerDbm, want)
		}
	}
}

// What a radio by name cannot be is refused, and the error says what is known.
func TestRadiosByName(t *testing.T) {
	for _, v := range []struct {
		radio, standard, propagation, says string
	}{
		{phy.RadioDSSSOrinoco, phy.Standard80211g, "free_space", "802.11b"},
		{phy.RadioOFDMRecent, phy.Standard80211b, "free_space", "802.11a and 802.11g"},
		{phy.RadioOFDM2003, phy.Standard80211a, "free_space", ""},
		{phy.RadioNS2WaveLAN, phy.Standard80211a, "", "802.11b"},
		{phy.RadioDisc, phy.Standard80211g, "free_space", "its own"},
		{phy.RadioDisc, phy.Standard80211g, "", ""},
		{"dsss", phy.Standard80211b, "free_space", "ns2_wavelan, dsss_orinoco, ofdm_2003, ofdm_recent, ht20, ht40, " +
			"vht80, disc"},
		{phy.RadioHT20, phy.Standard80211g, "free_space", "802.11n"},
		{phy.RadioHT20, phy.Standard80211n, "free_space", ""},
		{"", phy.Standard80211n, "free_space", "ht20, ht40 or vht80"},
	} {
		cfg := testConfig(v.standard, 0, 2)
		cfg.Radio, cfg.Propagation = v.radio, propagation.Config{Model: v.propagation}
		if v.radio == phy.RadioDisc {
			cfg.Propagation.RangeM = 100
		}
		_, err := NewCore(cfg, line(5), newRecorder(2))
		if (err == nil) != (v.says == "") || err != nil && !strings.Contains(err.Error(), v.says) {
			t.Errorf("radio %s with %s and %q: %v, want %q", v.radio, v.standard, v.propagation, err, v.says)
		}
	}
}
