package wire

import "fmt"

// Signature is a node's word for its records of an attempt, or of no trial, since its last one on that.
//
// Its header names the attempt. A node signs before it says that an attempt is kept; what it had not signed when it was
// ended stays unsigned.
type Signature struct {
	Records  uint64 `json:"records"`   // how many are signed
	FirstSeq uint64 `json:"first_seq"` // the first of them
	LastSeq  uint64 `json:"last_seq"`  // the last of them
	// seq of the signature before this one, whatever it is on; 0: the first of the agent's life or of the run
	AfterSeq uint64 `json:"after_seq"`
	// SHA-256 of their SHA-256s, one after another, each of a line without its newline; hexadecimal
	SHA256 string `json:"sha256" redact:"keep"`
	// the node's public key, SubjectPublicKeyInfo in base64
	Key string `json:"key" redact:"keep"`
	// ECDSA of the message's SHA-256, ASN.1 in base64
	Signature string `json:"signature" redact:"keep"`
}

func (*Signature) Kind() string { return "signature" }

// Message is what is signed.
func (s *Signature) Message(h Header) []byte {
	return fmt.Appendf(nil, "fieldmesh records 1\nnode %s\nepoch %s\nrun %s\ntrial %d attempt %d\n"+
		"%d records %d to %d after %d\nsha256 %s\n", h.Node, h.Epoch, h.Run, h.Trial, h.Attempt, s.Records, s.FirstSeq,
		s.LastSeq, s.AfterSeq, s.SHA256)
}
