package design

import "slices"

// words are what a campaign may ask about besides its factors.
func words() map[string]string {
	return map[string]string{"speed": Speed, "section": Section, "interaction": Interaction, "sender_unit": Sender,
		"car_unit": Unit, "direction": Direction}
}

// Words lists what a campaign may ask about besides its factors.
func Words() []string {
	var out []string
	for w := range words() {
		out = append(out, w)
	}
	slices.Sort(out)
	return out
}

// Asked are the terms that a campaign asks about. One that names none asks about
// speed, section and each further factor, as far as they vary, and about the
// units where these change places.
func Asked(asks []string, passes []Pass) []string {
	var out []string
	for _, word := range asks {
		term, ok := words()[word]
		if !ok {
			term = termOf(passes, word)
		}
		out = append(out, term)
	}
	if len(asks) > 0 {
		return slices.Compact(out)
	}
	terms := TermsOf(passes)
	for _, name := range append([]string{Speed, Section}, FurtherFactors(passes)...) {
		if terms.Has(name) {
			out = append(out, name)
		}
	}
	if terms.Has(Unit) && terms.Has(Sender) {
		out = append(out, Sender, Unit)
	}
	return out
}
