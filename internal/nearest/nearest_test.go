package nearest

import (
	"strings"
	"testing"
)

func TestWord(t *testing.T) {
	known := []string{"speed_mps", "duration_s", "direction", "sender", "speed_band_mps", "802.11b", "802.11g"}
	for word, want := range map[string]string{
		"sped_mps": "speed_mps", "speed_msp": "speed_mps", "duration": "duration_s", "xyz": "", "": "",
		"snedre": "sender", "speed": "speed_mps", "band": "speed_band_mps", "11g": "802.11g", "802.11": "802.11b",
		strings.Repeat("speed_mps", 100): "",
	} {
		if got := Word(word, known); got != want {
			t.Errorf("nearest to %q is %q, want %q", word, got, want)
		}
	}
}

func TestSlip(t *testing.T) {
	known := []string{"monday", "friday-2"}
	for word, want := range map[string]string{"munday": "monday", "mondya": "monday", "friday": "friday-2",
		"tuesday": "", "m": "", "": "", "monday": "monday"} {
		if got := Slip(word, known); got != want {
			t.Errorf("%s: %q, want %q", word, got, want)
		}
	}
}
