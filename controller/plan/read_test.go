package plan

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"fieldmesh.dev/fieldmesh/controller/plan/environment"
)

// A section that is read by its keys has them all, and no other.
func TestEveryDeclaredKeyIsRead(t *testing.T) {
	keys := func(rule object) []string {
		k := rule.keys()
		slices.Sort(k)
		return k
	}
	for _, section := range []struct {
		rule object
		into any
	}{
		{paper(), Paper{}}, {siteSheet(), environment.Site{}}, {schema{}.fieldModel(), environment.Field{}},
		{schema{}.mobility(), environment.Mobility{}},
		{placeRule(), environment.Place{}}, {schema{}.stopWhen(), StopWhen{}},
	} {
		var fields []string
		for i := range reflect.TypeOf(section.into).NumField() {
			key, _, _ := strings.Cut(reflect.TypeOf(section.into).Field(i).Tag.Get("json"), ",")
			fields = append(fields, key)
		}
		if slices.Sort(fields); !slices.Equal(keys(section.rule), fields) {
			t.Errorf("%T has %v, its section %v", section.into, fields, keys(section.rule))
		}
	}
}

// Whatever a section may hold by its rules, its struct can take.
func TestWholeSectionsAreRead(t *testing.T) {
	raw := strings.Replace(fine, "design: {", `field:
  propagation: log_distance
  path_loss_exponent: 3
  unit_power_offset_db: {laptop-1: -3.5}
  shadowing: {sigma_db: 4, decorrelation_m: 20}
  fading: {model: rician, k_factor_db: 6}
  short_retry_limit: 5
  long_slot: true
  channels: {alpha: 11}
  mobility:
    model: placed
    area: {width_m: 300, height_m: 200}
    positions: {alpha: {x_m: 1, y_m: 2}, bravo: {x_m: 3, y_m: 4}, relay-1: {x_m: 5, y_m: 6}}
    moves: [{node: alpha, at_s: 1.5, x_m: 7, y_m: 8, speed_mps: 2}]
site: {road: straight, occupants: 2, temperature_c: -4.5}
paper: {name: p2, scenario: chain, deviations: [a longer chain]}
design: {stop_when: {of: section, half_width_mbps: 1, min_blocks: 3}, `, 1)
	c, err := Parse("f", []byte(strings.Replace(raw, "repetitions: 2", "repetitions: 9", 1)))
	if err != nil {
		t.Fatal(err)
	}
	field := environment.Field{Propagation: "log_distance", PathLossExponent: new(3.0),
		UnitPowerOffsetDb: map[string]float64{"laptop-1": -3.5},
		Shadowing:         &environment.Shadowing{SigmaDb: 4, DecorrelationM: 20}, ShortRetryLimit: new(5),
		Fading:   &environment.Fading{Model: "rician", KFactorDb: new(6.0)},
		LongSlot: new(true),
		Channels: map[string]int{"alpha": 11},
		Mobility: &environment.Mobility{Model: "placed", Area: &environment.Area{WidthM: 300, HeightM: 200},
			Moves: []environment.Move{{Node: "alpha", AtS: 1.5, XM: 7, YM: 8, SpeedMps: 2}},
			Positions: map[string]environment.Place{"alpha": {XM: 1, YM: 2}, "bravo": {XM: 3, YM: 4},
				"relay-1": {XM: 5, YM: 6}}}}
	for _, x := range [][2]any{
		{c.Field, &field},
		{c.Site, &environment.Site{Road: "straight", Occupants: new(2), TemperatureC: new(-4.5)}},
		{c.Paper, &Paper{"p2", "chain", []string{"a longer chain"}}},
		{c.Design.StopWhen, &StopWhen{Of: "section", HalfWidthMbps: new(1.0), MinBlocks: 3, EveryBlocks: 1,
			Confidence: 0.95}},
	} {
		if !reflect.DeepEqual(x[0], x[1]) {
			t.Errorf("read %+v, want %+v", x[0], x[1])
		}
	}
}
