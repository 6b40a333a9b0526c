package plan

import (
	"fieldmesh.dev/fieldmesh/controller/plan/drive"
	"fieldmesh.dev/fieldmesh/protocols/wire"

	"fieldmesh.dev/fieldmesh/controller/plan/tree"
)

// maxWarmupS bounds what lies between GO and the window.
const maxWarmupS = wire.MaxLeadS - 10 // gate.lead_s has the rest

// conditions are what a trial may have otherwise than the section field says,
// so that a factor can set them: they are questions of the papers, not of a place.
func (s schema) conditions() object {
	return object{append(s.conditionsKeys(),
		optional("channel_error", object{[]field{
			required("mean", number{0, 0.95, false, false, ""}, "Share of frames lost; 0: none"),
			optional("burst_frames", number{1, 1e6, false, false, "frames"}, "Mean length of a burst of losses"),
		}}, "Losses on top of all else"))}
}

// conditions judges a trial's conditions against its field.
func (c *check) conditions() {
	m := c.tree.Child("conditions")
	if m == nil || m.Shape != tree.Map {
		return
	}
	if c.p.fieldTree == nil {
		c.unfit("conditions", "without a section field: a road is as it is", "leave it out, or write the section")
		return
	}
	if e := m.Child("channel_error"); e.Fine() && e.NumberOrZero("mean") > 0 && e.Child("burst_frames") == nil &&
		!e.Strange {
		c.add(e.Home, "trial.conditions.channel_error: a burst's length is needed; allowed: burst_frames")
	}
	least, most := m.NumberAt("speed_min_mps"), m.NumberAt("speed_max_mps")
	model := c.p.fieldTree.TextAt("mobility.model")
	if model != "random_waypoint" && model != "setdest" {
		for _, key := range []string{"speed_min_mps", "speed_max_mps", "width_m", "height_m"} {
			c.unfit("conditions."+key, "with this field.mobility, whose speeds and places are its own",
				"model: random_waypoint or setdest, or leave it out")
		}
		return
	}
	for _, key := range []string{"width_m", "height_m"} {
		c.withinArea(key)
	}
	if least == nil {
		least = c.p.fieldTree.NumberAt("mobility.speed_min_mps")
	}
	if most == nil {
		most = c.p.fieldTree.NumberAt("mobility.speed_max_mps")
	}
	if least != nil && most != nil && *most < *least {
		c.add(m.Home, "trial.conditions: speeds from %s up to %s m/s are none; allowed: speed_max_mps from "+
			"speed_min_mps on", formatNumber(*least), formatNumber(*most))
	}
}

// withinArea keeps a trial's area inside the field's, in which every place was found good.
func (c *check) withinArea(key string) {
	own, whole := c.tree.NumberAt("conditions."+key), c.p.fieldTree.NumberAt("mobility.area."+key)
	if own != nil && whole != nil && *own > *whole {
		c.add(c.tree.Lookup("conditions."+key).At, "trial.conditions.%s: %s is more than the area of field.mobility "+
			"has; allowed: up to %s m", key, formatNumber(*own), formatNumber(*whole))
	}
}

func (c *check) decodeConditions() *wire.Conditions {
	m := c.tree.Child("conditions")
	out := tree.As[wire.Conditions](&c.p.findings, m)
	if out != nil {
		out.ChannelErrorMean = m.NumberAt("channel_error.mean")
		out.ChannelErrorBurstFrames = m.NumberAt("channel_error.burst_frames")
	}
	return out
}

// warmupS is how long the network is at work before the window opens.
func (c *check) warmupS() float64 { return c.tree.NumberOrZero("warmup_s") }

// warmup keeps to trials in which nobody drives: a car that has reached its
// speed at a place would be elsewhere when the window opens.
func (c *check) warmup() {
	if drive.Moves(c.tree.TextAt("course.kind")) {
		c.unfit("warmup_s", "in a course that has the car drive", "leave it out")
	}
}
