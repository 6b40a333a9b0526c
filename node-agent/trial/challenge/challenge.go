// Package challenge tells a GO that is new from one that somebody heard and sends again.
package challenge

import (
	"crypto/rand"
	"encoding/binary"
	"sync"
	"time"
)

// goodFor is how long an answer to a challenge counts as new.
const goodFor = 5 * time.Second

// Challenge is what a GO has to repeat to count as new. The zero value is ready.
type Challenge struct {
	mu     sync.Mutex
	number uint64 // 0: none
	at     time.Time
}

// Number returns the present challenge. It is the same for a while, so that the repetitions of a GO all
// answer it.
func (c *Challenge) Number() uint64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.number == 0 || time.Since(c.at) > goodFor {
		c.number, c.at = max(Random(), 1), time.Now()
	}
	return c.number
}

// Met reports whether answer repeats the challenge. It does so once: what somebody hears and sends again does
// not.
func (c *Challenge) Met(answer uint64) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.number == 0 || answer != c.number || time.Since(c.at) > goodFor {
		return false
	}
	c.number = 0
	return true
}

// Random is a number that nobody can guess.
func Random() uint64 {
	var b [8]byte
	_, _ = rand.Read(b[:]) // never fails
	return binary.LittleEndian.Uint64(b[:])
}
