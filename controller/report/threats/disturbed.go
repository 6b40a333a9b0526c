package threats

import (
	"fmt"
	"slices"

	"fieldmesh.dev/fieldmesh/controller/metrics"
	"fieldmesh.dev/fieldmesh/controller/report/evidence"
	"fieldmesh.dev/fieldmesh/controller/report/words"
	"fieldmesh.dev/fieldmesh/internal/verdict"
	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// sum adds up a number over attempts, and counts those in which it is not 0.
func sum(values []float64) (total float64, in int) {
	for _, v := range values {
		if total += v; v > 0 {
			in++
		}
	}
	return total, in
}

// strangersPackets reports what came to the flows' ports from elsewhere. It is in
// no amount, but it was on the air.
func strangersPackets(d *evidence.Run) (*Threat, string) {
	values := evidence.NumbersOf(d.Results(), metrics.RefusedPackets)
	if len(values) == 0 {
		return nil, ""
	}
	total, in := sum(values)
	if in == 0 {
		return nil, "Nothing came to the flows' ports from elsewhere."
	}
	return &Threat{"Strangers sent to the flows' ports", fmt.Sprintf("%.0f packets from other addresses were "+
		"refused in %s, at most %.0f in one. They are in no amount, but they had their share of the medium.",
		total, words.Count(in, "accepted trial"), slices.Max(values))}, ""
}

// ownFilters reports what nodes' own firewalls stopped of the flows.
func ownFilters(d *evidence.Run) (*Threat, string) {
	total, in := sum(evidence.NumbersOf(d.Results(), metrics.FilteredPackets))
	if in == 0 {
		return nil, ""
	}
	return &Threat{"A node's own firewall stopped packets of the flows", fmt.Sprintf("%.0f packets in %s, "+
		"though not all of a flow, which would have failed the attempt. What a firewall stops looks like loss "+
		"on the air. Let the flows' ports pass between the mesh's addresses.",
		total, words.Count(in, "accepted trial"))}, ""
}

// socketsLeft reports connections that outlived their trial.
func socketsLeft(d *evidence.Run) (*Threat, string) {
	if _, in := sum(evidence.NumbersOf(d.Attempts, metrics.SocketsLeft)); in > 0 {
		return &Threat{"Connections outlived their trials", fmt.Sprintf("In %s a node could not end all "+
			"connections or drop what waited to be sent: it may have been on the air in the next window. The "+
			"records of kind edge have the errors.", words.Count(in, "attempt"))}, ""
	}
	return nil, ""
}

// muchUnsure is the share of an amount that may be from outside of the window
// above which it is called a threat: a steady flow's is a beat of the sampler in
// windows of two seconds.
const muchUnsure = 0.05

// unsureAmounts bounds what the edges' samples can have changed.
func unsureAmounts(d *evidence.Run) (*Threat, string) {
	worst, in, n := 0.0, 0, 0
	for _, a := range d.Results() {
		for _, f := range a.Trial.Traffic {
			mb, unsure := metrics.Value(a.Rows, f.Name, metrics.TransferredMB),
				metrics.Value(a.Rows, f.Name, metrics.TransferredUnsureMB)
			if mb == nil || unsure == nil || *mb == 0 {
				continue
			}
			n++
			share := *unsure / *mb
			if worst = max(worst, share); share > muchUnsure {
				in++
			}
		}
	}
	if n == 0 {
		return nil, ""
	}
	text := fmt.Sprintf("At most %.1f %% of an amount came between the last sample before an edge of its "+
		"window and the edge's own", 100*worst)
	if in > 0 {
		return &Threat{"Much came at the edges of windows", text + fmt.Sprintf("; more than %g %% in %s. How "+
			"much of it came within the window is not known.", 100*muchUnsure, words.Count(in, "amount"))}, ""
	}
	return nil, text + "."
}

// standstills tells how long the agents of accepted trials did not run. That of a relay is not judged by it.
func standstills(d *evidence.Run) (*Threat, string) {
	worst, over, n := 0.0, 0, 0
	for _, a := range d.Results() {
		ms := a.Number(metrics.StandstillMaxMs)
		if ms == nil {
			continue
		}
		n++
		worst = max(worst, *ms)
		if *ms > verdict.StallMsMax(wire.Window{CloseBootNs: a.Trial.Duration().Nanoseconds()}) {
			over++
		}
	}
	switch {
	case n == 0:
		return nil, ""
	case over == 0:
		return nil, fmt.Sprintf("No agent that is watched stood still for longer than %.0f ms in the window of an "+
			"accepted trial.", worst)
	}
	return &Threat{"An agent stood still", fmt.Sprintf("In %s an agent did not run for longer than one at an end of a "+
		"flow may: at most for %.0f ms of the window. Relays are not judged by it, because their kernels forward "+
		"without the agent; one whose whole machine stood still forwarded nothing. Keep relays awake, and not busy.",
		words.Count(over, "accepted trial"), worst)}, ""
}
