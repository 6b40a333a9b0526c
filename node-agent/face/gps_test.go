package face

import (
	"strings"
	"testing"

	"fieldmesh.dev/fieldmesh/node-agent/config"
	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// Whoever has no fix is told where it should come from: gpsd, or the phone's app.
func TestGPSProblem(t *testing.T) {
	const gpsd = "127.0.0.1:2947"
	for name, c := range map[string]struct {
		gpsd        string
		gps         *wire.GPS
		found, cure string // in the words; "": there is no problem
	}{
		"no gpsd": {gpsd, nil, "gpsd does not answer at " + gpsd, "start gpsd"},
		"gpsd has no fix": {gpsd, &wire.GPS{Connected: true, Mode: 1}, "no fix (mode 1)",
			"the receiver a view of the sky"},
		"gpsd's fix":     {gpsd, &wire.GPS{Connected: true, Mode: 3, FixAgeMs: new(900.0)}, "", ""},
		"no app":         {config.NoGPSD, &wire.GPS{}, "no app tells where", `"Use this phone's GPS"`},
		"the app is new": {config.NoGPSD, nil, "no app tells where", `"Use this phone's GPS"`},
		"the app is indoors": {config.NoGPSD, &wire.GPS{Connected: true, Mode: 1}, "from the app",
			"the phone a view of the sky"},
		"the app's is old": {config.NoGPSD, &wire.GPS{Connected: true, Mode: 3, FixAgeMs: new(3001.0)}, "from the app",
			"again"},
		"the app's fix": {config.NoGPSD, &wire.GPS{Connected: true, Mode: 3, FixAgeMs: new(900.0)}, "", ""},
	} {
		found, cure := gpsProblem(c.gpsd, c.gps)
		if !strings.Contains(found, c.found) || !strings.Contains(cure, c.cure) || (found == "") != (c.found == "") ||
			(cure == "") != (found == "") {
			t.Errorf("%s: %q, %q", name, found, cure)
		}
	}
}
