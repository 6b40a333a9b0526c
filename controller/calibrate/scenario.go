package calibrate

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"regexp"
	"strings"

	"github.com/goccy/go-yaml"

	"fieldmesh.dev/fieldmesh/controller/plan"
	"fieldmesh.dev/fieldmesh/controller/plan/environment"
	"fieldmesh.dev/fieldmesh/controller/plan/radios"
)

// ErrNoLaw is returned where a run does not tell how signal falls with distance:
// without that there is no scenario.
var ErrNoLaw = errors.New("the run does not tell how signal falls with distance")

// Scenario is the run's campaign with what the run reported about the radio in
// its section `field`, so that it can be rehearsed as it is. What the run does
// not tell is not in it, even where the campaign had assumed something; what is
// no matter of the channel (mobility, GPS, queues) stays.
func (r *Result) Scenario(campaign []byte) ([]byte, error) {
	c, err := plan.ParseArchived("campaign.yaml", campaign, plan.FullScale)
	if err != nil {
		return nil, fmt.Errorf("read the run's campaign: %w", err)
	}
	field, err := r.field(c.Field)
	if err != nil {
		return nil, err
	}
	field.LeaveOutIdle(c.Any) // a new campaign may not have it
	section, err := r.section(field)
	if err != nil {
		return nil, err
	}
	out := append(withoutField(campaign), section...)
	if _, err := plan.Parse("scenario", out); err != nil {
		return nil, fmt.Errorf("write the scenario: %w", err)
	}
	return out, nil
}

// field is the campaign's with the channel replaced.
func (r *Result) field(old *environment.Field) (environment.Field, error) {
	var f environment.Field
	if old != nil {
		f = *old
	}
	if r.Exponent == nil {
		return f, fmt.Errorf("%w: %s", ErrNoLaw, strings.Join(r.Open, "; "))
	}
	if n := r.Exponent.Value; n < 1 || n > 8 {
		return f, fmt.Errorf("%w: an exponent of %.2f is none of a radio's; the emulated radio takes 1 to 8", ErrNoLaw,
			n)
	}
	if g := r.GainDbi.Value; g < environment.GainLeastDbi || g > environment.GainMostDbi {
		return f, fmt.Errorf("%w: an antenna gain of %.2f dBi at each end, with an exponent of %.2f from %.0f to "+
			"%.0f m, is none of a radio's; the emulated radio takes %d to %d dBi: calibrate by more passes or a "+
			"longer course", ErrNoLaw, g, r.Exponent.Value, r.NearM, r.FarM, environment.GainLeastDbi,
			environment.GainMostDbi)
	}
	f.Propagation, f.PathLossExponent, f.ReferenceM = "log_distance", rounded(r.Exponent.Value), new(1.0)
	f.AntennaGainDbi = rounded(r.GainDbi.Value)
	if radios.DecidesPropagation(f.Radio) {
		f.Radio = ""
	}
	f.RangeM, f.CarrierSenseM, f.AntennaHeightM = nil, nil, nil
	f.Fading, f.Shadowing, f.ChannelError = nil, nil, nil
	f.ChannelDraws = "" // a draw that all repetitions had is not in it
	f.CalibratedBy = &environment.Calibration{Run: r.Run, HeldOut: r.HeldOut}
	if r.PowerDbm != nil { // with another the gains would not fit
		f.TxPowerDbm = rounded(*r.PowerDbm)
	}
	f.UnitPowerOffsetDb, f.UnitGainOffsetDb = values(r.PowerDb), values(r.AntennaDb)
	if r.ShadowDb != nil {
		f.Shadowing = &environment.Shadowing{SigmaDb: *rounded(r.ShadowDb.Value), DecorrelationM: *rounded(r.middleM)}
	}
	return f, nil
}

func rounded(v float64) *float64 { return new(math.Round(v*100) / 100) }

func values(of map[string]Estimate) map[string]float64 {
	var out map[string]float64
	for unit, e := range of {
		if out == nil {
			out = map[string]float64{}
		}
		out[unit] = *rounded(e.Value)
	}
	return out
}

// section is the field as it stands in a campaign file, with what it rests on.
func (r *Result) section(f environment.Field) ([]byte, error) {
	text, err := json.Marshal(f)
	if err != nil {
		return nil, fmt.Errorf("encode field: %w", err)
	}
	body, err := yaml.JSONToYAML(text)
	if err != nil {
		return nil, fmt.Errorf("encode field: %w", err)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "\n# Calibrated by run %s. Estimates with their 95 %% intervals:\n", r.Run)
	var table strings.Builder
	if err := r.Write(&table); err != nil {
		return nil, err
	}
	for line := range strings.Lines(table.String()) {
		b.WriteString(strings.TrimRight("# "+line, " \n") + "\n")
	}
	b.WriteString("field:\n")
	for line := range strings.Lines(string(body)) {
		b.WriteString("  " + line)
	}
	return []byte(b.String()), nil
}

var topKey = regexp.MustCompile(`^[A-Za-z_"']`)

// withoutField cuts the section `field` out of a campaign file, and the comment
// that stands right above it.
func withoutField(campaign []byte) []byte {
	var out, comment []string
	cutting := false
	for line := range strings.Lines(string(campaign)) {
		if topKey.MatchString(line) {
			cutting = strings.HasPrefix(line, "field:")
		}
		switch {
		case cutting && !topKey.MatchString(line) && !strings.HasPrefix(line, "#"):
			continue
		case strings.HasPrefix(line, "#"):
			comment = append(comment, line)
			continue
		case !cutting:
			out = append(append(out, comment...), line)
		}
		comment = nil
	}
	return []byte(strings.Join(append(out, comment...), ""))
}
