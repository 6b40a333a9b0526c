package plan

import (
	"strings"
	"testing"
)

const headingMissing = `trial.course: key "heading_deg" is missing; allowed: the true bearing of outbound, along which`

// refusedToday expects a fault of a new file, and none of the file of a run that was driven with it.
func refusedToday(t *testing.T, file, want string) {
	t.Helper()
	if _, err := Parse("f", []byte(file)); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("got\n%v\nwant %s\n%s", err, want, file)
	}
	if _, err := ParseArchived("f", []byte(file), FullScale); err != nil {
		t.Errorf("of a run: %v", err)
	}
}

// GO is silent for the last tenth of a second of its lead, so that a short one leaves it no time.
func TestALeadThatLeavesGONoTimeIsRefused(t *testing.T) {
	driven := string(designFile("{speed: "+speeds+"}", "{repetitions: 1, order: as_listed}"))
	refusedToday(t, strings.Replace(driven, "lead_s: 0.5", "lead_s: 0.2", 1),
		"trial.gate.lead_s: 0.2 is not allowed below 0.3 s")
}

// A mark is looked for along the road, whose bearing a parked pass with a site needs, also where only its calibration
// is parked.
func TestAMarkWithASiteNeedsTheRoadsBearing(t *testing.T) {
	const site = ", site_lat_deg: 50.1, site_lon_deg: 8.6"
	driven := string(designFile("{speed: "+speeds+"}", "{repetitions: 1, order: as_listed}"))
	calibrated := driven + "calibration: {before: {marks_m: [50, 150], duration_s: 20}}\n"
	parked := strings.NewReplacer("  speed_mps: 5\n", "", "{kind: depart, start_m: 10, accel_mps2: 2.5, brake_mps2: 4}",
		"{kind: parked, mark_m: 50}", "gate: {speed_band: true, hold_s: 0.5, ", "gate: {after_s: 1, ",
		"speed_band_mps: 0.5, ", "", "factors: {speed: "+speeds+"}\n", "").Replace(driven)
	for name, file := range map[string]string{
		"calibration": strings.Replace(calibrated, "brake_mps2: 4", "brake_mps2: 4"+site, 1),
		"trial":       strings.Replace(parked, "mark_m: 50", "mark_m: 50"+site, 1),
	} {
		refusedToday(t, file, headingMissing)
		if _, err := Parse("f", []byte(strings.Replace(file, site, site+", heading_deg: 90", 1))); err != nil {
			t.Errorf("%s with the bearing: %v", name, err)
		}
		if _, err := Parse("f", []byte(strings.Replace(file, site, "", 1))); err != nil {
			t.Errorf("%s without a site: %v", name, err)
		}
	}
}

// A campaign may leave the marks to the driver, as on a road with a bend: its calibration passes keep that.
func TestACalibrationPassNeedNotLookForItsMark(t *testing.T) {
	driven := string(designFile("{speed: "+speeds+"}", "{repetitions: 1, order: as_listed}"))
	const site = ", site_lat_deg: 50.1, site_lon_deg: 8.6, heading_deg: 90"
	file := strings.NewReplacer("brake_mps2: 4", "brake_mps2: 4"+site,
		"gate: {", "gate: {at_start: false, ").Replace(driven) +
		"calibration: {before: {marks_m: [50, 150], duration_s: 20}}\n"
	for _, c := range []struct {
		file string
		want bool
	}{{file, false}, {strings.Replace(file, "at_start: false, ", "", 1), true}} {
		p, err := Parse("f", []byte(c.file))
		if err != nil {
			t.Error(err)
			continue
		}
		for _, x := range p.trials {
			if x.Gate.AtStart != c.want {
				t.Errorf("a trial of course %s waits for its start: %t, want %t", x.Course.Kind, x.Gate.AtStart, c.want)
			}
		}
	}
	parked := strings.NewReplacer("{kind: depart, start_m: 10, accel_mps2: 2.5, brake_mps2: 4,", "{kind: parked, "+
		"mark_m: 50,", "speed_band: true, hold_s: 0.5, ", "after_s: 1, ", "  speed_mps: 5\n", "",
		"speed_band_mps: 0.5, ", "", "factors: {speed: "+speeds+"}\n", "",
		"calibration: {before: {marks_m: [50, 150], duration_s: 20}}\n", "").Replace(file)
	if p, err := Parse("f", []byte(parked)); err != nil || p.trials[0].Gate.AtStart {
		t.Errorf("parked: %v", err)
	}
}
