package plan

import (
	"slices"
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

// A run of an earlier version may have what changes nothing in its disc; it is resumed and reported.
func TestAnArchivedDiscMayHaveWhatChangesNothing(t *testing.T) {
	for _, keys := range []string{
		"propagation: disc, antenna_height_m: 2, antenna_gain_dbi: 3, noise_figure_db: 6, tx_power_dbm: 5, " +
			"carrier_sense_dbm: -80, energy_detect_dbm: -60, unit_noise_offset_db: {laptop-1: 1}",
		"propagation: disc, unit_power_offset_db: {laptop-1: -6}, unit_gain_offset_db: {laptop-1: 2}",
		"radio: disc, tx_power_dbm: 5, unit_power_offset_db: {laptop-1: -6}, unit_gain_offset_db: {laptop-1: 2}",
		"radio: ofdm_2003, propagation: disc, tx_power_dbm: 5, shadowing: {sigma_db: 4, decorrelation_m: 20}",
	} {
		file := []byte(strings.Replace(fine, "factors:", "field: {range_m: 150, "+keys+"}\nfactors:", 1))
		if _, err := Parse("f", file); err == nil {
			t.Errorf("%s: accepted in a new campaign", keys)
		}
		if c, err := ParseArchived("f", file, FullScale); err != nil || c.Field.RangeM == nil {
			t.Errorf("%s: of a run: %v", keys, err)
		}
	}
}

// A key of the field that changes nothing in any trial is refused, and where it changes some it is not. A run of an
// earlier version may have it; it is resumed and reported.
func TestKeysOfTheFieldThatChangeNothing(t *testing.T) {
	const g = "standard: 802.11g, channel: 6"
	for _, v := range []struct{ field, radio, levels, refused string }{
		{"propagation: log_distance, antenna_height_m: 6", g, "", "antenna_height_m: 6 changes nothing with " +
			"propagation: log_distance"},
		{"propagation: free_space, antenna_height_m: 1.5", g, "", "antenna_height_m: 1.5 changes nothing"},
		{"propagation: two_ray_ground, antenna_height_m: 6", g, "", ""},
		{"antenna_height_m: 6", g, "", ""},
		{"spacing_m: 30, mobility: {model: chain, spacing_m: 100}", g, "", "field.spacing_m: 30 changes nothing with " +
			"field.mobility"},
		{"spacing_m: 30", g, "", ""},
		{"short_preamble: true", g, "", "short_preamble: true changes nothing in these trials"},
		{"short_preamble: true", "standard: 802.11a, channel: 36", "", "short_preamble: true changes nothing"},
		{"short_preamble: true", "standard: 802.11b, channel: 6", "", ""},
		{"short_preamble: true", "channel: 6", "radio.standard, levels: [802.11b, 802.11g]", ""},
		{"short_preamble: false", g, "", ""},
		{"long_slot: false", "standard: 802.11b, channel: 6", "", "long_slot: false changes nothing in these trials"},
		{"long_slot: true", "standard: 802.11a, channel: 36", "", "long_slot: true changes nothing"},
		{"long_slot: true", g, "", ""},
		{"long_slot: true", "channel: 6", "radio.standard, levels: [802.11b, 802.11g]", ""},
		{"long_slot: true, radio: ht20", "standard: 802.11n, channel: 36", "", "long_slot: true changes nothing"},
		{"long_slot: true, radio: ht20", "standard: 802.11n, channel: 6", "", ""},
		{"long_slot: true, radio: ht20", "standard: 802.11n", "radio.channel, levels: [6, 36]", ""},
	} {
		text := strings.Replace(fine, g, v.radio, 1)
		text = strings.Replace(text, "factors:", "field: {"+v.field+"}\nfactors:", 1)
		if v.levels != "" {
			text = strings.Replace(text, "  section:", "  kind: {key: "+v.levels+"}\n  section:", 1)
		}
		_, err := Parse("f", []byte(text))
		if (err == nil) != (v.refused == "") || err != nil && (!strings.Contains(err.Error(), v.refused) ||
			!strings.Contains(err.Error(), "allowed: leave it out")) {
			t.Errorf("%s, %s, %s: %v, want %q", v.field, v.radio, v.levels, err, v.refused)
		}
		if c, err := ParseArchived("f", []byte(text), FullScale); err != nil || c.Field == nil {
			t.Errorf("%s, %s, of a run: %v", v.field, v.radio, err)
		}
	}
}

// A scale may leave out the levels in which a key of the field has a meaning; it has the key all the same.
func TestAScaleMayLeaveOutWhereAKeyOfTheFieldCounts(t *testing.T) {
	text := strings.Replace(fine, "standard: 802.11g, channel: 6", "channel: 6", 1)
	text = strings.Replace(text, "factors:", "field: {short_preamble: true}\nscales:\n  quick: {why: x, factors: "+
		"{kind: {only: [g]}}}\nfactors:\n  kind: {levels: {b: {radio: {standard: 802.11b}}, "+
		"g: {radio: {standard: 802.11g}}}}", 1)
	for _, scale := range []string{FullScale, "quick"} {
		if _, err := ParseAt("f", []byte(text), scale); err != nil {
			t.Errorf("%s: %v", scale, err)
		}
	}
}

// No radio and no emulated one had other rates for radio.legacy_rates_only: as a factor it was a placebo. A run that
// was begun with it is still read.
func TestTheKeyOfLegacyRatesIsNoMore(t *testing.T) {
	old := []byte(strings.Replace(fine, "standard: 802.11g,", "standard: 802.11g, legacy_rates_only: true,", 1))
	refused(t, old, `trial.radio: key "legacy_rates_only" is no key any more, for it changed nothing; leave it out`)
	refused(t, []byte(strings.Replace(fine, "factors:\n", "factors:\n  ht: {key: radio.legacy_rates_only, levels: "+
		"[true, false]}\n", 1)), "radio.legacy_rates_only")
	if _, err := ParseArchived("f", old, FullScale); err != nil {
		t.Errorf("of a run: %v", err)
	}
	for factor, levels := range map[string][]string{
		"{key: radio.legacy_rates_only, levels: [true, false]}":                         {"true", "false"},
		"{key: radio.legacy_rates_only, levels: {old: true, all: false}}":               {"old", "all"},
		"{key: radio, levels: {old: {legacy_rates_only: true}, all: {retry_limit: 4}}}": {"old", "all"},
		"{levels: {old: {radio: {legacy_rates_only: true}}, all: {}}}":                  {"old", "all"},
	} {
		text := strings.Replace(fine, "factors:\n", "factors:\n  ht: "+factor+"\n", 1)
		c, err := ParseArchived("f", []byte(text), FullScale)
		if err != nil {
			t.Errorf("of a run with %s: %v", factor, err)
			continue
		}
		if i := slices.IndexFunc(c.Factors, func(f Factor) bool { return f.Name == "ht" }); i < 0 ||
			!slices.Equal(c.Factors[i].Levels, levels) {
			t.Errorf("%s: %+v, want levels %q", factor, c.Factors, levels)
		}
	}
}
