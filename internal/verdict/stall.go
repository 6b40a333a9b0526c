package verdict

import (
	"fmt"
	"math"

	"fieldmesh.dev/fieldmesh/protocols/wire"
)

const (
	// stallMsLeast is more than what processes wait for a processor on a machine
	// of two cores with six times the work that it can do (196 ms were the worst of
	// 90 s), and more than two beats of any sampler.
	stallMsLeast = 250.0
	stallShare   = 0.01
	// suspendedMsMost is more than the two clocks differ by how they are read and
	// by a rehearsal's drift; no machine sleeps for so short a time.
	suspendedMsMost = 50.0
	// slewedShareMost is more than the 500 ppm by which the kernel corrects a crystal at most
	// (MAXFREQ of include/linux/timex.h); chrony slews a clock that is wrong at up to 83,333 ppm.
	slewedShareMost = 0.001
)

// StallMsMax returns for how long, in ms, a node at an end of a flow, or its
// iperf3, may stand still within a window. In windows above 25 s it is 1 %: that
// costs a steady flow no more of its bytes. A window that is shorter than any
// campaign's has no limit.
func StallMsMax(w wire.Window) float64 {
	if w.CloseBootNs-w.OpenBootNs < shortestNs {
		return math.Inf(1)
	}
	return max(stallMsLeast, stallShare*float64(w.CloseBootNs-w.OpenBootNs)/1e6)
}

// stalled says which node was suspended within the window, or which one at an end of
// a flow stood still, as a frozen app or a stopped process does, the longest of them, or
// whose clock did not keep the window's length; empty when none did.
// What a flow carried meanwhile is not the network's doing. A relay's kernel forwards
// while its agent stands still, but not while the machine is suspended. A node that does
// not watch itself is not judged by it.
func stalled(t wire.Trial, records []wire.Record, scope Scope) wire.Reason {
	worstMs, fault := 0.0, wire.Reason{}
	for _, r := range records {
		l, ok := r.Body.(*wire.Lateness)
		if !ok || l.Source != wire.LateAgent || !scope.Final && r.Node != t.Initiator {
			continue
		}
		w := WindowOf(r.Node, records)
		if w == nil {
			continue
		}
		if l.SuspendedMs != nil && *l.SuspendedMs > suspendedMsMost {
			return stall("%s was suspended for %.4g ms within the window", r.Node, *l.SuspendedMs)
		}
		if !t.Ends(r.Node) {
			continue
		}
		most, ms := StallMsMax(*w), l.WorstUs/1e3
		slewedMost := slewedShareMost * float64(w.CloseBootNs-w.OpenBootNs) / 1e6
		if l.SlewedMs != nil && *l.SlewedMs > slewedMost && !math.IsInf(most, 1) {
			return wire.Reason{Code: wire.ReasonClockSlewed, Node: r.Node, Text: fmt.Sprintf(
				"the boot clock was slewed by %s ms within the window, limit %g", beside(*l.SlewedMs, slewedMost),
				slewedMost)}
		}
		if ms > most && ms > worstMs {
			worstMs, fault = ms, stall("%s stood still for %s ms within the window, limit %g", r.Node, beside(ms, most),
				most)
		}
	}
	return fault
}

func stall(format string, args ...any) wire.Reason {
	return wire.Reason{Code: wire.ReasonStalled, Text: fmt.Sprintf(format, args...)}
}

// stillest returns which iperf3 left its sockets alone for too long, though it was
// not seen to be stopped: one that its control group froze does so.
func stillest(t wire.Trial, records []wire.Record, scope Scope) rankedReason {
	for _, r := range records {
		s, ok := r.Body.(*wire.TCPSample)
		if !ok || s.StillMs == nil || !scope.Final && r.Node != t.Initiator {
			continue
		}
		w := WindowOf(r.Node, records)
		if w == nil || *s.StillMs <= StallMsMax(*w) {
			continue
		}
		did := "read nothing of what had come"
		for _, f := range t.Traffic {
			if f.Name == s.Flow && f.From == r.Node {
				did = "gave nothing to send"
			}
		}
		text := fmt.Sprintf("iperf3 of flow %s %s for %.4g ms within the window", s.Flow, did, *s.StillMs)
		return rankedReason{faultStill, wire.Reason{Code: wire.ReasonGenerator, Node: r.Node, Text: text}}
	}
	return rankedReason{}
}
