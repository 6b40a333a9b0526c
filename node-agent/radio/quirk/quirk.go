// Package quirk knows how drivers of radios lie or half work: they say that a
// network is joined and it is another one, or none. What tells is what is heard
// after the join. Each quirk is a file, All is their order. It reads nothing
// and sets nothing itself.
package quirk

import (
	"time"

	"fieldmesh.dev/fieldmesh/node-agent/nl80211"
)

// Seen is what is known of a radio's interface some time after a join.
type Seen struct {
	Want      *nl80211.Network // that was asked for; nil where nobody knows
	Interface nl80211.Interface
	Cell      *nl80211.BSS  // that it is in, nil for none
	Cells     []nl80211.BSS // that it hears or has heard
	Stations  []nl80211.Station
	Joined    time.Duration // for how long it is in this network
}

// Quirk is one way to lie.
type Quirk struct {
	Name string // a word for records: split_cell
	// Fatal: nothing that is measured with it means what it seems to mean.
	Fatal bool
	// Look says what is wrong, empty for nothing.
	Look func(Seen) string
	Cure string
}

// Finding is a quirk that was seen.
type Finding struct {
	Quirk
	What string
}

// String is the finding in words, its name first.
func (f Finding) String() string { return f.Name + ": " + f.What + "; " + f.Cure }

// All are the quirks, what explains others first.
func All() []Quirk {
	return []Quirk{ignoredBSSID(), otherChannel(), splitCell(), htRates(), deadCell()}
}

// Find gives those that are to be seen.
func Find(s Seen) []Finding {
	var out []Finding
	for _, q := range All() {
		if what := q.Look(s); what != "" {
			out = append(out, Finding{Quirk: q, What: what})
		}
	}
	return out
}
