package propagation

import "math"

// stream is a small generator of its own for one link or one field: what it
// gives depends on its seed alone, and on nothing that happens on the air.
// SplitMix64 (Steele, Lea, Flood, "Fast splittable pseudorandom number
// generators", OOPSLA 2014).
type stream uint64

// What streams are for: links draw the same numbers for no two purposes.
const (
	forShadowField = iota + 1
	forShadowLink
	forFading
	forChannelError
	forShadowNode
	forDrift
)

func newStream(seed uint64, purpose, a, b int) stream {
	s := stream(seed)
	for _, v := range [...]int{purpose, a, b} {
		s = stream(s.next() ^ uint64(v))
	}
	s.next()
	return s
}

func (s *stream) next() uint64 {
	*s += 0x9e3779b97f4a7c15
	z := uint64(*s)
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

// unit is uniform in [0, 1).
func (s *stream) unit() float64 { return float64(s.next()>>11) / (1 << 53) }

// phase is uniform in [0, 2π).
func (s *stream) phase() float64 { return 2 * math.Pi * s.unit() }

// exponential has mean 1.
func (s *stream) exponential() float64 { return -math.Log(1 - s.unit()) }
