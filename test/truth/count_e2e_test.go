//go:build e2e

package truth

import (
	"net/netip"
	"testing"
)

// What the kernel may have taken before or after an edge widens the bounds;
// what it cannot have taken does not.
func TestCountBoundsWhatTheKernelTook(t *testing.T) {
	sender, receiver := netip.MustParseAddrPort("10.0.0.1:2"), netip.MustParseAddrPort("10.0.0.2:1")
	const isn = 0xffffff00 // the numbers wrap
	syn := segment{wallNs: 1, from: sender, to: receiver, seq: isn, flags: flagSYN}
	data := func(at int64, begin, bytes int) segment {
		return segment{wallNs: at, from: sender, to: receiver, seq: isn + 1 + uint32(begin), payload: bytes,
			flags: flagACK}
	}
	ack := func(at int64, bytes int) segment {
		return segment{wallNs: at, from: receiver, to: sender, ack: isn + 1 + uint32(bytes), flags: flagACK}
	}
	const open, end = 100, 200
	for name, c := range map[string]struct {
		all  []segment
		want counted
	}{
		"acknowledged at once": {[]segment{data(90, 0, 1000), ack(91, 1000), data(150, 1000, 500), ack(151, 1500)},
			counted{500, 500}},
		"late at the open": {[]segment{data(90, 0, 1000), ack(101, 1000), data(150, 1000, 500), ack(151, 1500)},
			counted{500, 1500}},
		"late at the close": {[]segment{data(90, 0, 1000), ack(91, 1000), data(199, 1000, 500), ack(201, 1500)},
			counted{0, 500}},
		"a hole over the open": {[]segment{data(90, 500, 500), ack(91, 0), data(110, 0, 500), ack(111, 1000)},
			counted{1000, 1000}},
		"a hole over the close": {[]segment{data(150, 500, 500), ack(151, 0), data(210, 0, 500), ack(211, 1000)},
			counted{0, 0}},
		"dropped, and sent again": {[]segment{data(90, 0, 1000), ack(91, 0), data(120, 0, 1000), ack(121, 1000)},
			counted{0, 1000}},
		"sent twice": {[]segment{data(110, 0, 1000), ack(111, 1000), data(120, 0, 1000), ack(121, 1000)},
			counted{1000, 1000}},
		"the ACK of a FIN": {[]segment{data(110, 0, 1000), ack(111, 1001)}, counted{1000, 1000}},
		"nothing":          {nil, counted{}},
	} {
		if got := count(append([]segment{syn}, c.all...), sender, receiver, open, end); got != c.want {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
	}
}
