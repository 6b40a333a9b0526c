package metrics

import (
	"slices"
	"testing"

	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// heardAt is what b's radio has of a peer in ticks from one second to another.
func heardAt(peer string, dbm, from, to float64) (out []wire.Record) {
	for s := from; s < to; s += 0.1 {
		out = append(out, told("b", s, &wire.Station{Peer: peer, SignalDbm: &dbm, InactiveMs: new(20.0)}))
	}
	return out
}

// A signal is that of the sender, which told its radio's address, in the timeline as in the means. Where it told none,
// the only peer that was heard may be somebody else.
func TestASignalIsTheSendersOrNobodys(t *testing.T) {
	a, x := heardAt("02:a", -50, 0, 10), heardAt("02:x", -80, 0, 10)
	told := []wire.Record{told("a", 0, &wire.Provenance{MAC: "02:a"})}
	for name, c := range map[string]struct {
		records []wire.Record
		want    *float64
	}{
		"the sender's":              {slices.Concat(told, a), new(-50.0)},
		"the sender's and another":  {slices.Concat(told, x, a), new(-50.0)},
		"another alone":             {slices.Concat(told, x), nil},
		"one peer, and no address":  {a, nil},
		"two peers, and no address": {slices.Concat(a, x), nil},
	} {
		at := measured(wire.Trial{Relays: []string{"c"}}, c.records...)
		s := &set{at: at}
		s.radio()
		var along mean
		for _, p := range at.Timeline() {
			if p.SignalDbm != nil {
				along.add(*p.SignalDbm)
			}
		}
		for what, got := range map[string]*float64{"mean": Value(s.rows, "", SignalMeanDbm), "along": along.value()} {
			if (got == nil) != (c.want == nil) || got != nil && int(*got) != int(*c.want) {
				t.Errorf("%s, %s: %v, want %v", name, what, show(got), show(c.want))
			}
		}
	}
}

// A radio of the kernel's that loses its peer and finds it again counts its retries from 0; an
// emulated one, of which lines may be missing, counts on.
func TestRetriesToAPeerThatComesBack(t *testing.T) {
	address := told("b", 0, &wire.Provenance{MAC: "02:b"})
	records := []wire.Record{address, told("a", 0, &wire.Provenance{Radio: &wire.Caps{Driver: "ath9k_htc"}})}
	for i := range 101 {
		s, n := float64(i)/10, uint64(100+100*i) // 100 to 1000 in the first second
		if s > 0.9 {
			n = uint64(100 * (i - 50)) // 2000 to 5000 in the last three
		}
		records = append(records, told("a", s, &wire.Survey{Channel: 1}))
		if s <= 0.9 || s >= 7 {
			records = append(records, told("a", s, &wire.Station{Peer: "02:b", TxRetries: &n}))
		}
	}
	s := &set{at: measured(wire.Trial{}, records...)}
	s.radio()
	if got := Value(s.rows, "", "tx_retries"); got == nil || *got != 900+5000 {
		t.Errorf("tx_retries %v, want 5900", show(got))
	}
	emulated := &set{at: measured(wire.Trial{}, append(records[2:], address)...)}
	emulated.radio()
	if got := Value(emulated.rows, "", "tx_retries"); got == nil || *got != 4900 {
		t.Errorf("emulated: tx_retries %v, want 4900", show(got))
	}
	if got := Value(s.rows, "", "tx_failed"); got != nil {
		t.Errorf("tx_failed %v of a driver that does not count them", *got)
	}
}
