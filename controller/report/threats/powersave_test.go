package threats

import (
	"testing"

	"fieldmesh.dev/fieldmesh/controller/report/evidence"
	"fieldmesh.dev/fieldmesh/protocols/wire"
)

func TestStationsThatMaySleepAreTold(t *testing.T) {
	run := func(may ...*bool) *evidence.Run {
		d := &evidence.Run{}
		for i, on := range may {
			a := acceptedAt(i + 1)
			a.Node = map[string]wire.Provenance{"a": {Radio: &wire.Caps{PowerSave: on}}, "b": {}}
			d.Attempts = append(d.Attempts, a)
		}
		return d
	}
	found, _ := stationsSlept(run(new(false), new(true), new(true)))
	if found == nil {
		t.Fatal("no threat")
	}
	says(t, found.Text, "a, in 2 accepted trials")
	if found, clear := stationsSlept(run(new(false), nil)); found != nil || clear == "" {
		t.Errorf("none may: %+v %q", found, clear)
	}
	if found, clear := stationsSlept(run(nil, nil)); found != nil || clear != "" {
		t.Errorf("none tells: %+v %q", found, clear)
	}
}
