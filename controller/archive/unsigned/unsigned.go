// Package unsigned holds the checksums of records until the signature comes that is on them.
package unsigned

import (
	"crypto/sha256"
	"encoding/hex"
)

// Records are those of one subject, in the order in which they came; nil are none.
type Records struct {
	seqs []uint64
	sums [][sha256.Size]byte
}

// Add has a record wait.
func (r *Records) Add(seq uint64, line []byte) {
	r.seqs, r.sums = append(r.seqs, seq), append(r.sums, sha256.Sum256(line))
}

// Count is how many wait.
func (r *Records) Count() int {
	if r == nil {
		return 0
	}
	return len(r.seqs)
}

// Take gives up what waits up to a record, and returns the sum of what is signed
// of it, and how many that are.
func (r *Records) Take(first, last uint64) (sum string, held uint64) {
	all := sha256.New()
	if r != nil {
		rest := Records{}
		for i, seq := range r.seqs {
			switch {
			case seq > last:
				rest.seqs, rest.sums = append(rest.seqs, seq), append(rest.sums, r.sums[i])
			case seq >= first:
				all.Write(r.sums[i][:])
				held++
			}
		}
		*r = rest
	}
	return hex.EncodeToString(all.Sum(nil)), held
}
