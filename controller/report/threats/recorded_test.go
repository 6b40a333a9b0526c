package threats

import (
	"testing"

	"fieldmesh.dev/fieldmesh/controller/metrics"
	"fieldmesh.dev/fieldmesh/controller/report/evidence"
	"fieldmesh.dev/fieldmesh/protocols/wire"
)

func acceptedAt(trial int) evidence.Attempt {
	return evidence.Attempt{TrialKey: wire.TrialKey{Trial: trial, Attempt: 1}, Trial: wire.Trial{Number: trial},
		Verdict: &wire.Verdict{Outcome: wire.Accepted}, Mbps: new(1.0)}
}

// Each accepted trial without a result says what it lacks.
func TestWhyATrialHasNoResultIsTold(t *testing.T) {
	late, short := acceptedAt(3), acceptedAt(4)
	late.Mbps, late.Unmeasured = nil, "flow bulk: b did not sample its sockets in time at both edges of the window"
	short.Mbps, short.Unmeasured = nil, "flow bulk: the records of b end before the window's close"
	found, _ := withoutNumbers(&evidence.Run{Attempts: []evidence.Attempt{acceptedAt(1), late, short}})
	if found == nil {
		t.Fatal("two trials without a result are no threat")
	}
	says(t, found.Text, "2 accepted trials", "3.1: flow bulk: b did not sample", "4.1: flow bulk: the records of b end")
}

func TestOlderAgentsAreTold(t *testing.T) {
	old := acceptedAt(2)
	old.Unjudged = []string{"how iperf3 ended"}
	found, _ := olderAgents(&evidence.Run{Attempts: []evidence.Attempt{acceptedAt(1), old}})
	if found == nil {
		t.Fatal("an agent that does not say how iperf3 ended is no threat")
	}
	says(t, found.Text, "how iperf3 ended (trials 2.1)")
	found, clear := olderAgents(&evidence.Run{Attempts: []evidence.Attempt{acceptedAt(1)}})
	if found != nil || clear != "" {
		t.Errorf("%+v %q", found, clear)
	}
}

func TestWhatCapturesLackIsTold(t *testing.T) {
	drops := func(trial int, n float64) metrics.Row {
		return metrics.Row{Trial: trial, Attempt: 1, Name: metrics.CaptureDropped, Value: n}
	}
	rejected := acceptedAt(3)
	rejected.Verdict = &wire.Verdict{Outcome: wire.Rejected}
	d := &evidence.Run{Attempts: []evidence.Attempt{acceptedAt(1), acceptedAt(2), rejected},
		Table: []metrics.Row{drops(1, 0), drops(2, 12), drops(3, 900)}}
	found, _ := captureDrops(d)
	if found == nil {
		t.Fatal("dropped packets are no threat")
	}
	says(t, found.Text, "dropped 12 packets from the captures of 1 of 2 accepted trials", "2.1: 12")
	d.Table = d.Table[:1]
	if found, clear := captureDrops(d); found != nil ||
		clear != "The kernels dropped nothing from the captures of 1 accepted trial." {
		t.Errorf("%+v %q", found, clear)
	}
	if found, clear := captureDrops(&evidence.Run{}); found != nil || clear != "" {
		t.Errorf("without captures: %+v %q", found, clear)
	}
}
