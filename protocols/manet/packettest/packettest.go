// Package packettest holds what the tests of packets ask alike.
package packettest

import (
	"encoding/hex"
	"errors"
	"reflect"
	"testing"

	"fieldmesh.dev/fieldmesh/protocols/manet"
)

// Written is a packet beside its bytes in hex.
type Written[P any] struct {
	Name, Hex string
	Packet    P
	Data      []byte
	Parse     func([]byte) (P, error)
	// Whole, where set, reports whether so many of the first bytes are a packet, too.
	Whole func(bytes int) bool
}

// Test asks that the packet is written as it has to be, is read back as it was, and is
// malformed where it is cut.
func (w Written[P]) Test(t *testing.T) {
	t.Helper()
	if got := hex.EncodeToString(w.Data); got != w.Hex {
		t.Errorf("%s is written\n%s, want\n%s", w.Name, got, w.Hex)
	}
	if back, err := w.Parse(w.Data); err != nil || !reflect.DeepEqual(back, w.Packet) {
		t.Errorf("%s is read back as %+v, %v", w.Name, back, err)
	}
	for end := range w.Data {
		if w.Whole != nil && w.Whole(end) {
			continue
		}
		if _, err := w.Parse(w.Data[:end]); !errors.Is(err, manet.ErrMalformed) {
			t.Errorf("%s cut to %d bytes: %v", w.Name, end, err)
		}
	}
}
