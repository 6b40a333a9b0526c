package sumline

import (
	"testing"

	"fieldmesh.dev/fieldmesh/test/fuzz"
)

func TestLinesAreReadBack(t *testing.T) {
	// The check value of CRC-32C (Castagnoli) is that of "123456789".
	if got := string(Append([]byte("before\n"), []byte("123456789"))); got != "before\ne3069283 123456789\n" {
		t.Errorf("written %q", got)
	}
	for line, want := range map[string]bool{
		"e3069283 123456789": true,
		"e3069283 123456788": false,
		"E3069283 123456789": false,
		"e3069283":           false,
		"":                   false,
		"00000000 ":          true, // the checksum of nothing
	} {
		text, ok := Text([]byte(line))
		if ok != want || ok && string(text) != line[9:] {
			t.Errorf("of %q: %q, %t", line, text, ok)
		}
	}
}

func FuzzText(f *testing.F) {
	f.Add([]byte("e3069283 123456789"))
	f.Add([]byte("e3069283"))
	fuzz.Run(f, func(t *testing.T, line []byte) {
		text, ok := Text(line)
		if again := Append(nil, text); ok && string(again) != string(line)+"\n" {
			t.Errorf("%q is taken, and would be written %q", line, again)
		}
	})
}
