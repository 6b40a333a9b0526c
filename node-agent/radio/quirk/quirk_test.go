package quirk

import (
	"strings"
	"testing"
	"time"

	"fieldmesh.dev/fieldmesh/node-agent/nl80211"
)

const (
	ours   = "02:11:22:33:44:55"
	theirs = "02:99:99:99:99:99"
	ibss   = 2 // capability of an ad hoc cell
)

// sound is a radio that does as it was told.
func sound() Seen {
	cell := nl80211.BSS{BSSID: ours, MHz: 2437, Joined: true, SSID: "road", Capability: ibss}
	inactive := 20.0
	return Seen{
		Want:      &nl80211.Network{Mode: "adhoc", SSID: "road", BSSID: ours, MHz: 2437, Width: nl80211.WidthNoHT},
		Interface: nl80211.Interface{Mode: "adhoc", MHz: 2437, Width: nl80211.WidthNoHT},
		Cell:      &cell, Cells: []nl80211.BSS{cell},
		Stations: []nl80211.Station{{MAC: theirs, InactiveMs: &inactive}},
		Joined:   time.Minute,
	}
}

func TestQuirksAreSeen(t *testing.T) {
	if found := Find(sound()); len(found) != 0 {
		t.Fatalf("a radio that does as it is told: %v", found)
	}
	other := func(change func(*nl80211.BSS)) func(*Seen) {
		return func(s *Seen) {
			c := nl80211.BSS{BSSID: theirs, MHz: 2437, SSID: "road", Capability: ibss, SeenMsAgo: 100}
			change(&c)
			s.Cells = append(s.Cells, c)
		}
	}
	long := 60000.0
	for _, c := range []struct {
		name  string
		spoil func(*Seen)
		want  string // empty: nothing is wrong
	}{
		{"another BSSID", func(s *Seen) {
			s.Cell.BSSID = theirs
		}, "ignored_bssid: the driver joined \"road\" with BSSID " + theirs},
		{"any BSSID", func(s *Seen) { s.Cell.BSSID, s.Want.BSSID = theirs, ""; s.Cells = nil }, ""},
		{"another channel", func(s *Seen) { s.Interface.MHz = 2412 }, "other_channel: the driver is on 2412 MHz"},
		{"a wider channel", func(s *Seen) {
			s.Interface.Width = "20 MHz"
		}, "other_channel: the driver made the channel"},
		{"two cells", other(func(*nl80211.BSS) {}), "split_cell: \"road\" is on the air twice"},
		{"an old cell", other(func(c *nl80211.BSS) { c.SeenMsAgo = 60000 }), ""},
		{"an access point of that name", other(func(c *nl80211.BSS) { c.Capability = 1 }), ""},
		{"a cell of another name", other(func(c *nl80211.BSS) { c.SSID = "home" }), ""},
		{"a cell on another channel", other(func(c *nl80211.BSS) { c.MHz = 2462 }), ""},
		{"rates of 802.11n", func(s *Seen) { s.Stations[0].TxHT = true }, "ht_rates: "},
		{"rates of 802.11n where they may be", func(s *Seen) {
			s.Stations[0].TxHT, s.Want, s.Interface.Width = true, nil, "20 MHz"
		}, ""},
		{"nobody", func(s *Seen) { s.Stations = nil }, "dead_cell: nothing was heard"},
		{"nobody yet", func(s *Seen) { s.Stations, s.Joined = nil, time.Second }, ""},
		{"somebody long ago", func(s *Seen) { s.Stations[0].InactiveMs = &long }, "dead_cell: "},
		{"in no network", func(s *Seen) { s.Stations, s.Cell, s.Interface.MHz = nil, nil, 0 }, ""},
		{"a station of an access point", func(s *Seen) { s.Stations, s.Interface.Mode, s.Want = nil, "managed", nil },
			""},
	} {
		s := sound()
		c.spoil(&s)
		var got []string
		for _, f := range Find(s) {
			got = append(got, f.String())
		}
		if text := strings.Join(got, "\n"); c.want == "" && text != "" || !strings.Contains(text, c.want) {
			t.Errorf("%s: found %q, want %q", c.name, text, c.want)
		}
	}
}

func TestQuirksHaveNamesAndCures(t *testing.T) {
	seen := map[string]bool{}
	for _, q := range All() {
		if q.Name == "" || q.Cure == "" || q.Look == nil || seen[q.Name] {
			t.Errorf("quirk %+v", q)
		}
		seen[q.Name] = true
	}
}
