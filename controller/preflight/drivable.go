package preflight

import (
	"errors"

	"fieldmesh.dev/fieldmesh/controller/plan"
	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// ErrAcross is of a campaign whose flows are led by an emulated field's links.
var ErrAcross = errors.New("a flow is led across a relay of another (across), which only the links of an emulated " +
	"field tell; name its ends, or rehearse it")

// ErrEmulated is of a campaign whose radios only an emulated field has.
var ErrEmulated = errors.New("radio.standard is 802.11n or 802.11ac, which are for rehearsals only: the agent sets " +
	"no radio to their rates; plan 802.11a, 802.11b or 802.11g, or rehearse it")

// ErrConditions is of a campaign that has what nothing on a road brings about.
var ErrConditions = errors.New("trial.conditions and trial.still tell an emulated field what it is like, and change " +
	"nothing on a road; take them out, also of factors and scales, or rehearse it")

// ErrNoSite is of a campaign that only a rehearsal can place on Earth.
var ErrNoSite = errors.New("a gate waits for a place, and the file does not say where the roadside node stands; " +
	"give course.site_lat_deg and course.site_lon_deg")

// Drivable says why no fleet can drive a campaign, whatever its nodes can; nil: one may.
func Drivable(c *plan.Campaign) error {
	switch {
	case c.Crosses():
		return ErrAcross
	case c.Any(func(t wire.Trial) bool { return t.Radio.Emulated() }):
		return ErrEmulated
	case c.Any(func(t wire.Trial) bool { return t.Still || t.Conditions != nil }):
		return ErrConditions
	case c.NeedsSite(): // the last: it is also a need of preflight's
		return ErrNoSite
	}
	return nil
}

// Valid holds the plan of a campaign's run to what agents take, whoever drives it; nil: they take it.
func Valid(c *plan.Campaign) error {
	p, err := c.RunPlan("run", make([]byte, wire.GoKeyBytes)) // no node gets this one
	if err != nil {
		return err
	}
	for i := range p.Nodes {
		p.Nodes[i].GoPort = wire.DefaultGoPort
	}
	return p.Validate()
}
