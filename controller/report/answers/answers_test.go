package answers

import "testing"

// Near 1 three digits would not say on which side a ratio is.
func TestRatiosNearOne(t *testing.T) {
	for v, want := range map[float64]string{1.00125: "1.0013", 0.9961: "0.9961", 1: "1", 1.05: "1.05", 0.98: "0.98"} {
		if got := nearOne(v); got != want {
			t.Errorf("%g: %s, want %s", v, got, want)
		}
	}
}
