package trial

import (
	"time"

	"fieldmesh.dev/fieldmesh/protocols/wire"
)

const (
	// restInterval is the beat of all samplers but that of positions while no window
	// can open yet, and restEnds is how long before the first moment at which one can.
	restInterval = time.Second
	restEnds     = 2 * time.Second
)

// restUntil returns until when a node need not sample much: no window opens before
// the time that the gate waits for. 0: from the beginning it must.
func restUntil(t wire.Trial, armedNs int64) int64 {
	if t.Gate.AfterS == nil {
		return 0
	}
	rest := time.Duration(*t.Gate.AfterS*float64(time.Second)) - restEnds
	if rest <= 0 {
		return 0
	}
	return armedNs + rest.Nanoseconds()
}

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
