package trial

import (
	"time"

	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// restInterval is the beat of all samplers but that of positions while no window can open yet.
const restInterval = time.Second

// wake ends the samplers' rest: a peer that was armed late hears GO in it.
func (a *attempt) wake() {
	for _, s := range a.samplers {
		s.Wake()
	}
	if a.pulse != nil {
		a.pulse.Wake()
	}
}

// gpsSource gives a position at each beat; while the other sources rest each fix, and
// how the receiver does as often as they tell.
type gpsSource struct {
	r           Receiver
	restUntilNs int64
	toldNs      int64 // when it last gave one
}

func (g *gpsSource) Name() string { return "gps" }

func (g *gpsSource) Sample(tBootNs int64) ([]wire.Body, error) {
	t := g.r.Tick()
	if t.FixBootNs == nil && tBootNs < g.restUntilNs && tBootNs-g.toldNs < restInterval.Nanoseconds() {
		return nil, nil
	}
	g.toldNs = tBootNs
	return []wire.Body{&t}, nil
}
