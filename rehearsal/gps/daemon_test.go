package gps

import (
	"testing"

	"fieldmesh.dev/fieldmesh/internal/earth"
	"fieldmesh.dev/fieldmesh/rehearsal/mobility"
	"fieldmesh.dev/fieldmesh/test/fuzz"
)

func FuzzDecodeReport(f *testing.F) {
	f.Add([]byte(`{"class":"TPV","mode":3,"time":"2026-01-01T00:00:00.000Z","lat":50.1,"lon":8.2,"speed":3.4}`))
	f.Add([]byte(`{"class":"VERSION","release":"3.22"}`))
	f.Add([]byte(`{"class":"TPV","mode":1}`))
	fuzz.Run(f, func(t *testing.T, line []byte) {
		r, ok, err := decodeReport(line)
		if ok && (err != nil || r.Class != "TPV") {
			t.Errorf("%+v %v", r, err)
		}
		r.At(earth.Site{LatDeg: 50, LonDeg: 8}, mobility.State{}) // must not panic on what is absent
	})
}
