package series

import "fieldmesh.dev/fieldmesh/protocols/wire"

// Count is a cumulative count at a moment of its node's boot clock.
type Count struct {
	BootNs int64
	N      uint64
}

// Rise returns how much a cumulative count grew from the newest sample at the
// window's open to the newest at its close. It is nil when either is missing or older
// than edgeMaxNs: what happened since would be left out. A count that fell was reset:
// what it then reached is added.
func Rise(samples []Count, w wire.Window, edgeMaxNs int64) *float64 {
	var total float64
	var before *Count
	for i := range samples {
		now := &samples[i]
		if now.BootNs > w.CloseBootNs {
			break
		}
		switch {
		case now.BootNs <= w.OpenBootNs: // the base, so far
		case before == nil || before.BootNs <= w.OpenBootNs && w.OpenBootNs-before.BootNs > edgeMaxNs:
			return nil
		case now.N >= before.N:
			total += float64(now.N - before.N)
		default:
			total += float64(now.N)
		}
		before = now
	}
	if before == nil || w.CloseBootNs-before.BootNs > edgeMaxNs {
		return nil
	}
	return &total
}

// UnknownIsNone adds to a count that a radio keeps of a peer the moments at which the
// radio was asked and did not know the peer, for goneNs: it counts from 0 then. It
// returns nil of a radio that never counted.
func UnknownIsNone(told []Count, asked []int64, goneNs int64) (out []Count) {
	n := 0
	if len(told) == 0 {
		return nil
	}
	for _, when := range asked {
		for ; n < len(told) && told[n].BootNs <= when; n++ {
			out = append(out, told[n])
		}
		if n == 0 || when-told[n-1].BootNs > goneNs {
			out = append(out, Count{BootNs: when})
		}
	}
	return out
}
