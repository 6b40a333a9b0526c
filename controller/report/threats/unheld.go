package threats

import (
	"fmt"
	"math"

	"fieldmesh.dev/fieldmesh/controller/metrics"
	"fieldmesh.dev/fieldmesh/controller/report/evidence"
	"fieldmesh.dev/fieldmesh/controller/report/words"
)

// speedsUnheld is of accepted trials with a target speed that no rule held the car to.
func speedsUnheld(d *evidence.Run) (*Threat, string) {
	in, known, worst := 0, 0, 0.0
	for _, a := range d.Results() {
		target := a.Trial.SpeedMps
		if target == nil || a.Trial.Acceptance.InBandShareMin != nil || a.Trial.Gate.SpeedBand {
			continue
		}
		in++
		if mean := a.Number(metrics.SpeedMeanMps); mean != nil {
			known++
			worst = max(worst, math.Abs(*mean-*target))
		}
	}
	if in == 0 {
		return nil, ""
	}
	text := "how fast the car was is not known of any of them"
	if known > 0 {
		text = fmt.Sprintf("its mean speed by GPS was up to %.1f m/s off the target (known of %d)", worst, known)
	}
	return &Threat{"No rule held the car to its speed", fmt.Sprintf("In %s the campaign has a target speed, and "+
		"neither the gate nor the rules of acceptance look at the car's: %s. An effect of speed here is one of "+
		"targets.", words.Count(in, "accepted trial"), text)}, ""
}
