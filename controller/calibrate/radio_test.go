package calibrate

import (
	"testing"

	"fieldmesh.dev/fieldmesh/controller/plan/environment"
)

// A calibrated field keeps the receiver that it had, unless that has a propagation of its own.
func TestCalibratedFieldKeepsItsReceiver(t *testing.T) {
	r := &Result{Exponent: &Estimate{Value: 2.5}, GainDbi: &Estimate{}}
	for radio, want := range map[string]string{"": "", "ofdm_recent": "ofdm_recent", "dsss_orinoco": "dsss_orinoco",
		"ns2_wavelan": "", "disc": ""} {
		f, err := r.field(&environment.Field{Radio: radio})
		if err != nil || f.Radio != want {
			t.Errorf("radio %q: the calibrated field has %q (%v), want %q", radio, f.Radio, err, want)
		}
	}
}
