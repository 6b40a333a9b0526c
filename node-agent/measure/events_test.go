package measure

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// sight is a sample as far as events are made of it.
type sight struct {
	state                 string
	retrans, rtos, inARow uint32
	cwnd, ssthresh        uint32
	uncounted             bool // a kernel that does not count time-outs
}

func (k sight) sample() *sample {
	s := &sample{}
	s.Stream, s.Cookie, s.Flow = &s.stream, 7, "main"
	s.CongestionState, s.Retransmits, s.CwndSegments, s.ssthresh = k.state, k.retrans, k.cwnd, k.ssthresh
	if k.ssthresh < infiniteSsthresh {
		s.SsthreshSegments = &s.ssthresh
	}
	s.more[0], s.more[9] = k.inARow, k.rtos
	s.RTOsInARow = &s.more[0]
	if !k.uncounted {
		s.RTOsTotal = &s.more[9]
	}
	return s
}

func TestEventsLieBetweenSamples(t *testing.T) {
	const inf = infiniteSsthresh
	for name, c := range map[string]struct {
		sights []sight
		want   string // the events after each sight but the first
	}{
		"nothing happens": {[]sight{{state: "open", cwnd: 10, ssthresh: inf},
			{state: "disorder", cwnd: 20, ssthresh: inf}}, ""},
		"fast retransmit and its end": {[]sight{{state: "open", cwnd: 20, ssthresh: inf},
			{state: "recovery", retrans: 2, cwnd: 10, ssthresh: 10}, {state: "open", retrans: 2, cwnd: 10,
				ssthresh: 10}}, "retransmission×2 recovery×1 | recovery_end×1"},
		"an episode between two samples": {[]sight{{state: "open", cwnd: 20, ssthresh: 40},
			{state: "open", retrans: 1, cwnd: 11, ssthresh: 10}}, "retransmission×1 recovery×1 recovery_end×1"},
		"a second episode at once": {[]sight{{state: "recovery", retrans: 1, cwnd: 20, ssthresh: 20},
			{state: "recovery", retrans: 2, cwnd: 10, ssthresh: 10}}, "retransmission×1 recovery×1"},
		"time-outs that are counted": {[]sight{{state: "open", cwnd: 20, ssthresh: inf},
			{state: "loss", retrans: 3, rtos: 3, inARow: 3, cwnd: 1, ssthresh: 10}, {state: "open", retrans: 9, rtos: 3,
				cwnd: 8, ssthresh: 10}}, "retransmission×3 rto×3 | retransmission×6 recovery_end×1"},
		"time-outs in a row": {[]sight{{state: "open", cwnd: 20, ssthresh: inf, uncounted: true},
			{state: "loss", retrans: 1, inARow: 1, cwnd: 1, ssthresh: 10, uncounted: true},
			{state: "loss", retrans: 3, inARow: 3, cwnd: 1, ssthresh: 10, uncounted: true}},
			"retransmission×1 rto×1 | retransmission×2 rto×2"},
		"a time-out that was over": {[]sight{{state: "open", cwnd: 20, ssthresh: inf, uncounted: true},
			{state: "loss", retrans: 4, cwnd: 3, ssthresh: 10, uncounted: true}}, "retransmission×4 rto×1"},
		"the kernel's 16 bits wrap": {[]sight{{state: "loss", rtos: 65535, cwnd: 1, ssthresh: 2},
			{state: "loss", rtos: 1, retrans: 2, cwnd: 1, ssthresh: 2}}, "retransmission×2 rto×2"},
	} {
		t.Run(name, func(t *testing.T) {
			source := NewTCP("car", nil, nil)
			var got []string
			for i, k := range c.sights {
				var told []string
				for _, e := range source.events(int64(i)*100, []*sample{k.sample()}) {
					told = append(told, fmt.Sprintf("%s×%d", e.Event, e.Count))
					if e.FromBootNs != nil && *e.FromBootNs != int64(i-1)*100 {
						t.Errorf("%s is said to lie after %d ns", e.Event, *e.FromBootNs)
					}
				}
				if i > 0 {
					got = append(got, strings.Join(told, " "))
				}
			}
			got = slices.DeleteFunc(got, func(s string) bool { return s == "" && len(got) == 1 })
			if s := strings.Join(got, " | "); s != c.want {
				t.Errorf("%q, want %q", s, c.want)
			}
		})
	}
}

func TestSightsWithoutEventsAllocateNothing(t *testing.T) {
	source := NewTCP("car", nil, nil)
	samples := []*sample{sight{state: "open", cwnd: 10, ssthresh: 20}.sample()}
	source.events(0, samples)
	if n := testing.AllocsPerRun(100, func() { source.events(1, samples) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
