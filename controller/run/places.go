package run

import (
	"sync"
	"time"

	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// places is where the lane's nodes are, for people to look at on any of them: a
// node tells its place when its lease is renewed, and hears the others'.
type places struct {
	mu   sync.Mutex
	told map[string]toldPlace
}

type toldPlace struct {
	wire.Place
	at time.Time // the node was asked; so its age is never given too low
}

// hear takes a node's answer; one without a place leaves the last to grow old.
func (p *places) hear(node string, asked time.Time, answer wire.Lease) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.told == nil {
		p.told = map[string]toldPlace{}
	}
	for _, place := range answer.Places {
		if place.Node == node {
			p.told[node] = toldPlace{place, asked}
		}
	}
}

// others returns all places but one node's own, with their ages now; one that was
// told since the caller read now is as old as its node said.
func (p *places) others(node string, now time.Time) []wire.Place {
	p.mu.Lock()
	defer p.mu.Unlock()
	var out []wire.Place
	for name, t := range p.told {
		t.AgeMs += float64(max(now.Sub(t.at), 0)) / 1e6
		if name != node && t.AgeMs <= wire.MaxPlaceAgeMs {
			out = append(out, t.Place)
		}
	}
	return out
}
