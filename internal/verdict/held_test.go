package verdict

import (
	"strings"
	"testing"

	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// A fixed RTO that backs off in an outage fails its trial, also by what the evidence keeps; whatever lets it change
// otherwise does not.
func TestAFixedRTOThatBacksOffFailsItsTrial(t *testing.T) {
	plan := trial()
	plan.TCP = wire.TCP{Variant: "reno", FixedRTO: true}
	plan.Traffic = []wire.Flow{{Name: "bulk", From: "car", To: "roadside"}}
	type seen struct {
		inARow uint32
		rtoMs  uint32
		acked  uint64
		rttUs  uint32
		state  string
	}
	const syn, up = "SYN_SENT", "ESTABLISHED"
	const doubled = "had an RTO of 1100000 µs after time-out 1 in a row and of 4400000 µs after time-out 3"
	for name, c := range map[string]struct {
		samples []seen
		want    string
	}{
		"held": {[]seen{{0, 550, 9, 50, up}, {1, 1100, 9, 50, up}, {2, 1100, 9, 50, up}, {9, 1100, 9, 50, up}}, ""},
		"it doubles": {[]seen{{0, 550, 9, 50, up}, {1, 1100, 9, 50, up}, {2, 2200, 9, 50, up}, {3, 4400, 9, 50, up}},
			doubled},
		"two seen only": {[]seen{{1, 1100, 9, 50, up}, {3, 4400, 9, 50, up}}, doubled},
		"once that did not go": {[]seen{{1, 550, 9, 50, up}, {2, 550, 9, 50, up},
			{3, 1100, 9, 50, up}, {4, 1100, 9, 50, up}}, ""},
		"one outage after one":  {[]seen{{1, 1100, 9, 50, up}, {0, 2000, 99, 50, up}, {3, 4400, 99, 50, up}}, ""},
		"an ACK between":        {[]seen{{1, 1100, 9, 50, up}, {3, 4400, 99, 50, up}}, ""},
		"a round trip measured": {[]seen{{1, 1100, 9, 50, up}, {3, 4400, 9, 900, up}}, ""},
		"ticks":                 {[]seen{{1, 1100, 9, 50, up}, {3, 2209, 9, 50, up}}, ""},
		"a SYN unanswered": {[]seen{{1, 2000, 0, 0, syn}, {2, 4000, 0, 0, syn}, {3, 8000, 0, 0, syn},
			{0, 8000, 0, 0, up}, {1, 8000, 0, 0, up}, {4, 8000, 0, 0, up}}, ""},
		"a SYN held": {[]seen{{1, 2000, 0, 0, syn}, {2, 2000, 0, 0, syn}, {9, 2000, 0, 0, syn}, {0, 3000, 1, 0, up},
			{1, 6000, 1, 0, up}, {2, 6000, 1, 0, up}, {3, 6000, 1, 0, up}}, ""},
		"after a SYN": {[]seen{{3, 8000, 0, 0, syn}, {1, 1100, 9, 50, up},
			{3, 4400, 9, 50, up}}, doubled},
	} {
		records := append(good(), at("car", -1, &wire.Provenance{TCP: &wire.TCPInForce{Variant: "reno", Kernel: "reno",
			FixedRTO: true}}),
			at("car", 12, &wire.Iperf3{Flow: "bulk", Side: "client"}),
			at("roadside", 12, &wire.Iperf3{Flow: "bulk", Side: "server"}))
		for i, s := range c.samples {
			records = append(records, at("car", float64(2+i), &wire.TCPSample{Flow: "bulk", Stream: new(0), Cookie: 1,
				Congestion: "reno", State: s.state, RTOsInARow: &s.inARow, RTOUs: s.rtoMs * 1000, BytesAcked: s.acked,
				RTTUs: s.rttUs * 1000}))
		}
		e := NewEvidence(plan)
		var kept []wire.Record
		for _, r := range records {
			if e.Needs(r) {
				kept = append(kept, r)
			}
		}
		for by, records := range map[string][]wire.Record{"all": records, "its evidence": append(kept, e.Rest()...)} {
			v := Judge(plan, 2, records, Scope{Final: true})
			if c.want == "" && v.Outcome != wire.Accepted || c.want != "" && (v.Outcome != wire.Failed ||
				!strings.Contains(v.Reason.String(), c.want)) {
				t.Errorf("%s, by %s: %s %q, want %q", name, by, v.Outcome, v.Reason, c.want)
			}
		}
	}
}

// The kernel counts time-outs in a row in eight bits: those of one outage are told by those of the socket's whole life.
func TestAnOutageOfMoreThan256TimeoutsIsOne(t *testing.T) {
	type seen struct{ inARow, total, rtoMs uint32 }
	for name, c := range map[string]struct {
		samples []seen
		told    bool
	}{
		"held":                {[]seen{{1, 1, 1000}, {255, 255, 1000}, {0, 256, 1000}, {20, 276, 1000}}, false},
		"it doubles":          {[]seen{{1, 1, 1000}, {255, 255, 2000}, {0, 256, 2000}, {20, 276, 4000}}, true},
		"the first is missed": {[]seen{{200, 200, 2000}, {20, 276, 8000}}, true},
		"of 16 bits":          {[]seen{{1, 65_500, 1000}, {101, 64, 4000}}, true},
		"an undone time-out":  {[]seen{{1, 1, 1000}, {0, 1, 1000}, {1, 2, 2000}, {1, 3, 4000}}, false},
	} {
		known, told := timers{}, false
		for i, s := range c.samples {
			r := at("car", float64(i), &wire.TCPSample{Cookie: 1, State: "ESTABLISHED", RTOsInARow: &s.inARow,
				RTOsTotal: &s.total, RTOUs: s.rtoMs * 1000, BytesAcked: 9})
			told = known.backedOff(r, r.Body.(*wire.TCPSample)) != nil || told
		}
		if told != c.told {
			t.Errorf("%s: told %t, want %t", name, told, c.told)
		}
	}
}
