package radio

import (
	"fmt"
	"time"

	"fieldmesh.dev/fieldmesh/node-agent/nl80211"
	"fieldmesh.dev/fieldmesh/node-agent/radio/quirk"
	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// quirks tells, once each and again for each network, how the driver lies: an
// error is one with which nothing that is measured counts. mu is held.
func (k *Kernel) quirks(tBootNs int64, i nl80211.Interface, stations []nl80211.Station) ([]wire.Body, error) {
	if i.MHz == 0 {
		k.network = ""
		return nil, nil
	}
	cells, err := k.conn.BSSes(i.Index)
	if err != nil {
		return nil, fmt.Errorf("list cells that %q hears: %w", k.iface, err)
	}
	seen := quirk.Seen{Interface: i, Cells: cells, Stations: stations}
	name := fmt.Sprintf("%d %s %d", i.Index, i.Mode, i.MHz)
	for at := range cells {
		if cells[at].Joined {
			seen.Cell = &cells[at]
			name += " " + cells[at].BSSID
		}
	}
	if name != k.network {
		k.network, k.since, k.told = name, tBootNs, map[string]string{}
	}
	seen.Joined = time.Duration(tBootNs - k.since)
	var out []wire.Body
	for _, f := range quirk.Find(seen) {
		if k.told[f.Name] == f.What {
			continue
		}
		k.told[f.Name] = f.What
		level := "warning"
		if f.Fatal {
			level = "error"
		}
		out = append(out, &wire.Event{Level: level, Text: f.String()})
	}
	return out, nil
}
