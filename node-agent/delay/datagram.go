package delay

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"fmt"

	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// A datagram is, in network byte order:
//
//	 0  4 bytes   "fmd1"
//	 4  1 byte    1: request, 2: answer
//	 5  1 byte    of an answer, 1: the kernel stamped its request's arrival
//	 6  2 bytes   0
//	 8  4 bytes   the request's number
//	12  4 bytes   0
//	16  8 bytes   of an answer: when its request came, the responder's boot clock, ns
//	24  8 bytes   of an answer: when it was handed to the kernel, the same
//	32  …         0
//	    16 bytes  HMAC-SHA256 of all before, cut to its first half (RFC 2104, 5)
type datagram struct {
	kind       byte
	number     uint32
	byKernel   bool
	receivedNs int64
	handedNs   int64
}

const (
	magic = "fmd1"

	request = 1
	answer  = 2

	macBytes  = sha256.Size / 2
	macFirst  = wire.DelayBytesMin - macBytes // least place of the code
	atKind    = 4
	atKernel  = 5
	atNumber  = 8
	atReceive = 16
	atHanded  = 24
)

// Key makes the key of a flow in one attempt from that of its run, so that a
// datagram of another attempt, or of another flow, is none of this one.
func Key(run []byte, name string, k wire.TrialKey, flow string) []byte {
	mac := hmac.New(sha256.New, run)
	fmt.Fprintf(mac, "delay %q %d %d %q", name, k.Trial, k.Attempt, flow)
	return mac.Sum(nil)
}

// seal encodes the datagram in size bytes and authenticates it.
func (d datagram) seal(key []byte, size int) []byte {
	b := make([]byte, size)
	copy(b, magic)
	b[atKind] = d.kind
	if d.byKernel {
		b[atKernel] = 1
	}
	binary.BigEndian.PutUint32(b[atNumber:], d.number)
	binary.BigEndian.PutUint64(b[atReceive:], uint64(d.receivedNs))
	binary.BigEndian.PutUint64(b[atHanded:], uint64(d.handedNs))
	copy(b[size-macBytes:], code(key, b[:size-macBytes]))
	return b
}

func code(key, b []byte) []byte {
	mac := hmac.New(sha256.New, key)
	mac.Write(b)
	return mac.Sum(nil)[:macBytes]
}

// open decodes a datagram of a kind; false: it is not authentic, or of another kind.
func open(key, b []byte, kind byte) (datagram, bool) {
	if len(b) < macFirst+macBytes || !bytes.HasPrefix(b, []byte(magic)) || b[atKind] != kind ||
		!hmac.Equal(b[len(b)-macBytes:], code(key, b[:len(b)-macBytes])) {
		return datagram{}, false
	}
	return datagram{kind: kind, byKernel: b[atKernel] == 1, number: binary.BigEndian.Uint32(b[atNumber:]),
		receivedNs: int64(binary.BigEndian.Uint64(b[atReceive:])),
		handedNs:   int64(binary.BigEndian.Uint64(b[atHanded:]))}, true
}
