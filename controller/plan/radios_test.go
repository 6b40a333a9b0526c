package plan

import (
	"strings"
	"testing"
)

// What only the emulated radio has is planned with a radio of its width, at that radio's rates and channels.
func TestStandardsOfTheEmulatedRadio(t *testing.T) {
	for _, v := range []struct{ radio, field, says string }{
		{"standard: 802.11n, channel: 6", "ht20", ""},
		{"standard: 802.11n, channel: 165, rate_mbps: 65", "ht20", ""},
		{"standard: 802.11n, channel: 36, rate_mbps: 135", "ht40", ""},
		{"standard: 802.11ac, channel: 36, rate_mbps: 390", "vht80", ""},
		{"standard: 802.11n, channel: 6", "",
			"not allowed without field.radio: ht20 or ht40, for it is for rehearsals only"},
		{"standard: 802.11ac, channel: 36", "",
			"not allowed without field.radio: vht80, for it is for rehearsals only"},
		{"standard: 802.11n, channel: 6", "vht80",
			`"802.11n" is not allowed with field.radio: vht80; allowed: 802.11ac`},
		{"standard: 802.11g, channel: 6", "ht20",
			`"802.11g" is not allowed with field.radio: ht20; allowed: 802.11n`},
		{"standard: 802.11n, channel: 6, rate_mbps: 135", "ht20",
			"135 is not allowed with field.radio: ht20; allowed: 6.5,"},
		{"standard: 802.11n, channel: 6, rate_mbps: 9", "ht20", "9 is not a rate of 802.11n"},
		{"standard: 802.11n, channel: 165", "ht40", "165 is not allowed with field.radio: ht40"},
		{"standard: 802.11ac, channel: 165", "vht80", "165 is not a channel of 802.11ac"},
		{"standard: 802.11ac, channel: 6", "vht80", "6 is not a channel of 802.11ac"},
		{"standard: 802.11n, channel: 6, legacy_rates_only: true", "ht20",
			"legacy_rates_only: true is not allowed with 802.11n"},
		{"standard: 802.11n, channel: 36", "ht40, channels: {alpha: 165}",
			"field.channels.alpha: 165 is not a channel of field.radio: ht40"},
		{"standard: 802.11n, channel: 6", "disc",
			`"802.11n" is not allowed with field.radio: disc; allowed: 802.11a or 802.11b or 802.11g`},
		{"standard: 802.11a, channel: 36, rate_mbps: 65", "ofdm_recent", "65 is not a rate of 802.11a"},
	} {
		file := strings.Replace(fine, "standard: 802.11g, channel: 6", v.radio, 1)
		if v.field != "" {
			file = strings.Replace(file, "design: {", "field: {radio: "+v.field+"}\ndesign: {", 1)
		}
		_, err := Parse("f", []byte(file))
		if (err == nil) != (v.says == "") || err != nil && !strings.Contains(err.Error(), v.says) {
			t.Errorf("%s with field.radio %q: %v, want %q", v.radio, v.field, err, v.says)
		}
	}
}
