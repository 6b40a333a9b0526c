package tcpcc

import (
	"strconv"
	"testing"

	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// Whatever a plan asks for, what it sets is within the bounds, and they are no
// wider than that.
//
//attack:face values that harm the machine
func TestSettingsAreWithinTheirBounds(t *testing.T) {
	seen := map[string]map[int]bool{}
	for _, variant := range append(Programs(), "sack", "cubic") {
		for bits := range 8 {
			plan := wire.TCP{Variant: variant, Classic: bits&1 != 0, FixedRTO: bits&2 != 0}
			if bits&4 != 0 {
				plan.SACK = new(bits&1 == 0)
			}
			for _, rtoMinMs := range []*int{nil, new(wire.RTOMinMsLeast), new(wire.RTOMinMsMost)} {
				plan.RTOMinMs = rtoMinMs
				for _, s := range Settings(plan) {
					value, err := strconv.Atoi(s.Value)
					least, most, ok := SettingBounds(s.Key)
					if err != nil || !ok || value < least || value > most {
						t.Errorf("%+v sets %s to %s, bounds %d to %d", plan, s.Key, s.Value, least, most)
					}
					if seen[s.Key] == nil {
						seen[s.Key] = map[int]bool{}
					}
					seen[s.Key][value] = true
				}
			}
		}
	}
	for key, values := range seen {
		least, most, _ := SettingBounds(key)
		if !values[least] || !values[most] {
			t.Errorf("%s may be %d to %d, and is set to %v", key, least, most, values)
		}
	}
	if len(seen) < 10 {
		t.Errorf("only %d settings were seen", len(seen))
	}
}

// The waits of a client are those that RFC 6298 gives a SYN, 1 s and twice as long each time, up to the largest RTO;
// the last one is after the 127th retransmission.
func TestHowLongAClientAsks(t *testing.T) {
	for _, c := range []struct {
		mostMs, want int
	}{
		{1000, 128}, {2000, 1 + 127*2}, {3000, 1 + 2 + 126*3}, {60_000, 63 + 122*60}, {120_000, 127 + 121*120},
	} {
		if got := ClientGivesUpS(c.mostMs); got != float64(c.want) {
			t.Errorf("at most %d ms: %g s, want %d", c.mostMs, got, c.want)
		}
	}
}

// CheckClient tells what ends a client within the trial, and names the least that does not.
func TestALargestRTOOutlastsTheTrial(t *testing.T) {
	tcp := []wire.Flow{{Kind: "iperf3_tcp"}}
	for _, lastsS := range []float64{1, 128, 300, 900, 3600, 4600} {
		for most := wire.RTOMaxMsLeast; most <= wire.RTOMaxMsMost; most += 500 {
			err := CheckClient(wire.Trial{DurationS: lastsS, Traffic: tcp,
				TCP: wire.TCP{Variant: Reno, RTOMaxMs: &most}})
			if ends := ClientGivesUpS(most) < lastsS; (err != nil) != ends {
				t.Errorf("at most %d ms, %g s: %v", most, lastsS, err)
			}
		}
	}
}
