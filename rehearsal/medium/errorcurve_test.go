package medium

import (
	"math"
	"testing"

	"fieldmesh.dev/fieldmesh/rehearsal/medium/phy"
	"fieldmesh.dev/fieldmesh/rehearsal/medium/propagation"
)

// The curves of every rate at five SNRs, against closed forms that share no code
// with the model: exact where it takes an asymptote or a bound, and the published
// weights of the code's error events where it counts its own.

// integrate is the midpoint rule.
func integrate(from, to float64, n int, f func(x float64) float64) float64 {
	step, sum := (to-from)/float64(n), 0.0
	for i := range n {
		sum += f(from+(float64(i)+0.5)*step) * step
	}
	return sum
}

// craigQ is the Gaussian tail in Craig's form.
func craigQ(x float64) float64 {
	return integrate(0, math.Pi/2, 400, func(theta float64) float64 {
		return math.Exp(-x*x/(2*math.Pow(math.Sin(theta), 2))) / math.Pi
	})
}

// envelopePair is how often the weaker of two envelopes is taken: Q1(a, b) - ½
// I0(ab) exp(-(a² + b²)/2) (Proakis, 4th ed., eq. 5.2-70 and section 5.4.4).
func envelopePair(a, b float64) float64 {
	// exp(-x) I0(x). On a period the midpoint rule is off by exp(-128²/2x) of it: by
	// nothing below x = 200, and beyond, b - a > 12 leaves nothing of the whole.
	scaledI0 := func(x float64) float64 {
		return integrate(0, math.Pi, 64, func(theta float64) float64 {
			return math.Exp(x*(math.Cos(theta)-1)) / math.Pi
		})
	}
	marcum := integrate(b, b+8, 800, func(x float64) float64 {
		return x * math.Exp(-(x-a)*(x-a)/2) * scaledI0(a*x)
	})
	return marcum - 0.5*scaledI0(a*b)*math.Exp(-(a-b)*(a-b)/2)
}

// exactDQPSK is the bit error rate of Gray-coded DQPSK: a, b = √(2 γ (1 ∓ 1/√2)).
func exactDQPSK(ebN0 float64) float64 {
	return envelopePair(math.Sqrt(2*ebN0*(1-math.Sqrt2/2)), math.Sqrt(2*ebN0*(1+math.Sqrt2/2)))
}

// exactCCK16 is the symbol error rate of a CCK word of 4 bits: four orthogonal envelopes,
// exactly (Proakis, 4th ed., eq. 5.4-46), and DQPSK.
func exactCCK16(esN0 float64) float64 {
	word, choose := 0.0, []float64{3, -3, 1}
	for k, c := range choose {
		n := float64(k + 1)
		word += c / (n + 1) * math.Exp(-n/(n+1)*esN0)
	}
	return 1 - (1-word)*math.Pow(1-exactDQPSK(esN0/2), 2)
}

// exactCCK256 is the same of 8 bits: the union over all other code words, of a
// correlation (1/√2)^m for m of the three phases a quarter turn off, 0 for any
// half a turn off (Proakis, 4th ed., section 5.4.4).
func exactCCK256(esN0 float64) float64 {
	word := 37 * 0.5 * math.Exp(-esN0/2)
	for m, words := range []float64{6, 12, 8} {
		rho := math.Pow(math.Sqrt2, -float64(m+1))
		half := math.Sqrt(1 - rho*rho)
		word += words * envelopePair(math.Sqrt(esN0/2*(1-half)), math.Sqrt(esN0/2*(1+half)))
	}
	return 1 - (1-word)*math.Pow(1-exactDQPSK(esN0/2), 2)
}

// qamBER is the exact bit error rate of one axis of Gray-coded 16-QAM and the
// first terms of 64-QAM's (Cho and Yoon, "On the general BER expression of one- and
// two-dimensional amplitude modulations", IEEE Trans. Comm. 50(7), 2002).
func qamBER(bitsPerSymbol int, snr float64) float64 {
	switch bitsPerSymbol {
	case 1:
		return craigQ(math.Sqrt(2 * snr))
	case 2:
		return craigQ(math.Sqrt(snr))
	case 4:
		d := math.Sqrt(snr / 5)
		return 0.75*craigQ(d) + 0.5*craigQ(3*d) - 0.25*craigQ(5*d)
	}
	d := math.Sqrt(snr / 21)
	return 7.0/12*craigQ(d) + 0.5*craigQ(3*d) - 1.0/12*craigQ(5*d)
}

// publishedSpectra are the information weights of Haccoun and Bégin, IEEE Trans.
// Comm. 37(11), 1989 (rates 2/3, 3/4), and Conan, "The weight spectra of some
// short low-rate convolutional codes", IEEE Trans. Comm. 32(9), 1984 (rate 1/2).
var publishedSpectra = map[string]struct {
	first, step int
	perBits     float64
	weights     []float64
}{
	"1/2": {10, 2, 1, []float64{36, 211, 1404, 11633, 77433, 502690, 3322763, 21292910, 134365911}},
	"2/3": {6, 1, 2, []float64{3, 70, 285, 1276, 6160, 27128, 117019, 498860, 2103891, 8784123}},
	"3/4": {5, 1, 3, []float64{42, 201, 1492, 10469, 62935, 379644, 2253373, 13073811, 75152755, 428005675}},
}

// boundAfterViterbi is the union bound with Bhattacharyya's on each event.
func boundAfterViterbi(code string, p float64) float64 {
	s, sum := publishedSpectra[code], 0.0
	for i, w := range s.weights {
		sum += w * math.Pow(4*p*(1-p), float64(s.first+i*s.step)/2)
	}
	return math.Min(0.5, sum/(2*s.perBits))
}

// closedForm is the frame error rate of a rate over its SNR, header left out.
func closedForm(standard string, rate float64, bytes int) func(snr float64) float64 {
	n := 8 * float64(bytes)
	lost := func(units, errorRate float64) float64 { return -math.Expm1(units * math.Log1p(-errorRate)) }
	if standard == phy.Standard80211b {
		// 22 MHz of noise; a symbol is 1 µs for 1 and 2 Mbit/s, 8/11 µs for CCK.
		return map[float64]func(snr float64) float64{
			1:   func(snr float64) float64 { return lost(n, 0.5*math.Exp(-22*snr)) },
			2:   func(snr float64) float64 { return lost(n, exactDQPSK(11*snr)) },
			5.5: func(snr float64) float64 { return lost(n/4, exactCCK16(16*snr)) },
			11:  func(snr float64) float64 { return lost(n/8, min(exactCCK256(16*snr), 1)) },
		}[rate]
	}
	v := map[float64]struct {
		bits int
		code string
	}{6: {1, "1/2"}, 9: {1, "3/4"}, 12: {2, "1/2"}, 18: {2, "3/4"}, 24: {4, "1/2"}, 36: {4, "3/4"}, 48: {6, "2/3"},
		54: {6, "3/4"}}[rate]
	return func(snr float64) float64 { return lost(n+22, boundAfterViterbi(v.code, qamBER(v.bits, snr))) }
}

func TestErrorCurvesOfEveryRateAgainstClosedForms(t *testing.T) {
	const bytes = 1000
	for _, standard := range []string{phy.Standard80211b, phy.Standard80211g} { // 802.11a has 802.11g's
		p := mustPHY(t, standard)
		for _, m := range p.Modes {
			want := closedForm(standard, m.RateMbps, bytes)
			for _, share := range []float64{0.9, 0.5, 0.1, 0.01, 0.0005} {
				low, high := -15.0, 40.0 // the SNR at which theory loses this share
				for high-low > 1e-6 {
					mid := (low + high) / 2
					if want(propagation.DbToRatio(mid)) > share {
						low = mid
					} else {
						high = mid
					}
				}
				snr := propagation.DbToRatio(high)
				got := -math.Expm1(m.LogSuccess(snr, phy.PayloadBits(&m, bytes)))
				t.Logf("%s %4g Mbit/s at %6.2f dB: %.5f of the frames lost, theory %.5f", standard, m.RateMbps, high,
					got, share)
				// Union bounds and asymptotes err upwards, and vanish with the error rate.
				if got < 0.97*share-1e-9 || got > 1.25*share {
					t.Errorf("%s %g Mbit/s at %g dB: error rate %g, want %g", standard, m.RateMbps, high, got, share)
				}
			}
		}
	}
}
