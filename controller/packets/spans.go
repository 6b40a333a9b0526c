package packets

import "slices"

// span is [from, to) of a stream's bytes.
type span struct{ from, to int64 }

// spans are the parts of a stream that have arrived: all up to next, and islands
// behind it, in order and apart from each other. There are never more islands
// than holes in a receiver's window.
type spans struct {
	next    int64
	islands []span
}

// mostIslands bounds the memory of a stream whose packets are mostly missing
// from the capture.
const mostIslands = 4096

// add takes a part in and tells how many of its bytes are new.
func (s *spans) add(p span) int64 {
	p.from = max(p.from, s.next)
	if p.to <= p.from {
		return 0
	}
	// Islands that p touches: those from the first that ends at or after p begins.
	first, _ := slices.BinarySearchFunc(s.islands, p.from, func(i span, at int64) int {
		if i.to < at {
			return -1
		}
		return 1
	})
	fresh, last, joined := p.to-p.from, first, p
	for ; last < len(s.islands) && s.islands[last].from <= p.to; last++ {
		i := s.islands[last]
		fresh -= max(0, min(i.to, p.to)-max(i.from, p.from))
		joined = span{min(joined.from, i.from), max(joined.to, i.to)}
	}
	if joined.from == s.next {
		s.next = joined.to
		s.islands = slices.Delete(s.islands, first, last)
		return fresh
	}
	s.islands = slices.Replace(s.islands, first, last, joined)
	if len(s.islands) > mostIslands { // what lies before the first island is taken for lost to the capture
		s.next = s.islands[0].to
		s.islands = slices.Delete(s.islands, 0, 1)
	}
	return fresh
}
