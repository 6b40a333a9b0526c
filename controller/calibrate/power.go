package calibrate

import (
	"fmt"
	"slices"

	"fieldmesh.dev/fieldmesh/controller/archive"
	"fieldmesh.dev/fieldmesh/controller/metrics"
	"fieldmesh.dev/fieldmesh/controller/plan"
	"fieldmesh.dev/fieldmesh/controller/plan/environment"
	"fieldmesh.dev/fieldmesh/protocols/wire"
)

const (
	// roadDbm stands for trials of a road of which neither plan nor radio tells a power.
	roadDbm = 20.0
	// mostDbm is the most that a field may have. As with any power, the antennas' gains
	// take what is more.
	mostDbm = 30.0
)

// Where a power is from that the trial does not say.
const (
	fromRehearsal = "as in the rehearsal"
	fromRadios    = "the mean of what the radios told"
	fromNothing   = "as no radio told its own"
	fromBoth      = "the mean of what the radios told, and of 20 dBm where none did"
)

// power is what an attempt's nodes are taken to send with.
type power struct {
	dbm  float64
	from string // empty: the trial says it
}

// powerOf is the power of an attempt; what a rehearsal takes is known.
func powerOf(at metrics.Attempt, rehearsed power) power {
	switch dbm := at.Trial().Radio.TxPowerDbm; {
	case dbm != nil:
		return power{dbm: *dbm}
	case rehearsed.from != "":
		return rehearsed
	}
	return told(at)
}

// rehearsed is what a rehearsal takes for trials that do not say their power. Of a
// radio by name the usual power is asked. It is nothing for a road, or where all say it.
func rehearsed(info archive.RunInfo, usualDbm func(radio string) float64) (power, error) {
	silent := func(t wire.Trial) bool { return t.Radio.TxPowerDbm == nil }
	if info.Place != archive.PlaceRehearsal || !slices.ContainsFunc(info.Plan.Trials, silent) {
		return power{}, nil
	}
	scale := plan.FullScale
	if info.Scale != nil {
		scale = info.Scale.Name
	}
	c, err := plan.ParseArchived("campaign.yaml", info.CampaignRaw, scale)
	if err != nil {
		return power{}, fmt.Errorf("read the run's campaign: %w", err)
	}
	var f environment.Field
	if c.Field != nil {
		f = *c.Field
	}
	if f.TxPowerDbm != nil {
		return power{*f.TxPowerDbm, fromRehearsal}, nil
	}
	return power{usualDbm(f.Radio), fromRehearsal}, nil
}

// told is the mean of the powers that an attempt's radios had. It is one for all, as a
// field has it: what units differ by is fitted. A former agent's 0 is a radio that does not tell.
func told(at metrics.Attempt) power {
	sum, n := 0.0, 0.0
	for _, r := range at.Records() {
		p, ok := r.Body.(*wire.Provenance)
		if ok && p.Radio != nil && p.Radio.TxPowerDbm != nil && *p.Radio.TxPowerDbm > 0 {
			sum, n = sum+*p.Radio.TxPowerDbm, n+1
		}
	}
	if n == 0 {
		return power{roadDbm, fromNothing}
	}
	return power{min(sum/n, mostDbm), fromRadios}
}

// takePower tells what is taken for the samples whose trials do not say their power.
func (s *Survey) takePower(kept []sample) {
	sum, n := 0.0, 0.0
	for _, x := range kept {
		if x.power.from == "" {
			continue
		}
		sum, n = sum+x.power.dbm, n+1
		if s.powerFrom != "" && s.powerFrom != x.power.from {
			s.powerFrom = fromBoth
			continue
		}
		s.powerFrom = x.power.from
	}
	if n > 0 {
		s.PowerDbm = new(sum / n)
	}
}
