package measure

import "fieldmesh.dev/fieldmesh/protocols/wire"

// Before reads the data sockets that are known, shortly before an edge of the
// window. It looks for no others, so that it is quick.
func (t *TCP) Before(edge string) ([]wire.Body, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	samples, err := t.ask()
	data := samples[:0]
	for _, s := range samples {
		if s.Stream != nil {
			s.Edge = wire.BeforeEdge + edge
			data = append(data, s)
		}
	}
	return t.bodies(nil, data, err)
}

// Missed is what an edge's samples leave out.
type Missed struct {
	Unknown   int // sockets that were met before, are gone, and of whose end the kernel has not told; they are given up
	Unwatched int // strangers' sockets beyond those that are reported
}

// Edge finds and reads all data sockets of the flows now, for an edge of the
// window: "open" or "close". A socket that was destroyed since the last sample
// has its last one; one that was gone before has none.
func (t *TCP) Edge(name string, tBootNs int64) (bodies []wire.Body, missed Missed, err error) {
	if len(t.flows) == 0 {
		return nil, missed, nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.listen()
	samples, err := t.look(t.lookedNs)
	if err == nil && t.programs != nil && !t.deaf {
		samples, err = t.strangers(samples)
	}
	if err == nil {
		samples, err = t.awaitEnds(samples)
	}
	// Sockets come after either edge: the flow's, and those of a link that comes back while
	// its ends still wait. Whoever is seen alive only now is no part of the window before.
	t.looked, t.within = false, name == "open"
	if name == "open" {
		t.openNs = tBootNs
		clear(t.standing)
	}
	data := samples[:0]
	for _, s := range samples {
		if s.Stream != nil || s.Stranger {
			s.Edge = name
			data = append(data, s)
		}
	}
	if err == nil {
		missed = Missed{Unknown: t.giveUp(data), Unwatched: max(t.strange-strangersMost, 0)}
	}
	t.watch(tBootNs, data)
	bodies, err = t.bodies(nil, data, err)
	return bodies, missed, err
}
