package threats

import (
	"strings"
	"testing"

	"fieldmesh.dev/fieldmesh/controller/archive"
	"fieldmesh.dev/fieldmesh/test/synthetic"
)

// A laptop that was replaced between two days is another radio, though the campaign has one unit for it.
func TestOtherHardwareOfANodeIsAThreat(t *testing.T) {
	d := gathered(t, synthetic.Run(t, synthetic.Options{Seed: 5, Speeds: []float64{2.8}, Repetitions: 2}))
	const title = "A node was not the same hardware throughout"
	d.Info.Place = archive.PlaceRoad
	results := d.Results()
	set := func(i int, mac, machine string) {
		p := results[i].Node["roadside"]
		p.MAC, p.Machine = mac, machine
		results[i].Node["roadside"] = p
	}
	for i := range results {
		set(i, "02:00:00:00:00:01", "ThinkPad X230")
	}
	if found, _ := viewed(t, d); strings.Contains(found, title) {
		t.Fatal(found)
	}
	set(0, "02:00:00:00:00:02", "ThinkPad X230")
	found, _ := viewed(t, d)
	says(t, found, title, "roadside: MAC address 02:00:00:00:00:01 and 02:00:00:00:00:02.")
	set(0, "02:00:00:00:00:01", "ThinkPad X220")
	found, _ = viewed(t, d)
	says(t, found, "roadside: machine ThinkPad X220 and ThinkPad X230.")
	d.Info.Place = archive.PlaceRehearsal
	if found, _ = viewed(t, d); strings.Contains(found, title) {
		t.Error(found)
	}
}
