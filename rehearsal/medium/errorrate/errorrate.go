// Package errorrate is how often a receiver is wrong at an SNR, by modulation and code: closed
// forms from the literature, and curves of them. What lies between the antennas is package
// propagation's; how long a frame is, and who sends it, package medium's.
package errorrate

import "math"

// Modulation is how bits ride on the carrier.
type Modulation uint8

// The modulations, ascending within DSSS with CCK and within OFDM.
const (
	DBPSK Modulation = iota
	DQPSK
	CCK16
	CCK256
	BPSK
	QPSK
	QAM16
	QAM64
	QAM256
)

// DecidedBits is how many bits one decision of the receiver is of: a CCK symbol's, else one.
func (m Modulation) DecidedBits() float64 {
	switch m {
	case CCK16:
		return 4
	case CCK256:
		return 8
	}
	return 1
}

// CodeRate is a rate of the K = 7 convolutional code of IEEE 802.11-2020,
// 17.3.5.6 (generators 133 and 171 octal, punctured) and 19.3.11.6 (5/6).
type CodeRate uint8

// The rates of the code; DSSS and CCK have none.
const (
	uncoded CodeRate = iota
	CodeHalf
	CodeTwoThirds
	CodeThreeQuarters
	CodeFiveSixths
)

const (
	// DSSSBandwidthHz is the band in which DSSS and CCK noise is counted; it
	// cancels out between SNR and energy per bit.
	DSSSBandwidthHz   = 22e6
	dsssSymbolsPerSec = 1e6     // 11 chips a symbol at 11 Mchip/s (clause 15)
	cckSymbolsPerSec  = 1.375e6 // 8 chips a symbol (clause 16)
)

// SymbolErrorRate is the chance that one decision is wrong: a CCK symbol, else
// a data bit (after decoding, for OFDM; with soft decisions that an error begins at it).
func (m Scheme) SymbolErrorRate(snr float64) float64 {
	switch m.Modulation {
	case DBPSK:
		return dbpskBER(snr * DSSSBandwidthHz / dsssSymbolsPerSec)
	case DQPSK:
		return dqpskBER(snr * DSSSBandwidthHz / dsssSymbolsPerSec / 2)
	case CCK16:
		return CCK16SER(snr * DSSSBandwidthHz / cckSymbolsPerSec)
	case CCK256:
		return CCK256SER(snr * DSSSBandwidthHz / cckSymbolsPerSec)
	}
	if m.Soft {
		return softErrorRate(m.Code, m.Modulation, snr)
	}
	return decodedBER(m.Code, SubcarrierBER(m.Modulation, snr))
}

// dbpskBER is the bit error rate of differential BPSK, from Eb/N0 (Proakis,
// Digital Communications, 4th ed., section 5.2.8).
func dbpskBER(ebN0 float64) float64 { return 0.5 * math.Exp(-ebN0) }

// dqpskBER is the bit error rate of Gray-coded differential QPSK, from Eb/N0:
// the asymptote of Proakis's exact form (section 5.2.8), which holds within a
// few per cent from an error rate of 1 in 100 downwards.
func dqpskBER(ebN0 float64) float64 {
	factor := (math.Sqrt2 + 1) / math.Sqrt(8*math.Pi*math.Sqrt2*ebN0)
	return math.Min(0.5, factor*math.Exp(-(2-math.Sqrt2)*ebN0))
}

// The four rates of DSSS and CCK are those of one receiver, which knows no carrier
// phase: all are differential. A CCK word is a code word that is turned by a DQPSK
// phase. The receiver takes the code word that correlates most in magnitude, and
// the turn from the word before. A coherent receiver would need up to 3 dB less for
// CCK, and be at odds with differential 1 and 2 Mbit/s: 5.5 Mbit/s would reach
// further than 2.

// CCK16SER is the symbol error rate of 5.5 Mbit/s CCK from Es/N0: four code words,
// orthogonal to each other (Pursley and Royster, "Properties and performance of
// the IEEE 802.11b complementary-code-key signal sets", IEEE Trans. Comm. 57(2), 2009),
// by their envelopes (Proakis, section 5.4.3, union bound).
func CCK16SER(esN0 float64) float64 {
	return cckSER(math.Min(3.0/4, 3*0.5*math.Exp(-esN0/2)), esN0)
}

// CCK256SER is the symbol error rate of 11 Mbit/s CCK from Es/N0: of the 63 other code
// words six are nearest, which have a correlation of 1/√2 in magnitude. Two signals of
// that correlation are confused by their envelopes as often as DQPSK's bits are
// wrong at a quarter of the energy (Proakis, section 5.4.4 and eq. 5.2-70: one
// form). The words further off add less than their union takes too much.
func CCK256SER(esN0 float64) float64 {
	return cckSER(math.Min(63.0/64, 6*dqpskBER(esN0/4)), esN0)
}

// cckSER adds the two bits of the phase to the error rate of the code word.
func cckSER(word, esN0 float64) float64 {
	ok := 1 - dqpskBER(esN0/2)
	return 1 - (1-word)*ok*ok
}

// SubcarrierBER is the bit error rate before decoding of a Gray-coded coherent
// modulation, from the SNR of a subcarrier (Proakis, sections 5.2.7 and
// 5.2.9, nearest neighbours only; as in Pei and Henderson, "Validation of OFDM error
// rate model in ns-3", 2010).
func SubcarrierBER(m Modulation, snr float64) float64 {
	switch m {
	case BPSK:
		return 0.5 * math.Erfc(math.Sqrt(snr))
	case QPSK:
		return 0.5 * math.Erfc(math.Sqrt(snr/2))
	case QAM16:
		return 3.0 / 8 * math.Erfc(math.Sqrt(snr/10))
	case QAM64:
		return 7.0 / 24 * math.Erfc(math.Sqrt(snr/42))
	default:
		return 15.0 / 64 * math.Erfc(math.Sqrt(snr/170))
	}
}

// Spectrum is the information weight of a code's error events: Weights[i] is
// the number of wrong data bits in all events of distance First + i·Step, for
// PerBits data bits.
type Spectrum struct {
	First, Step int
	PerBits     float64
	Weights     [10]float64
	Events      [10]float64 // how many there are
}

// CodeSpectrum is the first ten terms for each rate, counted from the generators
// (a test counts them again). The tables of Haccoun and Bégin ("High-rate
// punctured convolutional codes for Viterbi and sequential decoding", IEEE
// Trans. Comm. 37(11), 1989) agree to within 0.2 %: they let a path that comes
// back inside a puncturing period run on to the period's end.
func CodeSpectrum(c CodeRate) Spectrum {
	switch c {
	case CodeHalf:
		return Spectrum{10, 2, 1, [10]float64{36, 211, 1404, 11633, 77433, 502690, 3322763, 21292910, 134365911,
			843425871}, [10]float64{11, 38, 193, 1331, 7275, 40406, 234969, 1337714, 7594819, 43375588}}
	case CodeTwoThirds:
		return Spectrum{6, 1, 2, [10]float64{3, 70, 285, 1276, 6160, 27128, 117019, 498835, 2103480, 8781268},
			[10]float64{1, 16, 48, 158, 642, 2435, 9174, 34701, 131533, 499312}}
	case CodeThreeQuarters:
		return Spectrum{5, 1, 3, [10]float64{42, 201, 1492, 10469, 62935, 379546, 2252394, 13064540, 75080308,
			427474864}, [10]float64{8, 31, 160, 892, 4512, 23297, 120976, 624304, 3229885, 16721329}}
	default:
		return Spectrum{4, 1, 5, [10]float64{92, 528, 8694, 79453, 791795, 7369828, 67809347, 609896348, 5416271481,
			47544368592}, [10]float64{14, 69, 654, 4996, 39677, 314973, 2503576, 19875546, 157824153, 1253169531}}
	}
}

// decodedBER is the union bound on the bit error rate after hard-decision
// Viterbi decoding, with the Bhattacharyya bound ½(4p(1−p))^(d/2) on each event
// (Proakis, section 8.2.4), as in Pei and Henderson.
func decodedBER(c CodeRate, p float64) float64 {
	if c == uncoded {
		return p
	}
	s := CodeSpectrum(c)
	z := math.Sqrt(4 * p * (1 - p))
	term, ratio := 1.0, z
	for range s.First {
		term *= z
	}
	if s.Step == 2 {
		ratio = z * z
	}
	sum := 0.0
	for _, w := range s.Weights {
		sum += w * term
		term *= ratio
	}
	return math.Min(0.5, sum/(2*s.PerBits))
}

// thresholds are the distances, in steps of half the least one, at which a Gray-coded bit of a
// modulation's symbols may be from the nearest symbol with another value of it: its square's
// share of the symbols and bits, by number of steps.
func thresholds(m Modulation) (stepsShare []float64, perStep float64) {
	switch m {
	case BPSK:
		return []float64{1}, 1
	case QPSK:
		return []float64{1}, 2
	case QAM16:
		return []float64{3.0 / 4, 1.0 / 4}, 10
	case QAM64:
		return []float64{7.0 / 12, 1.0 / 4, 1.0 / 12, 1.0 / 12}, 42
	default:
		return []float64{15.0 / 32, 7.0 / 32, 3.0 / 32, 3.0 / 32, 1.0 / 32, 1.0 / 32, 1.0 / 32, 1.0 / 32}, 170
	}
}

// softErrorRate is the chance that the Viterbi decoder leaves the right path at a data bit
// when it is given soft decisions: the union bound over the code's error events (Proakis,
// section 8.2.3). Two paths that differ in d coded bits are confused as if each of these were, by
// itself, at its nearest threshold in a random symbol (Caire, Taricco, Biglieri, "Bit-interleaved
// coded modulation", IEEE Trans. Inf. Theory 44(3), 1998, expurgated bound); the Gaussian tail
// is Craig's integral.
func softErrorRate(c CodeRate, m Modulation, snr float64) float64 {
	const steps = 32
	s := CodeSpectrum(c)
	share, perStep := thresholds(m)
	sum := 0.0
	for i := range steps {
		sin := math.Sin((float64(i) + 0.5) * math.Pi / 2 / steps)
		bit := 0.0
		for j, q := range share {
			bit += q * math.Exp(-snr/perStep*float64((j+1)*(j+1))/(sin*sin))
		}
		term, ratio := math.Pow(bit, float64(s.First)), math.Pow(bit, float64(s.Step))
		for _, events := range s.Events {
			sum += events * term / (2 * steps)
			term *= ratio
		}
	}
	return math.Min(0.5, sum/s.PerBits)
}
