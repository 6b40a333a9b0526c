package trial

import (
	"testing"

	"fieldmesh.dev/fieldmesh/node-agent/trial/gate"
	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// A car that the marshal holds at its start, for a meal or because the road is closed, uses up no attempt. One that
// sets off in that time, and does not get to its speed, does.
func TestACarThatIsHeldAtItsStartInterruptsTheAttempt(t *testing.T) {
	trial := wire.Trial{SpeedMps: new(8.0), Acceptance: wire.Acceptance{SpeedBandMps: new(1.0)},
		Course: wire.Course{Kind: "depart", SiteLatDeg: new(50.0), SiteLonDeg: new(8.0)},
		Gate:   wire.Gate{AtStart: true, SpeedBand: true, TimeoutS: 60, LeadS: 1}}
	for _, c := range []struct {
		standsS, mps float64 // and how fast it then drives
		endsS        int
		want         wire.Outcome
	}{
		{3600, 0, 1261, wire.Interrupted},
		{1000, 3, 1060, wire.Rejected},
		{0, 3, 1201, wire.Rejected}, // it never stood there
	} {
		g, latDeg := gate.New(trial, 1), 50.0
		for s := 0; ; s++ {
			now, mps := int64(s)*1e9+1, 0.0
			if float64(s) >= c.standsS {
				mps = c.mps
			}
			latDeg += mps / 111_195
			_, detail := g.Open(now, wire.GPS{Mode: 3, FixAgeMs: new(100.0), LatDeg: &latDeg, LonDeg: new(8.0),
				SpeedMps: &mps})
			if now <= g.LimitNs() {
				continue
			}
			err := gateTimeout(g, now, detail)
			if got := outcomeOf(err); got != c.want || s != c.endsS || reasonOf(err).Code != wire.ReasonGateTimeout {
				t.Errorf("a car that stands for %g s: %s after %d s (%v), want %s after %d", c.standsS, got, s, err,
					c.want, c.endsS)
			}
			break
		}
	}
}
