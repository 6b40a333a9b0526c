package threats

import (
	"testing"

	"fieldmesh.dev/fieldmesh/controller/archive"
	"fieldmesh.dev/fieldmesh/controller/report/evidence"
)

// A report of a run in virtual time says what differs there; any other has nothing of it.
func TestWhatVirtualTimeLacksIsTold(t *testing.T) {
	for _, clock := range []*archive.Clock{nil, {Kind: archive.ClockReal},
		{Kind: archive.ClockVirtual, Kernel: "7", CallNs: 250}} {
		v, err := View(&evidence.Run{Info: archive.RunInfo{Place: archive.PlaceRehearsal, Clock: clock}})
		if err != nil {
			t.Fatal(err)
		}
		var found []Threat
		for _, threat := range v.(threatsView).Threats {
			if threat.Title == "The nodes were in one kernel in virtual time" {
				found = append(found, threat)
			}
		}
		if (len(found) == 1) != clock.Virtual() {
			t.Errorf("with clock %+v: %+v", clock, found)
		}
		if len(found) == 1 {
			says(t, found[0].Text, "a system call 250 ns",
				"timers lay together (4 ms, and 32 ms", "collided too seldom",
				"counted, not told one by one")
		}
	}
}
