package verdict

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// Where several iperf3 came to grief, the one that drew the others with it is
// the reason: a server that was killed refuses its client.
const (
	faultSignal = iota // ended or stopped by somebody else
	faultStill         // did not run for a while
	faultTool          // could not do its work
	faultEarly         // ended too soon, and nobody knows why
	faultNobody        // found no server
	faultSilent        // left no record
)

type generatorFault struct {
	rank int
	text string
}

type rankedReason struct {
	rank   int
	reason wire.Reason
}

// generatorFailed returns which iperf3 of the attempt did not live through the
// window or did not find its peer; zero when all did. What an attempt
// transferred is the network's doing only if they did. An iperf3 that the
// network silenced or cut off lived.
func generatorFailed(t wire.Trial, records []wire.Record, scope Scope) rankedReason {
	ended := endsOf(records)
	var faults []rankedReason
	if fault := stillest(t, records, scope); !fault.reason.IsZero() {
		faults = append(faults, fault)
	}
	for _, f := range t.Traffic {
		if f.Timed() { // of the agent's own making: see stalled
			continue
		}
		server, client := end{f.Server(), f.Name, "server"}, end{f.Client(), f.Name, "client"}
		for _, e := range []end{server, client} {
			if !scope.Final && e.node != t.Initiator {
				continue
			}
			b, w := ended[e], WindowOf(e.node, records)
			peer := server
			if e == server {
				peer = client
			}
			if leftAlone(e.side, b, ended[peer], w, WindowOf(peer.node, records)) {
				continue
			}
			fault := faultOf(f, w, b, earlyNs(e.side, records))
			if !scope.Final && e == server && fault.rank == faultEarly && b.Ended == wire.EndedItself {
				continue // its client, of which this node knows nothing, may have left it
			}
			if fault.text != "" {
				text := fmt.Sprintf("iperf3's %s of flow %s %s", e.side, e.flow, fault.text)
				faults = append(faults, rankedReason{fault.rank,
					wire.Reason{Code: wire.ReasonGenerator, Node: e.node, Text: text}})
			}
		}
	}
	if len(faults) == 0 {
		return rankedReason{}
	}
	return slices.MinFunc(faults, func(a, b rankedReason) int { return cmp.Compare(a.rank, b.rank) })
}

// ended is the reason where somebody ended an iperf3, which no standstill explains.
func (r rankedReason) ended() wire.Reason {
	if r.rank < faultStill {
		return r.reason
	}
	return wire.Reason{}
}

// end is one side of a flow.
type end struct{ node, flow, side string }

// endsOf are the processes of an attempt as they ended.
func endsOf(records []wire.Record) map[end]*wire.Iperf3 {
	ended := map[end]*wire.Iperf3{}
	for _, r := range records {
		if b, ok := r.Body.(*wire.Iperf3); ok {
			ended[end{r.Node, b.Flow, b.Side}] = b
		}
	}
	return ended
}

// untoldNs is by how much the windows of two nodes may differ where GO does not say.
const untoldNs = 250e6

// earlyNs is how much before its flow's time is over, by its own node's window, a
// process may end. A client sends for its whole time after its start, which is
// never before the flow's. Its server ends with it, by a window that opened
// earlier or later by as much as GO was uncertain.
func earlyNs(side string, records []wire.Record) float64 {
	if side == "client" {
		return 0
	}
	if told := GoUncertaintyNs(records); told != nil {
		return min(*told, untoldNs)
	}
	return untoldNs
}

// leftAlone reports whether a process ended because its peer had, by what the
// network did to that. A server that ended leaves nobody who listens, and its
// client is refused. A client that ended closes its connection, and its server
// ends without an error.
func leftAlone(side string, b, peer *wire.Iperf3, w, pw *wire.Window) bool {
	if b == nil || peer == nil || w == nil || pw == nil || b.Ended != wire.EndedItself ||
		peer.Ended != wire.EndedItself || b.EndedBootNs == nil || peer.EndedBootNs == nil {
		return false
	}
	if left := map[string]string{"client": wire.CauseRefused, "server": ""}; b.Cause != left[side] {
		return false
	}
	switch peer.Cause {
	case wire.CauseTimeout, wire.CauseUnreachable, wire.CauseReset, wire.CausePeerGone:
		return *peer.EndedBootNs-pw.OpenBootNs <= *b.EndedBootNs-w.OpenBootNs+untoldNs
	}
	return false
}

// faultOf is what one process did that the network does not account for. What
// comes after the window's close comes too late to matter. After its flow's own
// time only a signal does, as data may still be on its way: how long a process
// then waits for its peer is the network's doing.
func faultOf(f wire.Flow, w *wire.Window, b *wire.Iperf3, earlyNs float64) generatorFault {
	if w == nil {
		return generatorFault{} // its node took no part
	}
	if b == nil {
		return generatorFault{faultSilent, "left no record"}
	}
	if b.Ended == "" { // of an agent that did not look
		if by, ok := strings.CutPrefix(b.Killed, "signal: "); ok {
			return generatorFault{faultSignal, "was ended by a signal: " + by}
		}
		return generatorFault{}
	}
	if at := b.StoppedBootNs; at != nil && *at < w.CloseBootNs {
		return generatorFault{faultSignal, "was stopped by a signal " + inWindow(*w, at)}
	}
	if at := b.FrozenBootNs; at != nil && *at < w.CloseBootNs {
		return generatorFault{faultSignal, "was frozen by its control group " + inWindow(*w, at)}
	}
	if b.Ended == wire.EndedUnstarted {
		return generatorFault{faultTool, "could not start: " + b.Error}
	}
	if b.EndedBootNs != nil && *b.EndedBootNs >= w.CloseBootNs {
		return generatorFault{}
	}
	when := inWindow(*w, b.EndedBootNs)
	if b.Ended == wire.EndedSignal {
		return generatorFault{faultSignal, fmt.Sprintf("was ended by %s %s", cmp.Or(b.Signal, "a signal"), when)}
	}
	over := w.OpenBootNs + int64((f.StartS+f.SendS())*1e9)
	if b.EndedBootNs != nil && *b.EndedBootNs >= over-int64(earlyNs) {
		return generatorFault{}
	}
	if b.Ended == wire.EndedDeadline || b.Ended == wire.EndedTrial {
		return generatorFault{faultEarly, fmt.Sprintf("was ended by its agent %s: %s", when, b.Killed)}
	}
	switch b.Cause {
	case wire.CauseRefused, wire.CauseServerBusy:
		return generatorFault{faultNobody, fmt.Sprintf("was refused %s: %s", when, b.Error)}
	case wire.CauseTool:
		return generatorFault{faultTool, fmt.Sprintf("ended %s: %s", when, cmp.Or(b.Error, "without saying why"))}
	case "":
		if b.EndedBootNs != nil {
			return generatorFault{faultEarly,
				fmt.Sprintf("ended %s, before its time was over and without an error", when)}
		}
	}
	return generatorFault{}
}

// inWindow places a moment by its node's window.
func inWindow(w wire.Window, bootNs *int64) string {
	if bootNs == nil {
		return "at an unknown time"
	}
	if s := float64(*bootNs-w.OpenBootNs) / 1e9; s >= 0 {
		return fmt.Sprintf("%.1f s into the window", s)
	}
	return "before the window opened"
}
