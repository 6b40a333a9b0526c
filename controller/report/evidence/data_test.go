package evidence

import (
	"testing"
	"time"

	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// How sure a receiver is of its speed stands beside the speed in the window, and is of the window, too: before it the
// car may have stood for minutes. When an attempt was, all its fixes tell.
func TestTheErrorOfSpeedIsThatOfTheWindow(t *testing.T) {
	const open = 1_000_000_000_000
	a := Attempt{Trial: wire.Trial{Car: "car", Roadside: "roadside"}}
	var records []wire.Record
	add := func(node string, s float64, b wire.Body) {
		records = append(records, wire.Record{Header: wire.Header{Node: node, TBootNs: open + int64(s*1e9)}, Body: b})
	}
	fix := func(node string, s, errMps float64) {
		at := morning.Add(time.Duration(s * float64(time.Second)))
		add(node, s, &wire.GPS{TimeUTC: at.Format(time.RFC3339Nano), SpeedErrMps: &errMps})
	}
	for s := -100.0; s < 0; s++ {
		fix("car", s, 0.1)
	}
	add("car", 0, &wire.Window{OpenBootNs: open, CloseBootNs: open + 10e9})
	fix("car", 0, 0.5)
	fix("car", 10, 0.7)
	fix("roadside", 5, 9)
	fix("car", 12, 0.1)
	a.gps(records)
	if a.SpeedErr == nil || *a.SpeedErr != 0.6 {
		t.Errorf("the error of speed is %v, want 0.6", a.SpeedErr)
	}
	if began, ended := a.began.Sub(morning).Seconds(), a.ended.Sub(morning).Seconds(); began != -100 || ended != 12 {
		t.Errorf("it was from %g s to %g s, want −100 s to 12 s", began, ended)
	}
	none := Attempt{Trial: a.Trial}
	if none.gps(records[:100]); none.SpeedErr != nil {
		t.Errorf("without a window: %g", *none.SpeedErr)
	}
}

// A window whose receiver fell silent lasted until it was closed, and no longer where it was closed early.
func TestAnAttemptLastsItsWindowWhenTheGPSIsSilent(t *testing.T) {
	const open, minute = 1_000_000_000_000, 60_000_000_000
	for _, lasts := range []int64{180, 20, 5} {
		a := Attempt{Trial: wire.Trial{Car: "car", DurationS: 180 * 60}}
		fix := func(node string, m int64) wire.Record {
			at := morning.Add(time.Duration(m * minute))
			return wire.Record{Header: wire.Header{Node: node, TBootNs: open + m*minute},
				Body: &wire.GPS{TimeUTC: at.Format(time.RFC3339Nano)}}
		}
		a.gps([]wire.Record{fix("car", -1), fix("car", 10), {Header: wire.Header{Node: "car"},
			Body: &wire.Window{OpenBootNs: open, CloseBootNs: open + lasts*minute}}, fix("roadside", 1)})
		if ended := int64(a.ended.Sub(morning).Minutes()); ended != max(lasts, 10) {
			t.Errorf("with a window of %d min and the last fix after 10 min it ended after %d min", lasts, ended)
		}
	}
}
