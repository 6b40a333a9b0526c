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
