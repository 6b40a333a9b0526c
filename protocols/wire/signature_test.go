package wire_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"testing"

	"fieldmesh.dev/fieldmesh/protocols/wire"
	"fieldmesh.dev/fieldmesh/test/fuzz"
)

// A signature's message is of its record alone: whatever is otherwise in it, or in
// its header, is another message.
func TestSignedMessagesDiffer(t *testing.T) {
	h := wire.Header{Node: "car", Epoch: "e1", Run: "r", Trial: 1, Attempt: 2}
	s := wire.Signature{Records: 3, FirstSeq: 4, LastSeq: 6, AfterSeq: 2, SHA256: "ab"}
	seen := map[string]string{string(s.Message(h)): "as it was"}
	for name, change := range map[string]func(h *wire.Header, s *wire.Signature){
		"node":    func(h *wire.Header, _ *wire.Signature) { h.Node = "road" },
		"epoch":   func(h *wire.Header, _ *wire.Signature) { h.Epoch = "e2" },
		"run":     func(h *wire.Header, _ *wire.Signature) { h.Run = "r2" },
		"trial":   func(h *wire.Header, _ *wire.Signature) { h.Trial = 12 },
		"attempt": func(h *wire.Header, _ *wire.Signature) { h.Attempt = 1 },
		"records": func(_ *wire.Header, s *wire.Signature) { s.Records = 34 },
		"first":   func(_ *wire.Header, s *wire.Signature) { s.FirstSeq = 5 },
		"last":    func(_ *wire.Header, s *wire.Signature) { s.LastSeq = 7 },
		"after":   func(_ *wire.Header, s *wire.Signature) { s.AfterSeq = 0 },
		"sum":     func(_ *wire.Header, s *wire.Signature) { s.SHA256 = "ac" },
	} {
		h, s := h, s
		change(&h, &s)
		m := s.Message(h)
		if other := seen[string(m)]; other != "" {
			t.Errorf("with another %s the message is that %s", name, other)
		}
		seen[string(m)] = "with another " + name
	}
}

// What a peer says under the run's key is decoded or refused, whatever it is.
func FuzzOpen(f *testing.F) {
	key := bytes.Repeat([]byte{7}, 32)
	for _, m := range []any{wire.Go{Run: "r"}, wire.Ack{}} {
		body, err := json.Marshal(m)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(body)
	}
	fuzz.Run(f, func(t *testing.T, body []byte) {
		datagram, err := wire.Seal(key, json.RawMessage(body))
		if err != nil {
			return
		}
		var g wire.Go
		var a wire.Ack
		if wire.Open(key, datagram, &g) == nil || wire.Open(key, datagram, &a) == nil {
			if len(datagram) > wire.MaxDatagram {
				t.Errorf("%d bytes were taken", len(datagram))
			}
		}
		datagram[len(datagram)-1] ^= 1
		if err := wire.Open(key, datagram, &g); !errors.Is(err, wire.ErrForged) {
			t.Errorf("a forged datagram: %v", err)
		}
	})
}
