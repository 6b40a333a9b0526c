package unsigned

import (
	"crypto/sha256"
	"encoding/hex"
	"testing"
)

func sumOf(lines ...string) string {
	all := sha256.New()
	for _, l := range lines {
		one := sha256.Sum256([]byte(l))
		all.Write(one[:])
	}
	return hex.EncodeToString(all.Sum(nil))
}

// What a signature is on is given up with what came before it; what follows waits.
func TestRecordsWaitForTheirSignature(t *testing.T) {
	var none *Records
	if sum, held := none.Take(1, 9); sum != sumOf() || held != 0 || none.Count() != 0 {
		t.Errorf("of none: %s, %d", sum, held)
	}
	r := &Records{}
	for seq, line := range []string{"a", "b", "c", "d"} {
		r.Add(uint64(seq)+1, []byte(line))
	}
	if sum, held := r.Take(2, 3); sum != sumOf("b", "c") || held != 2 || r.Count() != 1 {
		t.Errorf("of 2 to 3: %s, %d, %d wait", sum, held, r.Count())
	}
	if sum, held := r.Take(4, 4); sum != sumOf("d") || held != 1 || r.Count() != 0 {
		t.Errorf("of the last: %s, %d, %d wait", sum, held, r.Count())
	}
}
