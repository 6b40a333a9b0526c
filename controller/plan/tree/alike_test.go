package tree

import "testing"

// Comments and words change no trial; whatever else is written does.
func TestCampaignsThatDifferInWords(t *testing.T) {
	const campaign = "fieldmesh: 1\ntitle: A\npaper:\n  name: p4\n  deviations: [One.]\nscales:\n  quick: " +
		"{why: Short., trial: {duration_s: 40}}\n"
	for text, same := range map[string]bool{
		campaign: true,
		"# What is it?\nfieldmesh: 1\ntitle: B\npaper:\n  name: p4\n  deviations: [Two., Three.]\nscales:\n  quick:\n" +
			"    why: Shorter.\n    trial: {duration_s: 40}\n": true,
		"fieldmesh: 1\ntitle: A\npaper:\n  name: p4\nscales:\n  quick: {why: Short., trial: {duration_s: 40}}\n": true,
		"fieldmesh: 1\ntitle: A\npaper:\n  name: p5\n  deviations: [One.]\nscales:\n  quick: {why: Short., " +
			"trial: {duration_s: 40}}\n": false,
		"fieldmesh: 1\ntitle: A\npaper:\n  name: p4\n  deviations: [One.]\nscales:\n  quick: {why: Short., " +
			"trial: {duration_s: 41}}\n": false,
		"fieldmesh: 1\ntitle: A\npaper:\n  name: p4\n  deviations: [One.]\nscales:\n  quick: {why: Short., " +
			"trial: {duration_s: 40, why: no}}\n": false,
		"{": false,
	} {
		if got := SameButForWords([]byte(campaign), []byte(text)); got != same {
			t.Errorf("the same: %v, want %v:\n%s", got, same, text)
		}
	}
}
