package threats

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"fieldmesh.dev/fieldmesh/controller/report/evidence"
	"fieldmesh.dev/fieldmesh/controller/report/words"
)

// stationsSlept tells which stations of accepted trials might sleep, as they read it back.
func stationsSlept(d *evidence.Run) (*Threat, string) {
	may, stations, in := map[string]bool{}, 0, 0
	for _, a := range d.Results() {
		slept := false
		for node, p := range a.Node {
			if p.Radio == nil || p.Radio.PowerSave == nil {
				continue
			}
			if stations++; *p.Radio.PowerSave {
				may[node], slept = true, true
			}
		}
		if slept {
			in++
		}
	}
	switch {
	case stations == 0:
		return nil, ""
	case in == 0:
		return nil, "No station whose radio tells it had power save on."
	}
	return &Threat{"Stations had power save on", fmt.Sprintf("%s, in %s. What is sent to a radio that sleeps waits "+
		"for its access point's next beacons (IEEE 802.11-2020, 11.2): delays and rates may be those of its sleep. "+
		"Some drivers tell so of radios that never sleep.", strings.Join(slices.Sorted(maps.Keys(may)), ", "),
		words.Count(in, "accepted trial"))}, ""
}
