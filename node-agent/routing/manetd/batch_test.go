package manetd

import "testing"

// Room for packets is used again, whole and by one at a time.
func TestRoomIsUsedAgain(t *testing.T) {
	s := newSlab(1500)
	a := s.take()
	before := len(s.free)
	packet := a[:100]
	s.put(append(packet, make([]byte, tailroom)...)) // a header was put in
	if len(s.free) != before+1 {
		t.Fatal("what was given back is gone")
	}
	b := s.take()
	if &a[0] != &b[0] || len(b) != 1500 || cap(b) != 1500+tailroom {
		t.Errorf("room of %d bytes, %d with what is behind it", len(b), cap(b))
	}
	s.put(b[20:]) // it no longer begins where it did
	s.put(make([]byte, 40))
	if len(s.free) != before {
		t.Error("what is no room for a packet was taken back")
	}
	if c := s.take(); !sameRoom(b, b[20:60]) || sameRoom(b, c) || sameRoom(nil, b) {
		t.Error("which packets share their room is not known")
	}
	for range 2 * slabFree {
		s.put(make([]byte, s.bytes))
	}
	if len(s.free) > slabFree {
		t.Errorf("%d are kept", len(s.free))
	}
}
