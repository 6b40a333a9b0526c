package distance

import (
	"net/netip"
	"slices"
	"testing"
	"time"
)

// Of a neighbour that does not hear us yet a dump in two parts is kept, also past a greeting without entries.
func TestADumpIsKeptUntilTheNeighbourHearsUs(t *testing.T) {
	addr := func(last byte) netip.Addr { return netip.AddrFrom4([4]byte{10, 0, 0, last}) }
	own, n, l := addr(1), NewNeighbors(7, time.Minute, 9), Link{Addr: addr(2)}
	for _, u := range []*Update{
		{Boot: 3, Entries: []Entry{{To: addr(3), Seq: 2}, {To: addr(4), Seq: 2}}},
		{Boot: 3, Entries: []Entry{{To: addr(5), Seq: 2}, {To: addr(4), Seq: 4}}},
		{Boot: 3},
	} {
		if a := n.Heard(0, l, own, u); a.Symmetric || a.Early != nil {
			t.Fatalf("%+v before it hears us", a)
		}
	}
	a := n.Heard(0, l, own, &Update{Boot: 3, Heard: []Heard{{own, 7}}})
	want := []Entry{{To: addr(3), Seq: 2}, {To: addr(4), Seq: 4}, {To: addr(5), Seq: 2}}
	if !a.Became || !slices.Equal(a.Early, want) {
		t.Errorf("%+v, want %v", a, want)
	}
}
