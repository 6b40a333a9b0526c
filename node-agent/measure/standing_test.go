package measure

import (
	"testing"

	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// A program that does not read what has come, and one that sends no more, did
// nothing for that long; what comes after the flow's time does not count.
func TestHowLongAProgramDidNothingIsTold(t *testing.T) {
	const s = int64(1e9)
	p := connect(t, 2, 24100)
	p.flow.From, p.flow.To, p.flow.DurationS = "sender", "receiver", 2
	receiver, sender := source(t, "receiver", p.flow), source(t, "sender", p.flow)
	edges := func(name string, at int64) (got, sent map[int]*wire.TCPSample) {
		bodies, _, err := receiver.Edge(name, at)
		got = byStream(t, bodies, err)
		bodies, _, err = sender.Edge(name, at)
		return got, byStream(t, bodies, err)
	}
	sample := func(at int64) {
		for _, src := range []*TCP{receiver, sender} {
			if _, err := src.Sample(at); err != nil {
				t.Fatal(err)
			}
		}
	}
	transfer(t, p.client[1], p.server[1], 37) // a cookie
	edges("open", 10*s)
	if _, err := p.client[0].Write(make([]byte, 5000)); err != nil {
		t.Fatal(err)
	}
	sample(10*s + s/10) // stream 0 unread; stream 1 waits for its test
	sample(10*s + 4*s/10)
	transfer(t, p.client[0], p.server[0], 3000) // it reads some
	sample(10*s + 5*s/10)
	sample(11*s + 3*s/10)
	transfer(t, p.client[0], p.server[0], 5000)
	sample(11*s + 4*s/10)
	got, sent := edges("close", 20*s)
	for name, c := range map[string]struct {
		b             *wire.TCPSample
		leastMs, most float64
	}{
		"the receiver of stream 0": {got[0], 800, 800}, "the sender of stream 0": {sent[0], 800, 800},
		"the receiver of stream 1": {got[1], 0, 0}, "the sender of stream 1": {sent[1], 0, 0},
	} {
		if c.b == nil || c.b.StillMs == nil || *c.b.StillMs < c.leastMs || *c.b.StillMs > c.most {
			t.Errorf("%s: %+v", name, c.b)
			if c.b != nil && c.b.StillMs != nil {
				t.Error(*c.b.StillMs)
			}
		}
	}
}
