package spool

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"hash"
	"maps"
	"slices"

	"fieldmesh.dev/fieldmesh/internal/keys"
	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// Signer signs a message with the node's key.
type Signer func(message []byte) (keys.Signed, error)

// signEveryNs bounds the time of which the records may stay unsigned when the
// node is ended in it.
const signEveryNs = 10e9

// subject is what a signature is on: a run's records of an attempt, or of none.
type subject struct {
	run string
	key wire.TrialKey
}

// unsigned are the records of a subject since its last signature.
type unsigned struct {
	said    wire.Signature // without its sum
	sum     hash.Hash
	fromNs  int64 // boot time of the first
	lastNs  int64 // of the last
	subject subject
}

// toSign counts a record that was taken. mu is held.
func (s *Spool) toSign(h wire.Header, line []byte) *unsigned {
	of := subject{h.Run, wire.TrialKey{Trial: h.Trial, Attempt: h.Attempt}}
	u := s.unsigned[of]
	if u == nil {
		u = &unsigned{subject: of, sum: sha256.New(), fromNs: h.TBootNs, said: wire.Signature{FirstSeq: h.Seq}}
		s.unsigned[of] = u
	}
	one := sha256.Sum256(line)
	u.sum.Write(one[:])
	u.said.Records++
	u.said.LastSeq, u.lastNs = h.Seq, h.TBootNs
	return u
}

// sign appends a signature of what is unsigned of a subject. Records that cannot
// be signed are records all the same: it is tried again with those that follow. mu
// is held.
func (s *Spool) sign(u *unsigned) {
	b := u.said
	b.AfterSeq, b.SHA256 = s.signed[u.subject.run], hex.EncodeToString(u.sum.Sum(nil))
	h := wire.Header{TBootNs: u.lastNs, Run: u.subject.run, Trial: u.subject.key.Trial, Attempt: u.subject.key.Attempt,
		Node: s.node, Epoch: s.epoch}
	signed, err := s.opt.Sign(b.Message(h))
	if err != nil {
		return
	}
	b.Key, b.Signature = signed.Key, signed.Signature
	h, _, err = s.take(h, &b)
	if err != nil {
		return
	}
	if len(s.signed) > rememberRuns {
		clear(s.signed)
	}
	s.signed[h.Run] = h.Seq
	delete(s.unsigned, u.subject)
}

// Begin has the signatures of a run follow none, and be on none of the records of a
// former run of its name, whose archive was deleted. That one may be over: Reopen comes first.
func (s *Spool) Begin(run string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	maps.DeleteFunc(s.unsigned, func(of subject, _ *unsigned) bool { return of.run == run })
	delete(s.signed, run)
}

// rememberRuns bounds for how many runs the newest signature is remembered.
const rememberRuns = 16

// signAll signs what is left. mu is held.
func (s *Spool) signAll() {
	left := slices.SortedFunc(maps.Values(s.unsigned), func(x, y *unsigned) int {
		return cmp.Compare(x.said.FirstSeq, y.said.FirstSeq)
	})
	for _, u := range left {
		s.sign(u)
	}
}
