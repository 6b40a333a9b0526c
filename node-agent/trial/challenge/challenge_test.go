package challenge

import (
	"testing"
	"time"
)

func TestAChallengeIsMetOnceAndForAWhile(t *testing.T) {
	var c Challenge
	if c.Met(0) {
		t.Error("no challenge is met by 0")
	}
	n := c.Number()
	if n == 0 || c.Number() != n {
		t.Errorf("challenges %d and %d, want one that is not 0", n, c.Number())
	}
	if c.Met(n+1) || !c.Met(n) || c.Met(n) {
		t.Error("it is not met exactly once, by its number")
	}
	n = c.Number()
	c.at = c.at.Add(-goodFor - time.Second)
	if c.Met(n) || c.Number() == n {
		t.Error("an old one is still good")
	}
}
